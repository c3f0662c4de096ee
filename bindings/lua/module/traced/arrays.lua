-- SPDX-License-Identifier: Apache-2.0
-- More functions of traced values, by the array API's names: elements, order, shapes, creation.

-- Elements.
function tn.rsqrt(x) return tn.reciprocal(tn.sqrt(x)) end
function tn.log2(x) return tn.log(x) * (1 / math.log(2)) end
function tn.log10(x) return tn.log(x) * (1 / math.log(10)) end
-- exp(x) - 1 and log(1 + x), exact near 0: there neither has a difference that cancels. What is not chosen gets 0
-- for x, so that it has a finite gradient too.
local function by_size(x, near_zero, plain)
  local value = as_float(x)
  local near = tn.less(tn.abs(value), 0.5)
  return tn.where(near, near_zero(tn.where(near, value, 0)), plain(tn.where(near, 0, value)))
end
function tn.expm1(x)
  return by_size(x, function(small)
    return tn.exp(small * 0.5) * tn.sinh(small * 0.5) * 2
  end, function(large) return tn.exp(large) - 1 end)
end
function tn.log1p(x)
  return by_size(x, function(small)
    return tn.atanh(small / (small + 2)) * 2
  end, function(large) return tn.log(large + 1) end)
end
function tn.trunc(x)
  local value = as_value(x)
  return bits[value.dtype] and tn.sign(value) * tn.floor(tn.abs(value)) or value
end
function tn.isfinite(x) return tn.logical_not(tn.logical_or(tn.isinf(x), tn.isnan(x))) end
function tn.logaddexp(a, b)
  local both = alike(a, b)
  both[1], both[2] = as_float(both[1]), as_float(both[2])
  local same = tn.equal(both[1], both[2]) -- two infinities have no difference
  local apart = tn.abs(tn.where(same, 0, both[1] - both[2]))
  return tn.maximum(both[1], both[2]) + tn.softplus(-apart)
end

