-- SPDX-License-Identifier: Apache-2.0
-- Functions traced to graphs: values, the cache, and what is refused.
local tn, expect = require "tenon", require "expect"

local near, fails = expect.near(1e-5), expect.fails

local x = tn.tensor({ { 1, 2 }, { 3, 5 } })

-- The founding function: x.T @ (x - x.mean(0)).
local f = tn.jit(function(a) return tn.matmul(a.T, a - a:mean(0)) end)
near(f(x), { 2, 3, 3, 4.5 }, "f")
near(f(x), { 2, 3, 3, 4.5 }, "f again")
f(tn.tensor({ { 1, 2, 3 } }))
local stats = f:stats()
assert(stats.compiles == 2 and stats.hits == 1 and stats.entries == 2)

near(tn.jit(function(a) return 2 * a ^ 2 / 4 - (-a) % 3 end)(x), { -1.5, 1, 4.5, 11.5 }, "operators")
near(tn.jit(function(a) return a[2] + a:slice(1, 2):reshape({ -1 }) end)(x), { 5, 10 }, "positions from 1")
near(tn.jit(function(a) return tn.where(tn.less(a, 2.5), a, 0) end)(x), { 1, 2, 0, 0 }, "where")
near(tn.jit(function(t) return { sum = t.a + t.b, parts = { t.a } } end)({ a = x, b = 1 }).sum, { 2, 3, 4, 6 }, "tables")
-- Any operator by its name, in a trace and outside.
near(tn.op("LeakyRelu", tn.tensor({ -2, 4 }), { alpha = 0.5 }), { -1, 4 }, "op")
near(tn.jit(function(a) return tn.op("Clip", { a, false, 1.5 }) end)(tn.tensor({ 1, 2 })), { 1, 1.5 }, "op in a trace")
near(tn.jit(function(a) return tn.softmax(a):sum(-1) end)(x), { 1, 1 }, "softmax")
near(tn.jit(function(i) return tn.one_hot(i, 3) end)(tn.tensor({ 2, 0 }, "int64")), { 0, 0, 1, 1, 0, 0 }, "one_hot")

-- What is no function is refused where it is given, not where it would be called.
for _, name in ipairs({ "jit", "grad", "value_and_grad", "vmap", "jacrev", "jacfwd" }) do
  fails("tn%." .. name .. ": expected a function or a model, got", tn[name], 5)
  fails("tn%." .. name .. ": expected a function or a model, got", tn[name], "f")
end

fails("jit_test.lua:%d+:.*use tn.less", tn.jit(function(a) if a < 1 then return a end end), x)
fails("use tn.less_equal", tn.jit(function(a) return a <= 1 end), x)
fails("use tn.equal", tn.jit(function(a) return a == a + 1 end), x)
fails("expect.lua:%d+:.*axis: expected one of %-2 to 1, got 2", tn.jit(function(a) return a:sum(2) end), x)
fails("counted from 1", tn.jit(function(a) return a[3] end), x)
fails("do not change", tn.jit(function(a) a.b = 1 end), x)
local kept
tn.jit(function(a) kept = a; return a end)(x)
fails("outlived", tn.jit(function(a) return a + kept end), x)

-- One plan for any size of the axis.
local any = tn.jit(function(a, b) return a * 2 + b end, { batch_axes = { 0, false } })
near(any(tn.tensor({ 1, 2 }), 1), { 3, 5 }, "batch_axes")
near(any(tn.tensor({ 1, 2, 3 }), 1), { 3, 5, 7 }, "batch_axes, another size")
assert(any:stats().compiles == 1 and any:stats().hits == 1)
local few = tn.jit(function(a) return a + 1 end, { cache_size = 2 })
for n = 1, 5 do few(tn.zeros({ n })) end
assert(few:stats().compiles == 5 and few:stats().entries <= 2)

