-- SPDX-License-Identifier: Apache-2.0
-- The chain: a trained network made shallower, narrower, decomposed, each taught by what it was, then quantized and stored.
-- Every stage is measured beside the one before, and what does not pay is left out.
--   scripts/fetch glyphs mnist
--   tenon run scripts/chain.lua [--set network=mobilenet] [--set quick=true] [--set out=FOLDER] [--set models=.cache/models] [--set kept=scripts/reference]
--     [--set without=shallower,teacher] [--set 'narrower={"parameters": 0.2}'] [--set force=true] [--set threads=1] [--set seed=1]
-- network: one of scripts/reference that is kept there. quick: a network of digits, taught half as long, in half a minute.
-- For comparisons (tests/bench/slim/chain.py): without: stages that are left out unseen, or the teacher; narrower: another target;
-- force: no stage is left out for what it loses; epochs: how many times as long everything is taught.
-- Called again in the same folder it goes on where it was stopped, with what it was first called with.
local tn = require "tenon"
local networks, figures = require "reference.networks", require "chain.figures"
local args = tn.args
local recipe = networks.find(args.network or (args.quick and "mnist_cnn" or "mobilenet"))
local models, seed = args.models or ".cache/models", args.seed or 1
local out = (args.out or ".") .. "/chain_" .. recipe.name
local run = { threads = args.threads or 1, turns = args.quick and 5 or 7, seconds = args.quick and 0.1 or 0.2 }
local effort = args.epochs or (args.quick and 0.5 or 1) -- of the epochs below, which are shares of the recipe's
local kAllowed = 1 -- points that the whole chain may lose on the samples that decide
local kSmaller = 0.95 -- what is no smaller than this has to be faster

-- A quarter of the held-out data decides, the rest is reported.
local train, test = tn.data.npz(models .. "/" .. recipe.data .. "_train.npz"), tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
local deciding = #test // 4

local function is_without(name) return ("," .. (args.without or "") .. ","):find("," .. name .. ",", 1, true) end

-- The model of a file; it is made first where there is none, so that a chain that was stopped goes on from the same one.
local function stored(name, make, options)
  local path = out .. "_" .. name .. ".onnx"
  local file = io.open(path, "rb")
  if file then file:close() else make():save(path, options) end
  return tn.load(path), path
end

local stages = {
  { name = "shallower", epochs = 1 / 3, make = function(model) return model:apply("pruner.depth", { ratio = 0.8, data = train }) end },
  { name = "narrower", epochs = 1 / 2, make = function(model)
    return model:apply("pruner.structured", { target = args.narrower or { time = 0.5 }, round_to = 8 })
  end },
  { name = "decomposed", epochs = 1 / 4, make = function(model)
    local thin, svd = model:apply("decomposer.svd", { data = train, multiple = 8 })
    local thinner, tucker = thin:apply("decomposer.tucker2", { data = train, multiple = 8 })
    if #svd.decomposed + #tucker.decomposed == 0 then error("no layer is faster as thin ones", 0) end
    return thinner
  end },
  { name = "int8", epochs = 1 / 6, rate = 3e-4, precision = "fp32", train_as = { ["quantizer.track"] = { epochs = 1 } },
    make = function(model) return model:apply("fusion.default"):apply("quantizer.qat", { data = train }) end,
    finish = function(model) return model:apply("quantizer.convert") end },
  { name = "stored sparse", epochs = 0, make = function(model) return model end, finish = function(model) return model end, save = { sparse = "gaps" } },
}

-- Learns from labels and from the answers that the whole network gave to the same samples.
local function taught(stage, model, teacher)
  local epochs = math.max(1, math.floor(stage.epochs * effort * recipe.epochs + 0.5))
  local has_teacher = not is_without("teacher")
  return tn.train(model, {
    data = has_teacher and teacher.answers or train, target = has_teacher and { "label", teacher.field } or "label",
    loss = has_teacher and tn.loss["distiller.response"] { cached = true, temperature = 4, alpha = 0.7, axis = -1 } or tn.loss.cross_entropy { axis = -1 },
    optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = stage.rate or 2e-3, warmup = 50 }, weight_decay = 0.01 },
    epochs = epochs, batch = recipe.batch or 64, drop_last = true, seed = seed, clip_norm = recipe.clip_norm or 0,
    precision = stage.precision or "bf16", threads = run.threads, train_as = stage.train_as,
    run = out .. "_" .. stage.name, resume = true,
  })
