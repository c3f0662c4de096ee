-- SPDX-License-Identifier: Apache-2.0
-- fp16: weights and most of the computation in float16; inputs and outputs keep their types.
--   tenon optimize MODEL -o OUT --recipe fp16 [--data FILE] [--set 'fp32=["head*"]']
local tn = require "tenon"
local recipe = tn.recipe {
  name = "fp16", passes = { "precision.autocast" }, first = { "fusion.default" }, last = { "fusion.default" }, -- casts of weights
  leave = "fp32", cure = "try the recipe bf16",
}
local lacking = { -- ONNX has them in float16 from opset 27 or 28, or not at all
  "Celu", "NonMaxSuppression", "Range",
}
return recipe.described or recipe.convert("precision.autocast", { dtype = "float16", tables = true, lacking = lacking })
