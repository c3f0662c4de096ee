-- SPDX-License-Identifier: Apache-2.0
-- The chain on real data: a CNN is trained on 4,000 digits, pruned, decomposed, taught by what it was, quantized.
--   tenon run scripts/chain.lua [--set models=.cache/models] [--set seeds=5] [--set first=1] [--set epochs=8] [--set out=.cache/demo]
local tn = require "tenon"
local args, names, rows = tn.args, {}, {}
local folder, seeds, first, epochs = args.models or ".cache/models", args.seeds or 1, args.first or 1, args.epochs or 8
local train, test = tn.data.npz(folder .. "/mnist_train.npz"), tn.data.npz(folder .. "/mnist_test.npz")

local function network(seed)
  local function weights(shape, inputs, place) return tn.normal(shape, (2 / inputs) ^ 0.5, seed * 100 + place) end -- He et al. 2015
  local c1, c2, b1, b2 = weights({ 32, 1, 5, 5 }, 25, 1), weights({ 64, 32, 5, 5 }, 800, 2), tn.zeros({ 32 }), tn.zeros({ 64 })
  local w1, w2, b3, b4 = weights({ 3136, 128 }, 3136, 3), weights({ 128, 10 }, 128, 4), tn.zeros({ 128 }), tn.zeros({ 10 })
  return tn.model(function(image)
    local h = tn.max_pool(tn.relu(tn.conv(image, c1, b1, { padding = 2 })), 2)
    h = tn.max_pool(tn.relu(tn.conv(h, c2, b2, { padding = 2 })), 2)
    return tn.linear(tn.relu(tn.linear(h:reshape({ -1, 3136 }), w1, b3)), w2, b4)
  end, { { name = "image", shape = { "N", 1, 28, 28 } } })
end

local function fit(model, seed, epochs, rate, loss, precision, train_as)
  return tn.train(model, { data = train, batch = 64, epochs = epochs, seed = seed, loss = loss, precision = precision, train_as = train_as,
                           optimizer = tn.optim.adamw({ lr = tn.schedule.cosine({ base = rate, warmup = 20 }) }) })
end

local function note(name, model)
  local row = rows[name] or { stage = name, scores = {} }
  if not rows[name] then rows[name], names[#names + 1] = row, row end
  row.scores[#row.scores + 1] = tn.evaluate(model, test, { metric = "accuracy" }).accuracy * 100
  if #row.scores == 1 then
    local one = tn.bench(model, { shapes = { image = { 1, 1, 28, 28 } }, rounds = args.rounds })
    local many = tn.bench(model, { shapes = { image = { 64, 1, 28, 28 } }, rounds = args.rounds })
    row.parameters, row.KB, row.MMACs = model:inspect().parameters, model:bytes() / 1e3, one.flops / 2e6
    row["ms, batch 1"], row["ms, batch 64"] = one.median_ms, many.median_ms
  end
  return model
end

local teach = tn.loss.distill({ temperature = 2, alpha = 0.3 }) -- the teacher is what the student was before it was made smaller
for seed = first, first + seeds - 1 do
  local big = note("trained", fit(network(seed), seed, epochs, 3e-3, tn.loss.cross_entropy()))
  note("int8 alone", big:apply("fusion.default"):apply("quantizer.static", { data = train, samples = 256 }))
  local small = note("pruned", big:apply("pruner.structured", { ratio = 0.8125, importance = "taylor", data = train, round_to = 2 }))
  small = note("decomposed", small:apply("decomposer.tucker2", { only = { "Conv_1" }, rank_in = 6, rank_out = 10, max_ratio = 1.2, measure = false }))
  small = note("taught, bf16", fit(small, seed, epochs, 3e-3, teach, "bf16"))
  small = small:apply("fusion.default"):apply("quantizer.qat", { data = train })
  small = fit(small, seed, 2, 3e-4, teach, "fp32", { ["quantizer.track"] = { epochs = 1 } }) -- ranges move in the first epoch only
  note("int8", small:apply("quantizer.convert")):save((args.out or ".") .. "/chain_int8.onnx")
  local thin = big:apply("pruner.structured", { ratio = 0.90625, importance = "taylor", data = train }) -- as many bytes, in float32
  note("only pruned", fit(thin, seed, epochs + 2, 3e-3, tn.loss.cross_entropy()))
end
local ahead = { scores = {} } -- of pruning alone, seed by seed
for seed, score in ipairs(rows["int8"].scores) do ahead.scores[seed] = score - rows["only pruned"].scores[seed] end
for _, row in ipairs({ ahead, table.unpack(names) }) do -- mean and spread over the seeds
  local sum, squares = 0, 0
  for _, score in ipairs(row.scores) do sum, squares = sum + score, squares + score ^ 2 end
  row.accuracy, row.spread = sum / seeds, math.max(0, squares / seeds - (sum / seeds) ^ 2) ^ 0.5
end
tn.print_table(names, { "stage", "accuracy", "spread", "parameters", "KB", "MMACs", "ms, batch 1", "ms, batch 64" })
print(("int8 is %.2f points ahead of only pruned, standard error %.2f"):format(ahead.accuracy, ahead.spread / math.max(1, seeds - 1) ^ 0.5))
return { rows = names, ahead = ahead.scores }
