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
