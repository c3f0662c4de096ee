-- SPDX-License-Identifier: Apache-2.0
-- Tensors: made from lists, read by index, saved and read again.
local tn, expect = require "tenon", require "expect"

local function fails(wanted, call)
  local message = expect.fails(wanted, call)
  assert(message:find("tensor_test.lua:%d+:"), "expected file and line: " .. message)
end

local x = tn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } })
assert(#x == 6 and x[4] == 4 and x[7] == nil)
assert(tn.json(x:shape()) == "[2,3]" and x:dtype() == "float32")
assert(tn.json(x:rows(2, 2):values()) == "[4.0,5.0,6.0]")
assert(tn.tensor({ 1, -2 }, "int8")[2] == -2)
for _, kind in ipairs({ "float16", "bfloat16" }) do
  local halves = tn.tensor({ 1.5, -0.25, 3000.7 }, kind)
  assert(halves[1] == 1.5 and halves[2] == -0.25)
  assert(halves[3] == (kind == "float16" and 3000 or 3008)) -- to the nearest that it has
end
assert(#tn.zeros({ 2, 0 }) == 0)

local noise, sum, squares = tn.normal({ 100, 10 }, 0.5, 7), 0, 0
for _, v in ipairs(noise:values()) do sum, squares = sum + v, squares + v * v end
assert(math.abs(sum / 1000) < 0.06 and math.abs(squares / 1000 - 0.25) < 0.05)
assert(noise[1] == tn.normal({ 1 }, 0.5, 7)[1] and noise[1] ~= tn.normal({ 1 }, 0.5, 8)[1])

local file = "tensor_test.npy"
x:save(file)
local again = tn.npy(file)
assert(tn.json(again:values()) == tn.json(x:values()))

fails("rows of the same length", function() tn.tensor({ { 1, 2 }, { 3 } }) end)
fails("the element type can hold", function() tn.tensor({ 300 }, "int8") end)
fails("expected one of float32", function() tn.tensor({ 1 }, "float") end)

-- Whole numbers arrive whole, those beyond 2^53 too; fractions are none.
local wide = { 9007199254740993, math.maxinteger, math.mininteger }
assert(tn.json(tn.tensor(wide, "int64"):values()) == tn.json(wide))
assert(tn.tensor({ 3.0 }, "int32")[1] == 3 and tn.tensor({ 0.5 }, "bool")[1] == 1)
fails("expected whole numbers for int32, got 2.7", function() tn.tensor({ 2.7 }, "int32") end)
fails("expected whole numbers for uint8, got -0.5", function() tn.tensor({ -0.5 }, "uint8") end)

fails("tn.zeros: argument 1: expected a list of sizes, got nil", function() tn.zeros(nil) end)
fails("tn.normal: argument 1: expected a list of sizes, got nothing", function() tn.normal() end)
fails("tn.zeros: expected a list of sizes", function() tn.zeros({ rows = 2 }) end)
assert(#tn.zeros({}) == 1 and #tn.zeros(3) == 3)

-- Positions of a slice are from 1 on.
local line = tn.tensor({ 1, 2, 3, 4 })
assert(tn.json(line:values()) == "[1.0,2.0,3.0,4.0]")
assert(tn.json(tn.slice(line, 0, 2):values()) == "[2.0,3.0,4.0]" and #tn.slice(line, 0, 3, 2) == 0)
for _, wrong in ipairs({ { 0, 2 }, { -1 }, { 1.5, 2 }, { 1, -1 }, {} }) do
  fails("slice: expected positions first and last from 1 on", function() tn.slice(line, 0, wrong[1], wrong[2]) end)
end
fails("tn.load: argument 1: expected a string, got nothing", function() tn.load() end)
fails("used after it was closed", function() again:close() return #again end)
do
  local ended <close> = tn.zeros({ 1 })
  again = ended
end
fails("used after it was closed", function() return again[1] end)
tn.print_table({ { name = "a", value = 1.5 } }, { "name", "value" })

-- Tensors as a data set.
do
  local data = tn.data.arrays { x = tn.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }, label = tn.tensor({ 0, 1, 2 }, "int64") }
  assert(#data == 3)
  local batch = data:batch(2, 3)
  assert(batch.x[3] == 5 and batch.label[1] == 1)
  local ok, message = pcall(tn.data.arrays, { x = 3 })
  assert(not ok and message:find("option x: expected a tensor, got 3", 1, true), message)
  fails("the data set has no samples", function() tn.data.arrays({ x = tn.zeros({ 0, 2 }) }):batch(1, 1) end)
end

-- Keys of JSON are whole, and numbers beyond Lua's integers are floats, as Lua reads them.
assert(tn.json({ ["a\0b"] = 1, ["a\0c"] = 2 }) == '{"a\\u0000b":1,"a\\u0000c":2}')
fails("expected rows by name of column, got 1", function() tn.print_table({ 1, 2 }) end)

-- An option of another type is refused, not left out.
do
  local model = tn.jit(function(a) return a + 1 end):trace(tn.zeros({ 2, 3 }))
  local data = tn.data.arrays { x1 = tn.zeros({ 4, 3 }), label = tn.tensor({ 0, 1, 2, 0 }, "int64") }
  for option, wrong in pairs({
    rounds = 1 << 32, threads = 1 << 33, seconds = "x", layers = 1, inputs = 5, shapes = 5, streams = 2000,
  }) do
    fails("tn.bench: option " .. option, function() tn.bench(model, { [option] = wrong }) end)
  end
  fails("option seconds: expected a number above 0, got -1", function() tn.bench(model, { seconds = -1 }) end)
  fails("option shapes: x1: expected a list of sizes, got 5", function() tn.bench(model, { shapes = { x1 = 5 } }) end)
  fails("option inputs: x1: expected a tenon.tensor, got a number", function() tn.bench(model, { inputs = { x1 = 5 } }) end)
  fails("tn.evaluate: option options: expected a table by name", function() tn.evaluate(model, data, { options = 5 }) end)
  fails("tn.compare: option layers: expected true or false, got 0", function() tn.compare(model, model, data, { layers = 0 }) end)
  fails("tn.loss: trainer.cross_entropy: argument 1: expected a table", function() tn.loss.cross_entropy(5) end)
  fails("optimizer:rate: expected a step from 0 on, got -1", function() tn.optim.sgd({ lr = 1 }):rate(0, -1) end)
end

-- What is no function, no name and no table is refused in the script's own line.
fails("cond: expected a function or a model, got nil", function() tn.cond(true, function() return 1 end) end)
fails("tn.vjp: expected a function or a model, got nil", function() tn.vjp() end)
fails("tn.jvp: expected a function or a model, got nil", function() tn.jvp() end)
fails("op: expected the name of an operator, got nil", function() tn.op() end)
fails("options: expected a table, got number", function() tn.jit(tn.exp, 5) end)
fails("nn.load: expected a model, got nil", function() tn.nn.load() end)
fails("input x: expected whole sizes, or names of sizes, got 0.5", function()
  tn.model(function(a) return a end, { { name = "x", shape = { "N", 0.5 } } })
end)

-- Rows are counted from 1, in messages too.
do
  local t = tn.tensor { { 1, 2 }, { 3, 4 } }
  assert(#t:rows(2, 1) == 0 and t:rows(2, 2)[1] == 3)
  fails("tensor:rows: expected rows within 1..2, got 0..1", function() t:rows(0, 1) end)
  fails("tensor:rows: expected rows within 1..2, got 1..3", function() t:rows(1, 3) end)
  fails("tensor:rows: expected rows within 1..2, got " .. math.mininteger, function() t:rows(math.mininteger, 1) end)
end
