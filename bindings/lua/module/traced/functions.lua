-- SPDX-License-Identifier: Apache-2.0
-- Functions of traced values. Axes count from 0, as in Python; positions in x[i] and x:slice from 1,
-- as everywhere in Lua.

local others = {} -- what tn has beside the functions of this file
for name, thing in pairs(tn) do others[name] = thing end

local unary = {
  acos = "Acos", acosh = "Acosh", asin = "Asin", asinh = "Asinh", atan = "Atan", atanh = "Atanh",
  cos = "Cos", cosh = "Cosh", erf = "Erf", exp = "Exp", gelu = "Gelu", log = "Log",
  reciprocal = "Reciprocal", relu = "Relu", sigmoid = "Sigmoid", silu = "Swish", sin = "Sin",
  sinh = "Sinh", softplus = "Softplus", sqrt = "Sqrt", tan = "Tan", tanh = "Tanh", isnan = "IsNaN", isinf = "IsInf",
}
for name, op in pairs(unary) do
  tn[name] = function(x) return node(op, { as_float(x) }) end
end
-- Whole numbers and truth values stay what they are.
for name, op in pairs({ ceil = "Ceil", floor = "Floor", round = "Round" }) do
  tn[name] = function(x)
    local value = as_value(x)
    return bits[value.dtype] and node(op, { value }) or value
  end
end

-- What an operator of numbers is of truth values, as in NumPy; those that are not here take them as numbers.
local of_truth = {
  Abs = "", Add = "Or", BitwiseAnd = "And", BitwiseNot = "Not", BitwiseOr = "Or", BitwiseXor = "Xor", Equal = "Equal",
  Max = "Or", Min = "And", Mul = "And",
}
local not_of_truth = { Neg = "logical_not", Sign = "astype first", Sub = "logical_xor" }
local function as_number(x) return x.dtype == "bool" and cast(x, "int8") or x end
local function apply(op, operands)
  if operands[1].dtype ~= "bool" then return node(op, operands) end
  if not_of_truth[op] then
    fail(op, ": expected numbers, got truth values; use tn.", not_of_truth[op])
  end
  local logic = of_truth[op]
  if logic == "" then return operands[1] end
  if logic then return node(logic, operands) end
  for i, x in ipairs(operands) do operands[i] = as_number(x) end
  return node(op, operands)
end
for name, op in pairs({ abs = "Abs", bitwise_invert = "BitwiseNot", negative = "Neg", sign = "Sign" }) do
  tn[name] = function(x) return apply(op, { as_value(x) }) end
end

local binary = {
  add = "Add", bitwise_and = "BitwiseAnd", bitwise_or = "BitwiseOr", bitwise_xor = "BitwiseXor",
  equal = "Equal", greater = "Greater", greater_equal = "GreaterOrEqual", less = "Less",
  less_equal = "LessOrEqual", maximum = "Max", minimum = "Min", multiply = "Mul", subtract = "Sub",
}
for name, op in pairs(binary) do
  tn[name] = function(a, b) return apply(op, alike(a, b)) end
end

-- Of truth values: whether one product is true.
local function product(op, operands, attributes)
  if operands[1].dtype ~= "bool" then return node(op, operands, attributes) end
  for i, x in ipairs(operands) do operands[i] = cast(x, "int32") end
  return cast(node(op, operands, attributes), "bool")
end
function tn.matmul(a, b) return product("MatMul", alike(a, b)) end

local function as_bool(x) return cast(as_value(x), "bool") end
for name, op in pairs({ logical_and = "And", logical_or = "Or", logical_xor = "Xor" }) do
  tn[name] = function(a, b) return node(op, { as_bool(a), as_bool(b) }) end
end
function tn.logical_not(x) return node("Not", { as_bool(x) }) end
function tn.not_equal(a, b) return node("Not", { tn.equal(a, b) }) end

function tn.divide(a, b)
  local both = alike(a, b)
  return node("Div", { as_float(both[1]), as_float(both[2]) })
end

-- A power of 2 is a product, of 0.5 a square root.
function tn.pow(a, b)
  if b == 0.5 then return tn.sqrt(a) end
  local x = as_value(a)
  if b == 1 then return x end
  x = as_number(x)
  if b == 2 then return node("Mul", { x, x }) end
  local both = alike(a, b)
  return node("Pow", { as_number(both[1]), as_number(both[2]) })
