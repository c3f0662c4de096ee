-- SPDX-License-Identifier: Apache-2.0
-- The main job: two trained models are quantized to int8 with calibration data, evaluated before
-- and after on data that calibration has not seen (other sentences; other fonts and texts), and
-- timed in fp32, bf16 and int8.
--   tenon run scripts/pipelines/main_job.lua --set models=.cache/models --set out=.cache/demo
local tn = require "tenon"
local args = tn.args
local folder, out = args.models or ".cache/models", args.out or "."
local backend = args.backend  -- absent: what this machine is best with

local function cosine(small, float, data)
  return tn.evaluate(small, data, { metric = "cosine", against = float, options = { output = 0 },
                                    backend = backend, limit = args.limit })
end

local jobs = {
  {
    name = "minilm", file = "minilm_probe.onnx", calibration = "minilm_calib.npz", unseen = "minilm_eval.npz",
    inputs = { "input_ids", "attention_mask", "token_type_ids" },
    smooth = true, -- products of two activations (attention) stay in float
    recipe = { observer = "percentile", observer_options = { percentile = 99.999 }, samples = 256 },
    metric = "probe accuracy",
    score = function(model, data)
      return tn.evaluate(model, data, { metric = "accuracy", options = { output = 1 }, backend = backend,
                                        limit = args.limit }).accuracy
    end,
  },
  {
    name = "ppocr_rec", file = "ppocr_rec.onnx", calibration = "ppocr_rec_calib.npz", unseen = "ppocr_rec_eval.npz",
    inputs = { "x" },
    recipe = { observer = "percentile", observer_options = { percentile = 99.99 }, samples = 100 },
    metric = "1 - CER",
    score = function(model, data)
      return 1 - tn.evaluate(model, data, { metric = "cer", backend = backend, limit = args.limit }).cer
    end,
  },
}

-- Layers that alone, in 8 bits, leave less than 20 dB of the calibration data's outputs: they stay in float.
local function weak_layers(float, recipe)
  local _, report = float:apply("quantizer.sensitivity", {
    data = recipe.data, observer = recipe.observer, observer_options = recipe.observer_options, samples = 64,
  })
  local weak = {}
  for _, layer in ipairs(report.layers) do
    if layer.role == "compute" and layer.snr_db < 20 then
      weak[#weak + 1] = layer.node
      print(string.format("  in float: %s, which alone leaves %.1f dB of the calibration data", layer.node, layer.snr_db))
    end
  end
  return #weak > 0 and weak or nil
end

-- One sample of real data as inputs, so that masks and other inputs are realistic.
local function sample_of(data, names)
  local batch, inputs = data:batch(1, 1), {}
  for _, name in ipairs(names) do
    inputs[name] = batch[name]
  end
  return inputs
end

local function print_left(name, report)
  local counts, order = {}, {}
  for _, node in ipairs(report.float) do
    local why = node.why:gsub("^reads .*, which is float$", "reads a float value")
    if not counts[why] then
      counts[why] = 0
      order[#order + 1] = why
    end
    counts[why] = counts[why] + 1
  end
  print(string.format("%s: %d nodes in 8 bits, %d in float:", name, report.counts.quantized, report.counts.float))
  for _, why in ipairs(order) do
    print(string.format("  %3d  %s", counts[why], why))
  end
  for _, node in ipairs(report.float) do
    if node.why:find("both inputs are activations", 1, true) or node.why:find("skip list", 1, true) then
      print("       skipped: " .. node.node)
    end
  end
end

local rows, result = {}, {}
for _, job in ipairs(jobs) do
  local float = tn.load(folder .. "/" .. job.file):apply("fusion.default")
  local unseen = tn.data.open(folder .. "/" .. job.unseen)
  job.recipe.data = tn.data.open(folder .. "/" .. job.calibration)
  -- What is rounded: outliers of single channels go into the weights first.
  local rounded = job.smooth and float:apply("quantizer.smooth", { data = job.recipe.data }) or float
  job.recipe.skip = weak_layers(rounded, job.recipe)
  local small, report = rounded:apply("quantizer.static", job.recipe)
  local path = out .. "/" .. job.name .. "_int8.onnx"
  small:save(path)
  print_left(job.name, report)

  local near = cosine(small, float, unseen)
  local before, after = job.score(float, unseen), job.score(small, unseen)
  local inputs = sample_of(unseen, job.inputs)
  local runs = {
    { label = "fp32", model = float, score = before, options = {} },
    { label = "bf16", model = float, options = { precision = "bf16" } },
    { label = "int8", model = small, score = after, cosine = near, options = {} },
    { label = "int8 + bf16", model = small, options = { precision = "bf16" } },
  }
  local base
  for _, run in ipairs(runs) do
    run.options.backend = backend
    run.options.threads = args.threads
    run.options.inputs = inputs
    local time = tn.bench(run.model, run.options)
    base = base or time.median_ms
    rows[#rows + 1] = {
      model = job.name, precision = run.label, ["median ms"] = time.median_ms,
      speedup = base / time.median_ms, MB = run.model:bytes() / 1e6, metric = job.metric,
      score = run.score or "", cosine = run.cosine and run.cosine.mean or "",
      ["lowest cosine"] = run.cosine and run.cosine.min or "", fallbacks = #time.fallback_nodes,
    }
  end
  result[job.name] = { before = before, after = after, cosine = near.mean, file = path,
                       quantized = report.counts.quantized, float = report.counts.float }
end

print(string.format("batch 1, backend %s, threads %s; scores on unseen data (all of it unless limit is set)",
  backend or "of this machine", args.threads or "all"))
tn.print_table(rows, { "model", "precision", "median ms", "speedup", "MB", "metric", "score", "cosine",
                       "lowest cosine", "fallbacks" })
result.rows = rows
return result
