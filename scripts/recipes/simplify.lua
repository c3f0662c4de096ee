-- SPDX-License-Identifier: Apache-2.0
-- simplify: the same numbers from fewer nodes: constants folded, normalizations merged, dead code gone.
--   tenon optimize MODEL -o OUT --recipe simplify [--data FILE] [--set 'skip=["gelu"]']
local tn = require "tenon"
local args = tn.args
local recipe = tn.recipe { name = "simplify", passes = { "fusion.default" }, cure = "leave out the rule that did it with --set skip" }
if recipe.described then
  return recipe.described
end

local model = tn.load(args.model)
local small, report = model:apply("fusion.default", recipe.options("fusion.default"))
local left = recipe.judge(model, small, recipe.data())
local sizes = recipe.save(small)

local rows = {}
for rule, count in pairs(report.changes) do
  if count > 0 then
    rows[#rows + 1] = { rule = rule, changes = count }
  end
end
table.sort(rows, function(a, b) return a.rule < b.rule end)
local before, after = #model:inspect().nodes, #small:inspect().nodes
if not args.json then
  if #rows > 0 then
    tn.print_table(rows, { "rule", "changes" })
  end
  print(string.format("%d -> %d nodes", before, after))
end
return recipe.result(sizes, left, { changes = report.changes, nodes_before = before, nodes_after = after })
