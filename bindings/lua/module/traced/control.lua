-- SPDX-License-Identifier: Apache-2.0
-- Control flow that depends on data: tn.cond, tn.while_loop, tn.fori_loop, tn.scan. They are ONNX's If, Loop and Scan, so
-- they have gradients and work under tn.vmap; functions may use traced values from outside.

local control_functions = {}

local function type_text(x) return x.dtype .. "[" .. table.concat(x.shape, ", ") .. "]" end

-- The leaves of a tree as values of the innermost trace, with their types as text. doubles: those, by their place,
-- that are numbers and become float64.
local function leaves_of(of, doubles)
  local values, types = flatten(of, "", {}, {}), {}
  for i, x in ipairs(values) do
    values[i] = doubles and doubles[i] and number(x, "float64") or as_value(x)
    types[i] = type_text(values[i])
  end
  return values, table.concat(types, ", ")
end

local function expect(what, wanted, got)
  if wanted ~= got then
    fail(what, ": expected ", wanted, ", got ", got, "; use tn.astype and tn.broadcast_to, or tensors of one type instead of numbers")
  end
end

local function as_truth(x, what)
  local value = as_value(x)
  if #value.shape > 0 then fail(what, ": expected one truth value, got ", describe(value)) end
  return cast(value, "bool")
end

local function any_double(values)
  for _, x in ipairs(values) do
    if x.dtype == "float64" then return true end
  end
  return false
end

-- The states that a loop begins with, and what body(states) gives: a model, what it captured, the values of the states
-- after a step, their types as text, and other values. A float of Lua begins as float32. Beside float64 it begins as
-- float64, without loss of a digit, unless the body gives it back in another type: then the body is traced again.
local function steady(who, init, beside, body)
  local floats, doubles = {}, {}
  for i, x in ipairs((flatten(init, "", {}, {}))) do floats[i] = math.type(x) == "float" or nil end
  local function attempt()
    local states, types = leaves_of(init, doubles)
    return states, types, body(states)
  end
  local ok, states, types, made = pcall(attempt)
  local message = not ok and states or nil
  if not ok and not next(floats) then error(message, 0) end
  local is_steady = ok
    and not (next(floats) and (any_double(beside) or any_double(states) or any_double(made.values) or any_double(made.more) or any_double(made.captured)))
  local wanted = floats
  while not is_steady do
    doubles = wanted
    ok, states, types, made = pcall(attempt)
    if not ok then error(message or states, 0) end
    wanted, is_steady = {}, true
    for i in pairs(doubles) do
      local x = made.values[i]
      wanted[i] = x ~= nil and x.dtype == "float64" or nil
      is_steady = is_steady and wanted[i] ~= nil
    end
  end
  expect(who .. ": state after a step", types, made.types)
  return states, made
end

local function inputs_like(trace, name, tree, values)
  local made = {}
  for i, x in ipairs(values) do made[i] = add_input(trace, name .. i, x.dtype, x.shape) end
  return refill(tree, made, { at = 0 })
end

