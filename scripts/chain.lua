-- SPDX-License-Identifier: Apache-2.0
-- The chain: a trained network made shallower, narrower, decomposed, taught by what it was, then quantized and stored.
-- Every stage is measured beside the one before, and what pays neither in bytes nor in time nor in points is left out.
--   scripts/fetch glyphs mnist
--   tenon run scripts/chain.lua [--set network=mobilenet] [--set quick=true] [--set out=FOLDER] [--set models=.cache/models] [--set kept=scripts/reference]
--     [--set without=shallower,teacher] [--set 'narrower={"parameters": 0.2}'] [--set force=true] [--set threads=1] [--set seed=1]
-- network: one of scripts/reference that is kept there. quick: a network of digits, taught half as long, in half a minute.
-- For comparisons (tests/bench/slim/chain.py): without: stages that are left out unseen, or the teacher; narrower: another target;
-- force: no stage is left out for what it loses; epochs: how many times as long everything is taught.
-- Called again in the same folder it goes on where it was stopped, with what it was first called with.
local tn = require "tenon"
local networks, figures = require "reference.networks", require "chain_figures"
local args = tn.args
local recipe = networks.find(args.network or (args.quick and "mnist_cnn" or "mobilenet"))
local models, seed = args.models or ".cache/models", args.seed or 1
local out = (args.out or ".") .. "/chain_" .. recipe.name
local run = { threads = args.threads or 1, turns = 5, seconds = args.quick and 0.1 or 0.2 }
local effort = args.epochs or (args.quick and 0.5 or 1) -- of the epochs below, which are shares of the recipe's
local kAllowed = 1 -- points that the whole chain may lose on the samples that decide; more is held against it if it is no chance
local kParts = 20 -- of the held-out samples: intervals of points are over them

-- A quarter of the held-out data decides, the rest is reported.
local train, test = tn.data.npz(models .. "/" .. recipe.data .. "_train.npz"), tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
local deciding = #test // 4

local function check_without(known)
  for name in tostring(args.without or ""):gmatch("[^,]+") do
    if not known[name] then error("without: expected some of the chain's stages, or teacher, got '" .. name .. "'", 0) end
  end
end
local function is_without(name) return ("," .. (args.without or "") .. ","):find("," .. name .. ",", 1, true) end

-- What was found out once, in a file of its own: the clock may say otherwise when a chain that was stopped goes on.
local function noted(name, find)
  local path = out .. "_" .. name .. ".txt"
  local file = io.open(path, "rb")
  local text = file and file:read("a") or find()
  if not file and text then
    file = assert(io.open(path, "wb"))
    file:write(text)
  end
  if file then file:close() end
  return text
end

-- The model of a file; it is made first where there is none, so that a chain that was stopped goes on from the same one.
local function stored(name, make, options)
  local path = out .. "_" .. name .. ".onnx"
  local file = io.open(path, "rb")
  if file then file:close() else make():save(path, options) end
  return tn.load(path), path
end

-- What makes it smaller: each pays in bytes or time, or is left out; what they cost in points is taught away together.
local shrinking = {
  { name = "shallower", make = function(model) return model:apply("pruner.depth", { ratio = 0.8, data = train }) end },
  { name = "narrower", make = function(model) return model:apply("pruner.structured", { target = args.narrower or { time = 0.6 }, round_to = 8 }) end },
  { name = "decomposed", make = function(model)
    local thin, svd = model:apply("decomposer.svd", { data = train, multiple = 8 })
    local thinner, tucker = thin:apply("decomposer.tucker2", { data = train, multiple = 8 })
    if #svd.decomposed + #tucker.decomposed == 0 then error("no layer is faster as thin ones", 0) end
    return thinner
  end },
}
local finishing = {
  { name = "taught", epochs = 1 / 2, make = function(model) return model end },
  { name = "int8", epochs = 1 / 6, rate = 3e-4, precision = "fp32", train_as = { ["quantizer.track"] = { epochs = 1 } },
    make = function(model) return model:apply("fusion.default"):apply("quantizer.qat", { data = train }) end,
    finish = function(model) return model:apply("quantizer.convert") end },
  { name = "stored sparse", make = function(model) return model end, finish = function(model) return model end, save = { sparse = "gaps" } },
}

local known = { teacher = true }
for _, stages in ipairs { shrinking, finishing } do
  for _, stage in ipairs(stages) do known[stage.name] = true end
end
check_without(known)

-- Learns from labels and from the answers that the whole network gave to the same samples.
local function taught(name, stage, model, teacher)
  local has_teacher = not is_without("teacher")
  return tn.train(model, {
    data = has_teacher and teacher.answers or train, target = has_teacher and { "label", teacher.field } or "label",
    loss = has_teacher and tn.loss["distiller.response"] { cached = true, temperature = 4, alpha = 0.7, axis = -1 } or tn.loss.cross_entropy { axis = -1 },
    optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = stage.rate or 2e-3, warmup = 50 }, weight_decay = 0.01 },
    epochs = math.max(1, math.floor(stage.epochs * effort * recipe.epochs + 0.5)), batch = recipe.batch or 64, drop_last = true, seed = seed,
    clip_norm = recipe.clip_norm or 0, precision = stage.precision or "bf16", threads = run.threads, train_as = stage.train_as,
    run = out .. "_" .. name, resume = true,
  })
