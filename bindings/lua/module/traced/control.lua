-- SPDX-License-Identifier: Apache-2.0
-- Control flow that depends on data: tn.cond, tn.while_loop, tn.fori_loop, tn.scan. They are ONNX's If, Loop and Scan, so
-- they have gradients and work under tn.vmap; functions may use traced values from outside.

local control_functions = {}

local function type_text(x) return x.dtype .. "[" .. table.concat(x.shape, ", ") .. "]" end

-- The leaves of a tree as values of the innermost trace, with their types as text.
local function leaves_of(of)
  local values, types = flatten(of, "", {}, {}), {}
  for i, x in ipairs(values) do
    values[i] = as_value(x)
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
  traces[#traces + 1] = made[1].trace
  local first = made[1].trace
  local ok, message = pcall(function()
    for _, x in ipairs(captured) do lift(x) end
  end)
  traces[#traces] = nil
  if not ok then error(message, 0) end
  expect("cond: result of the second function", made[1].types, made[2].types)
  local bodies = { then_branch = finish(first, made[1].values), else_branch = finish(made[2].trace, made[2].values) }
  local out = control_node("If", { chosen }, captured, #made[1].values, bodies)
  return table.unpack(refill_all(made[1].results, out, { at = 0 }), 1, made[1].results.n)
end

-- state = init, then state = body(state) as long as condition(state); the last state, a tree whose types and shapes
-- stay.
function control_functions.while_loop(condition, body, init)
  local states, types = leaves_of(init)
  init = refill(init, states, { at = 0 })
  local first = as_truth(inline_of(condition)(init), "while_loop")
  local model, captured = traced(function(trace)
    add_input(trace, "iteration", "int64", {})
    add_input(trace, "condition", "bool", {})
    local new = inline_of(body)(inputs_like(trace, "state", init, states))
    local values, got = leaves_of(new)
    expect("while_loop: state after a step", types, got)
    local going = as_truth(inline_of(condition)(refill(new, values, { at = 0 })), "while_loop: condition")
    return finish(trace, { going, table.unpack(values) }), trace.captured
  end)
  local count = #states
  local made = control_node("Loop", { false, first, table.unpack(states) }, captured, count, { body = model })
  return refill(init, made, { at = 0 })
end

-- step(i, state) gives the state and what is stacked; the last state and the stacks.
local function counted_loop(who, steps, init, step)
  local states, types = leaves_of(init)
  local more, count
  local model, captured = traced(function(trace)
    local i = add_input(trace, "iteration", "int64", {})
    add_input(trace, "condition", "bool", {})
    local state
    state, more = step(i, inputs_like(trace, "state", init, states))
    local values, got = leaves_of(state)
    expect(who .. ": state after a step", types, got)
    for _, x in ipairs((leaves_of(more))) do values[#values + 1] = x end
    count = #values
    return finish(trace, { as_value(true), table.unpack(values) }), trace.captured
  end)
  local made = control_node("Loop", { steps, false, table.unpack(states) }, captured, count, { body = model })
  local from = { at = 0 }
  return refill(init, made, from), refill(more, made, from)
end

-- state = init, then state = body(i, state) for i from lower to upper, upper excluded; the last state.
function control_functions.fori_loop(lower, upper, body, init)
  local first = cast(as_value(lower), "int64")
  local steps = tn.subtract(cast(as_value(upper), "int64"), first)
  return (counted_loop("fori_loop", steps, init, function(i, state)
    return inline_of(body)(lower == 0 and i or i + first, state), {}
  end))
end

-- state, y = f(state, x) for each slice x of the first axis of xs, a tree; the last state, and all y stacked. options:
-- length, the number of steps where xs is nil; reverse, from the last slice to the first.
function control_functions.scan(f, init, xs, options)
  local o = options or {}
  if xs == nil then
    if not o.length then fail("scan: expected xs or length, got neither") end
    return counted_loop("scan", as_value(o.length), init, function(_, state) return inline_of(f)(state) end)
  end
  local states, types = leaves_of(init)
  local slices, count, n_more, more = leaves_of(xs), 0, 0, nil
  local model, captured = traced(function(trace)
    local state, parts = inputs_like(trace, "state", init, states), {}
    for i, x in ipairs(slices) do
      if #x.shape == 0 or x.shape[1] ~= slices[1].shape[1] then
        fail("scan: expected one size of the first axis, got ", select(2, leaves_of(xs)))
      end
      parts[i] = add_input(trace, "x" .. i, x.dtype, table.move(x.shape, 2, #x.shape, 1, {}))
    end
    local new
    new, more = inline_of(f)(state, refill(xs, parts, { at = 0 }))
    local values, got = leaves_of(new)
    expect("scan: state after a step", types, got)
    local extra = leaves_of(more)
    n_more = #extra
    for _, x in ipairs(extra) do values[#values + 1] = x end
    count = #values
    return finish(trace, values), trace.captured
  end)
  local function direction(n)
    local list = {}
    for i = 1, n do list[i] = o.reverse and 1 or 0 end
    return list
  end
  local attributes = { num_scan_inputs = #slices, scan_input_directions = direction(#slices) }
  if n_more > 0 then attributes.scan_output_directions = direction(n_more) end
  local inputs = table.move(slices, 1, #slices, #states + 1, table.move(states, 1, #states, 1, {}))
  local made = control_node("Scan", inputs, captured, count, { body = model }, attributes)
  local from = { at = 0 }
  return refill(init, made, from), refill(more, made, from)
end
