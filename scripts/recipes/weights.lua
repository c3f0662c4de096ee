-- SPDX-License-Identifier: Apache-2.0
-- weights: weights in 8 bits, computation in float: a smaller file.
--   tenon optimize MODEL -o OUT --recipe weights [--data FILE] [--set 'skip=["head*"]']
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe { name = "weights", passes = { "quantizer.weights", "precision.widen" }, leave = "skip" }
if recipe.described then
  return recipe.described
end

local model = tn.load(args.model)
local whole = model:apply("precision.widen", recipe.options("precision.widen")):apply("fusion.default")
local small = whole:apply("quantizer.weights", recipe.options("quantizer.weights"))
local left = recipe.judge(whole, small, recipe.data())
small:save(args.output)
return recipe.result(model, small, left)
