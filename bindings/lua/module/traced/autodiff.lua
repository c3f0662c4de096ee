-- SPDX-License-Identifier: Apache-2.0
-- tn.grad, tn.value_and_grad, tn.vjp, tn.jvp, tn.vmap, tn.stop_gradient: the function becomes a graph of its own, a
-- pass of the plugin `autodiff` changes it, and the result goes into the trace outside.

-- f traced as a graph of its own; leaves of the chosen arguments are its inputs, as take makes them.
local function inner_graph(f, args, chosen, take)
  local given = {}
  local model, results, captured, values = traced(function(trace)
    local made = {}
    for i = 1, args.n do
      made[i] = args[i]
      if chosen(i) then
        made[i] = map_leaves(args[i], function(leaf)
          local value, is_input = take(trace, leaf, "x" .. #given + 1, i)
          if is_input ~= false then given[#given + 1] = leaf end
          return value
        end)
      end
    end
    local results = table.pack(inline_of(f)(table.unpack(made, 1, args.n)))
    local leaves = {}
    for i = 1, results.n do flatten(results[i], "", leaves, {}) end
    for i, leaf in ipairs(leaves) do leaves[i] = as_value(leaf) end
    return finish(trace, leaves), results, trace.captured, leaves
  end)
  -- The results of the changed graph; its inputs are those of f, what it captured, and then more.
  local function splice(changed, more)
    local trace, ids = current(), {}
    for _, x in ipairs(given) do ids[#ids + 1] = as_value(x).id end
    for _, x in ipairs(captured) do ids[#ids + 1] = lift(x).id end
    for _, x in ipairs(more or {}) do ids[#ids + 1] = x.id end
    local made = {}
    for i, id in ipairs(trace.builder:splice(changed, ids)) do made[i] = new_value(trace, id) end
    return made
  end
  local positions = {}
  for i = 1, #given do positions[i] = i - 1 end
  return {
    model = model, results = results, given = given, captured = captured, values = values, positions = positions,
    splice = splice,
  }
end

-- Values one after the other from a list, in the structure of a tree.
local function refill(tree, values, from)
  return map_leaves(tree, function()
    from.at = from.at + 1
    return values[from.at]
  end)
end
local function refill_all(results, values, from)
  local out = {}
  for i = 1, results.n do out[i] = refill(results[i], values, from) end
  return out
end

local function differentiated(who)
  return function(trace, leaf, name)
    local dtype = type_of(leaf)
    if not is_float[dtype] then
      fail(who, ": ", name, ": expected a float type to differentiate by, got ", dtype, "; choose others in argnums")
    end
    return as_input(trace, leaf, name)
  end
end

-- Gives the value, the gradient, and what f gave beside the value.
local function gradient_of(who, f, argnums, has_aux)
  local list = type(argnums) == "table" and argnums or { argnums or 0 }
  return function(...)
    local args, wanted = table.pack(...), {}
    for _, position in ipairs(list) do wanted[axis_of(position, args.n) + 1] = true end
    local inner = inner_graph(f, args, function(i) return wanted[i] end, differentiated(who))
    local value = inner.results[1]
    if not is_traced(value) or #value.shape > 0 or not is_float[value.dtype] then
      fail(who, ": expected the function to give one float scalar, got ", describe(value), "; use tn.sum or tn.mean, or tn.vjp")
    end
    if inner.results.n ~= 1 and not has_aux then
      fail(who, ": expected the function to give one result, got ", inner.results.n, "; has_aux = true lets others pass")
    end
    local made = inner.splice((inner.model:apply("autodiff.value_and_grad", { argnums = inner.positions, has_aux = true })))
    local from, by_position, gradients = { at = 0 }, {}, {}
    local out = refill_all(inner.results, made, from)
    for i = 1, args.n do
      if wanted[i] then by_position[i] = refill(args[i], made, from) end
    end
    for i, position in ipairs(list) do gradients[i] = by_position[axis_of(position, args.n) + 1] end
    if type(argnums) ~= "table" then gradients = gradients[1] end
    return out[1], gradients, table.unpack(out, 2, inner.results.n)
  end
end

-- has_aux is ours, the rest is tn.jit's.
local function split_options(options)
  local rest = {}
  for key, value in pairs(options or {}) do rest[key] = value end
  local has_aux = rest.has_aux
  rest.has_aux = nil
  return has_aux, rest
end

-- A function that gives the gradient of f, which gives one float scalar. argnums: by which argument,
-- counted from 0; a list gives a list. Arguments may be tables: the gradient is one like it. options: those of
-- tn.jit; has_aux = true: f gives more results, which follow the gradient.
function tn.grad(f, argnums, options)
  inline_of(f, "tn.grad")
  local has_aux, rest = split_options(options)
  local both = gradient_of("grad", f, argnums, has_aux)
  return compile(function(...) return select(2, both(...)) end, rest)
end
-- The value, then the gradient, then with has_aux what else f gives.
function tn.value_and_grad(f, argnums, options)
  inline_of(f, "tn.value_and_grad")
  local has_aux, rest = split_options(options)
  return compile(gradient_of("value_and_grad", f, argnums, has_aux), rest)
end

local function always() return true end

-- The float ones among the results, whose positions cotangents and tangents take.
local function floats_among(values)
  local positions = {}
  for i, value in ipairs(values) do
    if is_float[value.dtype] then positions[#positions + 1] = i end
  end
  return positions
end

local function counted(list) return table.pack(table.unpack(list)) end
local function uncounted(args) return { table.unpack(args, 1, args.n) } end

-- What moves along with a value: of its type and shape. A size that is not known yet fits any.
local function moving_with(what, given, dtype, shape)
  local value = as_value(given)
  local fits = #value.shape == #shape
  for i, size in ipairs(fits and shape or {}) do
    fits = fits and (size == value.shape[i] or math.type(size) ~= "integer" or size < 0 or value.shape[i] < 0)
  end
  if not fits then
    fail(what, ": expected the shape [", table.concat(shape, ", "), "], got [", table.concat(value.shape, ", "), "]")
  end
  return cast(value, dtype)
end

local function pull(f, primals, cotangents)
  local inner = inner_graph(f, primals, always, differentiated("vjp"))
  local given, weights = {}, {}
  for i = 1, cotangents.n do flatten(cotangents[i], "", given, {}) end
  if #given ~= #inner.values then
    fail("vjp: expected one cotangent for each of ", #inner.values, " results, got ", #given)
  end
  for _, i in ipairs(floats_among(inner.values)) do
    weights[#weights + 1] = moving_with("vjp: cotangents", given[i], inner.values[i].dtype, inner.values[i].shape)
  end
  local made = inner.splice((inner.model:apply("autodiff.vjp", { argnums = inner.positions })), weights)
  return table.unpack(refill_all(primals, made, { at = #inner.values }), 1, primals.n)
end

-- The results of f, then a function: it takes a weight for each number in them, in their structure, and gives
-- the gradient of the weighted sum, one for each argument. Outside of a trace f is traced on each call.
function tn.vjp(f, ...)
  inline_of(f, "tn.vjp")
  local primals = table.pack(...)
  local results = table.pack(compile(inline_of(f))(...))
  local both = compile(function(a, b) return pull(f, counted(a), counted(b)) end)
  results[results.n + 1] = function(...) return both(uncounted(primals), { ... }) end
  return table.unpack(results, 1, results.n + 1)
end

local function push(f, primals, tangents)
  local inner = inner_graph(f, primals, always, differentiated("jvp"))
  local given, moved = {}, {}
  for i = 1, tangents.n do flatten(tangents[i], "", given, {}) end
  if #given ~= #inner.given then
    fail("jvp: expected ", #inner.given, " tangents, as many as primals, got ", #given)
  end
  for i, x in ipairs(given) do
    local dtype, shape = type_of(inner.given[i])
    moved[i] = moving_with("jvp: tangents", x, dtype, shape)
  end
  local made = inner.splice((inner.model:apply("autodiff.jvp", { argnums = inner.positions })), moved)
  local count, slopes = #inner.values, {}
  for i = 1, count do slopes[i] = tn.zeros_like(made[i]) end -- integers and truth values do not change
  for at, i in ipairs(floats_among(inner.values)) do slopes[i] = made[count + at] end
  local out, from = refill_all(inner.results, made, { at = 0 }), { at = 0 }
  for i = 1, inner.results.n do out[inner.results.n + i] = refill(inner.results[i], slopes, from) end
  return table.unpack(out, 1, 2 * inner.results.n)
end

-- The results of f at the list primals, then how they change when the primals move along the list tangents. Of a
-- tn.grad it is a Hessian-vector product. Outside of a trace f is traced on each call.
function tn.jvp(f, primals, tangents)
  inline_of(f, "tn.jvp")
  return compile(function(a, b) return push(f, counted(a), counted(b)) end)(primals, tangents)
end

-- One axis for each leaf of x: `axes` is one for all, false for none, or a table like the top of x.
local function spread(axes, x, out)
  if type(axes) ~= "table" then
    for _ = 1, #(flatten(x, "", {}, {})) do out[#out + 1] = axes end
    return out
  end
  if type(x) ~= "table" or is_traced(x) then fail("vmap: expected one axis, or a table like the arguments") end
  for _, key in ipairs(sorted_keys(x)) do
    if axes[key] == nil then fail("vmap: expected an axis for ", key, "; false: the same for all") end
    spread(axes[key], x[key], out)
  end
  return out
end

-- The axes of each of n arguments or results: one for all of them, 0 where nothing is said.
local function axes_of_all(what, axes, n)
  local all = {}
  for i = 1, n do
    if type(axes) == "table" then
      all[i] = axes[i]
    else
      all[i] = axes == nil and 0 or axes
    end
    if all[i] == nil then fail("vmap: ", what, ": expected ", n, " axes in a list, one for each, or false; got none for number ", i) end
  end
  for key in pairs(type(axes) == "table" and axes or {}) do
    if all[key] == nil then fail("vmap: ", what, ": expected ", n, " axes in a list, got one more for ", tostring(key)) end
  end
  return all
end

local function words_of(axes)
  local words = {}
  for i, axis in ipairs(axes) do words[i] = axis and tostring(axis) or "none" end
  return words
end

-- An input of one example; what has no axis is used as it is.
local function example_of(axes, sizes)
  local at = 0
  return function(trace, leaf, name)
    at = at + 1
    if not axes[at] then return leaf, false end
    local dtype, shape, weak = type_of(leaf)
    local axis, rest = axis_of(axes[at], #shape), {}
    for a, dim in ipairs(shape) do
      if a ~= axis + 1 then rest[#rest + 1] = dim end
    end
    sizes[#sizes + 1] = shape[axis + 1]
    if sizes[1] ~= sizes[#sizes] then
      fail("vmap: ", name, ": expected one size of the axis, got ", sizes[1], " and ", sizes[#sizes])
    end
    return add_input(trace, name, dtype, rest, weak)
  end
end

local function given_axes(axes)
  local out = {}
  for _, axis in ipairs(axes) do
    if axis then out[#out + 1] = axis end
  end
  return out
end

-- f of one example as a function of many. in_axes: the axis that counts them, one for all arguments or a
-- list with false for an argument that is the same for all, whose entries may be tables like the argument;
-- out_axes: where it goes in the results, in the same form. options: those of tn.jit; random: "error", "same" or
-- "different", what is done with tn.dropout and other random functions.
function tn.vmap(f, in_axes, out_axes, options)
  inline_of(f, "tn.vmap")
  local rest = {}
  for key, value in pairs(options or {}) do rest[key] = value end
  local random = rest.random or "error"
  rest.random = nil
  return compile(function(...)
    local args, axes, sizes = table.pack(...), {}, {}
    for i, axis in ipairs(axes_of_all("in_axes", in_axes, args.n)) do spread(axis, args[i], axes) end
    local inner = inner_graph(f, args, always, example_of(axes, sizes))
    if #sizes == 0 then fail("vmap: expected an axis in in_axes, got none") end
    local words, back = words_of(given_axes(axes)), {}
    for _ = 1, #inner.captured do words[#words + 1] = "none" end
    for i, axis in ipairs(axes_of_all("out_axes", out_axes, inner.results.n)) do spread(axis, inner.results[i], back) end
    local made = inner.splice((inner.model:apply("autodiff.vmap", {
      axis_size = math.max(sizes[1], 0), in_axes = table.concat(words, ", "), random = random,
      out_axes = table.concat(words_of(back), ", "),
    })))
    return table.unpack(refill_all(inner.results, made, { at = 0 }), 1, inner.results.n)
  end, rest)
end
