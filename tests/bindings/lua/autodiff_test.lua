-- SPDX-License-Identifier: Apache-2.0
-- Gradients, products with Jacobians, vmap, random numbers, and the search for a NaN.
local tn, expect = require "tenon", require "expect"

local known = {}
for _, one in ipairs(tn.components("tenon.pass/1")) do known[one.id] = true end
if not known["autodiff.value_and_grad"] then return end -- a build without the plugin

local near, fails = expect.near(1e-5), expect.fails

local x, y = tn.tensor({ 1, 2, 3 }), tn.tensor({ 4, 5, 6 })

-- The founding example.
local function sum_of_squares(a, b) return a ^ 2 + b ^ 2 end
assert(tn.grad(sum_of_squares)(1.5, 2.5)[1] == 3)
local both = tn.grad(sum_of_squares, { 0, 1 })(1.5, 2.5)
assert(both[1][1] == 3 and both[2][1] == 5)
near(tn.vmap(function(a, b) return a * b end)(tn.tensor({ 1, 2 }), tn.tensor({ 4, 5 })), { 4, 10 }, "vmap of multiply")

-- Of each other, of tables, of what is captured.
assert(tn.grad(tn.grad(function(a) return a ^ 3 end))(2.0)[1] == 12)
assert(tn.grad(sum_of_squares, -1)(1.5, 2.5)[1] == 5)
local gradient = tn.grad(function(p) return (p.a * p.list[1]):sum() end)({ a = x, list = { y } })
near(gradient.a, { 4, 5, 6 }, "gradient by a table")
near(gradient.list[1], { 1, 2, 3 }, "gradient by a table in a table")
near(tn.jit(function(b)
  return tn.grad(function(a) return (a * b * b):sum() end)(x) + 1
end)(y), { 17, 26, 37 }, "captured")
near(tn.grad(function(a) return (a * tn.stop_gradient(a)):sum() end)(x), { 1, 2, 3 }, "stop_gradient")

-- More results beside the value.
local value, slope, more = tn.value_and_grad(function(a) return (a * a):sum(), { twice = a * 2 } end, 0, { has_aux = true })(x)
assert(value[1] == 14)
near(slope, { 2, 4, 6 }, "value_and_grad")
near(more.twice, { 2, 4, 6 }, "has_aux")
slope, more = tn.grad(function(a) return (a * a):sum(), a end, 0, { has_aux = true })(x)
near(slope, { 2, 4, 6 }, "grad with has_aux")
near(more, { 1, 2, 3 }, "grad with has_aux, the rest")

-- Products with the Jacobian and its transpose, outside of a trace and inside.
local result, pull = tn.vjp(tn.sin, x)
near(result, { math.sin(1), math.sin(2), math.sin(3) }, "vjp, result")
near(pull(y), { 4 * math.cos(1), 5 * math.cos(2), 6 * math.cos(3) }, "vjp")
local by_a, by_b = select(2, tn.vjp(function(a, b) return a * b end, x, y))(tn.tensor({ 1, 1, 2 }))
near(by_a, { 4, 5, 12 }, "vjp by the first")
near(by_b, { 1, 2, 6 }, "vjp by the second")
near(tn.jit(function(a) return (select(2, tn.vjp(tn.square, a))(a)) end)(x), { 2, 8, 18 }, "vjp in a trace")
local out, change = tn.jvp(function(a, b) return a * b end, { x, y }, { y, x })
near(out, { 4, 10, 18 }, "jvp, result")
near(change, { 17, 29, 45 }, "jvp")
local quartic = tn.grad(function(a) return (a ^ 4):sum() end)
near(select(2, tn.jvp(quartic, { x }, { y })), { 48, 240, 648 }, "Hessian-vector product")

-- Axes: others, none, of tables, nested; per-example gradients.
local m = tn.tensor({ { 1, 2, 3 }, { 4, 5, 6 } })
near(tn.vmap(function(a) return a:sum() end)(m), { 6, 15 }, "vmap")
near(tn.vmap(function(a) return a:sum() end, 1)(m), { 5, 7, 9 }, "vmap of columns")
near(tn.vmap(function(a, b) return a * b end, { 0, false }, -1)(m, y), { 4, 16, 10, 25, 18, 36 }, "in_axes and out_axes")
near(tn.vmap(function(p) return p.m:sum() + p.y:sum() end, { { m = 0, y = false } })({ m = m, y = y }), { 21, 30 },
  "in_axes of a table")
near(tn.vmap(tn.vmap(tn.multiply, { false, 0 }), { 0, false })(x, y), { 4, 5, 6, 8, 10, 12, 12, 15, 18 }, "nested")
near(tn.vmap(tn.grad(function(a, b) return (a * b * b):sum() end), { false, 0 })(y, m), { 1, 4, 9, 16, 25, 36 },
  "per-example gradients")
near(tn.grad(function(a) return tn.vmap(function(b) return b ^ 3 end)(a):sum() end)(x), { 3, 12, 27 }, "grad of vmap")
near(tn.vmap(function(a) return a + y end)(m), { 5, 7, 9, 8, 10, 12 }, "what is captured has no axis")

-- Random numbers.
local ones = tn.tensor({ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 })
local two = tn.stack({ ones, ones })
local function drop(a) return tn.dropout(a, 0.5) end
fails("operator Dropout .*option random: expected same", tn.vmap(drop), two)
local function equal_rows(t)
  for i = 1, 20 do
    if t[i] ~= t[20 + i] then return false end
  end
  return true
