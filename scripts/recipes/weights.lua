-- SPDX-License-Identifier: Apache-2.0
-- weights: weights in 8 bits, computation in float: a smaller file.
--   tenon optimize MODEL -o OUT --recipe weights [--data FILE] [--set 'skip=["head*"]']
local tn = require "tenon"
local recipe = tn.recipe {
  name = "weights", passes = { "quantizer.weights", "precision.widen" }, first = { "precision.widen", "fusion.default" }, leave = "skip",
}
return recipe.described or recipe.convert("quantizer.weights")
