-- SPDX-License-Identifier: Apache-2.0
-- What chain.lua says about a model: bytes of its file, accuracy of parts of the held-out data, times in turns; means
-- with 95 % intervals.
local tn = require "tenon"
local figures = {}

-- Student's t, two-sided 95 %, for so many values, rounded up.
local function t95(count)
  for _, row in ipairs { { 20, 2.10 }, { 15, 2.15 }, { 10, 2.27 }, { 7, 2.45 }, { 5, 2.78 }, { 3, 4.31 } } do
    if count >= row[1] then return row[2] end
  end
  return 12.71
end

-- The mean of some numbers and the half width of its interval; of one number that is 0.
function figures.mean(values)
  local sum, squares = 0, 0
  for _, value in ipairs(values) do sum = sum + value end
  local mean = sum / #values
  for _, value in ipairs(values) do squares = squares + (value - mean) ^ 2 end
  return mean, #values > 1 and t95(#values) * (squares / (#values - 1) / #values) ^ 0.5 or 0
end

function figures.bytes(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:seek("end")
end

-- Percent of right answers in each of `count` parts of the samples from `first` to `last`.
function figures.accuracies(model, data, first, last, count, run)
  local parts, size = {}, (last - first + 1) // count
  for i = 1, count do
    local part = data:part(first + (i - 1) * size, i < count and size or last - first + 1 - (count - 1) * size)
    parts[i] = 100 * tn.evaluate(model, part, { metric = "accuracy", batch = 50, threads = run.threads }).accuracy
  end
  return parts
end

-- How much better the second is, part by part: points and the half width.
function figures.points(before, after)
  local gains = {}
  for i, value in ipairs(after) do gains[i] = value - before[i] end
  return figures.mean(gains)
end

-- Batch 1, in turns: how many times faster the second is with the ends of the interval, and its median in ms.
function figures.faster(before, after, run)
  local logs, medians = {}, {}
  local function once(model) return tn.bench(model, { threads = run.threads, seconds = run.seconds }).median_ms end
  for i = 1, run.turns do
    local first = once(before)
    medians[i] = once(after)
    logs[i] = math.log(first / medians[i])
  end
  table.sort(medians)
  local mean, half = figures.mean(logs)
  return { times = math.exp(mean), low = math.exp(mean - half), high = math.exp(mean + half), ms = medians[(#medians + 1) // 2] }
end

local kLeast = { smaller = 1.05, faster = 1.02 } -- times: less does not pay, and is what the noise of measuring makes
local kSlower = 0.98 -- times as fast: so much slower costs more than bytes are worth

-- What a row of the table (smaller, faster, better) pays in; or nil, and why it is left out. may_not_slow: bytes do not pay
-- for time, as of a layer that is smaller in shape alone; of a stage that changes how numbers are stored they do.
function figures.payment(row, may_not_slow)
  if may_not_slow and row.faster.high < kSlower and not row.better then return nil, "slower" end
  local paid = {}
  if row.smaller > kLeast.smaller then paid[#paid + 1] = "smaller" end
  if row.faster.low > kLeast.faster then paid[#paid + 1] = "faster" end
  if row.better then paid[#paid + 1] = "better" end
  if #paid == 0 then return nil, "neither smaller nor faster nor better" end
  return table.concat(paid, ", ")
end

return figures
