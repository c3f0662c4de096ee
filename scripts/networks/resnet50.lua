-- SPDX-License-Identifier: Apache-2.0
-- ResNet-50 with the bag of tricks (He et al. 2019, arXiv 1812.01187), trained on fields image and label.
--   tenon train scripts/networks/resnet50.lua --set data=DATA.npz --set out=OUT.onnx [--set variant=d] [--set epochs=120] [--set batch=256]
-- variant: a (2015's), b (stride in the 3x3), c (b with a stem of three 3x3), d (c with shortcuts that pool). --set tricks=false trains it plainly.
-- Without data: how many numbers it has, running statistics among them.
local tn = require "tenon"
local nn, args = tn.nn, tn.args
local variant, tricks = args.variant or "d", args.tricks ~= false
assert(("abcd"):find(variant, 1, true) and #variant == 1, "variant: expected a, b, c, d, got " .. variant)

local function conv(width, kernel, stride)
  return nn.Conv(width, kernel, { stride = stride or 1, padding = kernel // 2, bias = false, init = nn.init.he { mode = "fan_out" } })
end

-- The last scale of a block begins at zero, so that a block begins as its shortcut.
local function block(width, stride, widens)
  local first = variant == "a" and stride or 1
  local last = tricks and nn.BatchNorm { init = "zeros" } or nn.BatchNorm()
  local body = nn.Sequential(conv(width, 1, first), nn.BatchNorm(), tn.relu,
    conv(width, 3, stride // first), nn.BatchNorm(), tn.relu, conv(4 * width, 1), last)
  local shortcut
  if widens then
    local pools = variant == "d" and stride > 1
    shortcut = pools and nn.Sequential(nn.AvgPool(2), conv(4 * width, 1), nn.BatchNorm())
      or nn.Sequential(conv(4 * width, 1, stride), nn.BatchNorm())
  end
  return nn.Residual(body, { shortcut = shortcut, activation = tn.relu })
end

local function network(classes)
  local layers = { conv(64, 7, 2), nn.BatchNorm(), tn.relu }
  if variant > "b" then
    layers = { conv(32, 3, 2), nn.BatchNorm(), tn.relu, conv(32, 3), nn.BatchNorm(), tn.relu, conv(64, 3), nn.BatchNorm(), tn.relu }
  end
  layers[#layers + 1] = nn.MaxPool(3, { stride = 2, padding = 1 })
  for stage, count in ipairs { 3, 4, 6, 3 } do
    for i = 1, count do layers[#layers + 1] = block(32 << stage, stage > 1 and i == 1 and 2 or 1, i == 1) end
  end
  layers[#layers + 1], layers[#layers + 2] = nn.GlobalAvgPool(), nn.Linear(classes)
  return nn.Sequential(table.unpack(layers))
end

local train = args.data and tn.data.npz(args.data)
local shape = train and train:fields()[1].shape or { 3, 224, 224 }
local classes, batch, epochs = args.classes or 1000, args.batch or 256, args.epochs or 120
local model = nn.build(network(classes), { { name = "image", shape = { "N", table.unpack(shape) } } })
if not train then return { variant = variant, parameters = model:inspect().parameters } end

-- The rate is that of a batch of 256, in proportion; it rises for 5 epochs and falls as a cosine.
local steps = #train // batch
local rate = tn.schedule.cosine { base = 0.1, warmup = tricks and 5 * steps or 0 }
if tricks then train = tn.data["augment.mixup"] { data = train, classes = classes, alpha = 0.2 } end
local trained, report = tn.train(model, {
  data = train, epochs = epochs, batch = batch, drop_last = true, rate_batch = 256,
  loss = tn.loss.cross_entropy { label_smoothing = tricks and 0.1 or 0, smoothing_over = "others" },
  optimizer = tn.optim.sgd { lr = rate, momentum = 0.9, nesterov = true, weight_decay = 1e-4, decay_vectors = not tricks },
})
trained:save(args.out)
return report.history
