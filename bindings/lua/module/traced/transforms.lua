-- SPDX-License-Identifier: Apache-2.0
-- tn.jit and tn.model. Arguments are tensors, numbers, and tables of them: lists, or names with values, which
-- are taken in the order of the names.

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
  end)
  return keys
end

-- Layers and compiled functions are tables that can be called.
local function is_function(x)
  local meta = type(x) == "table" and getmetatable(x)
  return type(x) == "function" or type(meta) == "table" and meta.__call ~= nil
end

local function is_leaf(x) return type(x) ~= "table" or is_traced(x) or is_function(x) end

-- The leaves of x in order, appended to list, with a name for each in names.
local function flatten(x, name, list, names)
  if not is_leaf(x) then
    for _, key in ipairs(sorted_keys(x)) do
      flatten(x[key], name == "" and tostring(key) or name .. "." .. tostring(key), list, names)
    end
    return list, names
  end
  list[#list + 1] = x
  names[#names + 1] = name
  return list, names
end

-- x with other leaves: change(leaf) in the same order. nil has none.
local function map_leaves(x, change)
  if x == nil then return nil end
  if is_leaf(x) then return change(x) end
  local made = {}
  for _, key in ipairs(sorted_keys(x)) do made[key] = map_leaves(x[key], change) end
  return made
end

-- The structure of x as text, which is another one for { a = { b = x } } and { ["a.b"] = x }.
local function structure_of(x)
  if is_leaf(x) then return x == nil and "nil" or "." end
  local parts = {}
  for i, key in ipairs(sorted_keys(x)) do parts[i] = string.format("%q", key) .. structure_of(x[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function type_of(x)
  local what = kind(x)
  if what == "traced" then return x.dtype, x.shape, x.weak end
  if what == "tensor" then return x:dtype(), x:shape() end
  if what == "number" then return math.type(x) == "integer" and "int64" or "float32", {}, true end
  fail("expected tensors, numbers, or tables of them, got ", what)
end

-- What a float of Lua among the arguments of a call becomes: beside float64 no digit of it is lost.
local function float_type(leaves)
  for _, leaf in ipairs(leaves) do
    if type(leaf) ~= "number" and type_of(leaf) == "float64" then return "float64" end
  end
  return "float32"
end

-- batch: the axis, from 0, whose size stays open.
local function as_input(trace, x, name, batch)
  local dtype, shape, weak = type_of(x)
  if math.type(x) == "float" then dtype = trace.floats or dtype end
  if batch and batch < #shape then
    shape = table.move(shape, 1, #shape, 1, {})
    shape[batch + 1] = "batch"
  end
  return add_input(trace, name, dtype, shape, weak)
end

-- Runs body with a new trace; the trace ends in any case.
local function traced(body)
  local trace = new_trace()
  open_trace(trace)
  local results = table.pack(pcall(body, trace))
  close_trace(trace)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

local function finish(trace, results)
  for i, x in ipairs(results) do trace.builder:output("result" .. i - 1, x.id) end
  return trace.builder:build()
end

-- The model with one more output: the number of the first value that has a NaN, among names.
local function watched(model)
  local changed, report = model:apply("autodiff.first_nan")
  return changed, report.values
end
local function refuse_nan(names, first)
  if names[first + 1] then fail("NaN: the first is in the result of ", names[first + 1]) end
end

local compiled = {} -- metatable of compiled functions
compiled.__index = compiled

local model_call -- functional.lua
local model_functions = setmetatable({}, { __mode = "k" })
-- who: the transform that f is given to, for what is no function.
local function inline_of(f, who)
  if kind(f) == "model" then
    model_functions[f] = model_functions[f] or function(...) return model_call(f, ...) end
    return model_functions[f]
  end
  if rawequal(getmetatable(f), compiled) then return f.inline end
  local meta = getmetatable(f)
  if not is_function(f) and not (type(meta) == "table" and meta.__call) then
    fail(who or "this transform", ": expected a function or a model, got ", describe(f))
  end
  return f
end

local function to_tensor(x, floats)
  if type(x) ~= "number" then return x end
  return tn.tensor(x, math.type(x) == "integer" and "int64" or floats or "float32")
end

-- One for all, or the entry of the i-th argument; false: none.
local function axis_for(axes, i)
  if type(axes) == "table" then return axes[i] end
  return axes
end

-- The graph for these arguments, and what the function gave.
local function trace_call(inline, args, batch_axes)
  return traced(function(trace)
    local given, all = {}, {}
    for i = 1, args.n do flatten(args[i], "", all, {}) end
    trace.floats = float_type(all)
    for i = 1, args.n do
      local names = select(2, flatten(args[i], "x" .. i, {}, {}))
      local at = 0
      given[i] = map_leaves(args[i], function(leaf)
        at = at + 1
        return as_input(trace, leaf, names[at], axis_for(batch_axes, i))
      end)
    end
    local results = table.pack(inline(table.unpack(given, 1, args.n)))
    local leaves = {}
    for i = 1, results.n do flatten(results[i], "", leaves, {}) end
    for i, leaf in ipairs(leaves) do leaves[i] = as_value(leaf) end
    return finish(trace, leaves), results
  end)
end

function compiled:__call(...)
  local args = table.pack(...)
  local leaves, key = {}, {}
  if innermost() then return self.inline(...) end
  for i = 1, args.n do
    local first = #leaves + 1
    flatten(args[i], "", leaves, {})
    key[#key + 1] = structure_of(args[i])
    local batch = axis_for(self.batch_axes, i)
    for position = first, #leaves do
      if is_traced(leaves[position]) then return self.inline(...) end
      local dtype, shape, weak = type_of(leaves[position])
      if batch and batch < #shape then shape[batch + 1] = "?" end
      key[#key + 1] = dtype .. (weak and "~" or "") .. table.concat(shape, "x")
    end
  end
  key = table.concat(key, ";")
  local entry = self.entries[key]
  if entry then
    self.counts.hits = self.counts.hits + 1
  else
    if self.counts.entries >= self.limit then -- shapes without bound: start again, and say so
      tn.log.warning("tn.jit: more than " .. self.limit .. " sets of shapes and types were compiled; all are forgotten")
      self.entries, self.counts.entries = {}, 0
    end
    local model, results = trace_call(self.inline, args, self.batch_axes)
    local names
    if self.check_nan then model, names = watched(model) end
    entry = { plan = model:compile(self.options), results = results, names = names }
    self.entries[key] = entry
    self.counts.compiles, self.counts.entries = self.counts.compiles + 1, self.counts.entries + 1
  end
  self.last = entry.plan
  local floats = float_type(leaves)
  for i, leaf in ipairs(leaves) do leaves[i] = to_tensor(leaf, floats) end
  local made, at = { entry.plan(table.unpack(leaves)) }, 0
  if entry.names then refuse_nan(entry.names, made[#made][1]) end
  local out = {}
  for i = 1, entry.results.n do
    out[i] = map_leaves(entry.results[i], function()
      at = at + 1
      return made[at]
    end)
  end
  return table.unpack(out, 1, entry.results.n)
end
-- compiles, hits, entries
function compiled:stats()
  local c = self.counts
  return { compiles = c.compiles, hits = c.hits, entries = c.entries }
end
function compiled:describe() return self.last and self.last:describe() end
-- The graph for arguments of these types and shapes, as a model.
function compiled:trace(...) return (trace_call(self.inline, table.pack(...), self.batch_axes)) end

local function compile(inline, options)
  if options ~= nil and type(options) ~= "table" then fail("options: expected a table, got ", kind(options)) end
  local rest = {}
  for key, value in pairs(options or {}) do rest[key] = value end
  local made = {
    inline = inline, options = rest, entries = {}, counts = { compiles = 0, hits = 0, entries = 0 },
    limit = rest.cache_size or 64, batch_axes = rest.batch_axes, check_nan = rest.check_nan,
  }
  rest.cache_size, rest.batch_axes, rest.check_nan = nil, nil, nil
  if math.type(made.limit) ~= "integer" or made.limit < 1 then
    fail("cache_size: expected a whole number from 1, got ", tostring(made.limit))
  end
  for _, axis in pairs(type(made.batch_axes) == "table" and made.batch_axes or { made.batch_axes }) do
    if axis and (math.type(axis) ~= "integer" or axis < 0) then
      fail("batch_axes: expected axes from 0, or false, got ", tostring(axis))
    end
  end
  return setmetatable(made, compiled)
end

-- f compiled: traced once for each set of types and shapes of its arguments. options: backend, precision,
-- threads; cache_size, how many graphs are kept; batch_axes, the axis whose size may vary without a new trace, one
-- for all arguments or a list with false; check_nan, an error that names the node that made the first NaN.
-- Results are tensors, in the structure that f gives.
function tn.jit(f, options)
  return compile(inline_of(f, "tn.jit"), options)
end

-- f as a model. inputs: a list of { name = "x", shape = { "N", 1, 28, 28 } [, dtype = "float32"] }, one for each
-- argument; a size that is known at run time is a name. Tensors that f uses become weights of the model.
function tn.model(f, inputs)
  local named = type(inputs) == "table" and next(inputs)
  if type(inputs) ~= "table" or (named ~= nil and math.type(named) ~= "integer") then
    fail("tn.model: inputs: expected a list of { name = ..., shape = ... }, in the order of the arguments, got ",
      type(inputs) == "table" and "a table with the key '" .. tostring(named) .. "'" or type(inputs))
  end
  return traced(function(trace)
    local given = {}
    for i, input in ipairs(inputs) do
      if type(input) ~= "table" or not input.name or not input.shape then
        fail("tn.model: input ", i, ": expected { name = ..., shape = ... }")
      end
      only("tn.model: input " .. i, input, { "name", "shape", "dtype" })
      given[i] = add_input(trace, input.name, input.dtype or "float32", input.shape)
    end
    local results = table.pack(inline_of(f)(table.unpack(given)))
    for i = 1, results.n do results[i] = as_value(results[i]) end
    return finish(trace, results)
  end)
end
