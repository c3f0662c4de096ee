-- SPDX-License-Identifier: Apache-2.0
-- custom_vjp: the gradient that is given is the one that is taken. checkpoint: the same, computed again. The parts of
-- the array API, and a step with passes behind the gradient.
local tn, expect = require "tenon", require "expect"

local near, fails = expect.near(1e-4), expect.fails

local x = tn.tensor({ 0.5, -1.25, 2 })
local rows = tn.tensor({ { 1, -2, 3 }, { 0.5, 0.25, -1 } })

-- The straight-through estimator: a step whose gradient is that of clip.
local sign = tn.custom_vjp(tn.sign, function(v) return tn.sign(v), v end, function(v, g)
  return tn.where(tn.less(tn.abs(v), 1), g, tn.zeros_like(g))
end)
local function loss(v) return (sign(v) * v):sum() end
near(sign(x), { 1, -1, 1 }, "the value")
near(tn.jit(sign)(x), { 1, -1, 1 }, "the value in a trace")
near(tn.grad(loss)(x), { 1.5, -1, 1 }, "the gradient")
near(tn.reshape(tn.vmap(tn.grad(loss))(rows), { 6 }), { 1, -1, 1, 1.5, 1.25, -1 }, "vmap of the gradient")
near(tn.reshape(tn.grad(function(v) return tn.vmap(loss)(v):sum() end)(rows), { 6 }), { 1, -1, 1, 1.5, 1.25, -1 },
  "gradient of vmap")

-- Tables and several results; an argument without a gradient.
local scaled = tn.custom_vjp(function(p, v) return p.w * v, v:sum() end,
  function(p, v) return p.w * v, v:sum(), { p, v } end,
  function(kept, y, sum) return { w = 100 * y }, 7 * kept[2] * sum end)
local by_p, by_v = table.unpack(tn.grad(function(p, v)
  local y, sum = scaled(p, v)
  return y:sum() + sum ^ 2
end, { 0, 1 })({ w = x }, x))
near(by_p.w, { 100, 100, 100 }, "gradient by a table")
near(by_v, { 7 * 0.5 * 2.5, 7 * -1.25 * 2.5, 7 * 2 * 2.5 }, "gradient by the other")
local none = tn.custom_vjp(function(v) return v * 2 end, function(v) return v * 2 end, function() end)
near(tn.grad(function(v) return (none(v) + v):sum() end)(x), { 1, 1, 1 }, "no gradient")

-- A second one is the gradient of what was given.
local cube = tn.custom_vjp(function(v) return v ^ 3 end, function(v) return v ^ 3, v end,
  function(v, g) return g * 3 * v ^ 2 end)
near(tn.grad(function(u) return tn.grad(function(v) return cube(v):sum() end)(u):sum() end)(x), { 3, -7.5, 12 },
  "the second gradient")

fails("expected f, forward and backward", tn.custom_vjp, tn.sign)
fails("expected a gradient for each of 1 arguments, got 2",
  tn.custom_vjp(function(v) return v end, function(v) return v end, function(_, g) return g, g end), x)
fails("expected a gradient like traced float32%[3%], got traced float32%[%]",
  tn.custom_vjp(function(v) return v end, function(v) return v end, function(_, g) return g:sum() end), x)
fails("make it an argument", tn.jit(function(a, b)
  return tn.custom_vjp(function(v) return v * b end, function(v) return v * b end, function(_, g) return g end)(a)
end), x, x)

-- The same with and without; a parameter that several calls share gets its sums in another order.
local function block(p, v) return v + tn.tanh(tn.matmul(v, p.w)) * p.s end
local again = tn.checkpoint(block)
local p = { w = tn.tensor({ { 0.5, -0.25, 1 }, { 0.125, 2, -1 }, { 0.5, 0.5, 0.25 } }), s = tn.tensor({ 1, 2, 3 }) }
local function through(f)
  return tn.value_and_grad(function(q, v) return (f(q, f(q, v)) ^ 2):sum() end)
end
local one, slopes = through(block)(p, rows)
local other, others = through(again)(p, rows)
assert(one[1] == other[1], "checkpoint: the value")
for _, key in ipairs({ "w", "s" }) do
  local a, b = tn.reshape(slopes[key], { -1 }), tn.reshape(others[key], { -1 })
  near(b, { table.unpack(a:values()) }, "checkpoint: the gradient by " .. key)
end
near(tn.grad(function(v, w) return tn.checkpoint(function(u) return tn.sin(u) * w end)(v):sum() end)(x, 2.0),
  { 2 * math.cos(0.5), 2 * math.cos(-1.25), 2 * math.cos(2) }, "checkpoint: what is used from outside")
local dropped = tn.checkpoint(function(v) return tn.dropout(v, 0.5) end)
local wide = tn.normal({ 64 })
local slope, y = tn.grad(function(v)
  local made = dropped(v)
  return made:sum(), made
end, 0, { has_aux = true })(wide)
for i = 1, 64 do assert((slope[i] == 0) == (y[i] == 0), "checkpoint: a draw that differs") end

-- A step with passes on the joint graph.
local function steps(joint)
  local step = tn.step(function(q, v) return (block(q, block(q, block(q, v))) ^ 2):mean() end, p, { rate = 0.01, joint = joint })
  return step(rows), step(rows), step(rows)
end
local a, b, c = steps()
local d, e, f = steps({ "autodiff.recompute" })
assert(a == d and b == e and c == f, "a step with recomputation: another loss")
fails("expected scopes of the forward pass", steps, { { ["autodiff.recompute"] = { regions = { "none" } } } })

-- A budget is judged by the plan that will run: results in bf16 take half.
local large = { w = tn.ones({ 256, 256 }) }
local function least_of(precision)
  local step = tn.step(function(q, v) return (tn.tanh(tn.matmul(tn.tanh(tn.matmul(v, q.w)), q.w)) ^ 2):mean() end, large,
    { rate = 0.01, joint = { { ["autodiff.recompute"] = { budget = 2 } } }, precision = precision })
  local _, failure = pcall(step, tn.ones({ 256, 256 }))
  return tonumber(tostring(failure):match("expected at least (%d+) bytes"))
end
assert(least_of("bf16") < 0.75 * least_of("fp32"), "a budget for bf16")

-- Parts of the API.
near(tn.reshape(tn.linalg.inv(tn.tensor({ { 2, 0 }, { 1, 4 } })), { 4 }), { 0.5, 0, -0.125, 0.25 }, "linalg.inv")
near(tn.reshape(tn.grad(function(v) return tn.linalg.slogdet(v).logabsdet end)(tn.tensor({ { 2, 0 }, { 0, 4 } })), { 4 }),
  { 0.5, 0, 0, 0.25 }, "gradient of slogdet")
near(tn.jit(function(v) return tn.fft.irfft(tn.fft.rfft(v), { n = 3 }) end)(x), { 0.5, -1.25, 2 }, "fft")

-- Outside of a trace both are traced on each call: what their functions use may have changed.
do
  local factor = 1
  local function f(v) return v * factor end
  local own = tn.custom_vjp(f, function(v) return f(v), v end, function(_, c) return c end)
  local again = tn.checkpoint(f)
  local one = tn.tensor({ 1 })
  assert(own(one)[1] == 1 and again(one)[1] == 1)
  factor = 5
  assert(own(one)[1] == 5 and again(one)[1] == 5)
end
