-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]'] [--min-snr 20]
-- Without an observer it tries several and keeps the one that leaves most signal to noise, before a last Softmax, on data that
-- calibration has not seen. Each of `methods` is tried after that and kept where it leaves more there, and so are the few layers of
-- which 8 bits leave next to nothing (`weak`) in float. Under a target (--min-snr,
-- --max-drop) the layers that lose most stay in float, as few as possible. The model is then made once more from all data but those
-- that it is judged on, which have chosen nothing.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "int8", passes = { "quantizer.static", "precision.widen" }, leave = "skip",
  options = {
    methods = "tried in this order: any of smooth, equalize, gptq, adaround, correct_bias, or none (correct_bias)",
    weak = "layers that lose more than so many dB alone are left in float, where that is worth 3 dB (20; 0: none)",
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

local model = tn.load(args.model):apply("precision.widen", recipe.options("precision.widen")):apply("fusion.default")
local calibration, held, unseen, whole = recipe.parts(recipe.data())

-- The model in 8 bits, by these choices: `methods` are in use, the nodes of `skip` stay in float.
local function made(choice, data)
  local source = model
  for _, method in ipairs(choice.methods) do
    if is_float_pass[method] then source = source:apply("quantizer." .. method, method == "smooth" and { data = data } or {}) end
  end
  local options = recipe.options("quantizer.static", {
    data = data, observer = choice.observer, observer_options = choice.observer_options,
  })
  local skip = recipe.joined(options.skip, choice.skip)
  options.skip = #skip > 0 and skip or nil
  local small, told = source:apply("quantizer.static", options)
  for _, method in ipairs(choice.methods) do
    if not is_float_pass[method] then small = small:apply("quantizer." .. method, { data = data, original = source }) end
  end
  return small, told
end
local function snr_of(small)
  return tn.compare(model, small, held, { limit = args.limit or 64 }).snr_db or -math.huge
end

local choice, rows = { methods = {}, skip = {} }, {}
local function keep_if_better(name, other)
  local snr = snr_of(made(other, calibration))
  rows[#rows + 1] = { choice = name, ["SNR dB"] = snr }
  if not choice.snr or snr > (other.least or choice.snr) then
    choice, other.snr = other, snr
  end
end
for _, candidate in ipairs(candidates) do
  keep_if_better(candidate.name, {
    observer = candidate.observer, observer_options = candidate.observer_options, name = candidate.name, methods = {}, skip = {},
  })
end
for _, method in ipairs(methods) do
  local other = {}
  for key, value in pairs(choice) do other[key] = value end
  other.methods = recipe.joined(choice.methods, { method })
  keep_if_better("+ " .. method, other)
end

-- What 8 bits do to each layer alone, the one that loses most first.
local function sensitivity()
  local options = recipe.options("quantizer.static", {
    data = calibration, observer = choice.observer, observer_options = choice.observer_options,
  })
  options.bias, options.reduce_range = nil, nil
  local _, told = model:apply("quantizer.sensitivity", options)
  return told.layers
end

local layers = sensitivity()
local weak, computing = {}, 0
for _, row in ipairs(layers) do
  if row.role == "compute" then computing = computing + 1 end
  if row.role ~= "joiner" and row.snr_db < (args.weak or 20) then
    weak[#weak + 1] = (row.node:gsub("[%[%]%*%?]", "?")) -- what is special in patterns may be any letter
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
    return made({ observer = choice.observer, observer_options = choice.observer_options, methods = choice.methods, skip = skip }, calibration)
  end, function() return layers end)
  choice.skip = mixed.skip
end

local best, told = made(choice, whole)
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
for key, value in pairs(recipe.stayed(told)) do
  result[key] = value
end
if not args.json then
  print(string.format("%s: %s%s, %.4g MB -> %.4g MB; on %d samples not used before: %s, cosine %.5f (lowest %.5f)",
    args.output, choice.name, #choice.methods > 0 and " + " .. table.concat(choice.methods, " + ") or "", result.bytes_before / 1e6,
    result.bytes_after / 1e6, left.judged_on, left.snr_db and string.format("%.1f dB", left.snr_db) or "no output in float", near.mean,
    near.min))
end
return result
