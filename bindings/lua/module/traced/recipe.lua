
local function component_options(id)
  for _, one in ipairs(tn.components()) do
    if one.id == id then return (one.schema or {}).properties or {} end
  end
  fail("tn.recipe: component ", id, " is not installed")
end

-- What any recipe may be asked that compares models.
local judge_options = {
  limit = { type = "integer", description = "samples of --data that models are compared on (64)" },
  min_snr = { type = "number", description = "least signal-to-noise ratio in dB; below it nothing is written" },
  max_drop = { type = "number", description = "largest drop of the metric; beyond it nothing is written" },
  metric = { type = "string", description = "metric of max_drop (accuracy)" },
  mask = { type = "string", description = "input of the model that is 0 at padding, such as attention_mask: positions there do not count" },
  metadata = { type = "boolean", description = "keep what an exporter has noted at nodes, in files of ONNX (false)" },
}

-- What the values of a type of option are, as messages say it.
local kinds = {
  number = { "a number", function(value) return type(value) == "number" end },
  integer = { "a whole number from 0", function(value) return type(value) == "number" and value >= 0 and value % 1 == 0 end },
  boolean = { "true or false", function(value) return type(value) == "boolean" end },
  string = { "a text", function(value) return type(value) == "string" end },
}

local function refuse_kind(recipe, key, option, value)
  local kind = kinds[option.type]
  if not kind or kind[2](value) then return end
  local got = type(value) == "string" and "'" .. value .. "'" or type(value) == "table" and "a list or an object" or tostring(value)
  error(string.format("recipe %s: option %s: expected %s, got %s", recipe, key, kind[1], got), 0)
end

