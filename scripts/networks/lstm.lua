-- SPDX-License-Identifier: Apache-2.0
-- An LSTM that classifies series, trained on fields series [steps, channels] and label.
--   tenon train scripts/networks/lstm.lua --set data=DATA.npz --set out=OUT.onnx [--set epochs=10]
local tn = require "tenon"
local nn = tn.nn

local network = nn.module {
  lstm = nn.LSTM(32, { layers = 2, bidirectional = true, dropout = 0.1 }),
  head = nn.Linear(3),
  forward = function(self, series) return self.head(self.lstm(series):mean(1)) end,
}

local data = tn.data.npz(tn.args.data)
local shape = { "N", table.unpack(data:fields()[1].shape) }
local model = nn.build(network, { { name = "series", shape = shape } })
local trained, report = tn.train(model, {
  data = data, epochs = tn.args.epochs or 10, batch = 16, clip_norm = 1,
  optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = 1e-2, warmup = 10 } },
})
trained:save(tn.args.out)
return report.history
