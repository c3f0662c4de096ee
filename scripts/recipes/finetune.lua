-- SPDX-License-Identifier: Apache-2.0
-- finetune: trains all weights on, with labels; what gets a pruned or decomposed model back what it lost.
--   tenon optimize MODEL -o OUT --recipe finetune --data FILE [--set epochs=5] [--set rate=1e-4] [--set loss=mse]
-- Three quarters of the data are trained on, an eighth validates each epoch, an eighth measures what came of it.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe { name = "finetune", passes = { "trainer.train" }, cure = "train longer, or at a lower --set rate" }
if recipe.described then
  return recipe.described
end
if not args.data then
  error("recipe finetune: --data: expected samples with labels (.npz, .npy, .csv or a folder of images)", 0)
end
if args.mask and not args.min_snr then
  error("recipe finetune: option mask: expected --min-snr, for which outputs are compared, got none", 0)
end

local model = tn.load(args.model)
local train, validation, unseen = recipe.parts(recipe.data())
local metric = args.metric or (args.loss == "mse" and "mse" or "accuracy")
local small, report = model:apply("trainer.train", recipe.options("trainer.train", {
  data = train, validation = validation, metric = metric, optimizer = "adamw", rate = 1e-4, epochs = 3,
}))
local left = recipe.trained(model, small, unseen, metric)
return recipe.result(recipe.save(small), left, { history = report.history, best_epoch = report.best_epoch })
