-- SPDX-License-Identifier: Apache-2.0
-- The reference networks, each trained by its recipe from seed to file: what proofs of later work start from.
--   scripts/fetch mnist glyphs shapes characters leaves sentences
--   tenon run scripts/reference.lua [--set networks=lenet,resnet20] [--set seeds=1] [--set epochs=N] [--set out=runs/reference]
--     [--set precision=bf16] [--set threads=N] [--set onnx=FOLDER, with kept: their models as ONNX files go there]
-- Called again it goes on where it was stopped: each training has its folder OUT/NETWORK_SEED, and one that had
-- ended gives its weights at once. Weights go to OUT/NETWORK_SEED.safetensors under PyTorch's names.
-- One of each is kept in scripts/reference in bfloat16. With --set kept=scripts/reference nothing is trained: those weights
-- are judged; --set keep=scripts/reference puts what was trained there.
-- --set first=N trains so many steps alone, samples in the order of the file and without dropout, and leaves the weights that they begin
-- with and the losses: OUT/NETWORK_SEED.initial.safetensors, .first.jsonl (and .log.jsonl, which grows). What tests/bench/reference.py --first compares.
local tn = require "tenon"
local networks, args = require "reference.networks", tn.args
local models, out, seeds = args.models or ".cache/models", args.out or "runs/reference", args.seeds or 1

local wanted = args.networks or "lenet,mnist_cnn,resnet20,mobilenet,unet,transformer,lstm,minilm,minilm_head"
local function is_wanted(name) return ("," .. wanted .. ","):find("," .. name .. ",", 1, true) end

local results = {}
for name in wanted:gmatch("[^,]+") do networks.find(name) end

local function test_accuracy(model, recipe)
  local data = tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
  return 100 * tn.evaluate(model, data, { metric = "accuracy", batch = 100 }).accuracy
end

local function train(recipe, seed)
  local place, data = out .. "/" .. recipe.name .. "_" .. seed, models .. "/" .. recipe.data
  local trained, report = tn.train(networks.build(recipe, models, seed), {
    data = tn.data.npz(data .. "_train.npz"), epochs = args.epochs or recipe.epochs, batch = recipe.batch or 64, drop_last = true, clip_norm = recipe.clip_norm or 0,
    loss = tn.loss.cross_entropy { axis = -1 }, optimizer = recipe.optimizer(recipe.rate), parameters = recipe.parameters, seed = seed, run = place, resume = true,
    precision = args.precision or "fp32", threads = args.threads or 0,
  })
  trained:save(place .. ".safetensors")
  if args.keep and not recipe.is_large then
    trained:save(args.keep .. "/" .. recipe.name .. ".safetensors", { dtype = "bfloat16", only = recipe.parameters })
  end
  local seconds = 0
  for _, epoch in ipairs(report.history) do seconds = seconds + epoch.seconds end
  return {
    network = recipe.name, seed = seed, epochs = #report.history, loss = report.history[#report.history].loss,
    accuracy = test_accuracy(trained, recipe), hours = seconds / 3600,
  }
end

-- Dropout is driven to zero where a network has it: a number that is not there is refused.
local function first_steps(recipe, seed)
  local place, model, losses, lines = out .. "/" .. recipe.name .. "_" .. seed, networks.build(recipe, models, seed), {}, {}
  tn.train(model, {
    data = tn.data.npz(models .. "/" .. recipe.data .. "_train.npz"), epochs = recipe.epochs, batch = recipe.batch or 64, drop_last = true,
    clip_norm = recipe.clip_norm or 0, loss = tn.loss.cross_entropy { axis = -1 }, optimizer = recipe.optimizer(recipe.rate),
    shuffle = false, schedules = recipe.drops and { dropout = 0 } or nil, precision = args.precision or "fp32", threads = args.threads or 0,
    -- The log makes the folder, which a script may not.
    callbacks = { tn.callback.lines { path = place .. ".log.jsonl" }, tn.callback { step = function(at)
      losses[#losses + 1] = at.loss
      lines[#lines + 1] = ('{"step": %d, "loss": %.9g, "rate": %.9g}\n'):format(at.step, at.loss, at.rate)
      return #losses >= args.first
    end } },
  })
  model:save(place .. ".initial.safetensors")
  local file = assert(io.open(place .. ".first.jsonl", "w"))
  file:write(table.concat(lines))
  file:close()
  return { network = recipe.name, seed = seed, epochs = 1, loss = losses[#losses] }
end

local function judge(recipe)
  local kept = networks.kept(recipe, models, args.kept)
  if args.onnx then kept:save(args.onnx .. "/" .. recipe.name .. ".onnx") end
  return { network = recipe.name, accuracy = test_accuracy(kept, recipe) }
end

if args.kept then
  for _, recipe in ipairs(networks.recipes) do
    if is_wanted(recipe.name) then results[#results + 1] = judge(recipe) end
  end
  tn.print_table(results, { "network", "accuracy" })
  return results
end
for _, recipe in ipairs(networks.recipes) do
  for seed = 1, is_wanted(recipe.name) and seeds or 0 do results[#results + 1] = (args.first and first_steps or train)(recipe, seed) end
end
tn.print_table(results, { "network", "seed", "epochs", "loss", "accuracy", "hours" })
return results
