-- SPDX-License-Identifier: Apache-2.0
-- A small network from functions, trained on 4,000 digits and tested on 1,000 others; mean over the seeds.
--   scripts/fetch mnist
--   tenon run scripts/digits.lua [--set network=cnn|mlp] [--set models=.cache/models] [--set seeds=5] [--set epochs=12]
local tn = require "tenon"
local args = tn.args
local folder, seeds, epochs = args.models or ".cache/models", args.seeds or 5, args.epochs or 12
local train, test = tn.data.npz(folder .. "/mnist_train.npz"), tn.data.npz(folder .. "/mnist_test.npz")

-- He et al. 2015: keeps the variance through a ReLU.
local function weights(seed, place, shape, inputs) return tn.normal(shape, (2 / inputs) ^ 0.5, seed * 100 + place) end

local networks = {}

function networks.mlp(seed)
  local w1, w2 = weights(seed, 1, { 784, 256 }, 784), weights(seed, 2, { 256, 10 }, 256)
  local b1, b2 = tn.zeros({ 256 }), tn.zeros({ 10 })
  return function(image) return tn.linear(tn.relu(tn.linear(image:reshape({ -1, 784 }), w1, b1)), w2, b2) end
end

function networks.cnn(seed)
  local c1, c2 = weights(seed, 1, { 16, 1, 5, 5 }, 25), weights(seed, 2, { 32, 16, 5, 5 }, 400)
  local w, b1, b2, b = weights(seed, 3, { 1568, 10 }, 1568), tn.zeros({ 16 }), tn.zeros({ 32 }), tn.zeros({ 10 })
  return function(image)
    local h = tn.max_pool(tn.relu(tn.conv(image, c1, b1, { padding = 2 })), 2)
    h = tn.max_pool(tn.relu(tn.conv(h, c2, b2, { padding = 2 })), 2)
    return tn.linear(h:reshape({ -1, 1568 }), w, b)
  end
end

local name = args.network or "cnn"
local network = assert(networks[name], "network: expected cnn or mlp, got " .. tostring(name))
local sum, squares = 0, 0
for seed = 1, seeds do
  local model = tn.model(network(seed), { { name = "image", shape = { "N", 1, 28, 28 } } })
  local trained = tn.train(model, { data = train, batch = 64, epochs = epochs, seed = seed, loss = tn.loss.cross_entropy(),
                                    optimizer = tn.optim.adamw({ lr = tn.schedule.cosine({ base = 3e-3, warmup = 20 }) }) })
  local accuracy = tn.evaluate(trained, test, { metric = "accuracy" }).accuracy
  sum, squares = sum + accuracy, squares + accuracy ^ 2
end
local mean = sum / seeds
local result = { network = name, seeds = seeds, accuracy = mean, spread = math.max(0, squares / seeds - mean ^ 2) ^ 0.5 }
tn.print_table({ result }, { "network", "seeds", "accuracy", "spread" })
return result
