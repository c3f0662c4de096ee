-- SPDX-License-Identifier: Apache-2.0
-- cond, while_loop, fori_loop, scan with gradients and under vmap; and a model as a function.
local tn, expect = require "tenon", require "expect"

local near, fails = expect.near(1e-4), expect.fails

local x = tn.tensor({ 0.5, -1.25, 2 })
local rows = tn.tensor({ { 1, 2 }, { -1, 0.5 }, { 0.5, 3 } })

local function choose(v) return tn.cond(tn.greater(tn.sum(v), 0), function(a) return a * 2, a:sum() end,
  function(a) return -a, a:max() end, v) end
local double, sum = choose(x)
near(double, { 1, -2.5, 4 }, "cond")
near(sum, { 1.25 }, "cond, second result")
near((tn.jit(choose)(-x)), { 0.5, -1.25, 2 }, "cond, the other way")
local slope = tn.grad(function(v)
  return tn.cond(tn.greater(v:sum(), 0), function() return (v * v):sum() end, function() return v:sum() * 3 end)
end)
near(slope(x), { 1, -2.5, 4 }, "gradient of cond")
near(slope(-x), { 3, 3, 3 }, "gradient of cond, the other way")
local f = tn.jit(function(p, a, b, c)
  return tn.cond(p, function() return a + b end, function() return b * c end)
end)
near(f(tn.greater(tn.sum(x), 0), 2.0, 3.0, 5.0), { 5 }, "captures")
near(f(tn.less(tn.sum(x), 0), 2.0, 3.0, 5.0), { 15 }, "captures of the other one")
fails("expected float32%[3%], got float32%[%]", tn.jit(function(v)
  return tn.cond(tn.greater(v:sum(), 0), function() return v end, function() return v:sum() end)
end), x)

local function root(v)
  return tn.while_loop(function(s) return tn.greater(tn.abs(s[1] - s[2]), 1e-6) end,
    function(s) return { s[2], (s[2] + v / s[2]) * 0.5 } end, { v + 2, v + 1 })[2]
end
near(tn.jit(root)(9.0), { 3 }, "while_loop")
near(tn.grad(root)(4.0), { 0.25 }, "gradient of while_loop")
near(tn.vmap(root)(tn.tensor({ 4, 100 })), { 2, 10 }, "while_loop under vmap")

local function power(v) return tn.fori_loop(0, 4, function(_, s) return s * v end, tn.ones_like(v)) end
near(power(x), { 0.0625, 2.44140625, 16 }, "fori_loop")
near(tn.grad(function(v) return power(v):sum() end)(x), { 0.5, -7.8125, 32 }, "gradient of fori_loop")
near(tn.fori_loop(3, 10, function(i, s) return s + i end, 0), { 42 }, "limits")

local function smooth(xs)
  return tn.scan(function(s, v)
    local new = s * 0.5 + v
    return new, { y = new * 2 }
  end, tn.zeros_like(xs[1]), xs)
end
local last, more = tn.jit(smooth)(rows)
near(last, { 0.25, 3.75 }, "scan")
near(more.y, { 2, 4, -1, 3, 0.5, 7.5 }, "results of scan")
near(tn.grad(function(xs) return (smooth(xs)):sum() end)(rows), { 0.25, 0.25, 0.5, 0.5, 1, 1 }, "gradient of scan")
near((select(2, tn.scan(function(s, v) return s + v, s + v end, tn.zeros({ 2 }), rows, { reverse = true }))),
  { 0.5, 5.5, -0.5, 3.5, 0.5, 3 }, "scan in reverse")
near((select(2, tn.scan(function(s) return s * 2, s end, 1.0, nil, { length = 4 }))), { 1, 2, 4, 8 }, "scan with a length")
fails("expected xs or length", tn.jit(function(v) return tn.scan(function(s) return s end, v) end), x)

-- A model as a function.
local model = tn.model(function(v) return tn.exp(v) * 2, v:sum(-1) end, { { name = "v", shape = { "N", 3 } } })
local batch = tn.reshape(x, { 1, 3 })
local out, total = model(batch)
near(out, { 2 * math.exp(0.5), 2 * math.exp(-1.25), 2 * math.exp(2) }, "a model called")
near(total, { 1.25 }, "its second result")
near((tn.jit(model)(batch)), { 2 * math.exp(0.5), 2 * math.exp(-1.25), 2 * math.exp(2) }, "jit of a model")
near(tn.grad(function(v) return (model(v)):sum() end)(batch),
  { 2 * math.exp(0.5), 2 * math.exp(-1.25), 2 * math.exp(2) }, "gradient through a model")
local scalar = tn.model(function(v) return (v * v):sum() end, { { name = "v", shape = { 3 } } })
near(tn.grad(scalar)(x), { 1, -2.5, 4 }, "gradient of a model")
near(tn.vmap(scalar)(tn.tensor({ { 1, 2, 3 }, { 0, 1, 0 } })), { 14, 1 }, "vmap of a model")
fails("expected 1 inputs, got 2", tn.jit(function(v) return scalar(v, v) end), x)

-- Outside of a trace, functions that are given are traced on each call: what they use may have changed.
local factor = 1
local function scaled(_, s) return s * factor end
local function chosen() return tn.cond(true, function(a) return scaled(0, a) end, function(a) return a end, x)[3] end
assert(chosen() == 2)
near(tn.fori_loop(0, 2, scaled, x), { 0.5, -1.25, 2 }, "a loop by 1")
factor = 3
assert(chosen() == 6)
near(tn.fori_loop(0, 2, scaled, x), { 4.5, -11.25, 18 }, "a loop by 3")
near(tn.cond(true, tn.jit(tn.negative), tn.jit(tn.exp), x), { -0.5, 1.25, -2 }, "compiled functions of cond")

-- Bounds and lengths are whole numbers, and options have these names.
fails("fori_loop: lower: expected one integer, got 0.5", tn.fori_loop, 0.5, 2, scaled, x)
fails("fori_loop: upper: expected one integer, got traced float32", tn.fori_loop, 0, tn.tensor({ 2 }), scaled, x)
local function sum_of(s, y) return s + y, s end
fails("scan: length: expected an integer from 0, got -1", tn.scan, function(s) return s, s end, x, nil, { length = -1 })
fails("scan: length: expected that of the first axis of xs, got 5", tn.scan, sum_of, 0.0, x, { length = 5 })
fails("scan: options: expected one of length, reverse, got 'revers'", tn.scan, sum_of, 0.0, x, { revers = true })
fails("scan: expected tensors in xs, got none", tn.scan, sum_of, 0.0, {})