end

-- What a user would run: folded, in a file. And what it will be in 8 bits, where the chain ends there: float layers say
-- little of which integers are faster.
local function measured(name, stage, model)
  local finish = stage.finish or function(one) return one:apply("fusion.default") end
  local deployed, path = stored(name .. "_done", function() return finish(model) end, stage.save)
  local timed = deployed
  if not stage.finish and not is_without("int8") then
    timed = stored(name .. "_timed", function() return deployed:apply("quantizer.static", { data = train, observer = "minmax" }) end)
  end
  return {
    model = model, deployed = deployed, timed = timed, bytes = figures.bytes(path), parts = figures.accuracies(deployed, test, deciding + 1, #test, kParts, run),
    decides = figures.accuracies(deployed, test, 1, deciding, kParts // 2, run),
  }
end

local function ends(value, half) return ("%.2f [%.2f, %.2f]"):format(value, value - half, value + half) end

-- The row of the table that compares a model with the one before, or is of the first. Both "as integers": as they will run.
local function describe(name, now, before, kind)
  local row = { stage = name, KB = now.bytes / 1e3, ["held out %"] = figures.mean(now.parts) }
  if not before then
    row.ms = tn.bench(now.deployed, { threads = run.threads }).median_ms
    return row
  end
  row.gain, row.half = figures.points(before.parts, now.parts)
  local decided, chance = figures.points(before.decides, now.decides)
  row.better = decided - chance > 0 -- on the samples that decide, not those that are reported
  row.points, row.smaller = ends(row.gain, row.half), before.bytes / now.bytes
  local both = kind == "as integers"
  row.faster = figures.faster(both and before.timed or before.deployed, both and now.timed or now.deployed, run)
  row.ms, row["x smaller"] = row.faster.ms, row.smaller
  row["x faster"] = ("%.2f [%.2f, %.2f]"):format(row.faster.times, row.faster.low, row.faster.high)
  return row
end

-- What was refused, without where in this script and by which component, and without what was expected.
local function reason(message)
  return (tostring(message):gsub("^%S+%.lua:%d+: ", ""):gsub(": expected .*", ""):gsub(" %(component .*", ""))
end

local whole = measured("float", {}, networks.kept(recipe, models, args.kept or "scripts/reference"))
local rows, teacher = { describe("float", whole) }, { answers = tn.data["distiller.cached"] { data = train, teacher = whole.model } }
for _, field in ipairs(teacher.answers:fields()) do
  if field.name:find("^teacher/") then teacher.field = field.name end
end

local dropped = {}

-- The model after this stage, or nothing where it does not pay; and the row that says so.
local function passed(attempt, stage, now)
  local name = stage.name .. (attempt > 1 and "_" .. attempt or "")
  local made, start = false, dropped[stage.name] or "as asked"
  if not is_without(stage.name) and not dropped[stage.name] then
    local refused = noted(name .. "_refused", function()
      made, start = pcall(stored, name .. "_start", function() return stage.make(stage.save and now.deployed or now.model) end)
      return not made and tostring(start) or nil
    end)
    if refused then made, start = false, refused end
  end
  if not made then return nil, { stage = stage.name, verdict = "left out: " .. reason(start) } end
  local after = measured(name, stage, stage.epochs and taught(name, stage, start, teacher) or start)
  local row = describe(stage.name, after, now, not stage.finish and "as integers" or nil)
  local decision = noted(name .. "_decision", function()
    local paid, refusal = figures.payment(row, not stage.finish)
    return paid or "left out: " .. refusal
  end)
  local payment = not decision:find("^left out") and decision or nil
  local loss, half = figures.points((payment and after or now).decides, whole.decides)
  row.verdict = decision
  if stage.epochs and loss > kAllowed and loss - half > 0 and not args.force then
    row.loses = true
    row.verdict = ("%s: %.1f points below the float network on the samples that decide"):format(payment and "left out" or decision, loss)
  end
  return payment and not row.loses and after or nil, row
end

-- All stages in turn. What loses too much when it has been taught began too small: the first thing that was taken out stays then.
local function chain(attempt, now)
  local taken = {}
  for _, stage in ipairs(shrinking) do
    local after, row = passed(attempt, stage, now)
    rows[#rows + 1], now = row, after or now
    if after then taken[#taken + 1] = stage end
  end
  for _, stage in ipairs(finishing) do
    local after, row = passed(attempt, stage, now)
    rows[#rows + 1], now = row, after or now
    if row.loses and stage.name == "taught" and #taken > 0 then
      row.verdict = row.verdict .. "; begun again without " .. taken[1].name
      dropped[taken[1].name] = "cost too much before"
      return chain(attempt + 1, whole)
    end
  end
  return now
end

local now = chain(1, whole)
local last = describe("all of it", now, whole)
rows[#rows + 1] = last
tn.print_table(rows, { "stage", "KB", "ms", "held out %", "x smaller", "x faster", "points", "verdict" })
print(("%s: %.1f times smaller, %s times faster at batch 1 on %d thread(s), %s points"):format(recipe.name, last.smaller, last["x faster"],
  run.threads, last.points))
now.deployed:save(out .. ".onnx")
return { network = recipe.name, rows = rows, parts = now.parts, smaller = last.smaller, faster = last.faster, points = last.gain }
