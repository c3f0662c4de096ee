-- SPDX-License-Identifier: Apache-2.0
-- half: weights and most of the computation in bfloat16 or float16; inputs and outputs keep their types.
--   tenon optimize MODEL -o OUT --recipe half [--set dtype=float16] [--data FILE]
-- For CPUs with bfloat16 `--precision bf16` of the other commands does without another file.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe { name = "half", passes = { "precision.autocast" }, leave = "fp32", cure = "try the other --set dtype" }
if recipe.described then
  return recipe.described
end

local model = tn.load(args.model)
local small = model:apply("fusion.default"):apply("precision.autocast", recipe.options("precision.autocast", { dtype = "bfloat16" }))
small = small:apply("fusion.default") -- the casts of weights become weights
local left = recipe.judge(model, small, recipe.data())
small:save(args.output)
return recipe.result(model, small, left)