-- The node whose bodies take, behind their own inputs, what they use from outside.
local function control_node(op, inputs, captured, outputs, bodies, attributes)
  for _, x in ipairs(captured) do inputs[#inputs + 1] = lift(x) end
  attributes = attributes or {}
  attributes.captures = #captured
  return nodes(op, inputs, outputs, attributes, "", bodies)
end

-- yes(...) where condition, one truth value, is true, else no(...): one of them is computed. Both give results of
-- the same types and shapes.
function control_functions.cond(condition, yes, no, ...)
  inline_of(yes, "cond")
  inline_of(no, "cond")
  local chosen, operands = as_truth(condition, "cond: condition"), table.pack(...)
  for i = 1, operands.n do operands[i] = map_leaves(operands[i], as_value) end
  local captured, made = {}, {}
  local function branch(f)
    return traced(function(trace)
      for _, x in ipairs(captured) do lift(x) end
      local results = table.pack(inline_of(f)(table.unpack(operands, 1, operands.n)))
      local n = results.n
      results.n = nil -- so that it is no leaf
      local values, types = leaves_of(results)
      results.n = n
      return { trace = trace, results = results, values = values, types = types }
    end)
  end
  for i, f in ipairs({ yes, no }) do
    made[i] = branch(f)
    captured = made[i].trace.captured
  end
  -- What the second one uses beyond the first is an input of the first as well.
  local first = made[1].trace
  open_trace(first)
  local ok, message = pcall(function()
    for _, x in ipairs(captured) do lift(x) end
  end)
  close_trace(first)
  if not ok then error(message, 0) end
  expect("cond: result of the second function", made[1].types, made[2].types)
  local bodies = { then_branch = finish(first, made[1].values), else_branch = finish(made[2].trace, made[2].values) }
  local out = control_node("If", { chosen }, captured, #made[1].values, bodies)
  return table.unpack(refill_all(made[1].results, out, { at = 0 }), 1, made[1].results.n)
end

-- state = init, then state = body(state) as long as condition(state); the last state, a tree whose types and shapes
-- stay.
function control_functions.while_loop(condition, body, init)
  local states, made = steady("while_loop", init, {}, function(states)
    return traced(function(trace)
      add_input(trace, "iteration", "int64", {})
      add_input(trace, "condition", "bool", {})
      local new = inline_of(body)(inputs_like(trace, "state", init, states))
      local values, types = leaves_of(new)
      local going = as_truth(inline_of(condition)(refill(new, values, { at = 0 })), "while_loop: condition")
      local model = finish(trace, { going, table.unpack(values) })
      return { model = model, captured = trace.captured, values = values, types = types, more = {} }
    end)
  end)
  local first = as_truth(inline_of(condition)(refill(init, states, { at = 0 })), "while_loop")
  local inputs = { false, first, table.unpack(states) }
  return refill(init, control_node("Loop", inputs, made.captured, #states, { body = made.model }), { at = 0 })
end

-- step(i, state) gives the state and what is stacked; the last state and the stacks.
local function counted_loop(who, steps, init, step)
  local stacks
  local states, made = steady(who, init, {}, function(states)
    return traced(function(trace)
      local i = add_input(trace, "iteration", "int64", {})
      add_input(trace, "condition", "bool", {})
      local state
      state, stacks = step(i, inputs_like(trace, "state", init, states))
      local values, types = leaves_of(state)
      local more = leaves_of(stacks)
      local results = table.move(more, 1, #more, #values + 2, { as_value(true), table.unpack(values) })
      return { model = finish(trace, results), captured = trace.captured, values = values, types = types, more = more }
    end)
  end)
  local inputs, count = { steps, false, table.unpack(states) }, #made.values + #made.more
  local out = control_node("Loop", inputs, made.captured, count, { body = made.model })
  local from = { at = 0 }
  return refill(init, out, from), refill(stacks, out, from)
end

local function bound_of(x, what)
  local value = as_value(x)
  if is_float[value.dtype] or #value.shape > 0 then
    fail("fori_loop: ", what, ": expected one integer, got ", kind(x) == "number" and x or describe(value))
  end
  return cast(value, "int64")
end

-- state = init, then state = body(i, state) for i from lower to upper, upper excluded; the last state.
function control_functions.fori_loop(lower, upper, body, init)
  local first = bound_of(lower, "lower")
  local steps = tn.subtract(bound_of(upper, "upper"), first)
  return (counted_loop("fori_loop", steps, init, function(i, state)
    return inline_of(body)(lower == 0 and i or i + first, state), {}
  end))
end

-- state, y = f(state, x) for each slice x of the first axis of xs, a tree; the last state, and all y stacked. options:
-- length, the number of steps where xs is nil; reverse, from the last slice to the first.
function control_functions.scan(f, init, xs, options)
  local o = options or {}
  only("scan: options", o, { "length", "reverse" })
  if kind(o.length) == "number" and (math.type(o.length) ~= "integer" or o.length < 0) then
    fail("scan: length: expected an integer from 0, got ", o.length)
  end
  if xs == nil then
    if not o.length then fail("scan: expected xs or length, got neither") end
    return counted_loop("scan", as_value(o.length), init, function(_, state) return inline_of(f)(state) end)
  end
  local slices, stacks = leaves_of(xs), nil
  if #slices == 0 then fail("scan: expected tensors in xs, got none") end
  if math.type(o.length) == "integer" and slices[1].shape[1] ~= o.length then
    fail("scan: length: expected that of the first axis of xs, got ", o.length, " and ", describe(slices[1]))
  end
  local states, made = steady("scan", init, slices, function(states)
    return traced(function(trace)
      local state, parts = inputs_like(trace, "state", init, states), {}
      for i, x in ipairs(slices) do
        if #x.shape == 0 or x.shape[1] ~= slices[1].shape[1] then
          fail("scan: expected one size of the first axis, got ", select(2, leaves_of(xs)))
        end
        parts[i] = add_input(trace, "x" .. i, x.dtype, table.move(x.shape, 2, #x.shape, 1, {}))
      end
      local new
      new, stacks = inline_of(f)(state, refill(xs, parts, { at = 0 }))
      local values, types = leaves_of(new)
      local more = leaves_of(stacks)
      local results = table.move(more, 1, #more, #values + 1, { table.unpack(values) })
      return { model = finish(trace, results), captured = trace.captured, values = values, types = types, more = more }
    end)
  end)
  local function direction(n)
    local list = {}
    for i = 1, n do list[i] = o.reverse and 1 or 0 end
    return list
  end
  local attributes = { num_scan_inputs = #slices, scan_input_directions = direction(#slices) }
  if #made.more > 0 then attributes.scan_output_directions = direction(#made.more) end
  local inputs = table.move(slices, 1, #slices, #states + 1, table.move(states, 1, #states, 1, {}))
  local count = #made.values + #made.more
  local out = control_node("Scan", inputs, made.captured, count, { body = made.model }, attributes)
  local from = { at = 0 }
  return refill(init, out, from), refill(stacks, out, from)
end
