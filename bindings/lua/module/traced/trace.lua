-- SPDX-License-Identifier: Apache-2.0
-- Traced values: tables with a metatable whose operators add nodes to the graph under trace. The
-- files of this folder are one chunk, called with the table `tn` and the native functions.
local tn, native = ...
local error, setmetatable, getmetatable, rawget, rawequal = error, setmetatable, getmetatable, rawget, rawequal
local ipairs, pairs, type, tostring, tonumber = ipairs, pairs, type, tostring, tonumber
local select, next = select, next
local pcall, math, table, string = pcall, math, table, string
local running, status_of = coroutine.running, coroutine.status

local Value = {} -- metatable of traced values
local methods = {}
local traces = {} -- under construction, of all coroutines, the innermost last

-- Stops with the script's own line in front.
local function fail(...)
  error(native.where() .. table.concat({ ... }), 0)
end

local function is_traced(x)
  return type(x) == "table" and rawequal(getmetatable(x), Value)
end

local function kind(x)
  return is_traced(x) and "traced" or native.kind(x)
end

-- Of the coroutine that runs, or of one that waits for it: not where a traced function has yielded.
local function is_active(trace)
  local status = status_of(trace.thread)
  return status == "running" or status == "normal"
end

local function innermost()
  for i = #traces, 1, -1 do
    if is_active(traces[i]) then return traces[i] end
  end
end

local function open_trace(trace)
  trace.thread = running()
  traces[#traces + 1] = trace
end

local function close_trace(trace)
  for i = #traces, 1, -1 do
    if rawequal(traces[i], trace) then return table.remove(traces, i) end
  end
end

-- An option by another name would be without effect.
local function only(who, given, names)
  for key in pairs(given) do
    local is_known = false
    for _, name in ipairs(names) do is_known = is_known or rawequal(key, name) end
    if not is_known then fail(who, ": ", native.expected_one_of(names, tostring(key))) end
  end
end

local function current(what)
  local trace = innermost()
  if not trace then fail(what or "this function", ": expected to be called inside tn.jit, tn.grad or tn.vmap") end
  return trace
end

local function new_value(trace, id, weak)
  local dtype, shape = trace.builder:type(id)
  return setmetatable({ trace = trace, id = id, dtype = dtype, shape = shape, weak = weak }, Value)
end

local function describe(x)
  if not is_traced(x) then return kind(x) end
  return "traced " .. x.dtype .. "[" .. table.concat(x.shape, ", ") .. "]"
end

local function new_trace()
  return { builder = native.builder(), captured = {}, own = {}, constants = {}, names = {} }
end

local function add_input(trace, name, dtype, shape, weak)
  while trace.names[name] do name = name .. "_" end
  trace.names[name] = true
  return new_value(trace, trace.builder:input(name, dtype, shape), weak)
end

-- The value as one of the innermost trace: one of a trace around it becomes an input.
local function lift(x)
  local trace = current()
  if rawequal(x.trace, trace) then return x end
  local alive = false
  for _, outer in ipairs(traces) do alive = alive or rawequal(outer, x.trace) and is_active(outer) end
  if not alive then
    fail("expected a value of the function being traced, got one that outlived its function: return it instead")
  end
  if not trace.own[x] then
    trace.own[x] = add_input(trace, "captured" .. #trace.captured, x.dtype, x.shape, x.weak)
    trace.captured[#trace.captured + 1] = x
  end
  return trace.own[x]
end

-- One node; its values. bodies: attributes that are models.
local function nodes(op, inputs, outputs, attributes, domain, bodies)
  local trace = current(op)
  local ids = {}
  for i, input in ipairs(inputs) do ids[i] = input and input.id or 0 end -- false: absent
  local ok, made = pcall(trace.builder.node, trace.builder, op, ids, outputs, attributes or {}, domain or "", bodies)
  if not ok then fail((tostring(made):gsub("^%[?[^:%]]*%]?:%d+: ", ""))) end
  local values = {}
  for i, id in ipairs(made) do values[i] = new_value(trace, id) end
  return values
end

local function node(op, inputs, attributes, domain)
  return nodes(op, inputs, 1, attributes, domain)[1]
end

local function constant(key, make)
  local trace = current()
  local known = trace.constants[key]
  if not known then
    known = new_value(trace, make(trace.builder))
    trace.constants[key] = known
  end
  return known
end

local function number(x, dtype)
  local trace = current()
  return new_value(trace, trace.builder:number(x, dtype))
end

-- A list of int64, as axes and shapes are.
local function integers(list)
  local trace = current()
  return new_value(trace, trace.builder:integers(list))
end

local is_float = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

-- x as a traced value; a tensor becomes a constant.
local function as_value(x)
  local what = kind(x)
  if what == "traced" then return lift(x) end
  if what == "number" then return number(x, math.type(x) == "integer" and "int64" or "float32") end
  if what == "boolean" then return number(x, "bool") end
  if what == "tensor" then return constant(x, function(b) return b:constant(x) end) end
  fail("expected a traced value, a tensor or a number, got ", what)
end
