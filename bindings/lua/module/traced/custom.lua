-- SPDX-License-Identifier: Apache-2.0
-- Functions of the graph with a gradient graph: tn.custom_vjp, whose gradient is given, and tn.checkpoint, whose values
-- are computed again for it.

local custom_count = 0
local function custom_label(who)
  custom_count = custom_count + 1
  return who .. custom_count
end

-- What such a function gives. kinds: its names by what differs, because graphs that differ are functions of other names.
local function call_function(label, kinds, body, gradient, given, count)
  local key = gradient:text() .. "\n" .. body:text()
  if not kinds[key] then
    kinds.n = (kinds.n or 0) + 1
    kinds[key] = label .. "_" .. kinds.n
  end
  current(label).builder:add_function(kinds[key], body, gradient)
  return nodes(kinds[key], given, count, {}, "function")
end

local function inputs_of_types(trace, name, values)
  local made = {}
  for i, x in ipairs(values) do
    local dtype, shape = type_of(x)
    made[i] = add_input(trace, name .. i, dtype, shape)
  end
  return made
end

local function all_leaves(args)
  local leaves = {}
  for i = 1, args.n do flatten(args[i], "", leaves, {}) end
  return leaves
end

local function refuse_captured(label, trace)
  if #trace.captured > 0 then
    fail(label, ": expected a function of its arguments alone, got one that uses ", describe(trace.captured[1]),
      " from outside; make it an argument")
  end
end

-- The gradient of each leaf of an argument, zeros where backward gives none.
local function slopes_like(label, arg, slope, out)
  local leaves, slopes = flatten(arg, "", {}, {}), slope and flatten(slope, "", {}, {}) or {}
  if slope and #slopes ~= #leaves then fail(label, ": backward: expected gradients like arguments") end
  for i, leaf in ipairs(leaves) do
    local value = slope and cast(as_value(slopes[i]), leaf.dtype) or tn.zeros_like(leaf)
    if describe(value) ~= describe(leaf) then
      fail(label, ": backward: expected a gradient like ", describe(leaf), ", got ", describe(value))
    end
    out[#out + 1] = value
  end
end

-- f with the gradient that backward gives. forward(...) gives the results of f and then one more, what backward
-- needs: backward(kept, cotangent, ...) gets it and a cotangent for each result, and gives a gradient for each argument;
-- nil: none. All three use no traced values from outside.
function tn.custom_vjp(f, forward, backward)
  if not forward or not backward then fail("custom_vjp: expected f, forward and backward") end
  local label, kinds = custom_label("custom_vjp"), {}
  return anywhere(label, function(...)
    local args = table.pack(...)
    local given = all_leaves(args)
    for i, x in ipairs(given) do given[i] = as_value(x) end
    local function arguments(trace)
      return refill_all(args, inputs_of_types(trace, "x", given), { at = 0 })
    end
    local body, results, values = traced(function(trace)
      local results = table.pack(inline_of(f)(table.unpack(arguments(trace), 1, args.n)))
      local values = all_leaves(results)
      for i, x in ipairs(values) do values[i] = as_value(x) end
      refuse_captured(label, trace)
      return finish(trace, values), results, values
    end)
    local gradient = traced(function(trace)
      local own = arguments(trace)
      local kept = select(results.n + 1, forward(table.unpack(own, 1, args.n)))
      local weights = refill_all(results, inputs_of_types(trace, "cotangent", values), { at = 0 })
      local slopes, out = table.pack(backward(kept, table.unpack(weights, 1, results.n))), {}
      if slopes.n > args.n then
        fail(label, ": backward: expected a gradient for each of ", args.n, " arguments, got ", slopes.n)
      end
      for i = 1, args.n do slopes_like(label, own[i], slopes[i], out) end
      refuse_captured(label, trace)
      return finish(trace, out)
    end)
    local made = call_function(label, kinds, body, gradient, given, #values)
    return table.unpack(refill_all(results, made, { at = 0 }), 1, results.n)
  end, true)
end

-- The gradient graph of a function by its inputs and cotangents alone: nothing of the body is computed before the
-- cotangents are there.
local function recomputed(body, given, values)
  return traced(function(trace)
    local own, weights = inputs_of_types(trace, "x", given), inputs_of_types(trace, "cotangent", values)
    local ids, floats, out = {}, {}, {}
    for i, x in ipairs(own) do
      ids[i] = node("Barrier", { x, table.unpack(weights) }, {}, "tenon").id
      if is_float[x.dtype] then floats[#floats + 1] = i - 1 end
      out[i] = tn.zeros_like(x)
    end
    for _, x in ipairs(weights) do
      if is_float[x.dtype] then ids[#ids + 1] = x.id end
    end
    if #floats > 0 and #ids > #own then
      local made = trace.builder:splice((body:apply("autodiff.vjp", { argnums = floats })), ids)
      for at, position in ipairs(floats) do out[position + 1] = new_value(trace, made[#values + at]) end
    end
    return finish(trace, out)
  end)
end

-- f, whose values in between are not kept for its gradient but computed again from its arguments when the gradient is
-- taken: less memory for another forward computation, the same values and gradients but for the order of sums. What f uses from outside is an
-- argument too. What draws without a key draws the same again, but not what it would draw outside of a checkpoint.
function tn.checkpoint(f)
  local label, kinds = custom_label("checkpoint"), {}
  return anywhere(label, function(...)
    local args, trace = table.pack(...), current("checkpoint")
    local inner = inner_graph(f, args, function() return true end, function(own, leaf, name)
      local what = kind(leaf)
      if what ~= "traced" and what ~= "tensor" then return leaf, false end
      return as_input(own, leaf, name)
    end)
    local given = {}
    for i, x in ipairs(inner.given) do given[i] = as_value(x) end
    for _, x in ipairs(inner.captured) do given[#given + 1] = lift(x) end
    trace.n_checkpoints = (trace.n_checkpoints or 0) + 1 -- calls of one function draw other numbers each
    local body = inner.model:apply("autodiff.seed_draws", { salt = "#" .. trace.n_checkpoints })
    local gradient = recomputed(body, given, inner.values)
    local made = call_function(label, kinds, body, gradient, given, #inner.values)
    return table.unpack(refill_all(inner.results, made, { at = 0 }), 1, inner.results.n)
  end, true)
end
