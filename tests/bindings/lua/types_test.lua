-- SPDX-License-Identifier: Apache-2.0
-- Types promote as in NumPy, truth values too: every pair of types. Beside integers a float keeps
-- its width. Tensors of Lua are not float16.
local tn, fails = require "tenon", require("expect").fails

local types = {
  "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
}
-- What NumPy's promote_types gives, in the order of `types`.
local together = {
  bool = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
  int8 = "int8 int8 int16 int32 int64 int16 int32 int64 float64 float32 float64",
  int16 = "int16 int16 int16 int32 int64 int16 int32 int64 float64 float32 float64",
  int32 = "int32 int32 int32 int32 int64 int32 int32 int64 float64 float32 float64",
  int64 = "int64 int64 int64 int64 int64 int64 int64 int64 float64 float32 float64",
  uint8 = "uint8 int16 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64",
  uint16 = "uint16 int32 int32 int32 int64 uint16 uint16 uint32 uint64 float32 float64",
  uint32 = "uint32 int64 int64 int64 int64 uint32 uint32 uint32 uint64 float32 float64",
  uint64 = "uint64 float64 float64 float64 float64 uint64 uint64 uint64 uint64 float32 float64",
  float32 = "float32 float32 float32 float32 float32 float32 float32 float32 float32 float32 float64",
  float64 = "float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64",
}

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end
local function made(dtype, ...) return tn.astype(tn.tensor({ ... }), dtype) end
local function is(got, dtype, what)
  assert(got:dtype() == dtype, ("%s: expected %s, got %s"):format(what, dtype, got:dtype()))
end
local function has(got, wanted, what)
  for i, x in ipairs(wanted) do
    local y = got[i]
    if type(y) == "boolean" then y = y and 1 or 0 end
    assert(y == x, ("%s: element %d: expected %s, got %s"):format(what, i, x, tostring(y)))
  end
end

local function is_float(dtype) return dtype:find("^float") end
local function floating(dtype) return is_float(dtype) and dtype or "float32" end

-- By function: the type of the result, given the one that the operands have together.
local same = function(dtype) return dtype end
local flag = function() return "bool" end
local number = function(dtype) return dtype == "bool" and "int8" or dtype end
local binary = {
  add = same, multiply = same, maximum = same, minimum = same, matmul = same, vecdot = same,
  subtract = function(dtype) return dtype ~= "bool" and dtype or nil end,
  pow = number, divide = floating, logaddexp = floating,
  equal = flag, not_equal = flag, less = flag, less_equal = flag, greater = flag, greater_equal = flag,
  logical_and = flag, logical_or = flag, logical_xor = flag,
  bitwise_and = function(dtype) return not is_float(dtype) and dtype or nil end,
}
binary.bitwise_or, binary.bitwise_xor = binary.bitwise_and, binary.bitwise_and
for _, a in ipairs(types) do
  for i, both in ipairs(words(together[a])) do
    local x, y = made(a, 1, 0, 1), made(types[i], 1, 1, 1)
    for name, rule in pairs(binary) do
      local wanted = rule(both)
      if wanted then
        is(tn[name](x, y), wanted, name .. " of " .. a .. " and " .. types[i])
      else
        assert(not pcall(tn[name], x, y), name .. " of " .. a .. " and " .. types[i] .. ": expected an error")
      end
    end
    is(x % y, number(both), "%")
    is(x // y, number(both), "//")
    is(tn.where(tn.equal(x, y), x, y), both, "where")
    is(tn.concat({ x, y }), both, "concat")
  end
end

local sums = function(dtype)
  return is_float(dtype) and dtype or dtype:find("^u") and "uint64" or "int64"
end
local unary = {
  abs = same, floor = same, ceil = same, round = same, trunc = same, square = number, exp = floating, sqrt = floating,
  isnan = flag, isfinite = flag, logical_not = flag, max = same, min = same, sort = same, diff = same,
  sum = sums, prod = sums, cumulative_sum = sums, mean = floating, var = floating, any = flag, all = flag,
  count_nonzero = function() return "int64" end, argmax = function() return "int64" end,
  negative = binary.subtract, sign = binary.subtract, bitwise_invert = binary.bitwise_and,
}
for _, dtype in ipairs(types) do
  for name, rule in pairs(unary) do
    local x, wanted = made(dtype, 1, 0, 1), rule(dtype)
    if wanted then
      is(tn[name](x), wanted, name .. " of " .. dtype)
    else
      assert(not pcall(tn[name], x), name .. " of " .. dtype .. ": expected an error")
    end
  end
end

-- Truth values.
local t, f = made("bool", 1, 1, 0, 0), made("bool", 1, 0, 1, 0)
has(t + f, { 1, 1, 1, 0 }, "+")
has(t * f, { 1, 0, 0, 0 }, "*")
has(t & f, { 1, 0, 0, 0 }, "&")
has(t | f, { 1, 1, 1, 0 }, "|")
has(t ~ f, { 0, 1, 1, 0 }, "~")
has(~t, { 0, 0, 1, 1 }, "~t")
is(t & made("int32", 1, 1, 1, 1), "int32", "& with an integer")
has(tn.sum(t + f, 0, true), { 3 }, "sum of truth values")
local square = tn.matmul(tn.reshape(t, { 2, 2 }), tn.reshape(f, { 2, 2 }))
has(tn.reshape(square, { 4 }), { 1, 0, 0, 0 }, "matmul")
fails("logical_xor", function() return t - f end)
fails("logical_not", function() return -t end)

-- Nothing at all.
local none = tn.zeros({ 0, 2 }, "int32")
has(tn.any(none, 0), { 0, 0 }, "any of nothing")
has(tn.all(none, 0), { 1, 1 }, "all of nothing")
fails("expected one element at least", tn.max, none, 0)
fails("expected one element at least", tn.argmin, none, 0)

-- A trace is written whether the function succeeds or not; what it gives or raises is handed on.
local path = "types_test_trace.json"
local four, five = tn.chrome_trace(path, function() return 4, (tn.ones({ 3 }) + 1):shape()[1] + 2 end)
assert(four == 4 and five == 5)
local traced = assert(io.open(path)):read("a")
assert(traced:find('"cat":"run"', 1, true) and traced:find('"cat":"partition"', 1, true), traced)
fails("went wrong", function() tn.chrome_trace(path, function() error("went wrong") end) end)
assert(not assert(io.open(path)):read("a"):find('"cat":"run"', 1, true))
fails("a function", function() tn.chrome_trace(path, 3) end)
fails("expected no trace under way", function() tn.chrome_trace(path, function() tn.chrome_trace(path, print) end) end)

-- An error of a function of the library is at the user's line, however deep in it it was raised.
do
  local ok, why = pcall(function()
    return tn.jit(function(x) return tn.op("acme.Squircle", x) end)(tn.ones({ 2 }))
  end)
  assert(not ok and not why:find("^tenon:%d") and why:find("types_test.lua:%d+: "), why)
end
