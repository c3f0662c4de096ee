-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]']
-- Without an observer it tries several and keeps the one whose outputs are nearest to the float
-- model's on a quarter of the data that calibration has not seen.
local tn = require "tenon"
local args = tn.args

if not args.data then
  error("recipe int8: option --data: expected a calibration set (.npz, .npy, .csv or a folder of images)", 0)
end

local candidates = {
  { name = "minmax", observer = "minmax" },
  { name = "percentile 99.999", observer = "percentile", observer_options = { percentile = 99.999 } },
  { name = "mse", observer = "mse" },
  { name = "entropy", observer = "entropy" },
}
if args.observer then
  candidates = { { name = args.observer, observer = args.observer } }
end

local model = tn.load(args.model):apply("precision.widen", { interface = args.interface }):apply("fusion.default")
local data = tn.data.open(args.data)
local calibration, held = data, data
if #data >= 8 then
  calibration, held = data:split(0.75)
end

local function quantize(candidate)
  return model:apply("quantizer.static", {
    data = calibration, observer = candidate.observer, observer_options = candidate.observer_options,
    samples = args.samples or 256, skip = args.skip or {}, products = args.products,
  })
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
best.model:save(args.output)

local result = {
  output = args.output, observer = best.name, cosine = best.mean, cosine_min = best.min,
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
  print(string.format("%s: observer %s, %.1f MB -> %.1f MB, cosine %.5f (lowest %.5f)", args.output,
    best.name, result.bytes_before / 1e6, result.bytes_after / 1e6, best.mean, best.min))
end
return result
