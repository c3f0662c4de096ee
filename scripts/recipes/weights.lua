-- SPDX-License-Identifier: Apache-2.0
-- weights: weights in 8 bits, or those of products in 4, computation in float: a smaller file.
--   tenon optimize MODEL -o OUT --recipe weights [--data FILE] [--set bits=4] [--set 'skip=["head*"]']
-- 4 bits with data: rounded by what layers give on it (quantizer.gptq), judged on samples that the rounding has not seen. Rounding shifts
-- what layers give on average, and later layers add up such shifts: biases are corrected where that leaves more on samples that the
-- correction has not seen.
local tn = require "tenon"
local recipe = tn.recipe {
  name = "weights", passes = { "quantizer.weights", "precision.widen" }, floats = true, leave = "skip",
  options = {
    gptq = { type = "boolean", description = "with bits=4 and --data: rounding by the layers' outputs; default true" },
    correct_bias = { type = "boolean", description = "with gptq: biases corrected (quantizer.correct_bias), where that leaves more; default true" },
  },
}
local args = tn.args
local data = not recipe.described and recipe.data()
if args.gptq and (not data or tonumber(args.bits) ~= 4) then
  error("recipe weights: option gptq: expected bits=4 and samples to round by (--data), got " .. (data and "other bits" or "no --data"), 0)
end
if args.correct_bias and (not data or tonumber(args.bits) ~= 4 or args.gptq == false) then
  error("recipe weights: option correct_bias: expected weights rounded by data (bits=4, --data, gptq), got none with the other options", 0)
end
if recipe.described or not data or tonumber(args.bits) ~= 4 or args.gptq == false then
  return recipe.described or recipe.convert("quantizer.weights")
end

local plain = recipe.float_model()
local made, held, unseen, seen = recipe.parts(data)
local small, report = plain:apply("quantizer.weights", recipe.options("quantizer.weights"))
local ok, rounded = pcall(small.apply, small, "quantizer.gptq", { data = seen, original = plain, mask = args.mask })
if ok then
  small = rounded
elseif tostring(rounded):find("nothing to round again", 1, true) then -- as where nodes share all weights
  tn.log.warning("weights are rounded to the nearest number: " .. tostring(rounded))
else
  error(rounded, 0)
end
local function corrected(by)
  return small:apply("quantizer.correct_bias", { data = by, original = plain, mask = args.mask })
end
local function snr_of(one)
  return recipe.snr(plain, one, held)
end
local is_corrected = args.correct_bias ~= false and snr_of(corrected(made)) > snr_of(small)
if is_corrected then small = corrected(seen) end
local left = recipe.judge(plain, small, unseen)
local sizes = recipe.save(small)
local result = recipe.stayed(report)
result.corrected_bias = is_corrected
return recipe.result(sizes, left, result)
