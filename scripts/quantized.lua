-- SPDX-License-Identifier: Apache-2.0
-- Quantization-aware training of a reference network, beside what calibration alone leaves of it.
--   scripts/fetch glyphs mnist
--   tenon run scripts/quantized.lua [--set network=mobilenet] [--set bits=8,4] [--set scales=all,learned,largest] [--set out=FOLDER] [--set epochs=4]
--     [--set rate=1e-4] [--set share=1] [--set teacher=false] [--set precision=bf16] [--set threads=1] [--set seed=1] [--set models=.cache/models]
-- bits: of weights; activations have 8. share: of the training samples. Called again in the same folder it goes on where it was stopped.
local tn = require "tenon"
local networks, figures = require "reference.networks", require "chain_figures"
local args = tn.args
local recipe = networks.find(args.network or "mobilenet")
local models, seed, run = args.models or ".cache/models", args.seed or 1, { threads = args.threads or 1 }
local out = (args.out or ".") .. "/quantized_" .. recipe.name
local kParts = 20 -- of the held-out samples: intervals of points are over them

local function words(text) return tostring(text):gmatch("[^,]+") end

local train, test = tn.data.npz(models .. "/" .. recipe.data .. "_train.npz"), tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
if args.share then train = train:part(1, math.floor(#train * args.share)) end
local whole = networks.kept(recipe, models, args.kept or "scripts/reference"):apply("fusion.default")
local function answered(data) return args.teacher == false and data or tn.data["distiller.cached"] { data = data, teacher = whole } end
local answers, judged = answered(train), answered(test)
local target, loss = { "label" }, tn.loss.cross_entropy { axis = -1 }
for _, field in ipairs(answers:fields()) do
  if field.name:find("^teacher/") then
    target[2], loss = field.name, tn.loss["distiller.response"] { cached = true, temperature = 4, alpha = 0.7, axis = -1 }
  end
end

local function parts(model) return figures.accuracies(model, test, 1, #test, kParts, run) end
local float = parts(whole)
local rows = { { weights = "float", ["held out %"] = figures.mean(float) } }

local function add(bits, by, model, history)
  local path = ("%s_%d_%s.onnx"):format(out, bits, by)
  model:save(path)
  local now = parts(tn.load(path))
  local gain, half = figures.points(float, now)
  local epochs = {}
  for i, epoch in ipairs(history or {}) do epochs[i] = ("%.2f"):format(100 * epoch.accuracy) end
  rows[#rows + 1] = { weights = bits .. " bits", scales = by, ["held out %"] = figures.mean(now), points = ("%.2f [%.2f, %.2f]"):format(gain, gain - half, gain + half),
    KB = figures.bytes(path) / 1e3, ["after each epoch"] = table.concat(epochs, " ") }
end

-- Every epoch is judged as the integers that it would be, on all held-out samples: nothing is chosen by that.
local function trained(bits, scales)
  local rounded = whole:apply("quantizer.qat", { data = train, scales = scales, weight_bits = bits })
  local model, report = tn.train(rounded, {
    data = answers, target = target, loss = loss, epochs = args.epochs or 4, batch = recipe.batch or 64, drop_last = true, seed = seed,
    optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = args.rate or 1e-4, warmup = 50 }, weight_decay = 0.01, decay_vectors = false },
    clip_norm = recipe.clip_norm or 0, precision = args.precision or "fp32", threads = run.threads,
    train_as = scales ~= "all" and { ["quantizer.track"] = { epochs = 0.75 * (args.epochs or 4) } } or nil,
    validation = judged, validate_as = "quantizer.convert", metric = "accuracy", restore_best = false,
    run = ("%s_%d_%s"):format(out, bits, scales), resume = true,
  })
  return model:apply("quantizer.convert"), report.history
end

for bits in words(args.bits or "8,4") do
  bits = tonumber(bits)
  add(bits, "calibrated", whole:apply("quantizer.static", { data = train, weight_bits = bits }))
  for scales in words(args.scales or "all") do add(bits, scales, trained(bits, scales)) end
end
tn.print_table(rows, { "weights", "scales", "held out %", "points", "KB", "after each epoch" })
return { network = recipe.name, rows = rows }
