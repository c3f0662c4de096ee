-- SPDX-License-Identifier: Apache-2.0
-- The reference networks and their recipes: what `reference.lua` trains and `chain.lua` makes smaller.
-- A recipe has `name`, `network` (or `model`, a function of the folder of models), `data` (files DATA_train.npz and
-- DATA_test.npz there), `input`, `epochs`, `batch`, `optimizer`, `rate`; `drops`: it has Dropout; `is_large`: too large to keep; `parameters`: what is trained, and kept, of a model. Classes are on the last axis of what networks give.
local tn = require "tenon"
local nn = tn.nn

-- A convolution that BatchNorm follows.
local function conv(width, kernel, stride, groups)
  return nn.Conv(width, kernel, { stride = stride or 1, padding = kernel // 2, groups = groups or 1, bias = false,
                                  init = nn.init.he { mode = "fan_out" } })
end

local function lenet()
  return nn.Sequential(nn.Conv(6, 5, { padding = 2 }), tn.relu, nn.MaxPool(2), nn.Conv(16, 5), tn.relu, nn.MaxPool(2),
    nn.Flatten(), nn.Linear(120), tn.relu, nn.Linear(84), tn.relu, nn.Linear(10))
end

local function mnist_cnn()
  return nn.Sequential(nn.Conv(32, 3), tn.relu, nn.Conv(64, 3), tn.relu, nn.MaxPool(2), nn.Dropout(0.25), nn.Flatten(),
    nn.Linear(128), tn.relu, nn.Dropout(0.5), nn.Linear(10))
end

