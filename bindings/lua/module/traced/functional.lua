-- SPDX-License-Identifier: Apache-2.0
-- Models as functions: of their inputs, and of their parameters as well.

local call_options = { parameters = true, training = true, key = true }
local function is_model_options(x) return are_options(x, call_options) end

local forms = setmetatable({}, { __mode = "k" }) -- by model and by what becomes an input

-- The model with these parameters (nil: all) as inputs behind its own, and their names in that order.
local function form_of(model, parameters, training)
  local names = parameters and sorted_keys(parameters)
  local key = (training and "training;" or ";") .. (names and table.concat(names, ";") or "*")
  forms[model] = forms[model] or {}
  local made = forms[model][key]
  if made then return made end
  local _, report = model:apply("trainer.functional")
  local frozen, known = {}, {}
  for _, name in ipairs(report.parameters) do
    known[name] = true
    if names and not parameters[name] then frozen[#frozen + 1] = name end
  end
  for _, name in ipairs(names or {}) do
    if not known[name] then fail("parameters: ", native.expected_one_of(report.parameters, tostring(name))) end
  end
  made = table.pack(model:apply("trainer.functional", { frozen = frozen[1] and frozen or nil, training = training or false }))
  forms[model][key] = made
  return made
end

local function same_shape(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- As a tensor, so that another key is no other function.
local function key_of(key)
  return kind(key) == "table" and tn.tensor(key, "int64") or key
end

-- What follows the inputs of a model's form: its parameters, and the key where Dropout draws by one.
local function append_parameters(ids, model, options)
  local made = form_of(model, options.parameters, options.training)
  local own = model:parameters()
  local given = options.parameters or own
  for _, name in ipairs(made[2].parameters) do
    local x = as_value(given[name])
    if not same_shape(x.shape, own[name]:shape()) then
      fail("parameters: ", name, ": expected the shape [", table.concat(own[name]:shape(), ", "), "], got ", describe(x))
    end
    ids[#ids + 1] = x.id
  end
  local draws = made[2].key
  if draws and options.key == nil then
    fail("model: expected key = { seed, step }, two integers by which Dropout draws, another pair in each step; got none")
  elseif draws then
    ids[#ids + 1] = as_value(key_of(options.key)).id
  elseif options.key ~= nil then
    fail("key: expected none where nothing is drawn: the model has no Dropout, or training is not set")
  end
  return made[1]
end

-- A model as a function of its inputs, by position. A table that comes last: parameters, by name, in the place of its
-- own; training, in which Dropout draws by key, { seed, step }, and BatchNormalization uses the statistics of the batch.
function model_call(model, ...)
  local trace, ids, given = current("a model"), {}, table.pack(...)
  local options = is_model_options(given[given.n]) and given[given.n]
  if options then given.n = given.n - 1 end
  for i = 1, given.n do ids[i] = as_value(given[i]).id end
  if options then model = append_parameters(ids, model, options) end
  local ok, made = pcall(trace.builder.splice, trace.builder, model, ids)
  if not ok then fail((tostring(made):gsub("^%[?[^:%]]*%]?:%d+: ", ""))) end
  for i, id in ipairs(made) do made[i] = new_value(trace, id) end
  return table.unpack(made)
end
