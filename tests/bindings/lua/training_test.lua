-- SPDX-License-Identifier: Apache-2.0
-- Losses and optimizers by name.
local tn, fails = require "tenon", require("expect").fails

assert(tostring(tn.loss.cross_entropy { label_smoothing = 0.1 }) == "tenon.component(trainer.cross_entropy)")
assert(tostring(tn.loss["trainer.mse"] {}) == "tenon.component(trainer.mse)")
fails("tn.loss: expected one of", function() return tn.loss.cros end)
fails("label_smoothing: expected a number in [0, 1), got 1", function() tn.loss.cross_entropy { label_smoothing = 1 } end)

local adamw = tn.optim.adamw { lr = tn.schedule.cosine { base = 1e-3, warmup = 10 }, weight_decay = 0.1 }
assert(tostring(adamw) == "tenon.optimizer(trainer.adamw)")
assert(adamw:rate(10, 110) == 1e-3 and adamw:rate(110, 110) == 0)
assert(tn.optim.sgd { lr = 0.5, momentum = 0.9 }:rate(7) == 0.5)
assert(tn.optim.sgd { lr = function(step) return step * 2 end }:rate(3) == 6)
fails("option lr: expected a number, a schedule or a function", function() tn.optim.sgd {} end)
fails("tn.optim: trainer.sgd: option momentum: expected a finite number, got", function() tn.optim.sgd { lr = 1, momentum = 0 / 0 } end)
fails("option no_decay: 2: expected a finite number, got inf", function() tn.optim.sgd { lr = 1, no_decay = { "b", 1 / 0 } } end)
fails("did you mean 'momentum'", function() tn.optim.sgd { lr = 1, momentun = 0.9 } end)

-- All of them can be had by name, without an option but the rate.
for _, name in ipairs { "adam", "adamw", "lamb", "lars", "lion", "rmsprop", "sgd" } do
  assert(tostring(tn.optim[name] { lr = 1 }) == "tenon.optimizer(trainer." .. name .. ")")
end
for _, name in ipairs { "bce", "bce_with_logits", "ctc", "focal", "huber", "l1", "smooth_l1" } do
  assert(tostring(tn.loss[name] {}) == "tenon.component(trainer." .. name .. ")")
end
assert(math.abs(tn.schedule.restarts { period = 4 }(5) - tn.schedule.restarts { period = 4 }(1)) < 1e-12)
fails("trust: expected a number", function() tn.optim.lars { lr = 1, trust = 0 } end)

-- A loss may give more beside the number, a step keeps averages of the parameters, and its state goes to another one.
do
  local function with_more(p, x) return (p.w * x):sum(), { twice = p.w * 2 }, x end
  local function new()
    return tn.step(with_more, { w = tn.tensor({ 1, 2 }, "float32") },
      { optimizer = tn.optim.sgd { lr = 1, momentum = 0.5 }, has_aux = true, average = 0.5 })
  end
  local x, first, second = tn.tensor({ 1, -1 }, "float32"), new(), new()
  local value, more, same = first(x)
  assert(value == -1 and more.twice:values()[2] == 4 and same:values()[2] == -1)
  assert(first:parameters().w:values()[1] == 0 and first:averages().w:values()[1] == 0.5)
  fails("step: expected at least one step before its state is read", function() new():state() end)
  second(x * 0)
  second:set_state(first:state())
  first(x)
  second(x)
  assert(second:state()["step/count"] == 2)
  assert(second:parameters().w:values()[2] == first:parameters().w:values()[2])
  assert(second:averages().w:values()[2] == first:averages().w:values()[2])
  fails("set_state: expected .*, got none", function() first:set_state {} end)
  fails("got 2; has_aux = true lets others pass", function() tn.step(function(p, x) return p:sum(), x end, x)(x) end)
end

-- tn.step takes an optimizer as well as its id.
local function loss(p, x) return tn.square(p.w * x - 3):sum() end
local step = tn.step(loss, { w = tn.tensor({ 1 }, "float32") }, { optimizer = tn.optim.sgd { lr = 0.25 } })
assert(step(tn.tensor({ 1 }, "float32")) == 4)
assert(step:parameters().w:values()[1] == 2)

-- Several calls make one update, whose gradient is bounded as a whole; groups have rates of their own.
local function slope(p, x) return (p.w * x):mean() end
local once = tn.step(slope, { w = tn.tensor({ 0 }, "float32") }, { optimizer = tn.optim.sgd { lr = 1 }, accumulate = 2, clip_norm = 0.25 })
once(tn.tensor({ 3 }, "float32"))
assert(once:parameters().w:values()[1] == 0)
once(tn.tensor({ -2 }, "float32"))
assert(math.abs(once:parameters().w:values()[1] + 0.25) < 1e-4)
local slow = tn.step(slope, { w = tn.tensor({ 0 }, "float32") }, {
  optimizer = tn.optim.sgd { lr = 1 }, groups = { all = { parameters = "*w", rate = 0.5 } },
})
slow(tn.tensor({ 1 }, "float32"))
assert(slow:parameters().w:values()[1] == -0.5)
fails("accumulate: expected at least 1 batch", function() tn.step(slope, {}, { accumulate = 0 }) end)

fails("accumulate: expected at least 1 batch, got 1.5", function() tn.step(slope, {}, { accumulate = 1.5 }) end)

-- Rates are finite numbers, as settings are.
local function stepped(rate) return tn.step(slope, { w = tn.tensor({ 0 }, "float32") }, { rate = rate })(tn.tensor({ 1 }, "float32")) end
fails("step: rate: expected a finite number, or a schedule or function that gives one, got ", stepped, function() return 0 / 0 end)
fails("step: rate: expected a finite number, or a schedule or function that gives one, got string", stepped, "cosine")
fails("step: rate: expected a finite number, or a schedule or function that gives one, got nil", stepped, function() end)

-- The rate of an optimizer counts for the pass as it does for tn.train.
local function trained_by(train, rate)
  local net = tn.nn.build(tn.nn.Linear(2, { init = "ones" }), { { name = "x", shape = { "N", 2 } } })
  local data = tn.data.arrays { x = tn.tensor { { 1, 2 }, { 3, 4 } }, label = tn.tensor({ 0, 1 }, "int64") }
  local model = train(net, { data = data, epochs = 1, batch = 2, optimizer = tn.optim.sgd { lr = rate } })
  return model:parameters()["weight"]:values()
end
local function by_pass(model, options) return (model:apply("trainer.train", options)) end
for _, rate in ipairs { 0.5, tn.schedule.constant { base = 0.25 } } do
  local a, b = trained_by(by_pass, rate), trained_by(tn.train, rate)
  for i = 1, 4 do assert(a[i] == b[i], a[i] .. " and " .. b[i]) end
end

-- A metric of labels that the data do not have is refused before anything is trained.
fails("option metric: metrics.mse compares outputs with labels", function()
  local net = tn.nn.build(tn.nn.Linear(2), { { name = "x", shape = { "N", 2 } } })
  local data = tn.data.arrays { x = tn.tensor { { 1, 2 }, { 3, 4 } } }
  tn.train(net, { data = data, validation = data, metric = "mse", loss = tn.loss["distiller.response"] { teacher = net, alpha = 1 } })
end)
