-- SPDX-License-Identifier: Apache-2.0
-- bf16: weights and most of the computation in bfloat16; inputs and outputs keep their types.
--   tenon optimize MODEL -o OUT --recipe bf16 [--data FILE] [--set 'fp32=["head*"]']
-- For CPUs with bfloat16 `--precision bf16` of the other commands does without another file.
local tn = require "tenon"
local recipe = tn.recipe {
  name = "bf16", passes = { "precision.autocast" }, first = { "fusion.default" }, last = { "fusion.default" }, -- casts of weights
  leave = "fp32", cure = "try the recipe fp16",
}
local lacking = { -- ONNX has them in bfloat16 from opset 27 or 28, or not at all
  "Celu", "Compress", "ConcatFromSequence", "Einsum", "NonMaxSuppression", "OneHot", "Optional",
  "OptionalGetElement", "OptionalHasElement", "Range", "ReverseSequence", "SequenceAt",
  "SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceMap", "Shrink",
  "SplitToSequence", "Unique",
}
return recipe.described or recipe.convert("precision.autocast", { dtype = "bfloat16", tables = true, lacking = lacking })
