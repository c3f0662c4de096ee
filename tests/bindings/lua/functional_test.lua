-- SPDX-License-Identifier: Apache-2.0
-- Models as functions of their inputs and parameters. What they compute is tested from Python.
local tn, fails = require "tenon", require("expect").fails
local nn = tn.nn

local input = { { name = "x", shape = { "N", 3 } } }
local x = tn.tensor { { 1, 2, 3 }, { 0, 1, -1 } }
local function near(a, b) return math.abs(a - b) < 1e-5 end

-- Two models with the same inputs are two functions.
local one, two = nn.build(nn.Linear(1), input, { seed = 1 }), nn.build(nn.Linear(1), input, { seed = 2 })
assert(one(x)[1] ~= two(x)[1])
local always = tn.all(tn.equal(x, x))
assert(tn.cond(always, one, one, x)[1] == one(x)[1] and tn.cond(always, two, two, x)[1] == two(x)[1])

-- Names with dots are no structure.
local deep, flat = { a = { b = x } }, { ["a.b"] = tn.add(x, 1) }
local function first(tree) return tree.a and tree.a.b or tree["a.b"] end
local function taken(tree) return tn.cond(always, first, first, tree)[1] end
assert(taken(deep) == 1 and taken(flat) == 2)

-- Parameters by name: all, some, and of another model.
local own = two:parameters()
assert(own.weight:shape()[2] == 3 and own.bias and not two:parameters({ "bias" }).weight)
assert(one(x, { parameters = own })[1] == two(x)[1] and one(x)[1] ~= two(x)[1])
assert(near(one(x, { parameters = { bias = tn.add(one:parameters().bias, 1) } })[1], one(x)[1] + 1))
local slopes = tn.grad(function(p) return one(x, { parameters = p }):sum() end)(own)
assert(near(slopes.bias[1], 2) and near(slopes.weight[2], 3))

-- A loop of one's own, and its result as a model.
local y = tn.tensor { { 1 }, { -2 } }
local net = nn.build(nn.Sequential(nn.Linear(8), tn.tanh, nn.Dropout(0.1), nn.Linear(1)), input, { seed = 1 })
local step = tn.step(function(p, x, y, key)
  local wrong = net(x, { parameters = p, training = true, key = key }) - y
  return (wrong * wrong):mean()
end, net:parameters(), { optimizer = "trainer.adamw", rate = 0.01 })
local first = step(x, y, tn.tensor({ 0, 0 }, "int64"))
for i = 1, 200 do step(x, y, tn.tensor({ 0, i }, "int64")) end
local trained = nn.load(net, step:parameters(), { update = true })
local wrong = tn.subtract(trained(x), y)
assert(tn.mean(tn.multiply(wrong, wrong)):values()[1] < first / 4)

-- Dropout draws by the key.
local function drawn(...) return net(x, { training = true, key = { ... } })[1] end
assert(drawn(0, 1) == drawn(0, 1))
local different = false
for i = 2, 20 do different = different or drawn(0, i) ~= drawn(0, 1) end
assert(different)

fails("did you mean '0.weight'", function() net(x, { parameters = { ["0.wieght"] = x } }) end)
fails("0.bias: expected the shape [8], got", function() net(x, { parameters = { ["0.bias"] = x } }) end)
fails("expected key = { seed, step }", function() net(x, { training = true }) end)
fails("key: expected none where nothing is drawn", function() net(x, { key = { 0, 1 } }) end)
assert(next(nn.build(nn.Dropout(0.5), input):parameters()) == nil)
