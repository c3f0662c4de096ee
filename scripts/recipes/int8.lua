-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]']
-- Without an observer it tries several and keeps the one that leaves most signal to noise, before a last Softmax, on data that
-- calibration has not seen; what is left is measured on data that neither has seen.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "int8", passes = { "quantizer.static", "precision.widen" }, leave = "skip",
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
local calibration, held, unseen = recipe.parts(recipe.data())

local best
local rows = {}
for _, candidate in ipairs(candidates) do
  local small, told = model:apply("quantizer.static", recipe.options("quantizer.static", {
    data = calibration, observer = candidate.observer, observer_options = candidate.observer_options,
  }))
  local snr = #candidates > 1 and (tn.compare(model, small, held, { limit = args.limit or 64 }).snr_db or -math.huge) or nil
  rows[#rows + 1] = { observer = candidate.name, ["SNR dB"] = snr or "" }
  if not best or snr > best.snr then
    best = { model = small, snr = snr, name = candidate.name, report = told }
  end
end

local left = recipe.judge(model, best.model, unseen)
local near = tn.evaluate(best.model, unseen, { metric = "cosine", against = model, limit = args.limit or 64 })
best.model:save(args.output)

local result = {
  output = args.output, observer = best.name, chosen_by = rows, cosine = near.mean, cosine_min = near.min, snr_db = left.snr_db,
  outputs = left.outputs, weakest = left.weakest, drop = left.drop, judged_on = left.judged_on, bytes_before = model:bytes(),
  bytes_after = best.model:bytes(),
}
if not args.json and #rows > 1 then
  tn.print_table(rows, { "observer", "SNR dB" })
end
for key, value in pairs(recipe.stayed(best.report)) do
  result[key] = value
end
if not args.json then
  print(string.format("%s: observer %s, %.4g MB -> %.4g MB; on %d samples not used before: %s, cosine %.5f (lowest %.5f)",
    args.output, best.name, result.bytes_before / 1e6, result.bytes_after / 1e6, left.judged_on,
    left.snr_db and string.format("%.1f dB", left.snr_db) or "no output in float", near.mean, near.min))
end
return result
