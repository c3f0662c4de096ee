-- SPDX-License-Identifier: Apache-2.0
-- The functions of arrays, by the array API's names: one for each row of the table in `bindings/arrays`, which knows
-- what types and axes mean and which operators a function is. Arguments stand in the order of the row's parameters; a
-- table with their names may come last. Axes count from 0, as in Python; positions in x[i] and x:slice from 1, as
-- everywhere in Lua.

local others = {} -- what tn has beside these functions
for name, thing in pairs(tn) do others[name] = thing end

-- An argument as the table takes it: a value by its number.
local read = {}
function read.array(x)
  if x == nil or kind(x) == "number" or kind(x) == "boolean" then return x end
  local value = as_value(x)
  return { value = value.id, weak = value.weak or false }
end
function read.arrays(list)
  if kind(list) ~= "table" then fail("expected a list of tensors, got ", kind(list)) end
  local made = {}
  for i, x in ipairs(list) do made[i] = read.array(x) end
  return made
end

-- Options by name: a table whose keys are all names of parameters.
local function are_options(x, by_name)
  if type(x) ~= "table" or is_traced(x) or next(x) == nil then return false end
  for key in pairs(x) do
    if not by_name[key] then return false end
  end
  return true
end

local parts = {} -- of the API: what stands before the dot in `linalg.solve`

local function define(row)
  local parameters, by_name, rest = row.parameters, {}, nil
  local part, short = row.name:match("^(.*)%.(.*)$")
  if part then parts[part] = parts[part] or {} end
  for _, one in ipairs(parameters) do
    by_name[one.name] = one
    rest = rest or one.variadic and one
  end
  local place = part and parts[part] or tn
  place[short or row.name] = function(...)
    local trace, args, named = current(row.name), table.pack(...), {}
    if args.n > 1 and are_options(args[args.n], by_name) then
      for key, x in pairs(args[args.n]) do named[key] = (read[by_name[key].kind] or function(y) return y end)(x) end
      args.n = args.n - 1
    end
    for i = 1, args.n do
      local parameter = parameters[i]
      if rest and not (parameter and not parameter.variadic and i < #parameters) then parameter = rest end
      local convert = parameter and read[parameter.kind]
      if convert then args[i] = convert(args[i]) end
    end
    local ok, made = pcall(trace.builder.call, trace.builder, row.name, named, table.unpack(args, 1, args.n))
    if not ok then fail((tostring(made):gsub("^%[?[^:%]]*%]?:%d+: ", ""))) end
    local values = {}
    for i, id in ipairs(made) do
      values[type(row.results) == "table" and row.results[i] or i] = new_value(trace, id)
    end
    return row.results and values or values[1]
  end
end
for _, row in ipairs(native.array_functions()) do define(row) end
tn.repeat_ = tn["repeat"] -- a word of Lua's

local function cast(x, dtype) return x.dtype == dtype and x or tn.astype(x, dtype) end

local function axis_of(axis, rank)
  if math.type(axis) ~= "integer" or axis < -rank or axis >= rank then
    fail("axis: expected one of ", -rank, " to ", rank - 1, ", got ", tostring(axis))
  end
  return axis % rank
end

-- Positions first..last of an axis, from 1; last may be left out.
function tn.slice(x, axis, first, last)
  local value = as_value(x)
  axis = axis_of(axis, #value.shape)
  local ends = last == nil and math.maxinteger or last
  if math.type(first) ~= "integer" or first < 1 or math.type(ends) ~= "integer" or ends < 0 then
    fail("slice: expected positions first and last from 1 on, got ", tostring(first), " and ", tostring(last))
  end
  return node("Slice", { value, integers({ first - 1 }), integers({ ends }), integers({ axis }) })
end

-- One node of any operator that a plugin brings: tn.op("Relu", x), tn.op("acme.Squircle", { x, y },
-- { power = 4 }); what stands before the last dot is the domain. nil in the list, or false: an input that is left out.
-- outputs: how many it has; several are a list.
function tn.op(name, inputs, attributes, outputs)
  if type(name) ~= "string" then fail("op: expected the name of an operator, got ", kind(name)) end
  local is_named = attributes == nil or type(attributes) == "table" and not is_traced(attributes)
  if not is_named or outputs ~= nil and math.type(outputs) ~= "integer" then
    local got = kind(is_named and outputs or attributes)
    fail("op: expected one list of inputs, attributes by name and the number of outputs: tn.op(\"", name,
      "\", { x, y }, { axis = 0 }, 1); got a ", got == "traced" and "tensor" or got, " as argument ", is_named and 4 or 3)
  end
  local domain, kind_of = name:match("^(.*)%.([^.]*)$")
  local list = type(inputs) == "table" and not is_traced(inputs) and inputs or { inputs }
  local values, last = {}, 0
  for i in pairs(list) do
    if math.type(i) ~= "integer" or i < 1 then fail("op: inputs: expected a list, got the key ", tostring(i)) end
    last = math.max(last, i)
  end
  for i = 1, last do values[i] = list[i] and as_value(list[i]) or false end
  local made = nodes(kind_of or name, values, outputs or 1, attributes, domain)
  return outputs and outputs ~= 1 and made or made[1]
end

tn.zeros = others.zeros -- a tensor that can be written to
local array_functions = {}
for name, f in pairs(tn) do
  if others[name] ~= f then array_functions[name] = f end
end
for name, part in pairs(parts) do tn[name] = part end
