-- SPDX-License-Identifier: Apache-2.0
-- int8: weights and activations in 8 bits, as QuantizeLinear and DequantizeLinear nodes; a model in
-- float16 or bfloat16 becomes float32 first.
--   tenon optimize MODEL -o OUT --recipe int8 --data FILE [--set observer=mse] [--set 'skip=["a*"]'] [--min-snr 20]
-- Without an observer it tries several, whose ranges come from one pass over the data, and keeps the one that leaves most signal to
-- noise, before a last Softmax, on data that calibration has not seen. Each of `methods` is tried after that and kept where it leaves more there (smooth: 1 dB more);
-- those that change the float model are tried with all observers anew, as outliers that are gone ask for other ranges. Products of two activations, as in
-- attention, are taken into 8 bits where that leaves as much (within 0.25 dB): they are faster there. So are the few layers of
-- which 8 bits leave next to nothing (`weak`) in float. Under a target (--min-snr, --max-drop) the layers that lose most stay in float, as few as
-- possible. The model is then made once more with the ranges of all data but those that it is judged on, which have chosen nothing.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "int8", passes = { "quantizer.static", "quantizer.smooth", "quantizer.equalize", "precision.widen" }, leave = "skip", floats = true,
  options = {
    methods = "tried in this order: any of smooth (kept from 1 dB on), equalize, stored (gptq of recurrent cells' weights), gptq, adaround, correct_bias, or none (smooth, stored, correct_bias)",
    weak = {
      type = "number", description = "layers that alone leave less than this SNR in dB stay in float, where that gains 3 dB (20; 0: none)",
    },
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
if args.observer_options and type(args.observer_options) ~= "table" then
  error(([[recipe int8: option observer_options: expected an object, such as '{"percentile": 99.9}', got '%s']]):format(
    tostring(args.observer_options)), 0)
end
if args.observer or args.observer_options then
  candidates = { { name = args.observer or "mse" } }
end
local methods = recipe.methods(args.methods or { "smooth", "stored", "correct_bias" },
  { "smooth", "equalize", "stored", "gptq", "adaround", "correct_bias" })
-- These change the float model, the others repair what has been rounded. What they have to gain (dB): smooth may put in a Mul.
local is_float_pass, least_gain = { smooth = true, equalize = true }, { smooth = 1, equalize = 0 }

local model = recipe.float_model()
local calibration, held, unseen, whole = recipe.parts(recipe.data())
local few = 32 -- samples that say what a layer loses alone

-- The options of static that passes have as well which round nothing.
local function seeing(options)
  local taken = recipe.options("quantizer.static", options)
  taken.bias, taken.reduce_range = nil, nil
  return taken
end

-- The float model with the products of two activations as nodes of their own, where they are to be rounded.
local function opened(source, products)
  if (products or args.products or "none") == "none" then return source end
  return source:apply("fusion.expand", { operators = "Attention" })
end

-- What all candidates choose for a float model, from one pass: by the data to calibrate with, and by all but what is judged on;
-- also for values that only some choice of products would store.
local function calibrated(source, any_products)
  local observers = {}
  for _, one in ipairs(candidates) do
    observers[one.name] = { observer = one.observer or args.observer or "mse", options = one.observer_options or args.observer_options }
  end
  local options = seeing({ data = calibration, more = whole ~= calibration and held or nil, observers = observers })
  options.observer, options.observer_options, options.ranges, options.any_products = nil, nil, nil, any_products
  local _, report = opened(source, any_products and "all"):apply("quantizer.calibrate", options)
  return report
end

-- The float model that the float passes among these make, and whether the last of them did anything.
local function prepared(names)
  local source, is_changed = model, false
  for _, method in ipairs(names) do
    if is_float_pass[method] then
      local id = "quantizer." .. method
      local made, report = source:apply(id, recipe.options(id, method == "smooth" and { data = calibration } or {}))
      if #(report.equalized or {}) + #(report.layers or {}) == 0 then recipe.idle(id) end
      is_changed = #(report.equalized or {}) > 0
      for _, layer in ipairs(report.layers or {}) do is_changed = is_changed or layer.how ~= "left" end
      if is_changed then source = made end
    end
  end
  return source, is_changed
end

-- How the nodes of `skip` stay in float and the others are rounded; `which` of the ranges are given, where there are any.
local function rounding(choice, data, which)
  local ranges = which and choice.ranges
  return {
    data = data, observer = choice.observer, observer_options = choice.observer_options or nil, products = choice.products,
    ranges = ranges and (ranges[which] or ranges.ranges)[choice.name] or nil,
  }
end

-- The model with its rounding repaired, and whether the method found anything to do.
local function repaired(small, method, source, data)
  local options = { data = data, original = source, samples = args.samples, mask = args.mask }
  if method ~= "stored" then return small:apply("quantizer." .. method, options), true end
  options.weights = "stored"
  local better, report = small:apply("quantizer.gptq", options)
  for _, left in ipairs(report.left) do tn.log.info(("method stored leaves %s: %s"):format(left.node, left.why)) end
  return better, #report.rounded > 0
end

-- The model in 8 bits, by these choices: `methods` are in use, the nodes of `skip` stay in float.
local function made(choice, data, which)
  local source = opened(choice.source, choice.products)
  local options = recipe.options("quantizer.static", rounding(choice, data, which))
  local skip = recipe.joined(options.skip, choice.skip)
  options.skip = #skip > 0 and skip or nil
  local small, report = source:apply("quantizer.static", options)
  for _, method in ipairs(choice.methods) do
    if not is_float_pass[method] then small = repaired(small, method, source, data) end
  end
  return small, report
end
local function snr_of(small)
  return recipe.snr(model, small, held)
end

local choice, rows = { methods = recipe.list(), skip = recipe.list(), source = model }, {}
local function changed(more)
  local other = {}
  for key, value in pairs(choice) do other[key] = value end
  for key, value in pairs(more) do other[key] = value end
  return other
end
-- `gain`: what it has to leave more.
local function keep_if_better(label, other, gain, small)
  small = small or made(other, calibration, "ranges")
  local snr = snr_of(small)
  rows[#rows + 1] = { choice = label, ["SNR dB"] = snr }
  if not choice.snr or snr > choice.snr + gain then
    choice, other.snr, other.model = other, snr, small
  end
end
-- Products of two activations that could be stored: their ranges come from the same pass as the others, or from one of their own
-- ("later") where they are within nodes that stay whole otherwise. And the choices that store some of them.
local function products_seen()
  if args.products then return nil end
  local seen, choices
  local _, report = model:apply("quantizer.macs", { data = calibration })
  for _, one in ipairs(report.float) do
    if one.of_activations then seen = one.op == "Attention" and "later" or seen or "now" end
    if one.scores then choices = { "all", "scores" } end
  end
  return seen, choices or { "all" }
end
local seen, product_choices = products_seen()

local function try_observers(label, source, names, gain)
  local ranges, before = calibrated(source, seen == "now"), choice.snr
  for _, candidate in ipairs(candidates) do
    keep_if_better(label .. candidate.name, changed {
      -- false, not nil, which would leave those of the choice before
      observer = candidate.observer, observer_options = candidate.observer_options or false, name = candidate.name, methods = names,
      source = source, ranges = ranges,
    }, choice.snr == before and gain or 0)
  end
end
try_observers("", model, recipe.list(), 0)
for _, method in ipairs(methods) do
  local names = recipe.joined(choice.methods, { method })
  if is_float_pass[method] then
    local source, is_changed = prepared(names)
    if is_changed then try_observers("+ " .. method .. ", ", source, names, least_gain[method]) end
  else -- it repairs the model at hand
    local small, is_changed = repaired(choice.model, method, opened(choice.source), calibration)
    if is_changed then keep_if_better("+ " .. method, changed { methods = names }, 0, small) end
  end
end

if seen then
  local ranges = seen == "now" and choice.ranges or calibrated(choice.source, true)
  for _, products in ipairs(product_choices) do
    if not choice.products then keep_if_better("products: " .. products, changed { products = products, ranges = ranges }, -0.25) end
  end
end

-- What 8 bits do to each layer alone, the one that loses most first.
local function sensitivity()
  local options = seeing(rounding(choice, calibration, "ranges"))
  options.samples = math.min(options.samples or few, few)
  local _, report = opened(choice.source, choice.products):apply("quantizer.sensitivity", options)
  return report.layers
end
local layers
local function ranked()
  layers = layers or sensitivity()
  return layers
end

local weak, computing = recipe.list(), 0
if (args.weak or 20) > 0 then
  local pattern_of = recipe.patterns(model)
  for _, row in ipairs(ranked()) do
    if row.role == "compute" then computing = computing + 1 end
    if row.role ~= "joiner" and row.snr_db < (args.weak or 20) then
      weak[#weak + 1] = pattern_of(row.node)
    end
  end
end
if args.weak and (#weak == 0 or #weak > computing // 4) and args.weak > 0 then
  tn.log.info(("option weak: %s leave less than %g dB alone: nothing is left in float for it"):format(#weak == 0 and "no layers" or
    ("%d layers, more than a quarter,"):format(#weak), args.weak))
end
if #weak > 0 and #weak <= computing // 4 then
  keep_if_better("in float: " .. table.concat(weak, ", "), changed { skip = weak }, 3)
end

local mixed
if args.min_snr or args.max_drop then
  mixed = recipe.mixed(model, held, function(skip) return made(changed { skip = skip }, calibration, "ranges") end, ranked)
  choice.skip = mixed.skip
end

choice.model = nil
local best, report = made(choice, whole, "with_more")
local left = recipe.judge(model, best, unseen)
local near = tn.evaluate(best, unseen, { metric = "cosine", against = model, limit = args.limit or 64 })
local sizes = recipe.save(best)

local result = {
  output = args.output, observer = choice.name, methods = choice.methods, products = choice.products, chosen_by = rows, weak = choice.skip, mixed = mixed, cosine = near.mean,
  cosine_min = near.min, snr_db = left.snr_db, outputs = left.outputs, weakest = left.weakest, drop = left.drop,
  judged_on = left.judged_on, bytes_before = sizes.bytes_before, bytes_after = sizes.bytes_after,
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
