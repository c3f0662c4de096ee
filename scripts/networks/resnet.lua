-- SPDX-License-Identifier: Apache-2.0
-- A residual network for small images (He et al. 2016; blocks = 3: ResNet-20), trained on fields image and label.
--   tenon train scripts/networks/resnet.lua --set data=DATA.npz --set out=OUT.onnx [--set epochs=10]
local tn = require "tenon"
local nn = tn.nn

local function conv(width, kernel, stride)
  local options = { stride = stride, padding = kernel // 2, bias = false, init = nn.init.he { mode = "fan_out" } }
  return nn.Conv(width, kernel, options)
end

local function block(width, stride)
  local body = { conv(width, 3, stride), nn.BatchNorm(), tn.relu, conv(width, 3, 1), nn.BatchNorm() }
  local shortcut = stride > 1 and nn.Sequential(conv(width, 1, stride), nn.BatchNorm()) or nil
  return nn.Residual(nn.Sequential(table.unpack(body)), { shortcut = shortcut, activation = tn.relu })
end

local function network(classes, width, blocks)
  local layers = { conv(width, 3, 1), nn.BatchNorm(), tn.relu }
  for stage = 0, 2 do
    for i = 1, blocks do layers[#layers + 1] = block(width << stage, stage > 0 and i == 1 and 2 or 1) end
  end
  layers[#layers + 1], layers[#layers + 2] = nn.GlobalAvgPool(), nn.Linear(classes)
  return nn.Sequential(table.unpack(layers))
end

local args = tn.args
local data = tn.data.npz(args.data)
local shape = { "N", table.unpack(data:fields()[1].shape) }
local model = nn.build(network(10, 16, args.blocks or 3), { { name = "image", shape = shape } })
local sgd = tn.optim.sgd { lr = tn.schedule.cosine { base = 0.1, warmup = 20 }, momentum = 0.9, nesterov = true,
                           weight_decay = 5e-4 }
local trained, report = tn.train(model, { data = data, epochs = args.epochs or 10, batch = 64, optimizer = sgd })
trained:save(args.out)
return report.history