-- Along an axis.
local function along(value, axis, default) return axis_of(axis or default, #value.shape) end
local function known_size(value, axis)
  local size = value.shape[axis + 1]
  if size < 0 then fail("axis ", axis, " of ", describe(value), ": expected a size that is known") end
  return size
end

for name, op in pairs({ cumulative_sum = "CumSum", cumulative_prod = "CumProd" }) do
  tn[name] = function(x, axis)
    local value = summed(x)
    return node(op, { value, number(along(value, axis, 0), "int64") })
  end
end
-- The first k in order along an axis, and their places from 0; equal ones keep their order.
local function ordered(x, axis, largest, k)
  local value = as_value(x)
  axis = along(value, axis, -1)
  local given = { axis = axis, largest = largest and 1 or 0, sorted = 1 }
  local whole = value.dtype == "bool" and cast(value, "uint8") or value
  local made = nodes("TopK", { whole, integers({ k or known_size(value, axis) }) }, 2, given)
  return cast(made[1], value.dtype), made[2]
end
function tn.sort(x, axis, descending) return (ordered(x, axis, descending)) end
function tn.argsort(x, axis, descending) return (select(2, ordered(x, axis, descending))) end
-- The k largest elements and their places; the smallest with largest = false.
function tn.top_k(x, k, axis, largest)
  local found, places = ordered(x, axis, largest ~= false, k)
  return { values = found, indices = places }
end
function tn.take_along_axis(x, indices, axis)
  local value = as_value(x)
  return node("GatherElements", { value, as_value(indices) }, { axis = along(value, axis, -1) })
end

-- Shapes.
function tn.moveaxis(x, from, to)
  local value, order = as_value(x), {}
  local rank = #value.shape
  from, to = axis_of(from, rank), axis_of(to, rank)
  for a = 0, rank - 1 do
    if a ~= from then order[#order + 1] = a end
  end
  table.insert(order, to + 1, from)
  return tn.permute_dims(value, order)
end
function tn.matrix_transpose(x) return tn.moveaxis(x, -1, -2) end
function tn.tile(x, repeats) return node("Tile", { as_value(x), integers(repeats) }) end
function tn.flip(x, axis)
  local value, parts = as_value(x), { {}, {}, {} }
  local axes = axes_of(axis, #value.shape)
  for i in ipairs(axes) do parts[1][i], parts[2][i], parts[3][i] = -1, -math.maxinteger, -1 end
  return node("Slice", { value, integers(parts[1]), integers(parts[2]), integers(axes), integers(parts[3]) })
end
function tn.roll(x, shift, axis)
  local value = as_value(x)
  if not axis then return tn.reshape(tn.roll(tn.reshape(value, { -1 }), shift, 0), value.shape) end
  axis = axis_of(axis, #value.shape)
  local by = shift % math.max(known_size(value, axis), 1)
  if by == 0 then return value end
  local size = known_size(value, axis)
  return tn.concat({ tn.slice(value, axis, size - by + 1), tn.slice(value, axis, 1, size - by) }, axis)
end
function tn.diff(x, axis)
  local value = as_value(x)
  axis = along(value, axis, -1)
  local after, before = tn.slice(value, axis, 2), tn.slice(value, axis, 1, known_size(value, axis) - 1)
  if value.dtype == "bool" then return tn.not_equal(after, before) end
  return after - before
end
-- A table of equal parts along an axis.
function tn.split(x, parts, axis)
  local value = as_value(x)
  axis = along(value, axis, 0)
  local size, each_size = known_size(value, axis), {}
  if parts < 1 or size % parts ~= 0 then fail("parts: expected a divisor of ", size, ", got ", parts) end
  for i = 1, parts do each_size[i] = size // parts end
  return nodes("Split", { value, integers(each_size) }, parts, { axis = axis })
end
for name, upper in pairs({ tril = 0, triu = 1 }) do
  tn[name] = function(x, k) return node("Trilu", { as_value(x), number(k or 0, "int64") }, { upper = upper }) end
end

-- Products.
function tn.vecdot(a, b, axis)
  local both = alike(a, b)
  if both[1].dtype == "bool" then return tn.any(tn.logical_and(both[1], both[2]), axis or -1) end
  return cast(tn.sum(tn.multiply(both[1], both[2]), axis or -1), both[1].dtype)
end
-- As "bij,bjk->bik" says.
function tn.einsum(equation, ...) return product("Einsum", alike(...), { equation = equation }) end

-- Creation.
local function list_of(count, f)
  local list = {}
  for i = 1, count do list[i] = f(i - 1) end
  return list
end
local function vector(list, dtype) return constant({}, function(b) return b:numbers(list, dtype) end) end
function tn.full(shape, x, dtype)
  return node("Expand", { number(x, dtype or with_number(nil, x)), integers(shape) })
end
function tn.full_like(x, filling, dtype)
  local value = as_value(x)
  return node("Expand", { number(filling, dtype or value.dtype), node("Shape", { value }) })
end
function tn.zeros_like(x) return tn.full_like(x, 0) end
function tn.ones_like(x) return tn.full_like(x, 1) end
-- start, start + step, ... below stop; from 0 with one argument.
function tn.arange(start, stop, step)
  if not stop then start, stop = 0, start end
  step = step or 1
  local whole = math.type(start) == "integer" and math.type(step) == "integer"
  local count = math.max(0, math.ceil((stop - start) / step))
  return vector(list_of(count, function(i) return start + i * step end), whole and "int64" or "float32")
end
-- count numbers from start to stop, both among them.
function tn.linspace(start, stop, count)
  local step = count > 1 and (stop - start) / (count - 1) or 0
  return vector(list_of(count, function(i) return start + i * step end), "float32")
end
function tn.eye(rows, columns, k)
  columns, k = columns or rows, k or 0
  local ones = list_of(rows * columns, function(i) return i % columns - i // columns == k and 1 or 0 end)
  return tn.reshape(vector(ones, "float32"), { rows, columns })
end

for name in ("any all sort argsort flip roll"):gmatch("%a+") do
  methods[name] = function(...) return tn[name](...) end
end

local array_functions = {}
for name, f in pairs(tn) do
  if others[name] ~= f then array_functions[name] = f end
end
