-- SPDX-License-Identifier: Apache-2.0
-- tn.nn: names, options, initializers, errors. What layers compute is tested from Python, against PyTorch.
local tn, fails = require "tenon", require("expect").fails
local nn = tn.nn


local input = { { name = "x", shape = { "N", 3 } } }
local x = tn.tensor({ { 1, -2, 3 }, { 0, 1, 2 } }, "float32")
local function values(model) return model:compile { backend = "reference" }(x):values() end

-- The first options in order, or all by name.
local one = nn.build(nn.Linear(2, { init = "ones", bias_init = nn.init.constant { value = 0.5 } }), input)
local same = nn.build(nn.Linear { out = 2, init = "ones", bias_init = nn.init.constant { value = 0.5 } }, input)
for i, want in ipairs { 2.5, 2.5, 3.5, 3.5 } do assert(values(one)[i] == want and values(same)[i] == want) end
local shaped = nn.build(nn.module { w = nn.Parameter({ 3 }, { init = "ones" }), forward = function(self, v) return v * self.w() end }, input)
assert(values(shaped)[2] == -2 and shaped:text():find("%w:", 1, true))
local all_named = nn.build(nn.module { w = nn.Parameter { shape = { 3 }, init = "ones" }, forward = function(self, v) return v + self.w() end }, input)
assert(values(all_named)[2] == -1)

-- Names are places, counted from 0; functions count.
local net = nn.Sequential(nn.Linear(4), tn.relu, nn.Residual(nn.Linear(4, { bias = false })), nn.module {
  heads = { nn.Linear(1), b = nn.Linear(1) },
  forward = function(self, v) return self.heads[1](v) + self.heads.b(v) end,
})
local text = nn.build(net, input):text()
for _, name in ipairs { "0.weight", "0.bias", "2.body.weight", "3.heads.0.weight", "3.heads.b.bias" } do
  assert(text:find(name, 1, true), "expected " .. name .. " in " .. text)
end
assert(not text:find("2.body.bias", 1, true))

-- A function with layers of its own; several results.
local lstm = nn.LSTM(5, { layers = 2 })
local ends = nn.build(function(v) return lstm:outputs(3, v) end, { { name = "x", shape = { "N", 7, 3 } } })
local sequence, hidden, memory = ends:compile { backend = "reference" }(tn.zeros { 2, 7, 3 })
assert(table.concat(sequence:shape(), " ") == "2 7 5" and table.concat(memory:shape(), " ") == "2 2 5")
assert(hidden:values()[11] == sequence:values()[31]) -- of the second layer, after the last step

-- Seeds.
local function built(seed) return nn.build(nn.Linear(2), input, { seed = seed }) end
for i, value in ipairs(values(built(4))) do assert(values(built(4))[i] == value and values(built(5))[i] ~= value) end

-- Weights by name.
local loaded = nn.load(built(1), built(2))
assert(values(loaded)[1] == values(built(2))[1])
fails("expected 0.bias among", function() nn.load(nn.build(nn.Sequential(nn.Linear(2)), input), built(2)) end)

fails("inputs: expected a list of { name = ..., shape = ... }, in the order of the arguments, got a table with the key 'x'",
  function() nn.build(nn.Linear(2), { x = { "N", 3 } }) end)
fails("input 0: expected a value, it is left out", function() nn.build(function(x) return nn.Linear(2)(nil) end, input) end)
fails("nn: expected one of", function() return nn.Linaer end)
fails("GlobalAvgPool", function() return nn.Linaer end)
fails("nn.init: expected one of", function() return nn.init.hee end)
fails("nn.Linear: expected out in order and a table of options, got 2 values", function() nn.Linear(1, 2) end)
fails("option out", function() nn.Linear(0) end)
fails("expected to be called inside nn.build", function() nn.Linear(2)(x) end)
fails("nn.module: expected a table of layers with a function forward", function() nn.module {} end)
fails("layer 0: ", function() nn.build(nn.Sequential(nn.Conv(2, 3)), input) end)
fails("input 0: expected floats of rank at least 3", function() nn.build(nn.Sequential(nn.Conv(2, 3)), input) end)

-- What would have no effect is refused.
fails("nn.Residual: options: expected one of shortcut, activation, got 'activaton' (did you mean 'activation'?)", nn.Residual,
  nn.Linear(3), { activaton = tn.relu })
fails("nn.build: options: expected one of seed, got 'sed'", nn.build, nn.Linear(2), input, { sed = 1 })
fails("nn.Sequential: layer 2: expected a function or a model, got nil", nn.Sequential, nn.Linear(3), nil, tn.relu)
fails("nn.Sequential: layer 1: expected a function or a model, got string", nn.Sequential, "relu")
