-- SPDX-License-Identifier: Apache-2.0
-- dynamic: products in 8 bits whose activations are scaled at run time: no calibration data are needed.
--   tenon optimize MODEL -o OUT --recipe dynamic [--data FILE] [--set 'skip=["head*"]']
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe { name = "dynamic", passes = { "quantizer.dynamic", "precision.widen" }, leave = "skip" }
if recipe.described then
  return recipe.described
end

local model = tn.load(args.model)
local whole = model:apply("precision.widen", recipe.options("precision.widen")):apply("fusion.default")
local small = whole:apply("quantizer.dynamic", recipe.options("quantizer.dynamic"))
local left = recipe.judge(whole, small, recipe.data())
small:save(args.output)
return recipe.result(model, small, left)
