-- test_coming_from.lua -- docs/coming-from.md: every setting, core and command that its side of the tables names is there.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"

t.test("docs/coming-from.md: our side's names are there", function()
  local page = files.read(registry.root .. "docs/coming-from.md")
  local known = {}
  for _, s in ipairs(require("mneme.runs.config").standard) do known[s[1]] = true end
  for name in pairs(require("mneme.runs.learner_settings").keys) do known[name] = true end
  known.num_envs = true                            -- of the environment
  local settings, cores, commands = 0, 0, 0
  for name in page:gmatch "\n| `([%w_]+)` |" do
    t.ok(known[name], "setting " .. name)
    settings = settings + 1
  end
  for name in page:gmatch "\n| `core=([%w_]+)` |" do
    t.ok(tables.has(registry.names "cores", name), "core " .. name)
    cores = cores + 1
  end
  for name in page:gmatch "`mneme (%l+)" do
    t.ok(require("mneme.commands.options").commands.find(name), "command " .. name)
    commands = commands + 1
  end
  t.ok(settings == 16 and cores == 11 and commands >= 5, ("%d settings, %d cores, %d commands"):format(settings, cores, commands))
end)
