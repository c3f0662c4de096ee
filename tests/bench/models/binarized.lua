-- SPDX-License-Identifier: Apache-2.0
-- A reference network in one bit (quantizer.binarize), trained from its float weights with the float model as teacher:
--   tenon run scripts/reference.lua --set networks=mnist_cnn,resnet20 --set kept=scripts/reference --set onnx=FOLDER
--   tenon run tests/bench/models/binarized.lua --set model=FOLDER/mnist_cnn.onnx --set data=.cache/models/mnist --set out=RUN
--     [--set epochs=10] [--set first=5] [--set shortcuts=true] [--set rate=2e-3] [--set first_rate=RATE] [--set batch=64] [--set scales=places] [--set skip=NAME]
--     [--set alpha=0.7] [--set threads=1] [--set precision=bf16]
-- first: so many epochs of activations in one bit before float weights, ahead of the epochs in which weights have one, too. DATA_train.npz and
-- DATA_test.npz; accuracy on the second, in percent, which training does not see. Called again it goes on.
local tn = require "tenon"
local args = tn.args
local function number(name, usual) return tonumber(args[name] or usual) end

local model = tn.load(args.model)
local train, test = tn.data.npz(args.data .. "_train.npz"), tn.data.npz(args.data .. "_test.npz")
local function accuracy(of) return 100 * tn.evaluate(of, test, { metric = "accuracy", batch = 100 }).accuracy end
local function binarized(of, weights)
  return of:apply("quantizer.binarize",
    { data = train, samples = 256, batch = 64, scales = args.scales, skip = args.skip, shortcuts = args.shortcuts, weights = weights })
end
local function taught(student, epochs, rate, run)
  return tn.train(student, {
    data = train, epochs = epochs, batch = number("batch", 64), drop_last = true, seed = number("seed", 1),
    loss = tn.loss["distiller.response"] { teacher = model, alpha = number("alpha", 0.7), temperature = 2 },
    optimizer = tn.optim.adam { lr = tn.schedule.cosine { base = rate, warmup = 50 } },
    run = run, resume = true, threads = number("threads", 1), precision = args.precision or "fp32",
  })
end

local start, staged, rate = model, nil, number("rate", 2e-3)
if number("first", 0) > 0 then
  start = taught(binarized(model, "float"), number("first"), number("first_rate", rate), args.out .. "/activations")
  staged = accuracy(start)
  print(("activations in one bit: %.2f %%"):format(staged))
end
local rounded, report = binarized(start, "binary")
local trained, training = taught(rounded, number("epochs", 10), rate, args.out)
local small = trained:apply("quantizer.convert")
small:save(args.out .. "/binary.onnx")
local again = tn.load(args.out .. "/binary.onnx")
local result = {
  layers = #report.binary, float_layers = #report.float, float = accuracy(model), activations = staged, untrained = accuracy(rounded),
  binary = accuracy(again), loss = training.history[#training.history].loss,
}
tn.print_table({ result }, { "layers", "float_layers", "float", "activations", "untrained", "binary", "loss" })
return result
