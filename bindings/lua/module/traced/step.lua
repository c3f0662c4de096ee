-- SPDX-License-Identifier: Apache-2.0
-- tn.step: forward, backward and update of the parameters in one plan.

-- A number of a loss, a function or a network (tn.nn) that a schedule can drive by its name. Where nothing drives it,
-- and outside of a trace, it is value.
function tn.setting(name, value)
  if not innermost() then return value end
  local trace = current()
  trace.settings = trace.settings or {}
  local known = trace.settings[name]
  if known and known.number ~= value then fail("setting ", name, ": expected ", known.number, " again, got ", value) end
  if not known then
    known = { number = value, value = new_value(trace, trace.builder:constant(tn.tensor(value, trace.floats or "float32"), name)) }
    trace.settings[name] = known
  end
  return known.value
end

local stepper = {}
stepper.__index = stepper

-- Before the gradient, and again behind the update, whose numbers are there then.
local function drive(step, model, time)
  if #step.driven == 0 then return model end
  local driven, report = model:apply("trainer.drive", { names = step.driven, may_miss = time == 1 })
  step.inputs[time] = report.inputs
  return driven
end

-- The options of a pass, with the plan's precision where it has an option for that and was given none.
local function for_plan(step, id, given)
  local precision = step.options.precision
  if not precision or (given and given.precision) then return given end
  for _, one in ipairs(tn.components("tenon.pass/1")) do
    local option = one.id == id and one.schema and (one.schema.properties or {}).precision
    for _, known in ipairs(option and option.enum or {}) do
      if known == precision then
        local made = { precision = precision }
        for name, value in pairs(given or {}) do made[name] = value end
        return made
      end
    end
  end
  return given
end

