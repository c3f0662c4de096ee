-- SPDX-License-Identifier: Apache-2.0
-- A student that learns from a teacher.
local tn = require "tenon"

local file = assert(io.open("distilling_test.csv", "w"))
file:write("a,b,c,d,label\n")
for i = 0, 199 do
  local row = {}
  for k = 1, 4 do row[k] = (i * (37 + 16 * k) % 101) / 50 - 1 end
  local label = (row[1] * row[2] > 0 and 1 or 0) + (row[3] > 0 and 2 or 0)
  file:write(table.concat(row, ","), ",", label, "\n")
end
file:close()
local rows = tn.data.csv { path = "distilling_test.csv", label = "label" }

local function network(width, seed)
  local w1, w2 = tn.normal({ 4, width }, 0.7, seed), tn.normal({ width, 4 }, 0.3, seed + 1)
  local b1, b2 = tn.zeros({ width }), tn.zeros({ 4 })
  return tn.model(function(x) return tn.linear(tn.relu(tn.linear(x, w1, b1)), w2, b2) end,
    { { name = "x", shape = { "n", 4 } } })
end
local function train(model, loss, epochs, rate)
  return tn.train(model, { data = rows, batch = 40, epochs = epochs, loss = loss,
                           optimizer = tn.optim.adamw { lr = rate } })
end
local function distance(a, b) -- of the answers to eight points
  local x = tn.normal({ 8, 4 }, 1, 7)
  local p, q = a:compile()(x):values(), b:compile()(x):values()
  local largest = 0
  for i, v in ipairs(p) do largest = math.max(largest, math.abs(v - q[i])) end
  return largest
end

local teacher = train(network(32, 1), tn.loss.cross_entropy {}, 40, 0.01)
assert(tn.evaluate(teacher, rows, { metric = "accuracy" }).accuracy > 0.9)

-- Answers alone pull the student towards the teacher.
local answers = tn.loss.distill { teacher = teacher, alpha = 1, temperature = 2 }
local student, report = train(network(16, 5), answers, 20, 0.01)
local losses = {}
for i, record in ipairs(report.history) do losses[i] = record.loss end
assert(losses[20] < losses[1] / 4, losses[1] .. " fell to " .. losses[20])
assert(distance(student, teacher) < distance(network(16, 5), teacher))
assert(tn.evaluate(student, rows, { metric = "accuracy" }).accuracy > 0.7)

-- A student that is its teacher: no loss and no gradient, so that no step moves it.
local same, summary = tn.train(teacher, { data = rows, batch = 40, loss = answers, rate = 1, optimizer = tn.optim.sgd { lr = 1 } })
assert(math.abs(summary.history[1].loss) < 1e-6, summary.history[1].loss)
assert(distance(same, teacher) < 1e-4, distance(same, teacher))

-- Without a teacher it is what the student was before it was made smaller.
local pruned = teacher:apply("pruner.structured", { ratio = 0.5 })
local given = train(pruned, answers, 2, 0.01)
local default = train(pruned, tn.loss.distill { alpha = 1, temperature = 2 }, 2, 0.01)
assert(distance(given, default) == 0)
local ok, message = pcall(train, network(16, 5), tn.loss.distill {}, 1, 0.01)
assert(not ok and message:find("the student has no original", 1, true), message)
