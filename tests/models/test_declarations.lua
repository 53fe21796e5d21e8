-- test_declarations.lua -- what a core says of itself is measured: a wrong `reads` or `complexity` is an error that says both, and a core
-- that says nothing is measured.
local t = require "tests.harness"
local contract = require "mneme.models.contract"
local core = require "mneme.models.core"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local mn = require "mneme"
local contract_rig = require "mneme.models.contract_rig"
local shell = require "tests.support.shell"

local here, n = shell.folder(), 0

-- The file of a core that is a core of the library, but for what it says of itself.
local function another(name, change)
  n = n + 1
  local path = ("%s/core%d.lua"):format(here, n)
  files.write(path, { ([[
local d = require("mneme.models.core").definition %q
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
    if property.name:find("reads", 1, true) or property.name:find("complexity", 1, true) then
      local ok, problem = xpcall(property.holds, errors.handler, { path })
      if not ok then list[#list + 1] = problem.message end
    end
  end
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

t.test("a core that says nothing is measured, and the random numbers of scripts go on as if nothing had been", function()
  for name, way in pairs { gated_deltanet = "gated_delta", galite = "gated", rwkv7 = "unlearned", gtrxl = "softmax", gru = "none" } do
    local path = another(name, "core.reads, core.complexity = nil, nil")
    t.eq(said(path), "")
    mn.manual_seed(3)
    core.new(path, {})
    local one = mn.randn(4):to_table()
    mn.manual_seed(3)
    local c = core.new(path, {})
    t.eq(contract_rig.reading(c) or "none", way, name)
    t.eq(table.concat(mn.randn(4):to_table(), " "), table.concat(one, " "))
    local floats = c:state_floats()
    t.eq(c:describe().step.macs, 2 * floats, name)
  end
  local told, status = shell.mneme(here, "check core=" .. another("gated_deltanet", "core.reads = nil"))
  t.eq(status, 0, told)
  t.ok(told:find("measured  reads: gated_delta", 1, true), told)
end)
