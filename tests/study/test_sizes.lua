-- test_sizes.lua -- the setting size=: another core gets as many parameters as the script's own, what the command line names wins, studies
-- keep their published sizes, and runs, sweeps and reports say what was chosen.
local t = require "tests.harness"
local catalogue = require "mneme.base.catalogue"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local script = require "mneme.runs.script"
local shell = require "tests.support.shell"
local sweep = require "mneme.lab.study.sweep"

local here = shell.folder()
files.write(here .. "/own.lua", { [[
local mn = require "mneme"
local cfg = mn.config({
  corridor = 3, core = { "agalite", n_layers = 2, d_model = 32, d_head = 16, d_ffn = 32 }, learner = "a2c", steps = 64, num_envs = 2, num_steps = 16,
  hidden = 16, lr = 1e-3, threads = 1, quick = { core = { "gru", d_model = 24 } },
}, { published = { gru = { core = { "gru", d_model = 8 }, lr = 2e-3 }, lstm = { lr = 1e-3 } } })
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })

local n = 0
-- A run: its config.json, what it printed, its folder.
local function run(words)
  n = n + 1
  local said, status = shell.mneme(here, ("run own.lua %s run=r%d"):format(words, n))
  t.eq(status, 0, words .. ": " .. said)
  return json.decode((files.read(("%s/r%d/config.json"):format(here, n)))), said, ("%s/r%d"):format(here, n)
end

local function checkpoint(folder) return files.read(folder .. "/checkpoints/" .. files.list(folder .. "/checkpoints")[1]) end

t.test("a script's core that remembers as far as its environment asks gives way to one that is told how far", function()
  files.write(here .. "/chrono.lua", { (files.read(here .. "/own.lua"):gsub("d_ffn = 32 }", 'd_ffn = 32, remember = "chrono" }')) })
  for _, words in ipairs { "core=mingru core.remember=chrono:9", "core=mingru core.remember=4 core.d_model=8", "core=gru" } do
    local said, status = shell.mneme(here, ("run chrono.lua run=c%d %s"):format(#words, words))
    t.eq(status, 0, said)
  end
end)

t.test("another core is as large as the script's own; with its width named, the run has the same bits", function()
  local own, said = run ""
  t.ok(not said:find("size=", 1, true) and not said:find("published", 1, true), said)
  t.eq(own.size, "script") t.eq(own.parameters, own.script_parameters)
  for _, core in ipairs { "gru", "galite", "rwkv4" } do
    local info, told, folder = run("core=" .. core)
    t.eq(info.script_parameters, own.parameters) t.eq(info.script_core, "agalite")
    t.ok(math.abs(info.parameters / own.parameters - 1) < 0.1, told)
    t.ok(told:find(("%s has [%%d,]+ parameters, .*the script's own agalite "):format(core)) and told:find("size=script", 1, true), told)
    local core_of = info.config.core
    local words = ("core=%s core.d_model=%d core.n_layers=%d"):format(core, core_of.d_model, core_of.n_layers)
    for _, key in ipairs { "d_head", "d_ffn" } do if core_of[key] then words = ("%s core.%s=%d"):format(words, key, core_of[key]) end end
    local _, _, named = run(words)
    t.ok(checkpoint(folder) == checkpoint(named), core .. ": other bits")
  end
end)

t.test("what is named wins; published and a number mean what they say; quick has its own core", function()
  local info, said = run "core=gru size=published"
  t.eq(info.config.core.d_model, 8) t.eq(info.size, "published")
  t.ok(said:find("size=published: gru has [%d,]+ parameters, the script's own agalite [%d,]+ %(0%.%d+ times as many%)"), said)
  t.eq(run("core=gru core.d_model=8 size=20000").config.core.d_model, 8)
  info = run "core=gru core.size=20000"
  t.eq(info.size, 20000) t.ok(math.abs(info.parameters / 20000 - 1) < 0.1, tostring(info.parameters))
  info = run "size=20000"
  t.eq(info.config.core.name, "agalite") t.eq(info.config.core.d_head * 2, info.config.core.d_model)
  t.ok(math.abs(info.parameters / 20000 - 1) < 0.1, tostring(info.parameters))
  info = run "core=galite core.n_layers=1"
  t.eq(info.config.core.n_layers, 1)
  info = run "quick=1 core=lstm"
  t.eq(info.script_core, "gru") t.ok(math.abs(info.parameters / info.script_parameters - 1) < 0.1)
  for word, what in pairs { ["size=big"] = "expected script, published or a number", ["size=0"] = "size=0: expected",
    ["core.size=1.5"] = "size=1.5: expected" } do
    local told, status = shell.mneme(here, "run own.lua " .. word)
    t.eq(status, 2) t.ok(told:find(what, 1, true), told)
  end
  local told, status = shell.mneme(here, "run recall quick=1 size=100")
  t.eq(status, 2) t.ok(told:find("parameters=N is its setting", 1, true), told)
end)

t.test("a size that cannot be reached: what was reached, and why", function()
  for words, why in pairs { ["core=gru size=5"] = "size=5 was not reached: its smallest width is 4, and heads and encoder count, too",
    ["core=gru core.d_model=8 size=20000"] = "size=20000 was not reached: core.d_model=8 is given",
    ["core=galite core.d_model=96"] = "%. size=script did not make them equal: core.d_model=96 is given",
    ["core=lstm size=700"] = "size=700 was not reached: of all widths, %d+ comes nearest" } do
    local _, said = run(words)
    t.ok(said:find(why), words .. ": " .. said)
  end
end)

t.test("published settings that replace the script's are printed, and --help shows them", function()
  local used = "uses gru's published lr=0.002 (a2c) in place of the script's 0.001"
  local defaults = "uses ppo's defaults lr=0.00025 in place of the script's 0.001"
  for words, text in pairs { ["core=gru"] = used, ["core=galite"] = "no settings are published for galite: uses the script's own lr=0.001\n",
    ["core=gru learner=ppo minibatches=2"] = "gru's published settings are for a2c: " .. defaults,
    ["core=galite learner=ppo minibatches=2"] = "no settings are published for galite: " .. defaults,
    [""] = false, ["core=gru lr=0.5"] = false, ["core=gru lr=0.5 learner=ppo minibatches=2"] = false, ["core=lstm"] = false, ["core=galite lr=0.5"] = false } do
    local info, said = run(words)
    if text then t.ok((said .. "\n"):find(text, 1, true), words .. ": " .. said)
    else t.ok(not said:find("published", 1, true), words .. ": " .. said) end
    if words:find "ppo" and text then t.eq(info.config.lr, 2.5e-4, words) t.eq(info.values_from.lr, "learner", words) end
    if words == "core=gru" then t.eq(info.values_from.lr, "published") end
  end
  local said = shell.mneme(here, "run own.lua core=gru --help")
  t.ok(said:find "\n  lr +0%.002 " and said:find(used, 1, true), said)
  said = shell.mneme(here, "run own.lua --help")
  t.ok(said:find "\n  lr +0%.001 " and not said:find("uses ", 1, true) and said:find "\n  size +script ", said)
end)

t.test("a stored run keeps its size, also one that was stored before there was one", function()
  local info, _, folder = run "core=gru"
  local path = folder .. "/config.json"
  info.config.size, info.config.core.d_model, info.size = nil, nil, nil
  files.write(path, { (files.read(path):gsub('"checksum": "%x+",', "", 1):gsub('"size": "script",?%s*', "")) })
  local said, status = shell.mneme(here, ("run own.lua resume=%s steps=128"):format(folder))
  t.eq(status, 0, said)
  said, status = shell.mneme(here, ("eval %s episodes=2"):format(folder))
  t.eq(status, 0, said)
end)

t.test("a sweep and its report warn where points differ by more than 1.2 times", function()
  local said, status = shell.mneme(here, "sweep own.lua core=gru,lstm estimate=0 jobs=1 run=alike")
  t.eq(status, 0, said)
  t.ok(not said:find("differ in size", 1, true), said)
  for _, words in ipairs { "estimate=0 run=apart", "estimate=1 run=tried" } do
    said, status = shell.mneme(here, "sweep own.lua core=gru,agalite size=published jobs=1 " .. words)
    t.eq(status, 0, said)
    t.ok(said:find "warning: runs differ in size, up to %d[%d.]* times: core=gru has [%d,]+ parameters, core=agalite ", said)
  end
  t.eq(select(2, shell.mneme(here, "report apart")), 0)
  t.ok(files.read(here .. "/apart/report.html"):find("Runs differ in size, up to", 1, true))
end)

t.test("a study of a script: cores by name are as large as the script's own; the first core that gives sizes is the study's own", function()
  local own, sized = run "", run "core=lstm core.d_model=40"
  for name, first in pairs { by_name = '"lstm"', with_sizes = '{ "lstm", d_model = 40 }' } do
    files.write(here .. "/" .. name .. ".lua", { ([[
local mn = require "mneme"
return mn.study { title = "sizes", of = "own.lua", axes = { core = { %s, "agalite", "galite" } }, metrics = { score = { "score" } } }
]]):format(first) })
    local want = name == "by_name" and own.parameters or sized.parameters
    for _, core in ipairs { "lstm", "agalite", "galite" } do
      local folder = ("study-%s-%s"):format(name, core)
      local said, status = shell.mneme(here, ("run %s.lua core=%s run=%s"):format(name, core, folder))
      t.eq(status, 0, said)
      local parameters = json.decode((files.read(("%s/%s/config.json"):format(here, folder)))).parameters
      t.ok(parameters < 1.2 * want and want < 1.2 * parameters, ("%s, core=%s: %d parameters, expected about %d"):format(name, core, parameters, want))
    end
  end
end)

t.test("every study here keeps the sizes that it gives its cores", function()
  for _, thing in ipairs(catalogue.list "experiments") do
    local path = script.locate(thing.name)
    local equal = files.read(path):find('size = "script"', 1, true)          -- it asks for equal ones
    for _, size in ipairs { "", "quick=1", "full=1" } do
      local ok, plan = pcall(sweep.plan, { script = path, seeds = "1" }, { size ~= "" and size or nil })
      local seen = {}
      for _, c in ipairs(ok and #plan.axes > 0 and plan.runs or {}) do
        local of = c.labels.core or ""
        if not seen[of] then
          seen[of] = true
          local survey = script.survey(path, c.words, true)
          local s, core = survey.sizing, survey.cfg.core
          t.ok(equal or not s or s.size == "published" or tonumber(s.size)          -- a number asks for that many
            or s.given.d_model or core[1] == s.script[1] and (s.same or core.d_model) or survey.cfg.parameters,
            ("%s %s core=%s would get another size"):format(thing.name, size, of))
        end
      end
    end
  end
end)