-- He et al. 2016, section 4.2, with projections where the width grows.
local function resnet20()
  local layers = { conv(16, 3), nn.BatchNorm(), tn.relu }
  for stage = 0, 2 do
    for i = 1, 3 do
      local width, stride = 16 << stage, stage > 0 and i == 1 and 2 or 1
      local body = nn.Sequential(conv(width, 3, stride), nn.BatchNorm(), tn.relu, conv(width, 3), nn.BatchNorm())
      local shortcut = stride > 1 and nn.Sequential(conv(width, 1, stride), nn.BatchNorm()) or nil
      layers[#layers + 1] = nn.Residual(body, { shortcut = shortcut, activation = tn.relu })
    end
  end
  layers[#layers + 1], layers[#layers + 2] = nn.GlobalAvgPool(), nn.Linear(94)
  return nn.Sequential(table.unpack(layers))
end

-- Sandler et al. 2018, table 2, for 32x32: rows of expansion, width, blocks, stride; 2.3 M weights.
local function mobilenet()
  local layers, of = { conv(32, 3, 2), nn.BatchNorm(), tn.relu6 }, 32
  local rows = { { 1, 16, 1, 1 }, { 6, 24, 2, 1 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } }
  for _, row in ipairs(rows) do
    local expansion, width, blocks, stride = table.unpack(row)
    for i = 1, blocks do
      local wide = expansion * of
      local first = expansion > 1 and nn.Sequential(conv(wide, 1), nn.BatchNorm(), tn.relu6) or function(x) return x end
      local body = nn.Sequential(first, conv(wide, 3, i == 1 and stride or 1, wide), nn.BatchNorm(), tn.relu6, conv(width, 1), nn.BatchNorm())
      layers[#layers + 1] = i > 1 and nn.Residual(body) or body
      of = width
    end
  end
  for _, layer in ipairs { conv(1280, 1), nn.BatchNorm(), tn.relu6, nn.GlobalAvgPool(), nn.Dropout(0.2), nn.Linear(94) } do
    layers[#layers + 1] = layer
  end
  return nn.Sequential(table.unpack(layers))
end

-- Ronneberger et al. 2015 with BatchNorm; scores of a pixel come last.
local function unet()
  local function double(width) return nn.Sequential(conv(width, 3), nn.BatchNorm(), tn.relu, conv(width, 3), nn.BatchNorm(), tn.relu) end
  local net = { down = {}, up = {}, join = {}, bottom = double(128), head = nn.Conv(5, 1) }
  for i = 1, 3 do
    net.down[i], net.join[i], net.up[i] = double(8 << i), double(8 << i), nn.Conv(8 << i, 2, { stride = 2, transposed = true })
  end
  function net:forward(x)
    local kept = {}
    for i = 1, 3 do
      kept[i] = self.down[i](x)
      x = tn.max_pool(kept[i], 2)
    end
    x = self.bottom(x)
    for i = 3, 1, -1 do x = self.join[i](tn.concat({ kept[i], self.up[i](x) }, 1)) end
    return tn.permute_dims(self.head(x), { 0, 2, 3, 1 })
  end
  return nn.module(net)
end

-- Four of GPT-2's blocks over 64 characters.
local function transformer()
  local width, small = 128, nn.init.normal { deviation = 0.02 }
  local blocks = {}
  for i = 1, 4 do
    blocks[2 * i - 1] = nn.Residual(nn.Sequential(nn.LayerNorm(), nn.MultiHeadAttention(4, { causal = true }), nn.Dropout(0.1)))
    blocks[2 * i] = nn.Residual(nn.Sequential(nn.LayerNorm(), nn.Linear(4 * width), tn.gelu, nn.Linear(width), nn.Dropout(0.1)))
  end
  return nn.module {
    token = nn.Embedding(96, width, { init = small }), position = nn.Parameter({ 64, width }, { init = small }),
    blocks = nn.Sequential(table.unpack(blocks)), norm = nn.LayerNorm(), head = nn.Linear(96, { bias = false }),
    forward = function(self, token) return self.head(self.norm(self.blocks(self.token(token) + self.position()))) end,
  }
end

-- Two layers that read an outline from both ends, seven points a step: 427 steps of one point take seven times as long, and
-- have learnt little after 60 epochs.
local function lstm()
  return nn.module {
    lstm = nn.LSTM(64, { layers = 2, bidirectional = true, dropout = 0.2 }), head = nn.Linear(6),
    forward = function(self, series) return self.head(self.lstm(tn.reshape(series, { -1, 61, 7 })):mean(1)) end,
  }
end

-- MiniLM-L6 as it was published, with an untrained head of two classes; scripts/fetch sentences made both.
local function minilm(models) return tn.load(models .. "/minilm_classifier.onnx") end

local function adamw(base)
  return tn.optim.adamw { lr = tn.schedule.cosine { base = base or 2e-3, warmup = 50 }, weight_decay = 0.01 }
end
local function nesterov()
  return tn.optim.sgd { lr = tn.schedule.cosine { base = 0.1, warmup = 100 }, momentum = 0.9, nesterov = true, weight_decay = 5e-4 }
end

-- For weights that know something already. Decay on matrices alone, as BERT is trained.
local function tuning(base)
  return tn.optim.adamw { lr = tn.schedule.cosine { base = base or 1e-4, warmup = 75 }, weight_decay = 0.01, decay_vectors = false }
end

local digit, glyph = { name = "image", shape = { "N", 1, 28, 28 } }, { name = "image", shape = { "N", 1, 32, 32 } }
local series = { name = "series", shape = { "N", 427, 1 } }
local picture, text = { name = "image", shape = { "N", 1, 64, 64 } }, { name = "token", shape = { "N", 64 }, dtype = "int64" }

local recipes = {
  { name = "lenet", network = lenet, data = "mnist", input = digit, epochs = 20, optimizer = adamw },
  { name = "mnist_cnn", network = mnist_cnn, drops = true, data = "mnist", input = digit, epochs = 12, optimizer = adamw },
  { name = "resnet20", network = resnet20, data = "glyphs", input = glyph, epochs = 12, optimizer = nesterov },
  { name = "mobilenet", network = mobilenet, drops = true, data = "glyphs", input = glyph, epochs = 12, optimizer = adamw },
  { name = "unet", network = unet, data = "shapes", input = picture, epochs = 20, optimizer = adamw },
  { name = "transformer", network = transformer, drops = true, data = "characters", input = text, epochs = 10, optimizer = adamw },
  { name = "lstm", network = lstm, drops = true, data = "leaves", input = series, epochs = 15, clip_norm = 1, rate = 5e-3, optimizer = adamw },
  { name = "minilm", model = minilm, data = "sentences", epochs = 3, batch = 32, parameters = { "*.weight", "*.bias" }, clip_norm = 1, optimizer = tuning, is_large = true },
  { name = "minilm_head", model = minilm, data = "sentences", epochs = 3, batch = 32, parameters = { "head.*" }, rate = 1e-2, optimizer = tuning },
}

-- The untrained network of a recipe; models: the folder of what was fetched.
local function build(recipe, models, seed)
  if recipe.model then return recipe.model(models) end
  return nn.build(recipe.network(), { recipe.input }, { seed = seed })
end

-- With the weights that are kept in `folder`.
local function kept(recipe, models, folder)
  return nn.load(build(recipe, models, 0), folder .. "/" .. recipe.name .. ".safetensors", { partial = true })
end

-- The recipe of this name; one that is none is an error that lists them.
local function find(name)
  local known = {}
  for i, recipe in ipairs(recipes) do
    if recipe.name == name then return recipe end
    known[i] = recipe.name
  end
  error("networks: expected some of " .. table.concat(known, ", ") .. ", got " .. name, 0)
end

return { recipes = recipes, build = build, kept = kept, find = find }
