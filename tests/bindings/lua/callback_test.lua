-- SPDX-License-Identifier: Apache-2.0
-- Functions that are notified of a training.
local tn, fails = require "tenon", require("expect").fails

local file = assert(io.open("callback_test.csv", "w"))
file:write("a,b,label\n")
for i = 0, 39 do
  local a, b = i * 37 % 101, i * 53 % 103
  file:write(a / 101, ",", b / 103, ",", a > b and 1 or 0, "\n")
end
file:close()
local rows = tn.data.csv { path = "callback_test.csv", label = "label" }
-- A data set of any plugin can be had by the last word of its id.
assert(#tn.data.mixup { data = rows, classes = 2 } == #rows)
fails("datasets: expected one of", function() return tn.data.mixupp end)
local w = tn.zeros({ 2, 2 })
local model = tn.model(function(x) return tn.matmul(x, w) end, { { name = "x", shape = { "n", 2 } } })
local function train(callbacks)
  return tn.train(model, { data = rows, batch = 10, epochs = 3, rate = 0.5, callbacks = callbacks })
end

-- A function is notified of each epoch: what the history keeps, and the model.
local records, models = {}, {}
local trained, report = train(function(record, now)
  records[#records + 1], models[#models + 1] = record, now
end)
assert(#records == 3 and records[3].epoch == 3 and records[3].loss == report.history[3].loss)
assert(report.stopped_by == nil)
assert(models[3]:text() == trained:text() and models[1]:text() ~= trained:text())

-- An object has steps too; true ends the run, and all are notified before it ends.
local points, last = {}, nil
trained, report = train {
  tn.callback { step = function(point)
    points[#points + 1] = point
    return point.step == 6
  end },
  function(record) last = record end,
}
assert(#points == 6 and points[6].epoch == 2 and points[6].loss > 0 and points[6].skipped == false)
assert(report.steps == 6 and report.stopped_by == "lua.function" and last.epoch == 2)
assert(#train {}:text() > 0)

-- Others' callbacks go among them; a sandboxed script writes where it may.
train { tn.callback.snapshot { path = "callback_test_{epoch}.onnx", every = 2 }, function() end }
assert(tn.load("callback_test_2.onnx"):inspect().parameters == 4)
fails("no such file", function() tn.load("callback_test_3.onnx") end)
fails("--allow", function() tn.callback.snapshot { path = "/tenon/elsewhere.onnx" } end)

fails("stopped after step 4 (epoch 1)", function() train(function() error("no idea") end) end)
fails("callback_test.lua", function() train(function() error("no idea") end) end)
fails("no idea", function() train(function() error("no idea") end) end)
fails("expected true to end the run, or nothing, got a string", function() train(function() return "stop" end) end)
fails("expected functions step and epoch, got neither", function() tn.callback {} end)
fails("got epochs, a function", function() tn.callback { epochs = print } end)
fails("expected one of both, curves, lines, snapshot, tensorboard", function() return tn.callback.snapshots end)
fails("expected functions, callbacks or ids, got a number", function() train { 3 } end)

-- Functions by name are no list of callbacks.
fails("option callbacks: expected a list, got a table with the key 'step'; tn.callback{step = ..., epoch = ...} makes a callback",
  train, { step = function() end })