-- The layers that lose most, which are named in a warning.
local function weakest_of(compared, before)
  local weakest, quoted, pattern_of = native.list(), {}, patterns_for(before)
  for _, row in ipairs(compared.layers) do -- the most damaging first
    if #weakest < 3 and row.node ~= "" and row.op ~= "Softmax" and not row.trouble and row.damage > 0 then
      weakest[#weakest + 1] = { node = row.node, op = row.op, snr_db = row.snr_db, damage = row.damage }
      quoted[#quoted + 1] = '"' .. pattern_of(row.node) .. '"'
    end
  end
  return weakest, quoted
end

local function advice_of(spec, args, quoted)
  if #quoted == 0 then return spec.cure or "" end
  local text = "most is lost in " .. table.concat(quoted, ", ")
  if spec.leave then
    text = text .. string.format(": leave them as they are with --set '%s=[%s]'", spec.leave, table.concat(quoted, ","))
  end
  if spec.cure then text = text .. ", or " .. spec.cure end
  return text .. (args.observer and ", or try without --set observer=" .. tostring(args.observer) or "")
end

local function refuse_drop(spec, args, metric, drop, advice)
  if drop <= args.max_drop then return end
  error(string.format("recipe %s: option max_drop: expected %s to get worse by %g at most, got %.4f; nothing was written; %s", spec.name,
    metric, args.max_drop, drop, advice), 0)
end

local low_snr = 10 -- dB: noise of a tenth of the signal's power, which is warned of

-- The metric of a model; one that compares outputs compares them with the model before.
local function measured(metric, model, before, data)
  return tn.evaluate(model, data, { metric = metric, against = before })
end

-- How far `after` is from `before`: the signal to noise of the worst output, in front of a last Softmax. Raises an error where
-- that or the metric falls below what was asked for, and warns of little.
local function judged(spec, args, before, after, data)
  for _, key in ipairs({ "min_snr", "max_drop" }) do
    if args[key] and not data then
      error(("recipe %s: option %s: expected samples to measure it on, got no --data"):format(spec.name, key), 0)
    end
  end
  if not data then return {} end
  local compared = tn.compare(before, after, data, { limit = args.limit or 64, layers = false, mask = args.mask })
  local is_asked = args.min_snr and not ((compared.snr_db or -1e9) >= args.min_snr) or args.max_drop
  if is_asked or (compared.snr_db or 1e9) < low_snr then -- only then somebody asks which layers lose it
    compared = tn.compare(before, after, data, { limit = args.limit or 64, mask = args.mask })
  end
  local weakest, quoted = weakest_of(compared, before)
  local result = { snr_db = compared.snr_db, outputs = compared.outputs, weakest = weakest, judged_on = compared.samples }
  local advice = advice_of(spec, args, quoted)
  if args.min_snr and not ((result.snr_db or -1e9) >= args.min_snr) then
    error(string.format("recipe %s: option min_snr: expected %g dB or more, got %s; nothing was written; %s", spec.name, args.min_snr,
      result.snr_db and string.format("%.1f dB", result.snr_db) or "no output that can be compared", advice), 0)
  end
  if args.max_drop then
    local metric = args.metric or "accuracy"
    local was, is = measured(metric, before, before, data), measured(metric, after, before, data)
    result.drop = (was.value - is.value) * (was.higher_is_better and 1 or -1)
    refuse_drop(spec, args, metric, result.drop, advice)
  end
  if result.snr_db and result.snr_db < low_snr then
    tn.log.warning(string.format("only %.1f dB of signal to noise are left: %s", result.snr_db, advice))
  end
  return result
end

-- The same for a model that was trained, whose numbers are to change: the metric before and after. Raises an error where it falls
-- by more than max_drop, or the signal to noise against the model before is less than an asked min_snr.
local function trained(spec, args, before, after, data, metric)
  local result = args.min_snr and judged(spec, { min_snr = args.min_snr, limit = args.limit, mask = args.mask }, before, after, data) or { judged_on = #data }
  if not metric then return result end
  local was, is = measured(metric, before, before, data), measured(metric, after, before, data)
  result.metric, result.before, result.after = metric, was.value, is.value
  result.drop = (was.value - is.value) * (was.higher_is_better and 1 or -1)
  if args.max_drop then refuse_drop(spec, args, metric, result.drop, spec.cure) end
  return result
end

-- What a model would save beside another: a table of sums, each with the share that goes.
local function saving(args, before, after)
  if args.json then return end
  local was, is, rows = before:inspect(), after:inspect(), {}
  local function add(what, a, b)
    if a and b and a > 0 then rows[#rows + 1] = { what = what, before = a, after = b, saved = string.format("%.1f %%", 100 * (1 - b / a)) } end
  end
  add("MB", before:bytes() / 1e6, after:bytes() / 1e6)
  add("parameters", was.parameters, is.parameters)
  add("MFLOPs", was.flops and was.flops / 1e6, is.flops and is.flops / 1e6)
  add("nodes", #was.nodes, #is.nodes)
  tn.print_table(rows, { "what", "before", "after", "saved" })
end

-- What every recipe returns, and its last line: the sizes of both models, as recipe.save gives them, and what was judged.
local function summed(args, sizes, left, more)
  local result = { output = args.output }
  for _, some in ipairs({ sizes, left, more or {} }) do
    for key, value in pairs(some) do result[key] = value end
  end
  if not args.json then
    local snr = left.snr_db and string.format("; on %d samples: %.1f dB of signal to noise", left.judged_on, left.snr_db) or ""
    print(string.format("%s: %.4g MB -> %.4g MB%s%s", args.output, result.bytes_before / 1e6, result.bytes_after / 1e6, snr,
      left.drop and string.format("; %s %s by %.4g", left.metric or args.metric or "accuracy", left.drop > 0 and "worse" or "better",
        math.abs(left.drop)) or ""))
  end
  return result
end

-- What a quantizer left in float: a line with counts, the names for -v, and for the result. Nothing where the pass reports none.
local function stayed(args, report)
  if type(report) ~= "table" or not report.counts or not report.counts.float then return {} end
  if not args.json then
    print(string.format("quantized: %d nodes; float: %d nodes (-v and --json name them)", report.counts.quantized, report.counts.float))
  end
  local bytes = report.weight_bytes or { all = 0, float = 0 }
  if bytes.float > bytes.all / 2 and not args.skip and not args.only then
    tn.log.warning(string.format("%.3g of %.3g MB of the weights of products stay in float, most in %s: %s (-v and --json name all)",
      bytes.float / 1e6, bytes.all / 1e6, bytes.node, bytes.why))
  end
  for _, node in ipairs(report.float or {}) do
    local is_broken = node.why:find("not finite", 1, true) -- what a Relu behind it may hide
    local say = is_broken and tn.log.warning or tn.log.debug
    if is_broken or not args.json then say("float: " .. node.node .. ": " .. node.why) end
  end
  for _, one in ipairs(report.float_constants or {}) do
    if not args.json then tn.log.debug(string.format("float32: %s of %s, %d bytes", one.value, one.node, one.bytes)) end
  end
  return { quantized = report.counts.quantized, float = report.counts.float, left = report.float, float_constants = report.float_constants }
end

-- Three parts that have nothing in common: to make a model with, to choose by, to judge by; and the first two together, for what
-- is made once more when the choice has been made. A small set is all of them.
local function parts_of(data)
  if #data > 0 and #data < 8 then
    tn.log.warning(string.format("--data has %d sample%s: the model is judged on what it was made with; 8 and more are parted", #data,
      #data == 1 and "" or "s"))
  end
  if #data < 8 then return data, data, data, data end
  local whole, judged = data:split(0.875)
  local made, chosen = whole:split(6 / 7)
  return made, chosen, judged, whole
end

-- Two lists, or single entries, or nothing, as one list.
local function joined(a, b)
  local all = native.list()
  for _, some in ipairs({ a or {}, b or {} }) do
    for _, one in ipairs(type(some) == "table" and some or { some }) do all[#all + 1] = one end
  end
  return all
end

-- An option that names some of these: a list, one name, or none.
local function listed(recipe, given, known)
  local all = joined(given)
  if #all == 1 and all[1] == "none" then return {} end
  for _, one in ipairs(all) do
    local is_known = false
    for _, name in ipairs(known) do is_known = is_known or name == one end
    if not is_known then
      error(string.format("recipe %s: option methods: expected some of %s, or none, got '%s'", recipe, table.concat(known, ", "), tostring(one)), 0)
    end
  end
  return all
end

-- A model without its quantization; one that has none is an error, as the request was meant for another.
local function dequantized(model)
  local floats, report = model:apply("quantizer.dequantize")
  local stay = {}
  for i = 1, math.min(3, #report.left) do stay[i] = report.left[i].node ~= "" and report.left[i].node or report.left[i].op end
  if #stay > 0 then
    error(string.format("option requantize: expected a model that can be one of floats, got nodes that stay quantized: %s%s; their "
      .. "quantization is part of the model's inputs or outputs, or of a form that is not known: start from the float model",
      table.concat(stay, ", "), #report.left > 3 and string.format(" and %d more", #report.left - 3) or ""), 0)
  end
  if report.roundings + report.weights == 0 then
    error("option requantize: expected a quantized model, this one has nothing in 8 bits; leave out --requantize", 0)
  end
  tn.log.info(string.format("in floating point again: %d roundings and %d weights", report.roundings, report.weights))
  return floats
end

local function refuse_unknown(name, args, known)
  for key in pairs(args) do
    if known[key] == nil then
      local names = {}
      for one in pairs(known) do names[#names + 1] = one end
      table.sort(names)
      error("recipe " .. name .. ": option: " .. native.expected_one_of(names, key), 0)
    end
  end
end

-- What a script for `tenon optimize` takes. A recipe writes its model by `save(model)`, which stores tied weights once and gives the sizes; with --dry-run it writes none. spec: name, passes (ids of components whose options it takes, all of them), options (its
-- own: a description each, or { type, description } with a type of number, integer, boolean or string that is checked), leave (the option that leaves nodes as they are) and cure (what helps besides), for warnings; floats (it
-- begins with a float model, for what is quantized already there is --requantize); first and last, passes around that of `convert(id, options)`,
-- which is a whole recipe.
-- An option that is not used is an error, at the latest when the model is saved. Of the result, `options(id, table)` is the table with what was given for that
-- component, `idle(id)` says that the component did nothing with it, `mixed(whole, data, make, sensitivity)` is what mixed.lua says, `joined(a, b)` two lists as one, `patterns(model)` a function that makes a pattern of a node's name, `list()` one of nothing, `methods(given, known)` the
-- list of an option that names some of these; `load()` is the model, `float_model()` that in float32, normalized and folded; `judge(before, after, data)`, `trained(before, after, data, metric)`, `result(sizes, judged, more)` and `parts(data)` are above; with `described`, a table, the script is only asked what it
-- takes and returns that.
function tn.recipe(spec)
  local args = tn.args
  local known, described = {}, {}
  local taken = {}
  for _, id in ipairs(spec.passes) do
    taken[id] = component_options(id)
    for key, option in pairs(taken[id]) do
      if key ~= "data" then known[key] = option.description or "" end
    end
  end
  local own = {}
  if spec.floats then
    own.requantize = { type = "boolean", description = "a quantized model becomes one of floats first: --requantize (false)" }
  end
  local measures = known.metric ~= nil -- without max_drop too
  for _, some in ipairs({ judge_options, spec.options or {} }) do
    for key, option in pairs(some) do own[key] = type(option) == "table" and option or { description = option } end
  end
  for key, option in pairs(own) do known[key] = option.description end
  for key, about in pairs(known) do described[#described + 1] = { option = key, about = about } end
  table.sort(described, function(a, b) return a.option < b.option end)
  local given = {}
  for key, value in pairs(args) do
    if not ({ model = true, output = true, data = true, data_options = true, json = true, describe = true, dry_run = true })[key] then given[key] = value end
  end
  refuse_unknown(spec.name, given, known)
  local used = {}
  for key, option in pairs(own) do
    used[key] = true
    if given[key] ~= nil then refuse_kind(spec.name, key, option, given[key]) end
  end
  for _, key in ipairs({ "limit", "mask" }) do
    if given[key] and not args.data then
      error(("recipe %s: option %s: expected samples to compare models on, got no --data"):format(spec.name, key), 0)
    end
  end
  if given.metric and not given.max_drop and not measures then
    error(("recipe %s: option metric: it is what --max-drop measures, and that is not given"):format(spec.name), 0)
  end
  -- What belongs to a pass that did not run has had no effect, which the user did not mean.
  local function refuse_unused()
    for key in pairs(given) do
      local of = {}
      for _, id in ipairs(spec.passes) do
        if taken[id][key] then of[#of + 1] = id end
      end
      if not used[key] then
        error(string.format("recipe %s: option %s: expected a run of %s, which takes it, got none with the other options; nothing was written",
          spec.name, key, table.concat(of, " or ")), 0)
      end
    end
  end
  local recipe = { described = args.describe and described or nil, parts = parts_of }
  function recipe.options(id, options)
    options = options or {}
    for key in pairs(taken[id] or fail("recipe.options: ", id, " is none of the recipe's components")) do
      if key ~= "data" and given[key] ~= nil then options[key], used[key] = given[key], true end
    end
    return options
  end
  -- Says of options that this component alone takes that they changed nothing, because it found nothing to do.
  function recipe.idle(id)
    for key in pairs(given) do
      local is_shared = own[key] ~= nil
      for _, other in ipairs(spec.passes) do is_shared = is_shared or other ~= id and taken[other][key] ~= nil end
      if taken[id][key] and not is_shared then
        tn.log.warning(("option %s has no effect: %s found nothing to do in this model"):format(key, id))
      end
    end
  end
  -- The data set of --data, read as --data-option says; nil without one.
  function recipe.data() return args.data and tn.data.open(args.data, args.data_options) end
  function recipe.load()
    local model = tn.load(args.model):apply("fusion.expand") -- so that passes see the weights of operators that others fused
    return args.requantize and dequantized(model) or model
  end
  function recipe.float_model(model)
    local widen = taken["precision.widen"] and recipe.options("precision.widen") or nil
    return (model or recipe.load()):apply("precision.widen", widen):apply("fusion.default")
  end
  -- The whole of a recipe that is one pass: loads, applies the passes of spec.first, the pass and those of spec.last, judges, saves.
  function recipe.convert(id, options)
    local whole, small, report = recipe.load(), nil, nil
    if spec.floats then whole = recipe.float_model(whole) end
    for _, first in ipairs(spec.first or {}) do whole = whole:apply(first, taken[first] and recipe.options(first) or nil) end
    small, report = whole:apply(id, recipe.options(id, options))
    for _, last in ipairs(spec.last or {}) do small = small:apply(last) end
    local left = judged(spec, args, whole, small, recipe.data())
    return summed(args, recipe.save(small), left, stayed(args, report))
  end
  -- Writes the model, or, with --dry-run, says what it would save. The sizes of the model that was given and of this one.
  function recipe.save(model)
    refuse_unused()
    local before, after = tn.load(args.model), model:apply("fusion.ties") -- passes may have copied what nodes share
    if args.dry_run then
      saving(args, before, after)
    else
      after:save(args.output, args.output:lower():find("%.onnx$") and { metadata = args.metadata or false } or nil)
    end
    return { bytes_before = before:bytes(), bytes_after = after:bytes() }
  end
  function recipe.snr(whole, model, data) return snr_of(args, whole, model, data) end
  function recipe.mixed(whole, data, make, sensitivity) return mixed_precision(spec.name, args, whole, data, make, sensitivity) end
  function recipe.methods(methods, names) return listed(spec.name, methods, names) end
  recipe.joined, recipe.list, recipe.patterns = joined, native.list, patterns_for
  function recipe.stayed(report) return stayed(args, report) end
  function recipe.judge(before, after, data) return judged(spec, args, before, after, data) end
  function recipe.trained(before, after, data, metric) return trained(spec, args, before, after, data, metric) end
  function recipe.result(sizes, left, more) return summed(args, sizes, left, more) end
  return recipe
end
