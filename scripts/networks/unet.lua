-- SPDX-License-Identifier: Apache-2.0
-- A U-Net that says of each pixel what it shows (Ronneberger et al. 2015), trained on fields image and mask.
--   tenon train scripts/networks/unet.lua --set data=DATA.npz --set out=OUT.onnx [--set epochs=10]
local tn = require "tenon"
local nn = tn.nn

local function double(width)
  local function conv() return nn.Conv(width, 3, { padding = 1, bias = false }) end
  return nn.Sequential(conv(), nn.BatchNorm(), tn.relu, conv(), nn.BatchNorm(), tn.relu)
end

local function unet(classes, width, depth)
  local net = { down = {}, up = {}, join = {}, bottom = double(width << depth), head = nn.Conv(classes, 1) }
  for i = 1, depth do
    local wide = width << i - 1
    net.down[i], net.join[i] = double(wide), double(wide)
    net.up[i] = nn.Conv(wide, 2, { stride = 2, transposed = true })
  end
  function net:forward(x)
    local kept = {}
    for i = 1, depth do
      kept[i] = self.down[i](x)
      x = tn.max_pool(kept[i], 2)
    end
    x = self.bottom(x)
    for i = depth, 1, -1 do x = self.join[i](tn.concat({ kept[i], self.up[i](x) }, 1)) end
    return self.head(x)
  end
  return nn.module(net)
end

local data = tn.data.npz(tn.args.data)
local shape = { "N", table.unpack(data:fields()[1].shape) }
local model = nn.build(unet(2, 16, 2), { { name = "image", shape = shape } })
local trained, report = tn.train(model, { data = data, epochs = tn.args.epochs or 10, batch = 8,
                                          optimizer = tn.optim.adamw { lr = 3e-3 } })
trained:save(tn.args.out)
return report.history
