-- SPDX-License-Identifier: Apache-2.0
-- Functions of whole arrays, on tensors and inside a compiled function.
local tn, expect = require "tenon", require "expect"

local near, fails = expect.near(1e-5), expect.fails

-- Outside of a trace, and in a function of its own.
local function both(what, f, wanted, ...)
  near(f(...), wanted, what)
  near(tn.jit(f)(...), wanted, what .. ", compiled")
end

local x = tn.tensor({ { 3, 1, 2 }, { 1, 5, 1 } })
local v = tn.tensor({ -1.5, 0, 2.5 })

both("rsqrt", tn.rsqrt, { 0.5 }, tn.tensor({ 4 }))
both("log2", tn.log2, { 3 }, tn.tensor({ 8 }))
both("log10", tn.log10, { 2 }, tn.tensor({ 100 }))
both("expm1", tn.expm1, { 1e-8 }, tn.tensor({ 1e-8 }))
both("log1p", tn.log1p, { 1e-8 }, tn.tensor({ 1e-8 }))
both("expm1 far from 0", tn.expm1, { math.exp(3) - 1, -1, -1 }, tn.tensor({ 3, -200, -math.huge }))
both("log1p far from 0", tn.log1p, { math.log(1e8), math.huge }, tn.tensor({ 1e8, math.huge }))
both("%", function(a, b) return a % b end, { 1, -1, 0.1, math.huge }, tn.tensor({ 7, -7, 1, -1 }),
  tn.tensor({ 3, -3, 0.3, math.huge }))
both("//", function(a, b) return a // b end, { 2, -3, 9 }, tn.tensor({ 7, -7, 1 }), tn.tensor({ 3, 3, 0.1 }))
both("// of integers", function(a, b) return a // b end, { 4503599627370497, -4 },
  tn.tensor({ 9007199254740995, -7 }, "int64"), tn.tensor({ 2, 2 }, "int64"))
both("trunc", tn.trunc, { -1, 0, 2 }, v)
both("isfinite", tn.isfinite, { 0, 1, 0 }, tn.tensor({ math.huge, 1, -math.huge }))
both("logaddexp", tn.logaddexp, { 1000 + math.log(2) }, tn.tensor({ 1000 }), tn.tensor({ 1000 }))
both("cumulative_sum", function(a) return tn.cumulative_sum(a, 1) end, { 3, 4, 6, 1, 6, 7 }, x)
both("cumulative_prod", function(a) return tn.cumulative_prod(a, 1) end, { 3, 3, 6, 1, 5, 5 }, x)
local codes = tn.tensor({ 100, 100, 100 }, "uint8")
both("sum of uint8", tn.sum, { 300 }, codes)
both("prod of int8", tn.prod, { 1000000 }, tn.tensor({ 100, 100, 100 }, "int8"))
both("cumulative_sum of uint8", tn.cumulative_sum, { 100, 200, 300 }, codes)
both("sum of truth values", function(a) return tn.sum(tn.greater(a, 1)) end, { 3 }, x)
both("any", function(a) return tn.any(tn.greater(a, 4), 1) end, { 0, 1 }, x)
both("all", function(a) return tn.all(tn.greater(a, 0)) end, { 1 }, x)
both("count_nonzero", tn.count_nonzero, { 2 }, v)
both("sort", tn.sort, { 1, 2, 3, 1, 1, 5 }, x)
both("sort, falling", function(a) return tn.sort(a, 0, true) end, { 3, 5, 2, 1, 1, 1 }, x)
both("argsort", tn.argsort, { 1, 2, 0, 0, 2, 1 }, x)
both("top_k", function(a) return tn.top_k(a, 2).values end, { 3, 2, 5, 1 }, x)
both("places of top_k", function(a) return tn.top_k(a, 1, 0, false).indices end, { 1, 0, 1 }, x)
both("take_along_axis", function(a) return tn.take_along_axis(a, tn.argsort(a)) end, { 1, 2, 3, 1, 1, 5 }, x)
both("moveaxis", function(a) return tn.moveaxis(a, 0, 1) end, { 3, 1, 1, 5, 2, 1 }, x)
both("matrix_transpose", tn.matrix_transpose, { 3, 1, 1, 5, 2, 1 }, x)
both("tile", function(a) return tn.tile(a, { 2 }) end, { -1.5, 0, 2.5, -1.5, 0, 2.5 }, v)
both("flip", function(a) return tn.flip(a, 1) end, { 2, 1, 3, 1, 5, 1 }, x)
both("roll", function(a) return tn.roll(a, 1, 1) end, { 2, 3, 1, 1, 1, 5 }, x)
both("roll all", function(a) return tn.roll(a, -2) end, { 2, 1, 5, 1, 3, 1 }, x)
both("diff", tn.diff, { -2, 1, 4, -4 }, x)
both("split", function(a) return tn.split(a, 3, 1)[2] end, { 1, 5 }, x)
both("tril", tn.tril, { 3, 0, 0, 1, 5, 0 }, x)
both("triu", function(a) return tn.triu(a, 1) end, { 0, 1, 2, 0, 0, 1 }, x)
both("vecdot", tn.vecdot, { 14, 27 }, x, x)
both("einsum", function(a, b) return tn.einsum("ij,kj->ik", a, b) end, { 14, 10, 10, 27 }, x, x)
both("full", function(a) return a + tn.full({ 3 }, 2.0) end, { 0.5, 2, 4.5 }, v)
both("ones_like", tn.ones_like, { 1, 1, 1 }, v)
both("arange", function(a) return a * tn.arange(3) end, { 0, 0, 5 }, v)
both("linspace", function(a) return a + tn.linspace(0, 1, 3) end, { -1.5, 0.5, 3.5 }, v)
both("eye", function(a) return tn.matmul(a, tn.eye(3, 2)) end, { 3, 1, 1, 5 }, x)
near(tn.jit(function(a) return a:sort():flip(1) end)(x), { 3, 2, 1, 5, 1, 1 }, "methods")

fails("parts: expected a divisor of 3, got 2", tn.split, x, 2, 1)
fails("axis: expected one of %-2 to 1, got 4", tn.sort, x, 4)

-- Any operator by its name. Inputs are a list, in which nil leaves one out.
both("op", function(a) return tn.op("Add", { a, a }) end, { -3, 0, 5 }, v)
both("op without its second input", function(a) return tn.op("Clip", { a, nil, tn.tensor(1) }) end, { -1.5, 0, 1 }, v)
both("op without its second input, as false", function(a) return tn.op("Clip", { a, false, tn.tensor(1) }) end,
  { -1.5, 0, 1 }, v)
fails('tn.op("Add", { x, y }, { axis = 0 }, 1); got tensor as argument 3', tn.op, "Add", v, v)
fails("got tensor as argument 4", tn.op, "Clip", v, nil, tn.tensor(1))
fails("op: inputs: expected a list, got the key x", tn.op, "Relu", { x = v })