end
assert(equal_rows(tn.vmap(drop, 0, 0, { random = "same" })(two)))
assert(not equal_rows(tn.vmap(drop, 0, 0, { random = "different" })(two)))
local by_key = tn.jit(function(key) return tn.random_uniform({ 4 }, key) end)
assert(by_key(1)[1] == by_key(1)[1] and by_key(1)[1] ~= by_key(2)[1])
local dropped = tn.jit(function(a, key) return tn.dropout(a, 0.25, key) end)(ones, 3)
for i = 1, 20 do assert(dropped[i] == 0 or math.abs(dropped[i] - 4 / 3) < 1e-6) end
assert(#tn.random_normal({ 2, 3 }) == 6)

-- What is refused.
fails("expect.lua:%d+:.*one float scalar", tn.grad(function(a) return a end), x)
fails("expected a float type to differentiate by, got int64", tn.grad(function(a) return a:sum() end), tn.tensor({ 1 }, "int64"))
fails("expected the function to give one result, got 2", tn.grad(function(a) return a:sum(), a end), x)
fails("axis: expected one of %-1 to 0, got 1", tn.grad(function(a) return a:sum() end, 1), x)
fails("expected one cotangent for each of 1", pull, x, y)
fails("jvp: expected 1 tangents", tn.jvp, tn.sin, { x }, { x, y })
fails("expected one size of the axis, got 3 and 2", tn.vmap(tn.multiply), x, tn.tensor({ 1, 2 }))
fails("expected an axis in in_axes", tn.vmap(tn.sin, false), x)

-- The node that makes the first NaN, when asked for.
local function loss(a) return tn.sqrt(tn.log(a)):sum() end
assert(tn.jit(loss)(x)[1] > 0)
local strict = tn.jit(loss, { check_nan = true })
assert(strict(tn.tensor({ 2, 3 }))[1] > 0)
fails("expect.lua:%d+:.*NaN: the first is in the result of operator Log", strict, tn.tensor({ 2, -1 }))
fails("operator Sqrt", strict, tn.tensor({ 2, 0.5 }))
fails("operator Log", tn.grad(loss, 0, { check_nan = true }), tn.tensor({ 2, -1 }))
local step = tn.step(function(p, a) return loss(p.w * a) end, { w = tn.tensor({ 1.0, 1.0 }) },
  { optimizer = "trainer.sgd", rate = 0.001, check_nan = true })
assert(step(tn.tensor({ 2, 3 })) > 0)
fails("operator Log", step, tn.tensor({ -2, 3 }))

-- Matrices of slopes.
local w = tn.tensor({ { 1, 2 }, { 0, -1 }, { 3, 1 } })
local at = tn.tensor({ 0.5, -0.25 })
local function layer(v) return tn.matmul(w, v * v) end
for name, jacobian in pairs({ jacrev = tn.jacrev, jacfwd = tn.jacfwd }) do
  near(jacobian(layer)(at), { 1, -1, 0, 0.5, 3, -0.5 }, name)
  near(jacobian(function(_, v) return layer(v) end, 1)(2.0, at), { 1, -1, 0, 0.5, 3, -0.5 }, name .. " by the second")
end
near(tn.hessian(function(v) return (v ^ 3):sum() + v[1] * v[2] end)(at), { 3, 1, 1, -1.5 }, "hessian")
fails("jacrev: result: expected floats", tn.jacrev(function(v) return tn.less(v, 1) end), at)

-- What is no float does not move.
local _, _, moved, still = tn.jvp(function(v) return v * v, tn.greater(v, 0) end, { at }, { at })
near(moved, { 0.5, 0.125 }, "tangents")
assert(still:dtype() == "bool" and tn.count_nonzero(still)[1] == 0)

-- Weights of results and directions of arguments have their shapes.
do
  local _, pull = tn.vjp(function(a) return a * 2 end, x)
  fails("vjp: cotangents: expected the shape [3], got [5]", pull, tn.zeros({ 5 }))
  fails("vjp: cotangents: expected the shape [3], got []", pull, 1)
  fails("jvp: tangents: expected the shape [3], got [2]", tn.jvp, function(a) return a * 2 end, { x }, { tn.zeros({ 2 }) })
  fails("jvp: tangents: expected the shape [3], got []", tn.jvp, function(a) return a * 2 end, { x }, { 1.0 })
end

-- Outside of a trace the function is traced on each call: what it uses may have changed.
do
  local factor = 1
  local function f(a) return a * factor end
  assert((tn.vjp(f, x))[1] == x[1] and tn.jvp(f, { x }, { x })[1] == x[1])
  factor = 3
  assert((tn.vjp(f, x))[1] == 3 * x[1] and tn.jvp(f, { x }, { x })[1] == 3 * x[1])
end

-- As many axes as arguments and results; options have the names of tn.jit's.
fails("vmap: in_axes: expected 2 axes in a list, one for each, or false; got none for number 2", tn.vmap(tn.multiply, { 0 }), x, y)
fails("vmap: in_axes: expected 1 axes in a list, got one more for 2", tn.vmap(tn.exp, { 0, 0 }), x)
fails("vmap: out_axes: expected 2 axes in a list", tn.vmap(function(a) return a, a end, 0, { 0 }), x)
fails("has_aux", tn.vmap(tn.exp, 0, 0, { has_aux = true }), x)
