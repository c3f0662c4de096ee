-- SPDX-License-Identifier: Apache-2.0
-- Numbers of a step that change. The losses are PyTorch's, from tests/golden/driven.json: its trace "schedules".
local tn, fails = require "tenon", require("expect").fails

local wanted = {
  0.6931471805599453, 0.6896576265938364, 0.6857695113385349, 0.6809797204136366,
  0.674415172222538, 0.6645947467194268, 0.6488881615849799, 0.6222766538845717,
}
local rows, classes = {}, {}
for i = 0, 15 do
  local a, b = (i * 37 % 101) / 101, (i * 53 % 103) / 103
  rows[i + 1], classes[i + 1] = { a, b }, a > b and 1 or 0
end
local x, y = tn.tensor(rows, "float32"), tn.tensor(classes, "int64")

local function loss(p, x, y)
  local logits = tn.matmul(x, p.w) / tn.setting("temperature", 9)
  return -(tn.log_softmax(logits) * tn.one_hot(y, 2)):sum(-1):mean()
end
local function start() return { w = tn.tensor({ { 0, 0 }, { 0, 0 } }, "float32") } end

local decay = tn.schedule.cosine { base = 0.1, steps = 8 }
local step = tn.step(loss, start(), {
  optimizer = tn.optim.sgd { lr = 2, weight_decay = 7 },
  settings = { temperature = function(count) return 4 - 3 * count / 8 end, weight_decay = decay },
})
for i, one in ipairs(wanted) do
  local got = step(x, y)
  assert(math.abs(got - one) < 1e-6, i .. ": " .. got)
end

-- The same by tn.train, in each form that a schedule may have.
local network = tn.nn.module {
  linear = tn.nn.Linear(2, { bias = false, init = tn.nn.init.zeros {} }),
  forward = function(self, x) return self.linear(x) / tn.setting("temperature", 9) end,
}
local function losses(schedules)
  local model = tn.nn.build(network, { { name = "x", shape = { "N", 2 } } })
  local _, report = tn.train(model, {
    data = tn.data.csv { path = "driven_test.csv", label = "label" }, batch = 16, shuffle = false, epochs = 8,
    optimizer = tn.optim.sgd { lr = 2, weight_decay = 7 }, schedules = schedules,
  })
  local out = {}
  for i, record in ipairs(report.history) do out[i] = record.loss end
  return out
end
local file = assert(io.open("driven_test.csv", "w"))
file:write("a,b,label\n")
for i = 1, 16 do file:write(rows[i][1], ",", rows[i][2], ",", classes[i], "\n") end
file:close()
local line = tn.schedule.linear { from = 4, to = 1 }
for _, cooling in ipairs {
  line, function(count, steps) return 4 - 3 * count / steps end, { schedule = line }, { schedule = "linear", from = 4, to = 1 },
} do
  for _, pulling in ipairs { tn.schedule.cosine { base = 0.1 }, { schedule = "cosine", base = 0.1 } } do
    local got = losses { temperature = cooling, weight_decay = pulling }
    for i, one in ipairs(wanted) do assert(math.abs(got[i] - one) < 1e-6, i .. ": " .. got[i]) end
  end
end
-- A measured value as the time of a schedule, function or not.
local way = { value = "loss", begin = 0.6931, ["end"] = 0.66 }
local followed = { -- the trace "follow"
  0.6931471805599453, 0.6899837018268622, 0.686386885759662, 0.6818465433006777,
  0.6755517053498041, 0.6650091684131629, 0.6352169525432666, 0.5864081522626814,
}
for _, one in ipairs { function(at, all) return 4 - 3 * at / all end, line } do
  local got = losses { temperature = { schedule = one, follow = way }, weight_decay = 0 }
  for i, number in ipairs(followed) do assert(math.abs(got[i] - number) < 1e-6, i .. ": " .. got[i]) end
end
fails("got 'accuracy'", function()
  way.value = "accuracy"
  losses { temperature = { schedule = "linear", follow = way } }
end)
fails("expected schedules by name", function() losses { function() return 1 end } end)

assert(tn.setting("temperature", 3) == 3)
fails("got 'temp'", function() tn.step(loss, start(), { settings = { temp = 1 } })(x, y) end)
fails("setting temperature: expected a finite number", function()
  tn.step(loss, start(), { settings = { temperature = function() return 0 / 0 end } })(x, y)
end)