-- Outside of a trace each call is a graph of its own.
near(tn.exp(tn.tensor({ 0, 1 })), { 1, math.exp(1) }, "exp of a tensor")
near(tn.log(tn.tensor({ 1, math.exp(2) })), { 0, 2 }, "the logarithm")
tn.log.debug("jit_test: and a line of the log, by the same name")
near(tn.exp(0.0), { 1 }, "exp of a number")
near(tn.sum(x, 0), { 4, 7 }, "sum of a tensor")
near(tn.concat({ tn.tensor({ 1 }), tn.tensor({ 2 }) }), { 1, 2 }, "concat of tensors")
near((x + 1) * x / 2 - x % 2, { 0, 3, 5, 14 }, "operators of tensors")
near(2 ^ -x // 0.25, { 2, 1, 0, 0 }, "operators of numbers and tensors")
fails("expect.lua:%d+:.*axis: expected", tn.sum, x, 2)

-- A model of its own, for any number of rows.
local double = tn.model(function(a) return tn.linear(a, tn.tensor({ { 2 }, { 0 } })) end, { { name = "a", shape = { "N", 2 } } })
near(double:compile()({ a = x }), { 2, 6 }, "tn.model")
near(double:compile()({ a = x:rows(1, 1) }), { 2 }, "tn.model, one row")
fails("input 1: expected { name", tn.model, function(a) return a end, { { 2, 3 } })

-- The plugin autodiff may be missing from a build.
local has_gradients = false
for _, one in ipairs(tn.components("tenon.pass/1")) do has_gradients = has_gradients or one.id == "autodiff.value_and_grad" end
if has_gradients then
  local y = tn.tensor({ 5, 13 })
  local function loss(params, input, wanted)
    return tn.square(tn.matmul(input, params.w) + params.b - wanted):mean()
  end
  local step = tn.step(loss, { w = tn.zeros({ 2 }), b = tn.tensor(0) }, { optimizer = "trainer.adamw", rate = 0.1 })
  local first, last = step(x, y), nil
  for _ = 1, 100 do last = step(x, y) end
  assert(last < first / 50, ("loss: from %g to %g"):format(first, last))
  step(x:rows(1, 1), y:rows(1, 1))
  assert(#step:parameters().w == 2 and step.count == 102)

  -- A run that fails is no step.
  local picked = tn.step(function(w, at) return tn.take(w, at):sum() end, tn.tensor({ 1, 2, 3 }), { rate = 0.5 })
  picked(tn.tensor({ 0, 2 }, "int64"))
  fails("", picked, tn.tensor({ 0, 7 }, "int64"))
  assert(picked.count == 1)
  near(picked:parameters(), { 0.5, 2, 2.5 }, "parameters behind a run that failed")
  -- Batches of another shape go on with the same states.
  picked(tn.tensor({ 1 }, "int64"))
  picked(tn.tensor({ 0, 2 }, "int64"))
  near(picked:parameters(), { 0, 1.5, 2 }, "parameters behind batches of two shapes")
end

-- A number beside float64 keeps all its digits.
do
  local full = tn.tensor({ 1, 1 }, "float64")
  local scaled = tn.jit(function(v, factor) return v * factor end)
  assert(scaled(full, 0.1)[1] == 0.1 and scaled(full, 0.1):dtype() == "float64")
  assert(scaled(tn.tensor({ 1, 1 }), 0.1):dtype() == "float32")
  assert((full * tn.asarray(0.1, "float64"))[1] == 0.1)

  -- So do floats that a loop begins with.
  local double = tn.tensor(1, "float64")
  local function first(x) return type(x) == "number" and x or x[1] end
  assert(first(tn.jit(function(v) return tn.fori_loop(0, 1, function(_, s) return s * v end, 0.1) end)(double)) == 0.1)
  assert(first(tn.jit(function(v)
    return tn.while_loop(function(s) return tn.greater(s, 1) end, function(s) return s * v end, 0.1)
  end)(double)) == 0.1)
  local stacked = tn.jit(function(v)
    local _, all = tn.scan(function(s, x) return s * x, s end, 0.1, v)
    return all
  end)(full)
  assert(stacked[2] == 0.1 and stacked:dtype() == "float64")
  local single = tn.jit(function(v)
    return tn.fori_loop(0, 1, function(_, s) return s + v end, 0.5)
  end)(tn.tensor(1))
  assert(first(single) == 1.5)
end

-- A step of float64: numbers of the loss, the rate and what a schedule drives keep their digits.
if has_gradients then
  local point = tn.tensor({ 1, 2, 3 }, "float64")
  for _, settings in ipairs({ {}, { factor = 0.3 } }) do
    local factor = settings.factor or 0.7
    local step = tn.step(function(w, v, scale) return (w * v * scale):sum() * tn.setting("factor", 0.7) end,
      tn.tensor({ 0, 0, 0 }, "float64"), { optimizer = "trainer.sgd", rate = 0.1, settings = settings })
    assert(step(point, 0.3) == 0)
    local made = step:parameters()
    assert(made:dtype() == "float64")
    for i = 1, 3 do
      local wanted = -0.1 * factor * i * 0.3
      assert(math.abs(made[i] - wanted) < 1e-15, ("%.17g instead of %.17g"):format(made[i], wanted))
    end
  end
end

-- A traced function may yield: meanwhile others are traced, or run, as if it were not there.
do
  local function slow(factor) return tn.jit(function(v) local y = v * factor; coroutine.yield(y); return y + 1 end) end
  local doubled, tenfold = slow(2), slow(10)
  local a = coroutine.create(function() return doubled(tn.tensor({ 1, 2 })) end)
  local b = coroutine.create(function() return tenfold(tn.tensor({ 5, 6 })) end)
  local ok, pending = coroutine.resume(a)
  assert(ok and coroutine.resume(b))
  assert(tn.relu(tn.tensor({ -1, 3 }))[2] == 3)
  fails("outlived its function", function() return tn.jit(function(v) return v + pending end)(tn.tensor({ 1, 2 })) end)
  local _, first = coroutine.resume(a)
  local _, second = coroutine.resume(b)
  assert(first[1] == 3 and first[2] == 5 and second[1] == 51 and second[2] == 61)
  local inside = tn.jit(function(v) -- a coroutine of a traced function adds to its graph
    local next_one = coroutine.wrap(function() coroutine.yield(v * 2); coroutine.yield(v * 3) end)
    return next_one() + next_one()
  end)
  assert(inside(tn.tensor({ 7 }))[1] == 35)
end

-- A graph is kept for a structure: names with dots are no tables in tables, and "1" is not the first of a list.
local same = tn.jit(function(t) return t end)
near(same({ a = { b = x } }).a.b, { 1, 2, 3, 5 }, "tables in a table")
near(same({ ["a.b"] = x })["a.b"], { 1, 2, 3, 5 }, "a name with a dot")
near(same({ x })[1], { 1, 2, 3, 5 }, "a list")
near(same({ ["1"] = x })["1"], { 1, 2, 3, 5 }, "a name that is a number")

-- What would have no effect, or could not be meant, is refused.
for _, size in ipairs({ 0, -1, 1.5, "a" }) do
  fails("cache_size: expected a whole number from 1, got " .. size, tn.jit, tn.exp, { cache_size = size })
end
fails("batch_axes: expected axes from 0, or false, got -1", tn.jit, tn.exp, { batch_axes = -1 })
fails("batch_axes: expected axes from 0, or false, got a", tn.jit, tn.exp, { batch_axes = { 0, "a" } })
fails("tn.model: input 1: expected one of name, shape, dtype, got 'dtpye'", function()
  tn.model(function(a) return a end, { { name = "x", shape = { 2 }, dtpye = "int64" } })
end)

-- nil stays where it is among arguments and results.
local nothing, something = tn.jit(function(a, b) return a, b end)(nil, x)
assert(nothing == nil)
near(something, { 1, 2, 3, 5 }, "the second result")
near(select(2, tn.value_and_grad(function(a, b) return b and b:sum() or a:sum() end)(x)), { 1, 1, 1, 1 }, "an argument that is left out")

-- Attributes that are lists: numbers with fractions, texts, nothing.
near(tn.op("Constant", {}, { value_floats = { 0.5, 1.5 } }), { 0.5, 1.5 }, "numbers with fractions")
near(tn.op("Constant", {}, { value_ints = { 3, 1 << 40 } }), { 3, 1 << 40 }, "whole numbers")
near(tn.op("Constant", {}, { value_ints = {} }), {}, "nothing")
local leaky = tn.op("RNN", { tn.ones({ 2, 1, 1 }), tn.full({ 1, 1, 1 }, -1.0), tn.zeros({ 1, 1, 1 }) },
  { hidden_size = 1, activations = { "LeakyRelu" }, activation_alpha = { 0.25 } }, 2)
near(leaky[1], { -0.25, -0.25 }, "texts and numbers")
fails("attribute value_floats: expected numbers alone or texts alone in a list", tn.op, "Constant", {}, { value_floats = { 1, "a" } })
