-- SPDX-License-Identifier: Apache-2.0
-- decompose: products and convolutions as products of thinner ones.
--   tenon optimize MODEL -o OUT --recipe decompose [--data FILE] [--set rank=energy] [--set energy=0.8]
-- With data it says how much signal to noise is left at the outputs. Training is what wins the rest back.
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe {
  name = "decompose", passes = { "decomposer.svd", "decomposer.tucker2" },
  options = { methods = "svd, tucker2 or both, as a list (both)" }, leave = "skip", floats = true, cure = "keep more with --set energy, or train it",
}
if recipe.described then
  return recipe.described
end

local model = recipe.float_model()

-- The thin layers that svd makes are nothing for tucker2; the other way round they would be.
local methods = recipe.methods(args.methods or { "svd", "tucker2" }, { "svd", "tucker2" })
if args.budget and #methods > 1 then
  error("recipe decompose: option budget: expected one method beside it, which has to meet it with its own layers alone: --set methods=svd "
    .. "(products, 1x1 convolutions) or --set methods=tucker2 (other convolutions); got " .. table.concat(methods, ", "), 0)
end
if math.type(args.rank) and #methods > 1 then
  error("recipe decompose: option rank: expected --set methods=svd beside a number, as other convolutions have two ranks (rank_in, rank_out of "
    .. "tucker2); or energy, error or evbmf; got " .. args.rank, 0)
end
local small, rows, taken, why = model, recipe.list(), {}, {}
for _, method in ipairs(methods) do
  local report
  small, report = small:apply("decomposer." .. method, recipe.options("decomposer." .. method, {
    unsuited = args.only and #methods > 1 and "leave" or nil, -- the names are for all methods together
  }))
  if #report.decomposed == 0 then recipe.idle("decomposer." .. method) end
  for _, layer in ipairs(report.decomposed) do
    rows[#rows + 1] = {
      layer = layer.node, method = method, rank = tostring(layer.rank or layer.rank_in .. " " .. layer.rank_out),
      error = layer.error, random = layer.random_error,
      weights = layer.parameters.after / layer.parameters.before, flops = layer.flops.after / layer.flops.before,
    }
    taken[layer.node] = true
  end
  for _, layer in ipairs(report.left) do
    if not layer.suited then -- else it is another method's
      why[layer.node] = layer.why
    end
  end
end
if #methods > 0 and #rows == 0 and not next(why) then
  error("nothing to decompose (the model has no convolution or matrix product with a constant weight)", 0)
end
local judged = recipe.judge(model, small, recipe.data())
local sizes = recipe.save(small)

local left = recipe.list()
for node, reason in pairs(why) do
  if not taken[node] then
    left[#left + 1] = { node = node, why = reason }
  end
end
table.sort(left, function(a, b) return a.node < b.node end)
local before, after = model:inspect(), small:inspect()
local result = {
  output = args.output, decomposed = rows, left = left, bytes_before = sizes.bytes_before, bytes_after = sizes.bytes_after,
  parameters_before = before.parameters, parameters_after = after.parameters, flops_before = before.flops,
  flops_after = after.flops,
}
for key, value in pairs(judged) do
  result[key] = value
end
if args.data then
  local near = tn.evaluate(small, recipe.data(), { metric = "cosine", against = model, limit = args.limit or 64 })
  result.cosine, result.cosine_min = near.mean, near.min
end
if not args.json then
  if #rows > 0 then
    tn.print_table(rows, { "layer", "method", "rank", "error", "random", "weights", "flops" })
  end
  local shown = math.min(#left, 10)
  for i = 1, shown do
    print(string.format("  left: %s: %s", left[i].node, left[i].why))
  end
  if shown < #left then
    print(string.format("  left: %d more (--json names all)", #left - shown))
  end
  print(string.format("%s: %d layers, %.4g MB -> %.4g MB%s", args.output, #rows, result.bytes_before / 1e6,
    result.bytes_after / 1e6, result.snr_db and string.format(", %.1f dB, cosine %.5f (lowest %.5f)", result.snr_db, result.cosine,
    result.cosine_min) or ""))
end
return result
