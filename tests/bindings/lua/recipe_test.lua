-- SPDX-License-Identifier: Apache-2.0
-- tn.recipe: what a recipe takes, how data are parted, and how what is left of a model is judged.
local tn, fails = require "tenon", require("expect").fails

-- A recipe with these arguments of the command.
local function recipe(given, more)
  tn.args = given
  local spec = { name = "mine", passes = { "quantizer.static" }, options = { depth = "how deep" } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return tn.recipe(spec)
end

-- Options: own ones, those of the passes, those that judge; the nearest name is suggested.
assert(recipe({ depth = 2, samples = 8, min_snr = 3, model = "m", output = "o" }).described == nil)
fails("recipe mine: option: expected one of ", function() recipe({ dept = 2 }) end)
fails("got 'sampels' (did you mean 'samples'?)", function() recipe({ sampels = 2 }) end)
fails("component quantizer.statik is not installed", function() recipe({}, { passes = { "quantizer.statik" } }) end)
local takes = {}
for _, one in ipairs(recipe({ describe = true }).described) do takes[one.option] = one.about end
assert(takes.depth == "how deep" and takes.observer and takes.min_snr and not takes.data)

-- Values of a type that an option does not have, and options that nothing would read, are errors.
local own = { options = { fast = { type = "boolean", description = "fast" }, name = { type = "string", description = "name" } } }
fails("recipe mine: option min_snr: expected a number, got 'abc'", function() recipe({ min_snr = "abc" }) end)
fails("recipe mine: option limit: expected a whole number from 0, got 1.5", function() recipe({ limit = 1.5 }) end)
fails("recipe mine: option fast: expected true or false, got 'yes'", function() recipe({ fast = "yes" }, own) end)
fails("recipe mine: option name: expected a text, got 5", function() recipe({ name = 5 }, own) end)
fails("recipe mine: option name: expected a text, got a list or an object", function() recipe({ name = {} }, own) end)
fails("recipe mine: option limit: expected samples to compare models on", function() recipe({ limit = 4 }) end)
fails("recipe mine: option metric: it is what --max-drop measures", function() recipe({ metric = "mse", data = "d" }) end)
fails("recipe mine: option gain: expected a run of quantizer.smooth, which takes it, got none", function()
  local other = recipe({ gain = 0.5, output = "never.onnx" }, { passes = { "quantizer.static", "quantizer.smooth" } })
  other.options("quantizer.static")
  other.save(nil)
end)

-- What was given goes to the passes that take it, over the recipe's own choice; losses are components too.
local options = recipe({ samples = 8, depth = 1 }).options("quantizer.static", { samples = 4, bits = 3 })
assert(options.samples == 8 and options.depth == nil and options.bits == 3)
local loss = recipe({ temperature = 2 }, { passes = { "distiller.response" } }).options("distiller.response")
assert(loss.temperature == 2)
fails("recipe.options: fusion.default is none of the recipe's components", function() recipe({}).options("fusion.default") end)

-- Models that end in scores, and in what hides how far they are: Softmax, and what changes its form only.
local function model(noise, ending)
  return tn.model(function(x)
    local scores = tn.matmul(x, tn.tensor({ { 9, 0 }, { 0, 9 + noise } }, "float32"))
    return ending(scores)
  end, { { name = "x", shape = { "N", 2 } } })
end
local endings = {
  function(s) return s end, function(s) return tn.softmax(s) end, function(s) return tn.softmax(s):reshape({ -1, 1, 2 }) end,
  function(s) return tn.sigmoid(s):reshape({ -1 }):reshape({ -1, 2 }) end,
}
local rows = {}
for i = 1, 40 do rows[i] = { i % 7 - 3, i % 5 - 2 } end
tn.tensor(rows, "float32"):save("recipe_test.npy")
local data = tn.data.npz("recipe_test.npy", { fields = { "x" } })
for i, ending in ipairs(endings) do
  local left = recipe({}).judge(model(0, ending), model(0.9, ending), data)
  -- Noise is 0.9 x2 and the signal 9 x1, 9 x2: the same in front of each ending.
  local first = recipe({}).judge(model(0, endings[1]), model(0.9, endings[1]), data)
  assert(math.abs(left.snr_db - first.snr_db) < 0.01, i .. ": " .. left.snr_db .. " and " .. first.snr_db)
  assert(#left.outputs == 1 and left.judged_on == 40)
end

-- Less than what was asked for is an error; without data there is nothing to ask.
local whole, little = model(0, endings[2]), model(-30, endings[2])
fails("recipe mine: option min_snr: expected 20 dB or more, got ", function() recipe({ min_snr = 20 }).judge(whole, little, data) end)
fails("expected samples to measure it on, got no --data", function() recipe({ min_snr = 20 }).judge(whole, little) end)
assert(next(recipe({}).judge(whole, little)) == nil)
assert(recipe({ min_snr = 20 }).judge(whole, whole, data).snr_db == 200)

-- Three parts that share nothing; a handful of samples is not parted.
local made, chosen, judged, whole_part = recipe({}).parts(data)
assert(#made == 30 and #chosen == 5 and #judged == 5 and #whole_part == 35)
local few = data:part(1, 5)
made, chosen, judged = recipe({}).parts(few)
assert(#made == 5 and #chosen == 5 and #judged == 5)

-- A pattern of a node's name means this node, also where nodes are called like operators.
local two = tn.model(function(x)
  return tn.matmul(tn.matmul(x, tn.tensor({ { 1, 2 }, { 3, 4 } })), tn.tensor({ { 1, 0 }, { 2, 1 } }))
end, { { name = "x", shape = { "N", 2 } } })
local pattern_of = recipe({}).patterns(two)
assert(pattern_of("MatMul") == "*/MatMul" and pattern_of("MatMul_1") == "MatMul_1" and pattern_of("a[0]") == "a?0?")
local _, seen = two:apply("quantizer.weights", { skip = { pattern_of("MatMul") } })
assert(seen.counts.quantized == 1)
