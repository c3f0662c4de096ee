-- SPDX-License-Identifier: Apache-2.0
-- qat: the model is trained for the 8 bits that it will run in; for where int8 loses too much.
--   tenon optimize MODEL -o OUT --recipe qat --data FILE [--set epochs=3] [--set rate=1e-4] [--set loss=cross_entropy]
-- Without a loss it learns from its own answers in float, and from labels where the data have them.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "qat", passes = { "quantizer.qat", "trainer.train", "distiller.response" }, leave = "skip", floats = true, cure = "train longer with --set epochs",
}
if recipe.described then
  return recipe.described
end
if not args.data then
  error("recipe qat: --data: expected samples (.npz, .npy, .csv or a folder of images)", 0)
end

local model = recipe.float_model()
local train, validation, unseen = recipe.parts(recipe.data())
local rounded = model:apply("quantizer.qat", recipe.options("quantizer.qat", { data = train }))
local loss = args.loss
if not loss then
  local labelled = #train:fields() > #model:inspect().inputs
  local answers = recipe.options("distiller.response", { alpha = not labelled and 1 or nil })
  answers.teacher = model -- said, because the model in 8 bits, which is validated, no longer knows what it was
  loss = tn.loss["distiller.response"](answers)
end
local given = recipe.options("trainer.train", {
  data = train, validation = validation, optimizer = "adamw", rate = 1e-4, epochs = 3, validate_as = "quantizer.convert",
})
given.loss = loss
local trained, report = rounded:apply("trainer.train", given)
local small = trained:apply("quantizer.convert")
local left = recipe.judge(model, small, unseen)
return recipe.result(recipe.save(small), left, { history = report.history })