end

-- What a user would run: folded, in a file.
local function measured(stage, model)
  local finish = stage.finish or function(one) return one:apply("fusion.default") end
  local deployed, path = stored(stage.name .. "_done", function() return finish(model) end, stage.save)
  return {
    model = model, deployed = deployed, bytes = figures.bytes(path), parts = figures.accuracies(deployed, test, deciding + 1, #test, 20, run),
    decides = figures.accuracies(deployed, test, 1, deciding, 1, run)[1],
  }
end

local function verdict(row, now, whole, gain, half)
  if whole.decides - now.decides > kAllowed then
    return false, ("loses %.1f points on the samples that decide"):format(whole.decides - now.decides)
  end
  if row.smaller * kSmaller > 1 then return true, "smaller" .. (row.faster.low > 1 and " and faster" or "") end
  if row.faster.low > 1 then return true, "faster" end
  if half and gain - half > 0 then return true, "better" end
  return false, "neither smaller nor faster nor better"
end

-- An error without where in this script it was raised, and without the component's id.
local function reason(message)
  return (tostring(message):gsub("^%S+%.lua:%d+: ", ""):gsub(" %(component .*", ""))
end

local function ends(value, low, high) return ("%.2f [%.2f, %.2f]"):format(value, low, high) end

local function describe(name, now, before)
  local accuracy = figures.mean(now.parts)
  local row = { stage = name, KB = now.bytes / 1e3, ["held out %"] = accuracy }
  if before then
    local gain, half = figures.points(before.parts, now.parts)
    row.smaller, row.faster = before.bytes / now.bytes, figures.faster(before.deployed, now.deployed, run)
    row.ms, row["x faster"] = row.faster.ms, ends(row.faster.times, row.faster.low, row.faster.high)
    row["x smaller"], row.points = row.smaller, ends(gain, gain - (half or 0), gain + (half or 0))
    return row, gain, half
  end
  row.ms = tn.bench(now.deployed, { threads = run.threads }).median_ms
  return row
end

local whole = measured({ name = "float" }, networks.kept(recipe, models, args.kept or "scripts/reference"))
local rows, now = { describe("float", whole) }, whole
local answers = tn.data["distiller.cached"] { data = train, teacher = whole.model }
local teacher = { answers = answers }
for _, field in ipairs(answers:fields()) do
  if field.name:find("^teacher/") then teacher.field = field.name end
end

for _, stage in ipairs(stages) do
  local made, start
  if is_without(stage.name) then
    made, start = false, "as asked"
  else
    made, start = pcall(stored, stage.name .. "_start", function() return stage.make(stage.save and now.deployed or now.model) end)
  end
  if not made then
    rows[#rows + 1] = { stage = stage.name, verdict = "left out: " .. reason(start) }
  else
    local after = stage.epochs > 0 and taught(stage, start, teacher) or start
    local next_one = measured(stage, after)
    local row, gain, half = describe(stage.name, next_one, now)
    local pays, why = verdict(row, next_one, whole, gain, half)
    row.verdict = (pays and "" or args.force and "kept as asked: " or "left out: ") .. why
    rows[#rows + 1] = row
    if pays or args.force then now = next_one end
  end
  tn.log.info(("%s: %s"):format(stage.name, rows[#rows].verdict))
end

local last, gain, half = describe("all of it", now, whole)
rows[#rows + 1] = last
tn.print_table(rows, { "stage", "KB", "ms", "held out %", "x smaller", "x faster", "points", "verdict" })
print(("%s: %.1f times smaller, %s times faster at batch 1 on %d thread(s), %.2f ± %.2f points"):format(recipe.name, last.smaller, last["x faster"],
  run.threads, gain, half or 0))
now.deployed:save(out .. "_chain.onnx")
return { network = recipe.name, rows = rows, parts = now.parts, smaller = last.smaller, faster = last.faster, points = gain, half_width = half }
