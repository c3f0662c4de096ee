-- SPDX-License-Identifier: Apache-2.0
-- tn.step: forward, backward and update of the parameters in one plan.

local stepper = {}
stepper.__index = stepper

local function build(step, batch)
  local model = traced(function(trace)
    local args = {}
    step.names = select(2, flatten(step.initial, "params", {}, {}))
    local at = 0
    args[1] = map_leaves(step.initial, function(leaf)
      at = at + 1
      return as_input(trace, leaf, step.names[at])
    end)
    for i = 1, batch.n do args[i + 1] = as_input(trace, batch[i], "batch" .. i) end
    return finish(trace, { as_value(step.loss(table.unpack(args, 1, batch.n + 1))) })
  end)
  model = model:apply("autodiff.value_and_grad", { wrt = step.names })
  for _, pass in ipairs(step.joint) do
    local id, given = pass, nil
    if type(pass) == "table" then id, given = next(pass) end
    model = model:apply(id, given)
  end
  model = model:apply("trainer.step", { optimizer = step.optimizer })
  local names
  if step.check_nan then model, names = watched(model) end
  return model:compile(step.options), names
end

-- step(x, y, ...): the loss before the update, a number. Batches of another shape have a plan of their own,
-- to which the states move.
function stepper:__call(...)
  local batch, key = table.pack(...), {}
  for i = 1, batch.n do
    local dtype, shape = type_of(batch[i])
    key[i] = dtype .. table.concat(shape, "x")
  end
  key = table.concat(key, ";")
  if not self.plans[key] then self.plans[key], self.names_of[key] = build(self, batch) end
  local plan = self.plans[key]
  if not rawequal(plan, self.plan) then
    if self.plan then
      for _, name in ipairs(plan:states()) do plan:set_state(name, self.plan:get_state(name)) end
    else
      for i, leaf in ipairs((flatten(self.initial, "", {}, {}))) do plan:set_state(self.names[i], to_tensor(leaf)) end
    end
    self.plan = plan
  end
  for i = 1, batch.n do batch[i] = to_tensor(batch[i]) end
  local rate = self.rate
  if type(rate) ~= "number" then rate = rate(self.count) end
  batch[batch.n + 1] = tn.tensor(rate, "float32")
  self.count = self.count + 1
  local loss, first = plan(table.unpack(batch, 1, batch.n + 1))
  if self.names_of[key] then refuse_nan(self.names_of[key], first[1]) end
  return loss[1]
end

-- Copies of the parameters as they are now, in the structure that was given.
function stepper:parameters()
  if not self.plan then return self.initial end
  local at = 0
  return map_leaves(self.initial, function()
    at = at + 1
    return self.plan:get_state(self.names[at])
  end)
end
function stepper:describe() return self.plan and self.plan:describe() end

-- loss(params, x, y, ...) gives a float scalar; params is a table of tensors. options: optimizer, as
-- tn.optim.adamw makes it or a component's id; rate, a number, a schedule or a function of the step's number,
-- from 0; check_nan, an error that names the node which made the first NaN; joint, a list of passes on forward and
-- backward together, behind the gradient, each an id or { [id] = options }: "autodiff.recompute" keeps few values in
-- between; backend, precision, threads.
function tn.step(loss, params, options)
  local rest = {}
  for name, value in pairs(options or {}) do rest[name] = value end
  local step = {
    loss = inline_of(loss), initial = params, plans = {}, names_of = {}, count = 0,
    optimizer = rest.optimizer or "trainer.sgd", rate = rest.rate or 0.01,
  }
  if type(step.optimizer) == "userdata" and not rest.rate then
    step.rate = function(count) return step.optimizer:rate(count) end
  end
  step.check_nan = rest.check_nan
  step.joint = rest.joint or {}
  rest.optimizer, rest.rate, rest.check_nan, rest.joint = nil, nil, nil, nil
  step.options = rest
  return setmetatable(step, stepper)
end
