
-- How many letters two names differ by: changed, left out or added.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local above = row[0]
    row[0] = i
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j) and 0 or 1
      above, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, above + same)
    end
  end
  return row[#b]
end

local function pass_options(id)
  for _, one in ipairs(tn.components("tenon.pass/1")) do
    if one.id == id then return (one.schema or {}).properties or {} end
  end
  fail("tn.recipe: pass ", id, " is not installed")
end

local function refuse_unknown(name, args, known)
  for key in pairs(args) do
    if known[key] == nil then
      local names = {}
      for one in pairs(known) do names[#names + 1] = one end
      table.sort(names)
      local nearest
      for _, one in ipairs(names) do
        if not nearest or distance(key, one) < distance(key, nearest) then nearest = one end
      end
      local hint = ""
      if nearest and distance(key, nearest) <= 2 + #key // 4 then hint = " (did you mean '" .. nearest .. "'?)" end
      error("recipe " .. name .. ": option: expected one of " .. table.concat(names, ", ") .. ", got '" .. key .. "'"
        .. hint, 0)
    end
  end
end

-- What a script for `tenon optimize` takes. spec: name, passes (ids whose options it takes, all of them), options (its own: a
-- description each). An option that nobody takes is an error. The result's `options(pass, table)` is the table with what was
-- given for that pass; with `described`, a table, the script is only asked what it takes and returns that.
function tn.recipe(spec)
  local args = tn.args
  local known, described = {}, {}
  local taken = {}
  for _, id in ipairs(spec.passes) do
    taken[id] = pass_options(id)
    for key, option in pairs(taken[id]) do
      if key ~= "data" then known[key] = option.description or "" end
    end
  end
  for key, about in pairs(spec.options or {}) do known[key] = about end
  for key, about in pairs(known) do described[#described + 1] = { option = key, about = about } end
  table.sort(described, function(a, b) return a.option < b.option end)
  local given = {}
  for key, value in pairs(args) do
    if not ({ model = true, output = true, data = true, json = true, describe = true })[key] then given[key] = value end
  end
  refuse_unknown(spec.name, given, known)
  local recipe = { described = args.describe and described or nil }
  function recipe.options(id, options)
    options = options or {}
    for key in pairs(taken[id] or fail("recipe.options: ", id, " is none of the recipe's passes")) do
      if key ~= "data" and given[key] ~= nil then options[key] = given[key] end
    end
    return options
  end
  return recipe
end
