-- SPDX-License-Identifier: Apache-2.0
-- Third-party plugins in one pipeline: a model with their operators, their observer, their
-- schedule, their score. Needs: --set model=FILE data=FILE
local tn = require "tenon"

local model = tn.load(tn.args.model)
local data = tn.data.npz(tn.args.data)
local x = data:batch(1, 4).x
local before = model:compile { backend = "reference" } (x)

-- Operators: the model's own nodes are theirs; the int8 model keeps them.
local small, report = model:apply("quantizer.static", { data = data, observer = "com.example.sigma" })
local after = small:compile { backend = "reference" } (x)
local worst = 0
for i = 1, #before do worst = math.max(worst, math.abs(before[i] - after[i])) end

-- A schedule: alone, and inside one of ours.
local wave = tn.schedule["com.example.wave"] { low = 1, high = 3, half = 4 }
local halved = tn.schedule.product { first = wave, second = tn.schedule.constant { base = 0.5 } }
local steps = {}
for step = 0, 8 do steps[#steps + 1] = halved(step) end

-- A score, once the pruner is installed.
local removed
for _, one in ipairs(tn.components("tenon.pass/1")) do
  if one.id == "pruner.structured" then
    local _, pruning = model:apply("pruner.structured", { ratio = 0.5, importance = "com.example.peak" })
    removed = pruning.groups[1].removed
  end
end

return { worst = worst, steps = steps, removed = removed, report = report,
         operators = small:inspect().operators }
