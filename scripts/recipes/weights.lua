-- SPDX-License-Identifier: Apache-2.0
-- weights: weights in 8 bits, or those of products in 4, computation in float: a smaller file.
--   tenon optimize MODEL -o OUT --recipe weights [--data FILE] [--set bits=4] [--set 'skip=["head*"]']
-- 4 bits with data: rounded by what layers give on it (quantizer.gptq), judged on samples that the rounding has not seen.
local tn = require "tenon"
local recipe = tn.recipe {
  name = "weights", passes = { "quantizer.weights", "precision.widen" }, floats = true, leave = "skip",
  options = {
    gptq = { type = "boolean", description = "with bits=4 and --data: rounding by the layers' outputs; default true" },
    mask = { type = "string", description = "of gptq: the input of the model that is 0 at padding, such as attention_mask" },
  },
}
local args = tn.args
local data = not recipe.described and recipe.data()
if args.gptq and (not data or tonumber(args.bits) ~= 4) then
  error("recipe weights: option gptq: expected bits=4 and samples to round by (--data), got " .. (data and "other bits" or "no --data"), 0)
end
if args.mask and (not data or tonumber(args.bits) ~= 4 or args.gptq == false) then
  error("recipe weights: option mask: expected a run of quantizer.gptq (bits=4 and --data), which takes it, got none with the other options", 0)
end
if recipe.described or not data or tonumber(args.bits) ~= 4 or args.gptq == false then
  return recipe.described or recipe.convert("quantizer.weights")
end

local model = recipe.load()
local plain = recipe.float_model(model)
local _, _, unseen, seen = recipe.parts(data)
local small, report = plain:apply("quantizer.weights", recipe.options("quantizer.weights"))
small = small:apply("quantizer.gptq", { data = seen, original = plain, mask = args.mask })
local left = recipe.judge(plain, small, unseen)
recipe.save(small)
return recipe.result(model, small, left, recipe.stayed(report))
