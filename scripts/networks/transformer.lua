-- SPDX-License-Identifier: Apache-2.0
-- A transformer that says the next character (GPT-2's blocks), trained on fields token and next, integers [steps].
--   tenon train scripts/networks/transformer.lua --set data=DATA.npz --set out=OUT.onnx [--set epochs=10]
local tn = require "tenon"
local nn = tn.nn
local args, symbols, steps, width = tn.args, 64, 32, 64

local function block()
  local attention = nn.Sequential(nn.LayerNorm(), nn.MultiHeadAttention(4, { causal = true }), nn.Dropout())
  local hidden = nn.Sequential(nn.LayerNorm(), nn.Linear(4 * width), tn.gelu, nn.Linear(width))
  return nn.Sequential(nn.Residual(attention), nn.Residual(hidden))
end

local small = nn.init.normal { deviation = 0.02 }
local network = nn.module {
  token = nn.Embedding(symbols, width, { init = small }),
  position = nn.Parameter({ steps, width }, { init = small }),
  blocks = nn.Sequential(block(), block()),
  norm = nn.LayerNorm(),
  head = nn.Linear(symbols, { bias = false }),
  forward = function(self, token)
    return self.head(self.norm(self.blocks(self.token(token) + self.position())))
  end,
}

local model = nn.build(network, { { name = "token", shape = { "N", steps }, dtype = "int64" } })
local trained, report = tn.train(model, {
  data = tn.data.npz(args.data), epochs = args.epochs or 10, batch = 16, clip_norm = 1,
  loss = tn.loss.cross_entropy { axis = -1 },
  optimizer = tn.optim.adamw { lr = tn.schedule.cosine { base = 3e-3, warmup = 20 }, no_decay = { "position" } },
})
trained:save(args.out)
return report.history
