-- test_guessing.lua -- what guessing scores: kept in a run's config.json, and said next to its score at the run's end, by eval, compare and list runs.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local metrics_reader = require "mneme.runs.metrics_reader"
local outcome = require("mneme.runs.run_folder").outcome
local run_list = require "mneme.commands.run_list"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function fine(words)
  local said, status = shell.mneme(folder, words)
  t.eq(status, 0, words .. ": " .. said)
  return said
end
local function kept(run) return json.decode(files.read(folder .. "/" .. run .. "/config.json")).reference end
local function row(run)
  for _, r in ipairs(run_list.rows(folder)) do if r.name == run then return r end end
end
local small = " core=gru core.d_model=8 hidden=8 num_envs=8 num_steps=16 steps=2048 threads=1"

files.write(folder .. "/own.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 8 }, declares = false, num_envs = 8, num_steps = 16, hidden = 8, lr = 1e-3, steps = 2048 }
local env = mn.env { observation = { 1 }, actions = 4, num_envs = cfg.num_envs, seed = cfg.seed, chance = cfg.declares and 0.25 or nil,
  reset = function() return { 1 } end, step = function(_, action) return { 1 }, 0, true, action == 0 and 1 or 0 end }
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })

t.test("a run in an environment of the library: its last line, eval with other settings, list runs, compare", function()
  t.ok(fine("run tmaze quick=1 corridor=4 run=maze" .. small):find("(no memory gives 0.5;", 1, true))
  local r = kept "maze"
  t.eq(r.memoryless, 0.5)
  t.eq(r.best, 1)
  t.near(r.best_return, 3.7, 1e-9)
  t.eq(row("maze").guess, 0.5)
  local came_to = outcome.read(folder .. "/maze").results
  t.near(came_to.normalised, 2 * came_to.score - 1, 1e-12)
  t.eq(row("maze").normalised, came_to.normalised)
  local curves = metrics_reader.read(folder .. "/maze")
  for k = 1, curves["charts/score"].n do t.near(curves["charts/normalised"].y[k], 2 * curves["charts/score"].y[k] - 1, 1e-6) end
  t.ok(fine("eval maze episodes=8 corridor=6"):find "no memory gives 0.5")
  local compared = fine "compare maze"
  t.ok(compared:find "guessing +0.5 %(no memory%)")
  t.near(tonumber(compared:match "\n *normalised +([%d.-]+)"), came_to.normalised, 1e-2)
  t.near(tonumber(fine("eval maze episodes=8"):match "; normalised ([%d.-]+)"), tonumber(fine("eval maze episodes=8"):match "success ([%d.]+)") * 2 - 1, 2e-3)
end)

t.test("a script's environment: what it declares, else nothing, which is no zero", function()
  t.ok(fine("run own.lua declares=1 run=declared threads=1"):find("(random actions give 0.25)", 1, true))
  t.eq(kept("declared").chance, 0.25)
  t.eq(row("declared").guess, 0.25)
  t.eq(row("declared").normalised, nil, "of three numbers it knows one")
  t.eq(outcome.read(folder .. "/declared").results.normalised, nil)
  t.eq(metrics_reader.read(folder .. "/declared")["charts/normalised"], nil)
  local said = fine "run own.lua run=silent threads=1"
  t.ok(not said:find "give", said)
  t.eq(kept "silent", nil)
  t.eq(row("silent").guess, nil)
  t.ok(not fine("eval silent episodes=8"):find "give")
  t.ok(not fine("compare silent"):find "guessing")
  t.ok(fine("compare declared silent"):find "guessing +0.25 %(random actions%) +–")
end)

t.test("a data set: the most frequent answer", function()
  local said = fine "run recall quick=1 steps=2000 run=questions threads=1"
  t.ok(said:find "%(the most frequent answer gives [%d.]+%)", said)
  t.ok(row("questions").guess > 0)
  t.ok(fine("compare questions"):find "guessing +[%d.]+ %(the most frequent answer%)")
end)

shell.run(folder, "rm -rf '" .. folder .. "'")
