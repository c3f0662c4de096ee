-- SPDX-License-Identifier: Apache-2.0
-- distil: the model learns from the answers of another one, and from labels where the data have them.
--   tenon optimize SMALL -o OUT --recipe distil --set teacher=BIG.onnx --data FILE [--set epochs=5] [--set temperature=4]
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "distil", passes = { "trainer.train", "distiller.response" }, cure = "train longer with --set epochs",
  options = { teacher = { type = "string", description = "file of the model to learn from" } },
}
if recipe.described then
  return recipe.described
end
for _, key in ipairs({ "data", "teacher" }) do
  if not args[key] then
    error(("recipe distil: %s: expected %s"):format(key == "data" and "--data" or "option " .. key, key == "data" and
      "samples (.npz, .npy, .csv or a folder of images)" or "a model to learn from, as --set teacher=big.onnx"), 0)
  end
end

if args.loss then
  error("recipe distil: option loss: the loss is distiller.response, on the teacher's answers; recipe finetune takes others", 0)
end

local model, teacher = tn.load(args.model), tn.load(args.teacher)
local train, validation, unseen = recipe.parts(recipe.data())
local labelled = #train:fields() > #model:inspect().inputs
if args.max_drop and not labelled then
  error("recipe distil: option max_drop: expected labels in --data, by which a metric is measured, got none", 0)
end
local answers = recipe.options("distiller.response", { alpha = not labelled and 1 or nil })
answers.teacher = teacher
local loss = tn.loss["distiller.response"](answers)
local small, report = model:apply("trainer.train", recipe.options("trainer.train", {
  data = train, validation = validation, loss = loss, optimizer = "adamw", rate = 1e-3, epochs = 3,
}))
local left = recipe.trained(model, small, unseen, labelled and (args.metric or "accuracy") or nil)
local function snr_to_teacher(student)
  return tn.compare(teacher, student, unseen, { mask = args.mask, limit = args.limit, layers = false }).snr_db
end
local near = { before = snr_to_teacher(model), after = snr_to_teacher(small) }
return recipe.result(recipe.save(small), left, { history = report.history, snr_db_to_teacher = near })
