-- SPDX-License-Identifier: Apache-2.0
-- tn.jit, tn.grad, tn.value_and_grad, tn.vmap. Arguments are tensors, numbers, and tables of them: lists,
-- or names with values, which are taken in the order of the names.

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
  end)
  return keys
end

-- The leaves of x in order, appended to list, with a name for each in names.
local function flatten(x, name, list, names)
  if type(x) == "table" and not is_traced(x) then
    for _, key in ipairs(sorted_keys(x)) do
      flatten(x[key], name == "" and tostring(key) or name .. "." .. tostring(key), list, names)
    end
    return list, names
  end
  list[#list + 1] = x
  names[#names + 1] = name
  return list, names
end

-- x with other leaves: change(leaf) in the same order.
local function map_leaves(x, change)
  if type(x) ~= "table" or is_traced(x) then return change(x) end
  local made = {}
  for _, key in ipairs(sorted_keys(x)) do made[key] = map_leaves(x[key], change) end
  return made
end

local function type_of(x)
  local what = kind(x)
  if what == "traced" then return x.dtype, x.shape, x.weak end
  if what == "tensor" then return x:dtype(), x:shape() end
  if what == "number" then return math.type(x) == "integer" and "int64" or "float32", {}, true end
  fail("expected tensors, numbers, or tables of them, got ", what)
end

local function as_input(trace, x, name)
  local dtype, shape, weak = type_of(x)
  return add_input(trace, name, dtype, shape, weak)
end

-- Runs body with a new trace; the trace ends in any case.
local function traced(body)
  local trace = new_trace()
  traces[#traces + 1] = trace
  local results = table.pack(pcall(body, trace))
  traces[#traces] = nil
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

local function finish(trace, results)
  for i, x in ipairs(results) do trace.builder:output("result" .. i - 1, x.id) end
  return trace.builder:build()
end

local compiled = {} -- metatable of compiled functions
compiled.__index = compiled

local function inline_of(f)
  return rawequal(getmetatable(f), compiled) and f.inline or f
end

local function to_tensor(x)
  if type(x) ~= "number" then return x end
  return tn.tensor(x, math.type(x) == "integer" and "int64" or "float32")
end

-- The graph for these arguments, and what the function gave.
local function trace_call(inline, args)
  return traced(function(trace)
    local given = {}
    for i = 1, args.n do
      local names = select(2, flatten(args[i], "x" .. i, {}, {}))
      local at = 0
      given[i] = map_leaves(args[i], function(leaf)
        at = at + 1
        return as_input(trace, leaf, names[at])
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
  for i = 1, args.n do
    local names = select(2, flatten(args[i], "x" .. i, leaves, {}))
    key[#key + 1] = table.concat(names, ",")
  end
  for _, leaf in ipairs(leaves) do
    if #traces > 0 or is_traced(leaf) then return self.inline(...) end
    local dtype, shape, weak = type_of(leaf)
    key[#key + 1] = dtype .. (weak and "~" or "") .. table.concat(shape, "x")
  end
  key = table.concat(key, ";")
  local entry = self.entries[key]
  if entry then
    self.counts.hits = self.counts.hits + 1
  else
    if self.counts.entries >= self.limit then -- shapes without bound: start again, and say so
      tn.log.warn("tn.jit: more than " .. self.limit .. " sets of shapes and types were compiled; all are forgotten")
      self.entries, self.counts.entries = {}, 0
    end
    local model, results = trace_call(self.inline, args)
    entry = { plan = model:compile(self.options), results = results }
    self.entries[key] = entry
    self.counts.compiles, self.counts.entries = self.counts.compiles + 1, self.counts.entries + 1
  end
  self.last = entry.plan
  for i, leaf in ipairs(leaves) do leaves[i] = to_tensor(leaf) end
  local made, at = { entry.plan(table.unpack(leaves)) }, 0
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
function compiled:trace(...) return (trace_call(self.inline, table.pack(...))) end

local function compile(inline, options)
  local rest = {}
  for key, value in pairs(options or {}) do rest[key] = value end
  local limit = rest.cache_size or 64
  rest.cache_size = nil
  local counts = { compiles = 0, hits = 0, entries = 0 }
  return setmetatable({ inline = inline, options = rest, limit = limit, entries = {}, counts = counts }, compiled)
end

-- f compiled: traced once for each set of types and shapes of its arguments. options: backend, precision,
-- threads, cache_size. Results are tensors, in the structure that f gives.
function tn.jit(f, options)
  return compile(inline_of(f), options)
end

-- f as a model. inputs: a list of { name = "x", shape = { "N", 1, 28, 28 } [, dtype = "float32"] }, one for each
-- argument; a size that is known at run time is a name. Tensors that f uses become weights of the model.
function tn.model(f, inputs)
  return traced(function(trace)
    local given = {}
    for i, input in ipairs(inputs) do
      if type(input) ~= "table" or not input.name or not input.shape then
        fail("tn.model: input ", i, ": expected { name = ..., shape = ... }")
      end
      given[i] = add_input(trace, input.name, input.dtype or "float32", input.shape)
    end
    local results = table.pack(inline_of(f)(table.unpack(given)))
    for i = 1, results.n do results[i] = as_value(results[i]) end
    return finish(trace, results)
  end)
end

-- f traced as a graph of its own; leaves of the chosen arguments are its inputs, as take makes them.
local function inner_graph(f, args, chosen, take)
  local given = {}
  local model, results, captured, count = traced(function(trace)
    local made = {}
    for i = 1, args.n do
      made[i] = args[i]
      if chosen(i) then
        made[i] = map_leaves(args[i], function(leaf)
          given[#given + 1] = leaf
          return take(trace, leaf, "x" .. #given, i)
        end)
      end
    end
    local results = table.pack(inline_of(f)(table.unpack(made, 1, args.n)))
    local leaves = {}
    for i = 1, results.n do flatten(results[i], "", leaves, {}) end
    for i, leaf in ipairs(leaves) do leaves[i] = as_value(leaf) end
    return finish(trace, leaves), results, trace.captured, #leaves
  end)
  local function splice(changed)
    local trace, ids = current(), {}
    for _, x in ipairs(given) do ids[#ids + 1] = as_value(x).id end
    for _, x in ipairs(captured) do ids[#ids + 1] = lift(x).id end
    local values = {}
    for i, id in ipairs(trace.builder:splice(changed, ids)) do values[i] = new_value(trace, id) end
    return values
  end
  return { model = model, results = results, given = given, captured = captured, count = count, splice = splice }
end

local function gradient_of(who, f, argnums)
  local list = type(argnums) == "table" and argnums or { argnums or 0 }
  return function(...)
    local args, wanted = table.pack(...), {}
    for _, place in ipairs(list) do wanted[axis_of(place, args.n) + 1] = true end
    local inner = inner_graph(f, args, function(i) return wanted[i] end, function(trace, leaf, name)
      local dtype = type_of(leaf)
      if not bits[dtype] then fail(who, ": expected a float type to differentiate by, got ", dtype) end
      return as_input(trace, leaf, name)
    end)
    local value = inner.results[1]
    if inner.count ~= 1 or not is_traced(value) or #value.shape > 0 then
      fail(who, ": expected the function to give one float scalar, got ", describe(value), "; use tn.sum or tn.mean")
    end
    local numbers = {}
    for i = 1, #inner.given do numbers[i] = i - 1 end
    local made = inner.splice((inner.model:apply("autodiff.value_and_grad", { argnums = numbers })))
    local at, by_place = 1, {}
    for i = 1, args.n do
      if wanted[i] then
        by_place[i] = map_leaves(args[i], function()
          at = at + 1
          return made[at]
        end)
      end
    end
    if type(argnums) ~= "table" then return made[1], by_place[axis_of(list[1], args.n) + 1] end
    local gradients = {}
    for i, place in ipairs(list) do gradients[i] = by_place[axis_of(place, args.n) + 1] end
    return made[1], gradients
  end
end

-- A function that gives the gradient of f, which gives one float scalar. argnums: by which argument,
-- counted from 0; a list gives a list. Arguments may be tables: the gradient is one like it.
function tn.grad(f, argnums, options)
  local both = gradient_of("grad", f, argnums)
  return compile(function(...) return (select(2, both(...))) end, options)
end
-- The value, then the gradient.
function tn.value_and_grad(f, argnums, options)
  return compile(gradient_of("value_and_grad", f, argnums), options)
end

-- f of one example as a function of many. in_axes: the axis that counts them, one for all arguments or a
-- list with false for an argument that is the same for all; out_axes: where it goes in the results.
function tn.vmap(f, in_axes, out_axes, options)
  local function axis_for(i)
    if type(in_axes) == "table" then return in_axes[i] end
    return in_axes or 0
  end
  return compile(function(...)
    local words, size = {}, nil
    local inner = inner_graph(f, table.pack(...), function(i) return axis_for(i) end, function(trace, leaf, name, i)
      local dtype, shape, weak = type_of(leaf)
      local axis, rest = axis_of(axis_for(i), #shape), {}
      for a, dim in ipairs(shape) do
        if a ~= axis + 1 then rest[#rest + 1] = dim end
      end
      if size and size ~= shape[axis + 1] then
        fail("vmap: expected one size of the axis, got ", size, " and ", shape[axis + 1])
      end
      size = shape[axis + 1]
      words[#words + 1] = tostring(axis)
      return add_input(trace, name, dtype, rest, weak)
    end)
    for _ = 1, #inner.captured do words[#words + 1] = "none" end
    local changed = inner.model:apply("autodiff.vmap",
      { axis_size = size, in_axes = table.concat(words, ", "), out_axes = out_axes or 0 })
    local made, at, out = inner.splice(changed), 0, {}
    for i = 1, inner.results.n do
      out[i] = map_leaves(inner.results[i], function()
        at = at + 1
        return made[at]
      end)
    end
    return table.unpack(out, 1, inner.results.n)
  end, options)
end
