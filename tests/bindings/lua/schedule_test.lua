-- SPDX-License-Identifier: Apache-2.0
-- Schedules by name, composed, and as functions of the script.
local tn, fails = require "tenon", require("expect").fails

local function near(a, b) assert(math.abs(a - b) < 1e-12, a .. " is not " .. b) end

local cosine = tn.schedule.cosine { base = 1e-3, warmup = 100 }
near(cosine(0, 1100), 1e-5)
near(cosine(99, 1100), 1e-3)
near(cosine(600, 1100), 0.5e-3)
near(cosine(1100, 1100), 0)
assert(tostring(cosine) == "tenon.schedule(scheduler.cosine)")
assert(tn.schedule["scheduler.step"] { every = 2, gamma = 0.5 }:value(5) == 0.25)

-- A function is a schedule, alone and within others; it may call schedules itself.
local wave = tn.schedule(function(step, steps) return step + (steps or 0) end)
assert(wave(3) == 3 and wave(3, 10) == 13)
local both = tn.schedule.product {
  first = wave,
  second = function(step) return tn.schedule.linear { from = 0, to = 2, steps = 10 } (step) end,
}
near(both(5), 5 * 1)
local phases = tn.schedule.sequence { first = wave, second = cosine, at = 4 }
assert(phases(3) == 7)
near(phases(4 + 100, 4 + 1100), 1e-3)
wave, both = nil, nil
collectgarbage()
collectgarbage()
assert(phases(2) == 6, "a part is kept while it is used")
assert(coroutine.wrap(function() return phases(1) end)() == 5)

fails("option steps: expected how many steps", function() cosine(500) end)
fails("expected one of", function() return tn.schedule.cosin end)
fails("did you mean 'base'", function() tn.schedule.cosine { bas = 1 } end)
fails("expected a step from 0 on, got -1", function() cosine(-1, 10) end)
fails("expected a whole number", function() cosine(0.5) end)
fails("expected a function", function() tn.schedule(3) end)
fails("schedule_test.lua", function() tn.schedule(function() error("no idea") end)(1) end)
fails("no idea", function() tn.schedule(function() error("no idea") end)(1) end)
fails("step 1: expected a finite number, got", function() tn.schedule(function() return 0 / 0 end)(1) end)
fails("got a string", function() tn.schedule(function() return "1" end)(1) end)
fails("yield", function() tn.schedule(function() coroutine.yield(1) end)(1) end)
fails("lua.function", function()
  tn.schedule.product { first = cosine, second = function() error("within") end } (1, 2000)
end)