end
function tn.square(x) return tn.pow(x, 2) end

function tn.where(condition, a, b)
  local both = alike(a, b)
  return node("Where", { as_bool(condition), both[1], both[2] })
end

function tn.clip(x, low, high)
  local value = as_value(x)
  if low then value = tn.maximum(value, low) end
  if high then value = tn.minimum(value, high) end
  return value
end

function tn.astype(x, dtype) return cast(as_value(x), dtype) end

-- Axes.
local function axis_of(axis, rank)
  if math.type(axis) ~= "integer" or axis < -rank or axis >= rank then
    fail("axis: expected one of ", -rank, " to ", rank - 1, ", got ", tostring(axis))
  end
  return axis % rank
end

local function axes_of(axis, rank)
  local axes = {}
  if axis == nil then
    for i = 1, rank do axes[i] = i - 1 end
  elseif type(axis) == "table" then
    for i, one in ipairs(axis) do axes[i] = axis_of(one, rank) end
  else
    axes[1] = axis_of(axis, rank)
  end
  return axes
end

-- x, the axis or a list of them (nil: all), whether to keep them with size 1.
local function reduce(op, x, axis, keep)
  local axes = axes_of(axis, #x.shape)
  if #axes == 0 then return x end
  return node(op, { x, integers(axes) }, { keepdims = keep and 1 or 0 })
end
-- There is no largest of no elements.
local function not_empty(x, axes)
  for _, axis in ipairs(axes) do
    if x.shape[axis + 1] == 0 then fail("axis ", axis, " of ", describe(x), ": expected one element at least") end
  end
end
local function number_of(x, axis, keep) return reduce("ReduceSum", cast(x, "int64"), axis, keep) end
function tn.any(x, axis, keep) return cast(number_of(as_bool(x), axis, keep), "bool") end
function tn.all(x, axis, keep)
  return tn.logical_not(number_of(tn.logical_not(x), axis, keep))
end
function tn.count_nonzero(x, axis, keep) return number_of(as_bool(x), axis, keep) end
for name, op in pairs({ max = "ReduceMax", min = "ReduceMin" }) do
  local of_flags = name == "max" and tn.any or tn.all
  tn[name] = function(x, axis, keep)
    local value = as_value(x)
    not_empty(value, axes_of(axis, #value.shape))
    if value.dtype == "bool" then return of_flags(value, axis, keep) end
    return reduce(op, value, axis, keep)
  end
end
-- x in the type in which it is added or multiplied up: integers in 64 bits, truth values counted.
local function summed(x)
  local value = as_value(x)
  if bits[value.dtype] then return value end
  return cast(value, value.dtype:find("^u") and "uint64" or "int64")
end
for name, op in pairs({ sum = "ReduceSum", prod = "ReduceProd" }) do
  tn[name] = function(x, axis, keep) return reduce(op, summed(x), axis, keep) end
end
for name, op in pairs({ mean = "ReduceMean", logsumexp = "ReduceLogSumExp" }) do
  tn[name] = function(x, axis, keep) return reduce(op, as_float(x), axis, keep) end
end
function tn.var(x, axis, keep)
  local value = as_float(x)
  local distance = node("Sub", { value, reduce("ReduceMean", value, axis, true) })
  return reduce("ReduceMean", node("Mul", { distance, distance }), axis, keep)
end
function tn.std(x, axis, keep) return tn.sqrt(tn.var(x, axis, keep)) end
for name, op in pairs({ argmax = "ArgMax", argmin = "ArgMin" }) do
  tn[name] = function(x, axis, keep)
    local value = as_value(x)
    if value.dtype == "bool" then value = cast(value, "uint8") end
    if axis == nil then value, axis = tn.reshape(value, { -1 }), 0 end
    not_empty(value, { axis_of(axis, #value.shape) })
    return node(op, { value }, { axis = axis_of(axis, #value.shape), keepdims = keep and 1 or 0 })
  end
end

-- Shapes.
function tn.reshape(x, shape)
  return node("Reshape", { as_value(x), integers(shape) }, { allowzero = 1 })
end
function tn.permute_dims(x, axes)
  local value = as_value(x)
  return node("Transpose", { value }, { perm = axes_of(axes, #value.shape) })
end
function tn.transpose(x)
  local value, order = as_value(x), {}
  for i = 1, #value.shape do order[i] = #value.shape - i end
  return #order < 2 and value or node("Transpose", { value }, { perm = order })
end
function tn.expand_dims(x, axis)
  local value = as_value(x)
  return node("Unsqueeze", { value, integers({ axis_of(axis or 0, #value.shape + 1) }) })
end
function tn.squeeze(x, axis)
  local value = as_value(x)
  return node("Squeeze", { value, integers(axes_of(axis, #value.shape)) })
end
function tn.broadcast_to(x, shape) return node("Expand", { as_value(x), integers(shape) }) end
function tn.concat(list, axis)
  local values = alike(table.unpack(list))
  return node("Concat", values, { axis = axis_of(axis or 0, #values[1].shape) })
end
function tn.stack(list, axis)
  local wide = {}
  for i, x in ipairs(list) do wide[i] = tn.expand_dims(x, axis or 0) end
  return tn.concat(wide, axis or 0)
end
function tn.take(x, indices, axis)
  local value = as_value(x)
  return node("Gather", { value, as_value(indices) }, { axis = axis_of(axis or 0, #value.shape) })
end
-- Positions first..last of an axis, from 1; last may be left out.
function tn.slice(x, axis, first, last)
  local value = as_value(x)
  axis = axis_of(axis, #value.shape)
  local ends = last or math.maxinteger
  return node("Slice", { value, integers({ first - 1 }), integers({ ends }), integers({ axis }) })
end

-- One node of any operator that a plugin brings: tn.op("Relu", x), tn.op("acme.Squircle", { x, y },
-- { power = 4 }); what stands before the last dot is the domain. false: an input that is left out.
-- outputs: how many it has; several are a list.
function tn.op(name, inputs, attributes, outputs)
  local domain, kind_of = name:match("^(.*)%.([^.]*)$")
  local list = type(inputs) == "table" and not is_traced(inputs) and inputs or { inputs }
  local values = {}
  for i, x in ipairs(list) do values[i] = x and as_value(x) end
  local made = nodes(kind_of or name, values, outputs or 1, attributes, domain)
  return outputs and outputs ~= 1 and made or made[1]
end

-- Networks. Images are [batch, channels, height, width].
function tn.softmax(x, axis) return node("Softmax", { as_float(x) }, { axis = axis or -1 }) end
function tn.log_softmax(x, axis) return node("LogSoftmax", { as_float(x) }, { axis = axis or -1 }) end
function tn.one_hot(labels, classes, dtype)
  local value, places = as_value(labels), {}
  for i = 1, classes do places[i] = i - 1 end
  local key = value.dtype .. "places" .. classes
  local all = constant(key, function(b) return b:numbers(places, value.dtype) end)
  return cast(node("Equal", { tn.expand_dims(value, -1), all }), dtype or "float32")
end
function tn.linear(x, weight, bias)
  local product = tn.matmul(x, weight)
  return bias and tn.add(product, bias) or product
end
local function each(sizes, rank)
  if type(sizes) == "table" then return sizes end
  local list = {}
  for i = 1, rank do list[i] = sizes end
  return list
end
local function twice(list)
  local both = {}
  for i, x in ipairs(list) do both[i], both[#list + i] = x, x end
  return both
end
-- x [b, c, ...], weight [m, c/groups, ...], bias [m] or nil; options stride, padding (numbers or
-- "same"), dilation, groups
function tn.conv(x, weight, bias, options)
  local o = options or {}
  local inputs = bias and alike(x, weight, bias) or alike(x, weight)
  local rank = #inputs[1].shape - 2
  local given = { strides = each(o.stride or 1, rank), dilations = each(o.dilation or 1, rank), group = o.groups or 1 }
  if o.padding == "same" then
    given.auto_pad = "SAME_UPPER"
  else
    given.pads = twice(each(o.padding or 0, rank))
  end
  return node("Conv", inputs, given)
end
for name, op in pairs({ max_pool = "MaxPool", avg_pool = "AveragePool" }) do
  tn[name] = function(x, window, options)
    local value, o = as_float(x), options or {}
    local rank = #value.shape - 2
    return node(op, { value }, {
      kernel_shape = each(window, rank),
      strides = each(o.stride or window, rank),
      pads = twice(each(o.padding or 0, rank)),
    })
  end
end
function tn.layer_norm(x, scale, bias, epsilon)
  local inputs = bias and alike(x, scale, bias) or alike(x, scale)
  return node("LayerNormalization", inputs, { axis = -1, epsilon = epsilon or 1e-5 })
end

-- Random numbers: those of the graph, so the same in each call, or of key: one or two integers, the seed and the
-- stream. Make the step's number part of the key for others in each step.
local function drawn(kind, shape, key)
  if key == nil then
    return node(kind == "normal" and "RandomNormal" or "RandomUniform", {}, { shape = shape })
  end
  local value = cast(as_value(key), "int64")
  if #value.shape == 0 then value = node("Unsqueeze", { value, integers({ 0 }) }) end
  return node("Random", { is_traced(shape) and shape or integers(shape), value }, { kind = kind }, "tenon")
end
function tn.random_uniform(shape, key) return drawn("uniform", shape, key) end
function tn.random_normal(shape, key) return drawn("normal", shape, key) end
-- Each element becomes 0 with the probability ratio, the others are divided by 1 - ratio. For training only.
function tn.dropout(x, ratio, key)
  local value = as_float(x)
  ratio = ratio or 0.5
  if ratio < 0 or ratio >= 1 then fail("dropout: ratio: expected a number in 0..1, 1 excluded, got ", ratio) end
  if key == nil then return node("Dropout", { value, number(ratio, "float32"), as_value(true) }) end
  local keep = tn.greater_equal(drawn("uniform", node("Shape", { value }), key), ratio)
  return tn.where(keep, value * (1 / (1 - ratio)), 0)
end

-- Operators and methods.
for name, call in pairs({
  __add = tn.add, __sub = tn.subtract, __mul = tn.multiply, __div = tn.divide, __pow = tn.pow,
  __band = tn.bitwise_and, __bor = tn.bitwise_or, __bxor = tn.bitwise_xor,
}) do
  Value[name] = call
end
Value.__unm, Value.__bnot = tn.negative, tn.bitwise_invert
-- What a / b leaves, with the sign of a, and where that is not the sign of b: exact, as a quotient that is rounded
-- before it is cut is not.
local function rest_of(a, b)
  local rest = node("Mod", { a, b }, { fmod = 1 })
  return rest, tn.logical_and(tn.not_equal(rest, 0), tn.logical_xor(tn.less(rest, 0), tn.less(b, 0)))
end
function Value.__mod(a, b)
  local both = alike(a, b)
  both[1], both[2] = as_number(both[1]), as_number(both[2])
  if not bits[both[1].dtype] then return node("Mod", both) end
  local rest, beyond = rest_of(both[1], both[2])
  return tn.where(beyond, rest + both[2], rest)
end
function Value.__idiv(a, b)
  local x, y = table.unpack(alike(a, b))
  x, y = as_number(x), as_number(y)
  if not bits[x.dtype] then return node("Div", { x - x % y, y }) end
  local rest, beyond = rest_of(x, y)
  local whole = tn.round((x - rest) / y) - cast(beyond, x.dtype)
  return tn.where(tn.equal(y, 0), tn.floor(x / y), whole)
end
local function refuse(sign, name)
  return function()
    fail("a ", sign, " b: the answer would be needed while the function is traced; use tn.", name,
      "(a, b), and tn.where instead of if")
  end
end
Value.__lt, Value.__le, Value.__eq = refuse("<", "less"), refuse("<=", "less_equal"), refuse("==", "equal")
function Value.__len(x) return x.shape[1] or fail("#x: expected at least one axis") end
function Value.__tostring(x) return describe(x) end
function Value.__newindex()
  fail("traced values do not change; use tn.where or tn.concat for a new one")
end
for name in ("sum mean prod max min var std argmax argmin reshape astype squeeze slice clip transpose take"):gmatch("%a+") do
  methods[name] = function(...) return tn[name](...) end
end
-- x.T, x:sum(axis), x[i]: the i-th part along the first axis
function Value.__index(x, key)
  if key == "T" then return tn.transpose(x) end
  if math.type(key) ~= "integer" then return methods[key] end
  local size = x.shape[1]
  if not size or key < 1 or size >= 0 and key > size then
    fail("x[", key, "]: expected a position of ", describe(x), ", counted from 1")
  end
  return tn.squeeze(tn.slice(x, 0, key, key), 0)
end
