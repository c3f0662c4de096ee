-- SPDX-License-Identifier: Apache-2.0
-- Traced values: tables with a metatable whose operators add nodes to the graph under trace. The
-- files of this folder are one chunk, called with the table `tn` and the native functions.
local tn, native = ...
local error, setmetatable, getmetatable, rawget, rawequal = error, setmetatable, getmetatable, rawget, rawequal
local ipairs, pairs, type, tostring, tonumber = ipairs, pairs, type, tostring, tonumber
local select, next = select, next
local pcall, math, table, string = pcall, math, table, string

local Value = {} -- metatable of traced values
local methods = {}
local traces = {} -- under construction, the innermost last

-- Stops with the script's own line in front.
local function fail(...)
  error(native.where() .. table.concat({ ... }), 0)
end

local function is_traced(x)
  return type(x) == "table" and rawequal(getmetatable(x), Value)
end

local function kind(x)
  return is_traced(x) and "traced" or native.kind(x)
end

local function current(what)
  local trace = traces[#traces]
  if not trace then fail(what or "this function", ": expected to be called inside tn.jit, tn.grad or tn.vmap") end
  return trace
end

local function new_value(trace, id, weak)
  local dtype, shape = trace.builder:type(id)
  return setmetatable({ trace = trace, id = id, dtype = dtype, shape = shape, weak = weak }, Value)
end

local function describe(x)
  if not is_traced(x) then return kind(x) end
  return "traced " .. x.dtype .. "[" .. table.concat(x.shape, ", ") .. "]"
end

local function new_trace()
  return { builder = native.builder(), captured = {}, own = {}, constants = {}, names = {} }
end

local function add_input(trace, name, dtype, shape, weak)
  while trace.names[name] do name = name .. "_" end
  trace.names[name] = true
  return new_value(trace, trace.builder:input(name, dtype, shape), weak)
end

-- The value as one of the innermost trace: one of a trace around it becomes an input.
local function lift(x)
  local trace = current()
  if rawequal(x.trace, trace) then return x end
  local alive = false
  for _, outer in ipairs(traces) do alive = alive or rawequal(outer, x.trace) end
  if not alive then
    fail("expected a value of the function being traced, got one that outlived its function: return it instead")
  end
  if not trace.own[x] then
    trace.own[x] = add_input(trace, "captured" .. #trace.captured, x.dtype, x.shape)
    trace.captured[#trace.captured + 1] = x
  end
  return trace.own[x]
end

-- One node; its values.
local function nodes(op, inputs, outputs, attributes, domain)
  local trace = current(op)
  local ids = {}
  for i, input in ipairs(inputs) do ids[i] = input and input.id or 0 end
  local ok, made = pcall(trace.builder.node, trace.builder, op, ids, outputs, attributes or {}, domain or "")
  if not ok then fail((tostring(made):gsub("^%[?[^:%]]*%]?:%d+: ", ""))) end
  local values = {}
  for i, id in ipairs(made) do values[i] = new_value(trace, id) end
  return values
end

local function node(op, inputs, attributes, domain)
  return nodes(op, inputs, 1, attributes, domain)[1]
end

local function constant(key, make)
  local trace = current()
  local known = trace.constants[key]
  if not known then
    known = new_value(trace, make(trace.builder))
    trace.constants[key] = known
  end
  return known
end

local function number(x, dtype)
  return constant(dtype .. string.format("%q", x), function(b) return b:numbers(x, dtype) end)
end

-- A list of int64, as axes and shapes are.
local function integers(list)
  return constant("[" .. table.concat(list, ",") .. "]", function(b) return b:numbers(list, "int64") end)
end

-- Types.
local bits = { float16 = 16, bfloat16 = 16, float32 = 32, float64 = 64 }

local function together(a, b)
  if a == nil or a == b then return b end
  if bits[a] and bits[b] then
    if bits[a] == bits[b] then return "float32" end
    return bits[a] > bits[b] and a or b
  end
  if bits[a] or bits[b] then return bits[a] and a or b end
  -- Integers and truth values, as the array API standard has it; NumPy's float64 where no integer holds both.
  if a == "bool" or b == "bool" then return a == "bool" and b or a end
  local a_sign, a_size = a:match("^(u?)int(%d+)$")
  local b_sign, b_size = b:match("^(u?)int(%d+)$")
  a_size, b_size = tonumber(a_size), tonumber(b_size)
  if a_sign == b_sign then return a_size > b_size and a or b end
  local unsigned, signed = a_sign == "u" and a_size or b_size, a_sign == "u" and b_size or a_size
  if unsigned < signed then return "int" .. signed end
  return unsigned < 64 and "int" .. 2 * unsigned or "float64"
end

local function with_number(dtype, x)
  if dtype == nil then return math.type(x) == "integer" and "int64" or "float32" end
  if bits[dtype] or math.type(x) == "integer" and dtype ~= "bool" then return dtype end
  return math.type(x) == "integer" and "int64" or "float32"
end

local function cast(x, dtype)
  return x.dtype == dtype and x or node("Cast", { x }, { to = { dtype = dtype } })
end

-- x as a traced value: a number takes dtype, a tensor becomes a constant.
local function as_value(x, dtype)
  local what = kind(x)
  if what == "traced" then return lift(x) end
  if what == "number" then return number(x, dtype or with_number(nil, x)) end
  if what == "boolean" then return cast(number(x and 1 or 0, "int64"), "bool") end
  if what == "tensor" then return constant(x, function(b) return b:constant(x) end) end
  fail("expected a traced value, a tensor or a number, got ", what)
end

-- The operands as values of the one type that they give together.
local function alike(...)
  local given, wanted = { ... }, nil
  for i = 1, select("#", ...) do
    local x = given[i]
    if kind(x) ~= "number" then
      given[i] = as_value(x)
      if not given[i].weak then wanted = together(wanted, given[i].dtype) end
    end
  end
  for _, x in ipairs(given) do
    if type(x) == "number" then
      wanted = with_number(wanted, x)
    elseif x.weak then
      wanted = with_number(wanted, x.dtype == "int64" and 1 or 1.5)
    end
  end
  for i, x in ipairs(given) do given[i] = cast(as_value(x, wanted), wanted) end
  return given
end

local function as_float(x)
  local value = as_value(x, type(x) == "number" and "float32" or nil)
  return bits[value.dtype] and value or cast(value, "float32")
end
