-- SPDX-License-Identifier: Apache-2.0
-- The functions of traced values outside of a trace: each call is a small graph of its own, compiled once.

local eager_plans, eager_order, eager_limit = {}, {}, 256

-- f of these arguments, whose tensors are the arguments of the graph.
local function compiled_call(f, args)
  return tn.jit(function(...)
    local tensors, at, filled = { ... }, 0, {}
    for i = 1, args.n do
      filled[i] = map_leaves(args[i], function(leaf)
        if kind(leaf) ~= "tensor" then return leaf end
        at = at + 1
        return tensors[at]
      end)
    end
    return f(table.unpack(filled, 1, args.n))
  end)
end

-- A call with the same function, structure and numbers.
local function eager_plan(f, args, key)
  local made = eager_plans[key]
  if made then return made end
  made = compiled_call(f, args)
  eager_plans[key] = made
  eager_order[#eager_order + 1] = key
  if #eager_order > eager_limit then eager_plans[table.remove(eager_order, 1)] = nil end
  return made
end

-- Adds to key what makes x another argument: its structure, numbers, and which objects it holds; key.has_functions says
-- whether functions are among them. Appends its tensors to list; false where a value is traced.
local function add_to_key(key, x, list)
  local what = kind(x)
  if what == "traced" then return false end
  if what == "tensor" then
    list[#list + 1] = x
    key[#key + 1] = what
  elseif is_function(x) then
    key.has_functions = true
  elseif type(x) == "table" then
    key[#key + 1] = "{"
    for _, name in ipairs(sorted_keys(x)) do
      key[#key + 1] = string.format("%q", name)
      if not add_to_key(key, x[name], list) then return false end
    end
    key[#key + 1] = "}"
  else
    local is_plain = what == "number" or what == "string" or what == "boolean" or what == "nil"
    key[#key + 1] = string.format(is_plain and "%q" or "%p", x)
  end
  return true
end

-- Functions may use what changes outside of them, so calls with some are traced each time, as all calls are where is_open.
local function anywhere(name, f, is_open)
  return function(...)
    if innermost() then return f(...) end
    local args, key, tensors = table.pack(...), { name }, {}
    for i = 1, args.n do
      if not add_to_key(key, args[i], tensors) then return f(...) end
    end
    local plan = (is_open or key.has_functions) and compiled_call(f, args) or eager_plan(f, args, table.concat(key, ";"))
    return plan(table.unpack(tensors))
  end
end

for name, f in pairs(array_functions) do
  tn[name] = anywhere(name, f)
end

for name, part in pairs(parts) do
  for short, f in pairs(part) do part[short] = anywhere(name .. "." .. short, f) end
end

for name, f in pairs(control_functions) do
  tn[name] = anywhere(name, f)
end

-- model(x, ... [, { parameters, training, key }]): in a trace its nodes; outside of one a compiled function, which for
-- the model as it is is kept with the model.
local whole_models = setmetatable({}, { __mode = "k" })
local function called_model(model, ...)
  local given = table.pack(...)
  local options = given[given.n]
  if innermost() then return model_call(model, ...) end
  if not is_model_options(options) then
    whole_models[model] = whole_models[model] or tn.jit(model)
    return whole_models[model](...)
  end
  given[given.n] = { parameters = options.parameters, training = options.training, key = key_of(options.key) }
  return anywhere("model", model_call)(model, table.unpack(given, 1, given.n))
end
native.operators({ __call = called_model }, "model")

-- tn.log.info(text) writes a line, tn.log(x) is the logarithm.
local logarithm = tn.log
tn.log = setmetatable(others.log, { __call = function(_, x) return logarithm(x) end })

-- Operators of tensors, as those of traced values.
native.operators({
  __add = tn.add, __sub = tn.subtract, __mul = tn.multiply, __div = tn.divide, __pow = tn.pow, __mod = tn.remainder,
  __idiv = tn.floor_divide, __band = tn.bitwise_and, __bor = tn.bitwise_or, __bxor = tn.bitwise_xor,
  __shl = tn.bitwise_left_shift, __shr = tn.bitwise_right_shift,
  __bnot = function(x) return tn.bitwise_invert(x) end, __unm = function(x) return tn.negative(x) end,
})
