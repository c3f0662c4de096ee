-- SPDX-License-Identifier: Apache-2.0
-- The reference networks, each trained by its recipe from seed to file: what proofs of later work start from.
--   scripts/fetch mnist glyphs shapes characters leaves sentences
--   tenon run scripts/reference.lua [--set networks=lenet,resnet20] [--set seeds=1] [--set epochs=N] [--set out=runs/reference]
--     [--set precision=bf16] [--set threads=N] [--set onnx=FOLDER, with kept: their models as ONNX files go there]
-- Called again it goes on where it was stopped: each training has its folder OUT/NETWORK_SEED, and one that had
-- ended gives its weights at once. Weights go to OUT/NETWORK_SEED.safetensors under PyTorch's names.
-- One of each is kept in scripts/reference in bfloat16. With --set kept=scripts/reference nothing is trained: those weights
-- are judged; --set keep=scripts/reference puts what was trained there.
local tn = require "tenon"
local nn, args = tn.nn, tn.args
local models, out, seeds = args.models or ".cache/models", args.out or "runs/reference", args.seeds or 1

-- A convolution that BatchNorm follows.
local function conv(width, kernel, stride, groups)
  return nn.Conv(width, kernel, { stride = stride or 1, padding = kernel // 2, groups = groups or 1, bias = false,
                                  init = nn.init.he { mode = "fan_out" } })
end
local function relu6(x) return tn.clip(x, 0, 6) end

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
  local layers, of = { conv(32, 3, 2), nn.BatchNorm(), relu6 }, 32
  local rows = { { 1, 16, 1, 1 }, { 6, 24, 2, 1 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } }
  for _, row in ipairs(rows) do
    local expansion, width, blocks, stride = table.unpack(row)
    for i = 1, blocks do
      local wide = expansion * of
      local first = expansion > 1 and nn.Sequential(conv(wide, 1), nn.BatchNorm(), relu6) or function(x) return x end
      local body = nn.Sequential(first, conv(wide, 3, i == 1 and stride or 1, wide), nn.BatchNorm(), relu6, conv(width, 1), nn.BatchNorm())
      layers[#layers + 1] = i > 1 and nn.Residual(body) or body
      of = width
    end
  end
  for _, layer in ipairs { conv(1280, 1), nn.BatchNorm(), relu6, nn.GlobalAvgPool(), nn.Dropout(0.2), nn.Linear(94) } do
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
local function minilm() return tn.load(models .. "/minilm_classifier.onnx") end

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

-- is_large: too large to keep; parameters: what is trained, and kept, of a model. Data: files DATA_train.npz and DATA_test.npz. Classes are on the last axis.
local recipes = {
  { name = "lenet", network = lenet, data = "mnist", input = digit, epochs = 20, optimizer = adamw },
  { name = "mnist_cnn", network = mnist_cnn, data = "mnist", input = digit, epochs = 12, optimizer = adamw },
  { name = "resnet20", network = resnet20, data = "glyphs", input = glyph, epochs = 12, optimizer = nesterov },
  { name = "mobilenet", network = mobilenet, data = "glyphs", input = glyph, epochs = 12, optimizer = adamw },
  { name = "unet", network = unet, data = "shapes", input = picture, epochs = 20, optimizer = adamw },
  { name = "transformer", network = transformer, data = "characters", input = text, epochs = 10, optimizer = adamw },
  { name = "lstm", network = lstm, data = "leaves", input = series, epochs = 15, clip_norm = 1, rate = 5e-3, optimizer = adamw },
  { name = "minilm", model = minilm, data = "sentences", epochs = 3, batch = 32, parameters = { "*.weight", "*.bias" }, clip_norm = 1, optimizer = tuning, is_large = true },
  { name = "minilm_head", model = minilm, data = "sentences", epochs = 3, batch = 32, parameters = { "head.*" }, rate = 1e-2, optimizer = tuning },
}

local wanted = args.networks or "lenet,mnist_cnn,resnet20,mobilenet,unet,transformer,lstm,minilm,minilm_head"
local function is_wanted(name) return ("," .. wanted .. ","):find("," .. name .. ",", 1, true) end

local known, results = {}, {}
for i, recipe in ipairs(recipes) do known[i] = recipe.name end
for name in wanted:gmatch("[^,]+") do
  assert((" " .. table.concat(known, " ") .. " "):find(" " .. name .. " ", 1, true),
    "networks: expected some of " .. table.concat(known, ", ") .. ", got " .. name)
end

local function test_accuracy(model, recipe)
  local data = tn.data.npz(models .. "/" .. recipe.data .. "_test.npz")
  return 100 * tn.evaluate(model, data, { metric = "accuracy", batch = 100 }).accuracy
end

local function build(recipe, seed)
  if recipe.model then return recipe.model() end
  return nn.build(recipe.network(), { recipe.input }, { seed = seed })
end

local function train(recipe, seed)
  local place, data = out .. "/" .. recipe.name .. "_" .. seed, models .. "/" .. recipe.data
  local trained, report = tn.train(build(recipe, seed), {
    data = tn.data.npz(data .. "_train.npz"), epochs = args.epochs or recipe.epochs, batch = recipe.batch or 64, drop_last = true, clip_norm = recipe.clip_norm or 0,
    loss = tn.loss.cross_entropy { axis = -1 }, optimizer = recipe.optimizer(recipe.rate), parameters = recipe.parameters, seed = seed, run = place, resume = true,
    precision = args.precision or "fp32", threads = args.threads or 0,
  })
  trained:save(place .. ".safetensors")
  if args.keep and not recipe.is_large then
    trained:save(args.keep .. "/" .. recipe.name .. ".safetensors", { dtype = "bfloat16", only = recipe.parameters or {} })
  end
  local seconds = 0
  for _, epoch in ipairs(report.history) do seconds = seconds + epoch.seconds end
  return {
    network = recipe.name, seed = seed, epochs = #report.history, loss = report.history[#report.history].loss,
    accuracy = test_accuracy(trained, recipe), hours = seconds / 3600,
  }
end

local function judge(recipe)
  local kept = nn.load(build(recipe, 0), args.kept .. "/" .. recipe.name .. ".safetensors", { partial = true })
  if args.onnx then kept:save(args.onnx .. "/" .. recipe.name .. ".onnx") end
  return { network = recipe.name, accuracy = test_accuracy(kept, recipe) }
end

if args.kept then
  for _, recipe in ipairs(recipes) do
    if is_wanted(recipe.name) then results[#results + 1] = judge(recipe) end
  end
  tn.print_table(results, { "network", "accuracy" })
  return results
end
for _, recipe in ipairs(recipes) do
  for seed = 1, is_wanted(recipe.name) and seeds or 0 do results[#results + 1] = train(recipe, seed) end
end
tn.print_table(results, { "network", "seed", "epochs", "loss", "accuracy", "hours" })
return results
