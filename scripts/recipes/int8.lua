-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]']
-- Without an observer it tries several and keeps the one whose outputs are nearest to the float
-- model's on a quarter of the data that calibration has not seen.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "int8", passes = { "quantizer.static", "precision.widen" },
  options = {
    limit = "held-out samples that candidates are judged by (64)", min_snr = "dB that have to be left, or nothing is written",
    max_drop = "of the metric, at most, or nothing is written", metric = "what max_drop is about (accuracy)",
  },
}
if recipe.described then
  return recipe.described
end

if not args.data then
  error("recipe int8: option --data: expected a calibration set (.npz, .npy, .csv or a folder of images)", 0)
end

local candidates = {
  { name = "minmax", observer = "minmax" },
  { name = "percentile 99.999", observer = "percentile", observer_options = { percentile = 99.999 } },
  { name = "mse", observer = "mse" },
  { name = "entropy", observer = "entropy" },
}
if args.observer or args.observer_options then
  candidates = { { name = args.observer or "mse" } }
end

local model = tn.load(args.model):apply("precision.widen", recipe.options("precision.widen")):apply("fusion.default")
local data = tn.data.open(args.data)
local calibration, held = data, data
if #data >= 8 then
  calibration, held = data:split(0.75)
end

local function quantize(candidate)
  return model:apply("quantizer.static", recipe.options("quantizer.static", {
    data = calibration, observer = candidate.observer, observer_options = candidate.observer_options,
  }))
end

local best, report
local rows = {}
for _, candidate in ipairs(candidates) do
  local small, told = quantize(candidate)
  local near = tn.evaluate(small, held, { metric = "cosine", against = model, limit = args.limit or 64 })
  rows[#rows + 1] = { observer = candidate.name, cosine = near.mean, lowest = near.min }
  if not best or near.mean > best.mean then
    best = { model = small, mean = near.mean, min = near.min, name = candidate.name }
    report = told
  end
end

-- Signal to noise of the worst output; in front of a Softmax where one makes it, which hides what was lost.
local compared = tn.compare(model, best.model, held, { limit = args.limit or 64 })
local outputs, snr = {}, math.huge
for _, port in ipairs(best.model:inspect().outputs) do
  outputs[port.name] = true
end
for _, row in ipairs(compared.layers) do
  if outputs[row.value] or row.op == "output" then
    snr = math.min(snr, row.op == "Softmax" and row.source_snr_db or row.snr_db)
  end
end
local weakest, nodes = {}, {}
for _, row in ipairs(compared.layers) do -- the most damaging first
  if #weakest < 3 and row.node ~= "" and row.op ~= "Softmax" then
    weakest[#weakest + 1] = { node = row.node, op = row.op, snr_db = row.snr_db, damage = row.damage }
    nodes[#nodes + 1] = '"' .. row.node .. '"'
  end
end
local advice = string.format("most is lost in %s: leave them in float with --set 'skip=[%s]'%s", table.concat(nodes, ", "),
  table.concat(nodes, ","), args.observer and ", or try without --set observer=" .. tostring(args.observer) or "")
if args.min_snr and not (snr >= args.min_snr) then
  error(string.format("recipe int8: option min_snr: expected %g dB or more, got %.1f dB; nothing was written; %s",
    args.min_snr, snr, advice), 0)
end
local drop
if args.max_drop then
  local metric = args.metric or "accuracy"
  local before = tn.evaluate(model, held, { metric = metric }).value
  drop = before - tn.evaluate(best.model, held, { metric = metric }).value
  if not (drop <= args.max_drop) then
    error(string.format("recipe int8: option max_drop: expected %s to fall by %g at most, got %.4f; nothing was written; %s",
      metric, args.max_drop, drop, advice), 0)
  end
end
if snr < 10 then -- noise of a tenth of the signal's power
  tn.log.warning(string.format("only %.1f dB of signal to noise are left: %s", snr, advice))
end
best.model:save(args.output)

local result = {
  output = args.output, observer = best.name, cosine = best.mean, cosine_min = best.min, snr_db = snr, weakest = weakest, drop = drop,
  bytes_before = model:bytes(), bytes_after = best.model:bytes(),
  quantized = report.counts.quantized, float = report.counts.float, left = report.float,
}
if not args.json then
  tn.print_table(rows, { "observer", "cosine", "lowest" })
  local names, order = {}, {}
  for _, node in ipairs(report.float) do
    if not names[node.why] then
      names[node.why] = {}
      order[#order + 1] = node.why
    end
    table.insert(names[node.why], node.node)
  end
  print(string.format("8 bits: %d nodes; float: %d nodes", result.quantized, result.float))
  for _, why in ipairs(order) do
    print("  float, " .. why .. ": " .. table.concat(names[why], ", "))
  end
  print(string.format("%s: observer %s, %.1f MB -> %.1f MB, cosine %.5f (lowest %.5f), %.1f dB", args.output,
    best.name, result.bytes_before / 1e6, result.bytes_after / 1e6, best.mean, best.min, snr))
end
return result
