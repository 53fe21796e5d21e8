-- test_declarations.lua -- what a core says of itself is measured: a wrong `reads` or `complexity` is an error that says both.
local t = require "tests.harness"
local contract = require "mneme.models.contract"
local cores = require "mneme.models.cores"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local reading_rig = require "tests.support.reading_rig"
local shell = require "tests.support.shell"

local here, n = shell.folder(), 0

-- The file of a core that is a core of the library, but for what it says of itself.
local function another(name, change)
  n = n + 1
  local path = ("%s/core%d.lua"):format(here, n)
  files.write(path, { ([[
local d = require("mneme.models.cores").definition %q
return { doc = "", source = "", config = d.config, choices = d.choices, counts = d.counts, build = function(...)
  local core = d.build(...)
  %s
  return core
end }
]]):format(name, change) })
  return path
end

-- What the properties that measure say of a core.
local function said(path)
  local list = {}
  for _, property in ipairs(contract) do
    if property.name:find("complexity", 1, true) then
      local ok, problem = xpcall(property.holds, errors.handler, { path })
      if not ok then list[#list + 1] = problem.message end
    end
  end
  local ok, problem = xpcall(reading_rig.holds, errors.handler, { path })
  if not ok then list[#list + 1] = problem.message end
  return table.concat(list, "\n")
end

t.test("a wrong reads is an error that says both", function()
  for name, words in pairs { gated_deltanet = { "gated", "gated_delta" }, mlstm = { "bonus", "gated" }, rwkv6 = { "unlearned", "bonus" },
    transformer = { "gated", "softmax" }, galite = { "vector", "gated" }, rwkv4 = { "joint", "averages" } } do
    local text = said(another(name, ("core.reads = %q"):format(words[1])))
    t.ok(text:find(('reads = "%s", measured: '):format(words[1]), 1, true), name .. ": " .. text)
    t.ok(text:find(('reads = "%s"'):format(words[2]), 1, true), name .. ": " .. text)
  end
  t.ok(said(another("gru", 'core.reads = "gated"')):find("cannot be measured without the probes", 1, true))
  t.ok(said(another("gru", 'core.reads = "nothing"')):find("but it has a state", 1, true))
  t.ok(said(another("feedforward", 'core.reads = "vector"')):find("but it has no state", 1, true))
end)

t.test("a wrong complexity is an error that says both", function()
  for _, formula in ipairs { "L", "1000*L*H*V*K" } do
    local text = said(another("galite", ('core.complexity = { step = %q }'):format(formula)))
    t.ok(text:find(("complexity: step = %s = "):format(formula), 1, true) and text:find("measured: ", 1, true), text)
  end
end)

t.test("a core that says nothing of what it computes is counted as two multiply-adds for each number of its state", function()
  for _, name in ipairs { "gated_deltanet", "galite", "gru" } do
    local path = another(name, "core.reads, core.complexity = nil, nil")
    t.eq(said(path), "")
    local c = cores.new(path, {})
    t.eq(c:describe().step.macs, 2 * c:state_floats(), name)
  end
end)

t.test("whatever a core declares wrongly is refused with its line, before anything depends on it", function()
  for change, what in pairs { ['core.acts = "often"'] = "acts = often", ["core.acts = true"] = "acts = true",
    ["core.looks_back = 5"] = "looks_back is a number",
    ['core.looks_back = "Q*3"'] = "looks_back = Q*3", ['core.looks_back = "D +"'] = "looks_back = D +", ['core.looks_back = "-3"'] = "looks_back = -3",
    ['core.complexity = "2*D"'] = "complexity is a string", ['core.complexity = { steps = "2*D" }'] = "'steps'; did you mean 'step'",
    ["core.complexity = { step = 7 }"] = "step is a number", ['core.complexity = { step = "2*Q" }'] = "step = 2*Q", ["core.claims = 1"] = "claims is a number",
    ['core.claims = { stepz = "exact" }'] = "'stepz'", ["core.start = 3"] = "start is a number", ['core.constants = "h"'] = "constants is a string",
    ["core.cost = 5"] = "cost is a number", ["core.decays = 1"] = "decays is a number", ["core.approximates = 1"] = "approximates is a number" } do
    local path = another("mingru", change)
    local ok, problem = pcall(cores.new, path, { d_in = 4 })
    t.ok(not ok and problem.message:find(what, 1, true) and tostring(problem.where):find "core%d+%.lua:2$", change .. ": " .. tostring(problem))
  end
end)
