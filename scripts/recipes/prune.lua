-- SPDX-License-Identifier: Apache-2.0
-- prune: whole channels removed, with all weights that they pass through; the model is really smaller.
--   tenon optimize MODEL -o OUT --recipe prune [--set ratio=0.3] [--set scope=global] [--data FILE] [--set bench=true]
-- A pruned model needs training to be as good as before; with data it says how far its answers are.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "prune", passes = { "pruner.structured" },
  options = {
    fuse = { type = "boolean", description = "fold normalizations first (true)" },
    bench = { type = "boolean", description = "measure the speed before and after (false)" },
  },
  leave = "skip", floats = true, cure = "train it: tenon optimize --recipe finetune",
}
if recipe.described then
  return recipe.described
end

local model = recipe.load()
local source = model
if args.fuse ~= false then
  model = model:apply("fusion.default") -- the norm of a folded filter says how large its channel is
end
local small, report = model:apply("pruner.structured", recipe.options("pruner.structured", {
  ratio = not args.target and 0.3 or nil, round_to = 8, data = recipe.data(),
}))
local judged = recipe.judge(source, small, recipe.data())
local sizes = recipe.save(small)

local result = {
  output = args.output, importance = report.importance, parameters = report.parameters, macs = report.macs,
  bytes_before = sizes.bytes_before, bytes_after = sizes.bytes_after, groups = recipe.list(), barriers = report.barriers,
}
for i, group in ipairs(report.groups) do
  result.groups[i] = { layer = group.layer, channels = group.channels * group.width, kept = group.kept * group.width, scores = group.scores,
    standard_errors = group.standard_errors }
end
for key, value in pairs(judged) do
  result[key] = value
end
if args.data then
  local near = tn.evaluate(small, recipe.data(), { metric = "cosine", against = source, limit = args.limit or 64 })
  result.cosine, result.cosine_min = near.mean, near.min
end
if args.bench then -- the model before is folded as well: what is left is what pruning did
  local before, after = tn.bench(model), tn.bench(small)
  result.median_ms = { before = before.median_ms, after = after.median_ms }
  result.speedup = before.median_ms / after.median_ms
end
local most, at_least, goes = 0, args.min_channels or 1, false
for _, group in ipairs(report.groups) do
  most, goes = math.max(most, group.channels), goes or group.kept < group.channels
end
if not goes then
  local why
  if most == 0 then
    why = "there is none that may go" .. (#report.barriers > 0 and ", for the reasons below" or "")
  elseif report.ratio == 0 and not args.layers then
    why = "ratio 0 removes none (--set ratio=0.3)"
  elseif at_least >= most then
    why = string.format("every layer keeps min_channels %g, and none has more than %g (--set min_channels=1)", at_least, most)
  else
    why = string.format("ratio %g leaves whole groups of round_to %g (--set round_to=1 removes single channels)", report.ratio,
      args.round_to or 8)
  end
  tn.log.warning("no channel went: " .. why)
end
if not args.json then
  tn.print_table(result.groups, { "layer", "channels", "kept" })
  local names, order = {}, {}
  for _, one in ipairs(report.barriers) do
    if not names[one.why] then
      names[one.why] = {}
      order[#order + 1] = one.why
    end
    table.insert(names[one.why], one.node)
  end
  for _, why in ipairs(order) do
    print("  stays, because " .. why .. ": " .. table.concat(names[why], ", "))
  end
  local macs = ""
  if report.macs then
    macs = string.format(", %.4g -> %.4g M multiply-adds", report.macs.before / 1e6, report.macs.after / 1e6)
  end
  print(string.format("%s: %.4g -> %.4g M parameters%s, %.4g -> %.4g MB", args.output, report.parameters.before / 1e6,
    report.parameters.after / 1e6, macs, result.bytes_before / 1e6, result.bytes_after / 1e6))
  if result.speedup then
    local ratio = report.macs and string.format("%.2f", report.macs.before / report.macs.after) or "unknown"
    print(string.format("measured: %.4g -> %.4g ms, %.2f times faster; multiply-adds: %s times fewer",
      result.median_ms.before, result.median_ms.after, result.speedup, ratio))
  end
  if result.cosine then
    print(string.format("to the model before: %s, cosine %.5f (lowest %.5f): train it to get back what it lost",
      result.snr_db and string.format("%.1f dB", result.snr_db) or "no output in float", result.cosine, result.cosine_min))
  end
end
return result
