
-- Mixed precision: as few layers in float as a target allows.

-- The signal to noise in dB at the worst output of a model made of another.
local function snr_of(args, whole, model, data)
  return tn.compare(whole, model, data, { limit = args.limit or 64, layers = false, mask = args.mask }).snr_db or -math.huge
end

-- What a model is measured by, and what it must come to: the signal to noise of its worst output, how much a metric falls, or
-- both, one after the other.
local function targets_of(args, whole, data)
  local targets = {}
  if args.max_drop then
    local metric = args.metric or "accuracy"
    local asked = { metric = metric, against = whole }
    local was = tn.evaluate(whole, data, asked)
    local sign = was.higher_is_better and 1 or -1
    targets[1] = {
      name = "max_drop", unit = metric .. " lost",
      measure = function(model) return -(was.value - tn.evaluate(model, data, asked).value) * sign end,
      least = -args.max_drop, text = function(found) return string.format("%.4f", -found) end, wanted = string.format("%g", args.max_drop),
    }
  end
  if args.min_snr then
    targets[#targets + 1] = {
      name = "min_snr", unit = "dB",
      measure = function(model) return snr_of(args, whole, model, data) end,
      least = args.min_snr, text = function(found) return string.format("%.1f dB", found) end, wanted = string.format("%g dB", args.min_snr),
    }
  end
  return targets
end

-- The smallest number of layers from the front of `ranked` that have to stay in float, found by halving: `measure(n)` is what is
-- left with the first n of them in float, and more of them are taken to leave no less. Returns that number, what is left and how
-- often was measured; nil and the best that was found where all but one do not do.
local function fewest(measure, count, least)
  local found, evaluations = {}, 0
  local function at(n)
    if not found[n] then found[n], evaluations = measure(n), evaluations + 1 end
    return found[n]
  end
  if at(0) >= least then return 0, at(0), evaluations end
  if count == 0 or at(count) < least then
    local best = count
    if at(0) > at(count) then best = 0 end
    return nil, at(best), evaluations, best
  end
  local low, high = 0, count -- low is too few, high is enough
  while high - low > 1 do
    local middle = (low + high) // 2
    if at(middle) >= least then high = middle else low = middle end
  end
  return high, at(high), evaluations
end

-- A function of a node's name: a pattern that means this node of the model. What is special in patterns may be any letter, and a
-- name that is an operator's as well would mean all nodes of that operator, so it stands behind its scope.
local function patterns_for(model)
  local operators = {}
  for _, node in ipairs(model:inspect().nodes) do operators[node.op] = true end
  return function(name)
    local pattern = name:gsub("[%[%]%*%?]", "?")
    return operators[name] and "*/" .. pattern or pattern
  end
end

-- The fewest layers in float that reach the targets of `args` on `data`: { skip = patterns, layers = { node, op, why }, evaluations,
-- of, found }. make(skip) gives the model without them, sensitivity() the rows of quantizer.sensitivity. At least one layer
-- that computes stays in 8 bits; where that is too little it is an error that says what the best came to, and what limits it.
local function mixed_precision(name, args, whole, data, make, sensitivity)
  local rows, last
  local pattern_of = patterns_for(whole)
  local function first(n)
    local skip = native.list()
    for i = 1, n do skip[i] = pattern_of(rows[i].node) end
    return skip
  end
  local function ranked()
    rows, last = {}, 0
    for _, row in ipairs(sensitivity()) do -- what joins is left in float with what it joins
      if row.role ~= "joiner" and row.noise > 0 then rows[#rows + 1] = row end
    end
    for i, row in ipairs(rows) do
      if row.role == "compute" then last = i - 1 end
    end
    return last
  end
  local function reached(target)
    local function measure(n) return target.measure(make(first(n))) end
    local plain = measure(0)
    if plain >= target.least then return 0, plain, 1 end
    local n, found, evaluations, best = fewest(function(count) return count == 0 and plain or measure(count) end, ranked(), target.least)
    if n then return n, found, evaluations end
    local limit = rows[best + 1]
    error(string.format("recipe %s: option %s: expected %s, the best that was found is %s with %d of %d layers in float%s; nothing was "
      .. "written", name, target.name, target.wanted, target.text(found), best, #rows,
      limit and string.format(", limited by %s (%s, %.1f dB alone)", limit.node, limit.op, limit.snr_db) or ""), 0)
  end
  local used, evaluations, found, target = -1, 0, nil, nil
  for _, one in ipairs(targets_of(args, whole, data)) do
    local n, left, count = reached(one)
    evaluations = evaluations + count
    if n > used then used, found, target = n, left, one end
  end
  if used == 0 then return { skip = native.list(), layers = native.list(), evaluations = evaluations, found = found } end
  local layers = native.list()
  for i = 1, used do
    local row = rows[i]
    layers[i] = { node = row.node, op = row.op, snr_db = row.snr_db, weights_snr_db = row.weights_snr_db,
      activations_snr_db = row.activations_snr_db, why = row.weights_snr_db < row.activations_snr_db and "its weights" or "what it reads" }
  end
  if not args.json then
    print(string.format("%d of %d layers stay in float for %s of %s (%s found, %d evaluations):", used, #rows, target.name, target.wanted,
      target.text(found), evaluations))
    tn.print_table(layers, { "node", "op", "weights_snr_db", "activations_snr_db", "why" })
  end
  return { skip = first(used), layers = layers, evaluations = evaluations, of = #rows, found = found }
end
