-- SPDX-License-Identifier: Apache-2.0
-- tn.nn: networks made of layers, components of the role tenon.layer/1 of any plugin.
--
--   local nn = tn.nn
--   local net = nn.Sequential(nn.Conv(16, 3, { padding = 1 }), tn.relu, nn.GlobalAvgPool(), nn.Linear(10))
--   local model = nn.build(net, { { name = "image", shape = { "N", 3, 32, 32 } } }, { seed = 0 })
--
-- nn.module { conv1 = nn.Conv(...), forward = function(self, x) ... end } keeps layers by name; parameters are
-- called by where a layer is kept: "conv1.weight". The first options may be given in order.
tn.nn = (function()
  local nn, init = {}, {}
  local Layer, Module = {}, {} -- metatables
  local building -- the network that is being built: names of its layers, seed

  local function last_word(id) return id:match("[^.]*$") end

  local function known(role)
    local found = {}
    for _, one in ipairs(tn.components(role)) do
      local class = one.schema and one.schema.class
        or ("_" .. last_word(one.id)):gsub("_(%w)(%w*)", function(a, b) return a:upper() .. b end)
      found[class] = found[class] or one
    end
    return found
  end

  -- nn.NAME(required options in order, { options }).
  local function maker(name, one)
    local order = one.schema and (one.schema.order or one.schema.required) or {}
    return function(...)
      local given, options = table.pack(...), {}
      if type(given[given.n]) == "table" and (given.n > #order or given.n == 1) then
        for key, value in pairs(given[given.n]) do options[key] = value end
        given.n = given.n - 1
        if given.n == 0 and #options > 0 then options = { [order[1]] = options } end
      end
      if given.n > #order then
        fail("nn.", name, ": expected ", #order > 0 and table.concat(order, ", ") or "nothing",
          " in order and a table of options, got ", given.n, " values")
      end
      for i = 1, given.n do options[order[i]] = given[i] end
      return setmetatable({ id = one.id, component = native.component("tenon.layer/1", one.id, options) }, Layer)
    end
  end

  -- Where it is kept, or, for a layer that a function uses by itself, its kind and a number.
  local function name_of(layer)
    if not building then fail(layer.id, ": expected to be called inside nn.build") end
    if not building.names[layer] then
      local word = last_word(layer.id)
      building.used[word] = (building.used[word] or 0) + 1
      building.names[layer] = word .. building.used[word]
    end
    return building.names[layer]
  end

  -- layer(x, ...): one value; false or nil: an input that is left out.
  local function outputs_of(layer, count, ...)
    local name, ids, trace = name_of(layer), {}, current(layer.id)
    for i = 1, select("#", ...) do
      local x = select(i, ...)
      ids[i] = x and as_value(x).id or 0
    end
    local ok, made = pcall(trace.builder.layer, trace.builder, layer.component, name, building.seed, ids, count)
    if not ok then fail("layer ", name, ": ", (tostring(made):gsub("^%[?[^:%]]*%]?:%d+: ", ""))) end
    local values = {}
    for i, id in ipairs(made) do values[i] = new_value(trace, id) end
    return table.unpack(values)
  end
  function Layer.__call(layer, ...) return outputs_of(layer, 1, ...) end
  function Layer.__tostring(layer) return "tenon.layer(" .. layer.id .. ")" end
  Layer.__index = { outputs = outputs_of } -- layer:outputs(3, x): several results

  function Module.__call(module, ...) return module:forward(...) end
  -- What a list keeps is counted from 0 in names, as everywhere.
  local function name_all(x, name, names)
    if type(x) ~= "table" or is_traced(x) then return end
    if rawequal(getmetatable(x), Layer) then
      names[x] = names[x] or name
      return
    end
    for _, key in ipairs(sorted_keys(x)) do
      local word = math.type(key) == "integer" and key - 1 or key
      name_all(x[key], name == "" and tostring(word) or name .. "." .. word, names)
    end
  end

  function nn.module(parts)
    if type(parts) ~= "table" or type(parts.forward) ~= "function" then
      fail("nn.module: expected a table of layers with a function forward")
    end
    return setmetatable(parts, Module)
  end
  function nn.Sequential(...)
    local parts, n = { ... }, select("#", ...)
    for i = 1, n do inline_of(parts[i], "nn.Sequential: layer " .. i) end
    function parts.forward(_, x)
      for _, layer in ipairs(parts) do x = layer(x) end
      return x
    end
    return nn.module(parts)
  end
  -- activation(body(x) + shortcut(x)), options shortcut and activation.
  function nn.Residual(body, options)
    local o = options or {}
    only("nn.Residual: options", o, { "shortcut", "activation" })
    return nn.module {
      body = body, shortcut = o.shortcut,
      forward = function(_, x)
        local total = body(x) + (o.shortcut and o.shortcut(x) or x)
        return o.activation and o.activation(total) or total
      end,
    }
  end

  -- A model of a network: a module, a layer, or a function that uses some. inputs: as those of tn.model.
  function nn.build(network, inputs, options)
    only("nn.build: options", options or {}, { "seed" })
    local before = building
    building = { names = {}, used = {}, seed = options and options.seed or 0 }
    if type(network) == "table" then name_all(network, "", building.names) end
    local ok, made = pcall(tn.model, function(...) return network(...) end, inputs)
    building = before
    if not ok then error(made, 0) end
    return made
  end
  local function tensors_as_model(tensors)
    local builder = native.builder()
    for _, name in ipairs(sorted_keys(tensors)) do
      builder:output(name, builder:constant(tensors[name], name))
    end
    return builder:build()
  end
  -- The model with weights of another one, of a file, or tensors by name; options prefix, update, partial.
  function nn.load(model, weights, options)
    if kind(model) ~= "model" then fail("nn.load: expected a model, got ", kind(model)) end
    if type(weights) == "string" then weights = tn.load(weights) end
    local given = { weights = type(weights) == "table" and tensors_as_model(weights) or weights }
    for key, value in pairs(options or {}) do given[key] = value end
    return model:apply("layers.load", given)
  end

  nn.init = setmetatable(init, {
    __index = function(_, name)
      local words = {}
      for i, one in ipairs(tn.components("tenon.initializer/1")) do
        words[i] = last_word(one.id)
        if name == one.id or name == words[i] then
          return function(options) return native.component("tenon.initializer/1", one.id, options) end
        end
      end
      fail("nn.init: expected one of ", table.concat(words, ", "), ", got '", tostring(name), "'")
    end,
  })
  return setmetatable(nn, {
    __index = function(_, name)
      local all = known("tenon.layer/1")
      if not all[name] then fail("nn: expected one of ", table.concat(sorted_keys(all), ", "), ", got '", tostring(name), "'") end
      return maker(name, all[name])
    end,
  })
end)()