-- What floats of Lua are in a step with this batch.
local function floats_of(step, batch)
  local all = flatten(step.initial, "", {}, {})
  for i = 1, batch.n do all[#all + 1] = batch[i] end
  return float_type(all)
end

local function build(step, batch)
  local given
  local model = traced(function(trace)
    local args = {}
    trace.floats = floats_of(step, batch)
    step.names = select(2, flatten(step.initial, "params", {}, {}))
    local at = 0
    args[1] = map_leaves(step.initial, function(leaf)
      at = at + 1
      return as_input(trace, leaf, step.names[at])
    end)
    for i = 1, batch.n do args[i + 1] = as_input(trace, batch[i], "batch" .. i) end
    given = table.pack(step.loss(table.unpack(args, 1, batch.n + 1)))
    if given.n ~= 1 and not step.has_aux then
      fail("step: expected the loss to give one result, got ", given.n, "; has_aux = true lets others pass")
    end
    local leaves = {}
    for i = 1, given.n do flatten(given[i], "", leaves, {}) end
    for i, leaf in ipairs(leaves) do leaves[i] = as_value(leaf) end
    return finish(trace, leaves)
  end)
  model = drive(step, model, 1)
  model = model:apply("autodiff.value_and_grad", { wrt = step.names, has_aux = step.has_aux })
  for _, pass in ipairs(step.joint) do
    local id, given = pass, nil
    if type(pass) == "table" then id, given = next(pass) end
    model = model:apply(id, for_plan(step, id, given))
  end
  if step.accumulate > 1 then
    local _, shape = type_of(batch[1])
    model = model:apply("trainer.accumulate", { samples = shape and shape[1] or 1 })
  end
  if step.clip then model = model:apply("trainer.clip", step.clip) end
  model = model:apply("trainer.step", { optimizer = step.optimizer, groups = step.groups })
  if step.average then model = model:apply("trainer.average", { decay = step.average, parameters = step.names }) end
  if step.accumulate > 1 then model = model:apply("trainer.accumulate_step") end
  model = drive(step, model, 2)
  local names
  if step.check_nan then model, names = watched(model) end
  local types = {}
  for _, port in ipairs(model:inspect().inputs) do types[port.name] = port.dtype end
  return model:compile(step.options, step.plan), { watched = names, types = types, results = given }
end

-- A number, or a schedule or function of the update's number, at this step.
local function number_at(step, what, given)
  if type(given) == "function" or type(given) == "userdata" then given = given(step.count // step.accumulate) end
  if type(given) ~= "number" or given ~= given or given == math.huge or given == -math.huge then
    fail("step: ", what, ": expected a finite number, or a schedule or function that gives one, got ",
      type(given) == "number" and given or kind(given))
  end
  return given
end

local kAverage, kCount = "/average", "step/count"

-- step(x, y, ...): the loss before the update, a number, and with has_aux what the loss gives beside it. Batches of
-- another shape have a plan of their own, beside the first one: the states are in memory once.
function stepper:__call(...)
  local batch, key = table.pack(...), {}
  for i = 1, batch.n do
    local dtype, shape = type_of(batch[i])
    key[i] = dtype .. table.concat(shape, "x")
  end
  key = table.concat(key, ";")
  if not self.plans[key] then
    self.plans[key], self.made[key] = build(self, batch)
  end
  local plan, made = self.plans[key], self.made[key]
  if not self.plan then
    for i, leaf in ipairs((flatten(self.initial, "", {}, {}))) do
      plan:set_state(self.names[i], to_tensor(leaf))
      if self.average then plan:set_state(self.names[i] .. kAverage, to_tensor(leaf)) end
    end
  end
  self.plan = plan
  local floats = floats_of(self, batch)
  for i = 1, batch.n do batch[i] = to_tensor(batch[i], floats) end
  local n = batch.n
  local function append(name, value)
    n = n + 1
    batch[n] = tn.tensor(value, made.types[name])
  end
  for _, name in ipairs(self.inputs[1]) do append("setting/" .. name, number_at(self, "setting " .. name, self.settings[name])) end
  if self.accumulate > 1 then append("accumulated/update", (self.count + 1) % self.accumulate == 0 and 1 or 0) end
  append("learning_rate", number_at(self, "rate", self.rate))
  for _, name in ipairs(self.inputs[2]) do append("setting/" .. name, number_at(self, "setting " .. name, self.settings[name])) end
  local results = table.pack(plan(table.unpack(batch, 1, n)))
  self.count = self.count + 1
  if made.watched then refuse_nan(made.watched, results[results.n][1]) end
  return results[1][1], table.unpack(refill_all(made.results, results, { at = 0 }), 2, made.results.n)
end

local function copies(step, of)
  if not step.plan then return step.initial end
  local at = 0
  return map_leaves(step.initial, function()
    at = at + 1
    return step.plan:get_state(step.names[at] .. of)
  end)
end
-- Copies of the parameters as they are now, in the structure that was given, and of their moving averages.
function stepper:parameters() return copies(self, "") end
function stepper:averages()
  if not self.average then fail("step: expected option average, the share that is kept, got none") end
  return copies(self, kAverage)
end

local function started(step)
  return step.plan or fail("step: expected at least one step before its state is read")
end
-- Copies of all states by name, the optimizer's too, and of how many steps were taken: enough to go on elsewhere.
function stepper:state()
  local plan, states = started(self), { [kCount] = self.count }
  for _, name in ipairs(plan:states()) do states[name] = plan:get_state(name) end
  return states
end
-- Goes on from what `state` gave, after a first step with any batch.
function stepper:set_state(states)
  local plan, known = started(self), { [kCount] = true }
  for _, name in ipairs(plan:states()) do known[name] = true end
  for name in pairs(known) do
    if states[name] == nil then fail("step: set_state: expected ", name, ", got none") end
  end
  for name in pairs(states) do
    if not known[name] then fail("step: set_state: expected a name that state() gives, got ", name) end
  end
  for _, name in ipairs(plan:states()) do plan:set_state(name, states[name]) end
  self.count = math.tointeger(states[kCount]) or fail("step: set_state: ", kCount, ": expected a whole number")
end
function stepper:describe() return self.plan and self.plan:describe() end

-- loss(params, x, y, ...) gives a float scalar; params is a table of tensors. options: optimizer, as
-- tn.optim.adamw makes it or a component's id; rate, a number, a schedule or a function of the step's number,
-- from 0; check_nan, an error that names the node which made the first NaN; joint, a list of passes on forward and
-- backward together, behind the gradient, each an id or { [id] = options }: "autodiff.recompute" keeps few values in
-- between; settings, numbers by name that change from step to step (those of tn.setting in the loss, options of the
-- optimizer), each a number, a schedule or a function of the step's number; accumulate: so many calls make one update,
-- as one batch of all their samples does (the first axis of the first tensor counts), and schedules go by updates;
-- clip_norm, clip_value: bounds of the gradient's norm and of its numbers, of the whole window; groups, as those of
-- tn.train; has_aux: the loss gives more results, and so does the step; average: how much of a moving average of the
-- parameters is kept in an update; backend, precision, threads.
function tn.step(loss, params, options)
  local rest = {}
  for name, value in pairs(options or {}) do rest[name] = value end
  local step = {
    loss = inline_of(loss), initial = params, plans = {}, made = {}, count = 0,
    optimizer = rest.optimizer or "trainer.sgd", rate = rest.rate or 0.01,
  }
  if type(step.optimizer) == "userdata" and not rest.rate then
    step.rate = function(count) return step.optimizer:rate(count) end
  end
  step.check_nan, step.has_aux, step.average = rest.check_nan, rest.has_aux, rest.average
  step.accumulate, step.groups = rest.accumulate or 1, rest.groups
  if math.type(step.accumulate) ~= "integer" or step.accumulate < 1 then
    fail("step: accumulate: expected at least 1 batch, got ", tostring(step.accumulate))
  end
  if rest.clip_norm or rest.clip_value then step.clip = { norm = rest.clip_norm or 0, value = rest.clip_value or 0 } end
  step.joint = rest.joint or {}
  step.settings, step.driven, step.inputs = rest.settings or {}, {}, { {}, {} }
  for name in pairs(step.settings) do step.driven[#step.driven + 1] = name end
  table.sort(step.driven)
  rest.optimizer, rest.rate, rest.check_nan, rest.joint, rest.settings = nil, nil, nil, nil, nil
  rest.accumulate, rest.groups, rest.clip_norm, rest.clip_value = nil, nil, nil, nil
  rest.has_aux, rest.average = nil, nil
  step.options = rest
  return setmetatable(step, stepper)
end
