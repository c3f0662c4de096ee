-- SPDX-License-Identifier: Apache-2.0
-- A bag of tricks for batches four times as large, beside the plain recipe of the reference network resnet20.
--   scripts/fetch glyphs
--   tenon run scripts/large_batch.lua --trust [--set seeds=3] [--set precision=bf16] [--set threads=N]
-- The plain side is the recipe of reference/networks.lua. The other has a batch of 256, a rate that grows with it (Goyal et al.
-- 2017, section 2.1), warmup, smoothed labels, no decay on vectors (He et al. 2019, "Bag of Tricks for Image Classification with
-- Convolutional Neural Networks", sections 3.1 and 5), and seven twelfths of the epochs.
-- Each side first has four trials, at rates apart by factors of two, on nine tenths of the training data, judged on the last
-- tenth; then it is trained with the best of them from each seed, which none of the trials had, and judged on test data.
local tn = require "tenon"
local networks, args = require "reference.networks", tn.args
local models, out = args.models or ".cache/models", args.out or "runs/large_batch"
local recipe = networks.find "resnet20"
local rates = { 0.5, 1, 2, 4 }
local cut = 0.9

local sides = {
  plain = { batch = 64, epochs = recipe.epochs, rate = 0.1, optimizer = {}, loss = {} },
  tricks = { batch = 256, epochs = recipe.epochs * 7 // 12, rate = 0.4, optimizer = { decay_vectors = false }, loss = { label_smoothing = 0.1 } },
}

local function train(side, name, factor, seed, data)
  local optimizer = { lr = tn.schedule.cosine { base = side.rate * factor, warmup = 100 * 64 // side.batch }, momentum = 0.9, nesterov = true, weight_decay = 5e-4 }
  for key, value in pairs(side.optimizer) do optimizer[key] = value end
  local loss = { axis = -1 }
  for key, value in pairs(side.loss) do loss[key] = value end
  local trained, report = tn.train(networks.build(recipe, models, seed), {
    data = data, epochs = side.epochs, batch = side.batch, drop_last = true, seed = seed, resume = true,
    loss = tn.loss.cross_entropy(loss), optimizer = tn.optim.sgd(optimizer), run = ("%s/%s_%s_%g_%d"):format(out, recipe.name, name, factor, seed),
    precision = args.precision or "fp32", threads = args.threads or 0,
  })
  local seconds = 0
  for _, epoch in ipairs(report.history) do seconds = seconds + epoch.seconds end
  return trained, seconds
end

local function accuracy(model, data) return 100 * tn.evaluate(model, data, { metric = "accuracy", batch = 100 }).accuracy end

local whole = tn.data.npz(models .. "/" .. recipe.data .. "_train.npz")
local test = tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
local known, held_out = whole:split(cut)

local rows, best = {}, {}
for _, name in ipairs { "plain", "tricks" } do
  local side, highest = sides[name], -1
  for _, factor in ipairs(rates) do
    local trained, seconds = train(side, name, factor, 100, known)
    local right = accuracy(trained, held_out)
    rows[#rows + 1] = { side = name, rate = side.rate * factor, seed = "trial", accuracy = right, seconds = seconds }
    if right > highest then highest, best[name] = right, factor end
  end
end
for seed = 1, args.seeds or 3 do
  for _, name in ipairs { "plain", "tricks" } do
    local trained, seconds = train(sides[name], name, best[name], seed, whole)
    rows[#rows + 1] = { side = name, rate = sides[name].rate * best[name], seed = seed, accuracy = accuracy(trained, test), seconds = seconds }
  end
end
tn.print_table(rows, { "side", "rate", "seed", "accuracy", "seconds" })
return rows
