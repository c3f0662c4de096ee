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
for _, key in ipairs({ "mask", "limit" }) do
  if args[key] and not args.min_snr then
    error(("recipe finetune: option %s: expected --min-snr, for which outputs are compared, got none"):format(key), 0)
  end
end

local model = tn.load(args.model)
local train, validation, unseen = recipe.parts(recipe.data())

-- What the labels can be measured by, where nothing is said: classes by how many are right, numbers by how far they are.
local function default_metric()
  local is_input, has_classes = {}, false
  for _, input in ipairs(model:inspect().inputs) do is_input[input.name] = true end
  for _, field in ipairs(train:fields()) do
    has_classes = has_classes or not is_input[field.name] and not field.dtype:find("float", 1, true)
  end
  if has_classes then return args.loss ~= "mse" and "accuracy" or "mse" end
  if ({ mse = true, l1 = true, huber = true, smooth_l1 = true })[tostring(args.loss):gsub("^trainer%.", "")] then return "mse" end
  if args.max_drop then
    error("recipe finetune: option max_drop: expected a metric beside labels that are no classes, got none (--set metric=NAME)", 0)
  end
end
local metric = args.metric or default_metric()
local small, report = model:apply("trainer.train", recipe.options("trainer.train", {
  data = train, validation = validation, metric = metric, optimizer = "adamw", rate = 1e-4, epochs = 3,
}))
local left = recipe.trained(model, small, unseen, metric)
return recipe.result(recipe.save(small), left, { history = report.history, best_epoch = report.best_epoch })
