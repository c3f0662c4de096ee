-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]'] [--min-snr 20]
-- Without an observer it tries several, whose ranges come from one pass over the data, and keeps the one that leaves most signal to
-- noise, before a last Softmax, on data that calibration has not seen. Each of `methods` is tried after that and kept where it leaves more there, and so are the few layers of
-- which 8 bits leave next to nothing (`weak`) in float. Under a target (--min-snr,
-- --max-drop) the layers that lose most stay in float, as few as possible. The model is then made once more from all data but those
-- that it is judged on, which have chosen nothing.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "int8", passes = { "quantizer.static", "precision.widen" }, leave = "skip", floats = true,
  options = {
    methods = "tried in this order: any of smooth, equalize, gptq, adaround, correct_bias, or none (correct_bias)",
    weak = "layers that alone leave less than this SNR in dB stay in float, where that gains 3 dB (20; 0: none)",
  },
}
if recipe.described then
  return recipe.described
end

if not args.data then
  error("recipe int8: --data: expected a calibration set (.npz, .npy, .csv or a folder of images)", 0)
end

local candidates = {
  { name = "minmax", observer = "minmax" },
  { name = "percentile 99.99", observer = "percentile", observer_options = { percentile = 99.99 } },
  { name = "percentile 99.999", observer = "percentile", observer_options = { percentile = 99.999 } },
  { name = "mse", observer = "mse" },
  { name = "entropy", observer = "entropy" },
}
if args.observer or args.observer_options then
  candidates = { { name = args.observer or "mse" } }
end
local methods = recipe.methods(args.methods or "correct_bias", { "smooth", "equalize", "gptq", "adaround", "correct_bias" })
local is_float_pass = { smooth = true, equalize = true } -- the others repair what has been rounded

local model = recipe.float_model()
local calibration, held, unseen, whole = recipe.parts(recipe.data())
local few = 32 -- samples that say what a layer loses alone

-- The options of static that passes have as well which round nothing.
local function seeing(options)
  local taken = recipe.options("quantizer.static", options)
  taken.bias, taken.reduce_range = nil, nil
  return taken
end

-- What all candidates choose, from one pass: by the data to calibrate with, and by all but what the model is judged on.
local function calibrated()
  local observers = {}
  for _, one in ipairs(candidates) do
    observers[one.name] = { observer = one.observer or args.observer or "mse", options = one.observer_options or args.observer_options }
  end
  local options = seeing({ data = calibration, more = whole ~= calibration and held or nil, observers = observers })
  options.observer, options.observer_options, options.ranges = nil, nil, nil
  local _, report = model:apply("quantizer.calibrate", options)
  return report
end
local ranges = calibrated()

-- How the nodes of `skip` stay in float and the others are rounded; `which` of the ranges are given, where the model is as it was.
local function rounding(choice, data, which)
  return {
    data = data, observer = choice.observer, observer_options = choice.observer_options,
    ranges = which and (ranges[which] or ranges.ranges)[choice.name] or nil,
  }
end

-- The model in 8 bits, by these choices: `methods` are in use, the nodes of `skip` stay in float.
local function made(choice, data, which)
  local source, is_changed = model, false
  for _, method in ipairs(choice.methods) do
    if is_float_pass[method] then
      source, is_changed = source:apply("quantizer." .. method, method == "smooth" and { data = data } or {}), true
    end
  end
  local options = recipe.options("quantizer.static", rounding(choice, data, not is_changed and which))
  local skip = recipe.joined(options.skip, choice.skip)
  options.skip = #skip > 0 and skip or nil
  local small, report = source:apply("quantizer.static", options)
  for _, method in ipairs(choice.methods) do
    if not is_float_pass[method] then small = small:apply("quantizer." .. method, { data = data, original = source }) end
  end
  return small, report
end
local function snr_of(small)
  return tn.compare(model, small, held, { limit = args.limit or 64, layers = false }).snr_db or -math.huge
end

local choice, rows = { methods = {}, skip = {} }, {}
local function keep_if_better(name, other, small)
  small = small or made(other, calibration, "ranges")
  local snr = snr_of(small)
  rows[#rows + 1] = { choice = name, ["SNR dB"] = snr }
  if not choice.snr or snr > (other.least or choice.snr) then
    choice, other.snr, other.model = other, snr, small
  end
end
for _, candidate in ipairs(candidates) do
  keep_if_better(candidate.name, {
    observer = candidate.observer, observer_options = candidate.observer_options, name = candidate.name, methods = {}, skip = {},
  })
end
for _, method in ipairs(methods) do
  local other, small = {}, nil
  for key, value in pairs(choice) do other[key] = value end
  other.methods = recipe.joined(choice.methods, { method })
  if not is_float_pass[method] and #choice.methods == 0 then -- it repairs the model at hand
    small = choice.model:apply("quantizer." .. method, { data = calibration, original = model })
  end
  keep_if_better("+ " .. method, other, small)
end

-- What 8 bits do to each layer alone, the one that loses most first.
local function sensitivity()
  local options = seeing(rounding(choice, calibration, "ranges"))
  options.samples = math.min(options.samples or few, few)
  local _, report = model:apply("quantizer.sensitivity", options)
  return report.layers
end
local layers
local function ranked()
  layers = layers or sensitivity()
  return layers
end

local weak, computing = {}, 0
if (args.weak or 20) > 0 then
  for _, row in ipairs(ranked()) do
    if row.role == "compute" then computing = computing + 1 end
    if row.role ~= "joiner" and row.snr_db < (args.weak or 20) then
      weak[#weak + 1] = (row.node:gsub("[%[%]%*%?]", "?")) -- what is special in patterns may be any letter
    end
  end
end
if #weak > 0 and #weak <= computing // 4 then
  local other = {}
  for key, value in pairs(choice) do other[key] = value end
  other.skip, other.least = weak, choice.snr + 3
  keep_if_better("in float: " .. table.concat(weak, ", "), other)
end

local mixed
if args.min_snr or args.max_drop then
  mixed = recipe.mixed(model, held, function(skip)
    return made({ observer = choice.observer, observer_options = choice.observer_options, name = choice.name, methods = choice.methods, skip = skip },
      calibration, "ranges")
  end, ranked)
  choice.skip = mixed.skip
end

choice.model = nil
local best, report = made(choice, whole, "with_more")
local left = recipe.judge(model, best, unseen)
local near = tn.evaluate(best, unseen, { metric = "cosine", against = model, limit = args.limit or 64 })
recipe.save(best)

local result = {
  output = args.output, observer = choice.name, methods = choice.methods, chosen_by = rows, weak = choice.skip, mixed = mixed, cosine = near.mean,
  cosine_min = near.min, snr_db = left.snr_db, outputs = left.outputs, weakest = left.weakest, drop = left.drop,
  judged_on = left.judged_on, bytes_before = model:bytes(), bytes_after = best:bytes(),
}
if not args.json and #rows > 1 then
  tn.print_table(rows, { "choice", "SNR dB" })
end
for key, value in pairs(recipe.stayed(report)) do
  result[key] = value
end
if not args.json then
  print(string.format("%s: %s%s, %.4g MB -> %.4g MB; on %d samples%s: %s, cosine %.5f (lowest %.5f)",
    args.output, choice.name, #choice.methods > 0 and " + " .. table.concat(choice.methods, " + ") or "", result.bytes_before / 1e6,
    result.bytes_after / 1e6, left.judged_on, unseen == calibration and ", which it was made with" or " not used before",
    left.snr_db and string.format("%.1f dB", left.snr_db) or "no output in float", near.mean, near.min))
end
return result
