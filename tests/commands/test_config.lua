-- test_config.lua -- settings: what a script declares, what key=value words do to it, and what each
-- mistake says; then run folders: made, refused, resumed, pruned, and equal for equal runs.
local config = require "mneme.runs.config"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local run = require "mneme.runs.run"
local run_folder = require "mneme.runs.run_folder"
local t = require "tests.harness"

local defaults = {
  corridor = 160, core = { "agalite", eta = 4, r = 2 }, steps = 5e6, num_envs = 8, lr = 1e-4, reset = true,
  mode = "grid", sizes = { 64, 64 }, optim = { beta1 = 0.9, inner = { eps = 1e-5 } },
  quick = { corridor = 10, steps = 2e5, core = { "agalite", eta = 2 } },
}
local about = {
  corridor = { "cells from the cue to the junction", range = { 2, 256 }, whole = true }, lr = "learning rate",
  mode = { "what the world is", choices = { "grid", "continuous" } },
  published = { agalite = { lr = 2e-4 }, gru = { lr = 5e-4, core = { d_model = 680 } } },
}

-- The config for these words of a command line.
local function with(words, own_defaults, own_about)
  config.arguments, config.script = {}, "experiments/maze.lua"
  for word in words:gmatch "%S+" do table.insert(config.arguments, word) end
  local ok, result = pcall(config.new, own_defaults or defaults, own_about or about)
  config.arguments, config.script = nil, nil
  if not ok then error(result, 0) end
  return result
end

-- It fails with this message and exit status 2.
local function refused(words, pattern, status)
  local ok, e = pcall(with, words)
  t.ok(not ok, words .. " was taken")
  t.ok(tostring(e):find(pattern), ("%s: expected '%s', got: %s"):format(words, pattern, tostring(e)))
  t.eq(e.status, status or 2, words)
end

t.test("a key of every script may have another default, of the same type only", function()
  t.eq(with("", { checkpoint_every = 5000 }, {}).checkpoint_every, 5000)
  t.fails(function() with("", { view = 7 }, {}) end)
end)

t.test("defaults, and the keys that every script has", function()
  local cfg = with ""
  t.eq(cfg.corridor, 160)
  t.eq(cfg.seed, 1)
  t.eq(cfg.run, "")
  t.eq(cfg.debug, "0")
  t.eq(cfg.core[1], "agalite")
  t.eq(rawget(cfg, "quick"), false, "quick is a switch, its values are not a setting")
  for _, key in ipairs { "run", "resume", "view", "device", "steps", "checkpoint_every", "threads", "profile" } do
    t.ok(cfg[key] ~= nil, key)
  end
end)

t.test("key=value in all its forms", function()
  local cfg = with "corridor=20 --num_envs=4 --num-envs=16 lr=5e-5 reset=false mode=continuous steps=5e6"
  t.eq(cfg.corridor, 20)
  t.eq(cfg.num_envs, 16, "the last one wins")
  t.eq(cfg.lr, 5e-5)
  t.eq(cfg.reset, false)
  t.eq(cfg.mode, "continuous")
  t.eq(cfg.steps, 5e6)
  t.eq(with("--view").view, true)
  t.eq(with("view=1").view, true)
  t.eq(with("run=a=b").run, "a=b")
  cfg = with "sizes=1,2,3 optim.beta1=0.8 optim.inner.eps=1"
  t.eq(table.concat(cfg.sizes, " "), "1 2 3")
  t.eq(cfg.optim.beta1, 0.8)
  t.eq(cfg.optim.inner.eps, 1)
  t.eq(defaults.optim.beta1, 0.9, "defaults are not touched")
end)

t.test("a thing with options: another name drops them, an option may be new", function()
  local cfg = with "core=gru"
  t.eq(cfg.core[1], "gru")
  t.eq(cfg.core.eta, nil)
  t.eq(cfg.core.d_model, 680, "published with the name")
  cfg = with "core.eta=8 core.form=paper core.exact=true"
  t.eq(cfg.core.eta, 8)
  t.eq(cfg.core.r, 2)
  t.eq(cfg.core.form, "paper")
  t.eq(cfg.core.exact, true)
  t.eq(with("core.d_model=64 core=gru").core.d_model, 64, "in any order")
  t.eq(with("core=agalite").core.eta, 4, "the same name keeps its options")
end)

t.test("order: default < published < quick < command line", function()
  t.eq(with("").lr, 2e-4)
  t.eq(with("core=gru").lr, 5e-4)
  t.eq(with("core=gru lr=1").lr, 1)
  t.eq(with("core=galite").lr, 1e-4, "nothing is published for it")
  t.eq(with("quick=1").corridor, 10)
  t.eq(with("quick=1").core.eta, 2)
  t.eq(with("quick=1 corridor=30").corridor, 30)
  t.eq(with("corridor=30 quick=1").corridor, 30)
  local cfg = with "quick=1 core=gru"
  t.eq(cfg.core[1], "gru", "named on the command line")
  t.eq(cfg.core.d_model, 680)
  t.eq(cfg.lr, 5e-4)
  cfg = with("core=gru", { core = { "agalite" }, lr = 1 }, { published = function(name, c) return { lr = #name + c.lr } end })
  t.eq(cfg.lr, 4, "published values may be a function")
  local by_option = { published = { gtrxl = { lr = 5 }, ["gtrxl memory=256"] = { lr = 6 }, ["gtrxl memory=256 n_layers=2"] = { lr = 7 } } }
  for words, lr in pairs { [""] = 1, ["core=gtrxl"] = 5, ["core=gtrxl core.memory=128"] = 5, ["core=gtrxl core.memory=256"] = 6,
    ["core=gtrxl core.n_layers=2 core.memory=256"] = 7, ["core=gtrxl core.memory=256 lr=2"] = 2, ["core=gru core.memory=256"] = 1 } do
    t.eq(with(words, { core = { "agalite" }, lr = 1 }, by_option).lr, lr, words)
  end
end)

t.test("published settings of a learner belong to the core and that learner; what is of the core alone goes with each", function()
  local own = { core = { "agalite" }, learner = "a2c", lr = 1, entropy_coef = 2, num_steps = 3, hidden = 4, quick = { entropy_coef = 5 } }
  local by_both = { published = { agalite = { lr = 1 }, gru = { lr = 10, core = { d_model = 20 }, hidden = 30 }, ["gru learner=ppo"] = { lr = 11 },
    lstm = { entropy_coef = 12 }, ["lstm memory=2"] = { entropy_coef = 13, hidden = 14 } } }
  local learners, learner_settings = require "mneme.learn.learners", require "mneme.runs.learner_settings"
  learner_settings.find = learners.find                    -- as the door sets it
  local ppo = learners.find "ppo".defaults
  for words, want in pairs {
    [""] = { 1, 2, 4 }, ["learner=ppo"] = { ppo.lr, ppo.entropy_coef, 4 }, ["learner=ppo lr=7"] = { 7, ppo.entropy_coef, 4 },
    ["core=gru"] = { 10, 2, 30, 20 }, ["learner=ppo core=gru"] = { 11, ppo.entropy_coef, 4 }, ["core=gru quick=1"] = { 10, 5, 30, 20 },
    ["core=lstm core.memory=2"] = { 1, 13, 14 }, ["core=lstm core.memory=2 learner=ppo"] = { ppo.lr, ppo.entropy_coef, 14 },
    ["core=rwkv4 learner=ppo quick=1"] = { ppo.lr, 5, 4 }, ["core=rwkv4"] = { 1, 2, 4 } } do
    local cfg = with(words, own, by_both)
    t.eq(cfg.lr, want[1], words) t.eq(cfg.entropy_coef, want[2], words) t.eq(cfg.hidden, want[3], words) t.eq(cfg.core.d_model, want[4], words)
    t.eq(cfg.num_steps, 3, words .. ": the script's own, of which nothing is published")
    local from = config.origins(cfg)
    local published = words == "" or want[1] > 1
    t.eq(from.lr, words:find "lr=" and "given" or want[1] == ppo.lr and "learner" or published and "published" or nil, words)
  end
  for _, name in ipairs(learners.names()) do              -- each learner that there is
    local cfg = with("core=lstm learner=" .. name, own, by_both)
    local default = learners.find(name).defaults.entropy_coef
    if default then t.eq(cfg.entropy_coef, name == "a2c" and 12 or default, name) end
  end
  local function problem(published)
    local ok, e = pcall(with, "", { core = { "gru" }, lr = 1 }, { published = published })
    return not ok and tostring(e)
  end
  t.ok(problem { ["gru learner=ppo"] = { lr = 1 } }:find "this script has no setting learner")
  own.learner = "ppo"
  t.fails(function() with("", own, { published = { ["gru learner=pppo"] = { lr = 1 } } }) end)
end)

t.test("mistakes name the key, what was given, what was expected, and exit with 2", function()
  refused("coridor=20", "^unknown setting 'coridor'; did you mean 'corridor'%?")
  refused("xyzzy=20", "unknown setting 'xyzzy' %(known: checkpoint_every core corridor")
  refused("corridor=abc", "corridor=abc: expected a number")
  refused("corridor=nan", "corridor=nan: expected a number")
  refused("corridor=1e999", "corridor=1e999: expected a number")
  refused("corridor=", "corridor=: expected a number")
  refused("corridor=0", "corridor=0: expected 2..256")
  refused("corridor=1e9", "corridor=1e9: expected 2..256")
  refused("corridor=20.5", "corridor=20.5: expected a whole number")
  refused("reset=maybe", "reset=maybe: expected 1 or 0 %(or true, false, on, off, yes, no%)")
  refused("mode=gird", "mode=gird: expected one of grid, continuous %(did you mean 'grid'%?%)")
  refused("corridor=10,20", "corridor=10,20: expected one number %(lists of values are for mneme sweep%)")
  refused("core.remember=1,3,10", "core.remember=1,3,10: expected one string %(.*channels from 1 to 10 steps: core.remember=1%.%.10%)")
  refused("core=gru,agalite", "core=gru,agalite: expected one name %(lists")
  refused("core=", "core=: expected a name")
  refused("optim=3", "optim=3: it is a group of settings %(such as optim.beta1%)")
  refused("optim.gamma=3", "unknown setting 'optim.gamma'")
  refused("lr.x=3", "lr.x: lr is a number and has no parts")
  refused("sizes=1,x", "sizes=x: expected a number")
  refused("core.a.b=1", "core.a.b: an option has no parts")
  refused("seed=-1", "seed=%-1: expected 0..")
  refused("steps=0", "steps=0: expected at least 1")
  refused("--corridor", "'%-%-corridor' has no value %(write corridor=VALUE%)")
  refused("corridor", "'corridor' has no value %(write corridor=VALUE, without blanks%)")
  refused("device=cuda", "device=cuda: tensors live on cpu already %(mneme run SCRIPT device=cuda chooses")
  refused("-x", "'%-x' is not a setting")
end)

t.test("mistakes of the script are the script's", function()
  t.raises(config.new, "f is a function, expected a number", { f = print })
  t.raises(config.new, "'a b' cannot be a key", { ["a b"] = 1 })
  t.raises(config.new, "unknown setting 'lrr'; did you mean 'lr'", { lr = 1 }, { lrr = "?" })
  t.raises(config.new, "unknown field of lr 'rnage'; did you mean 'range'", { lr = 1 }, { lr = { "x", rnage = { 0, 1 } } })
  t.raises(with, "unknown setting in quick: 'lrr'", "quick=1", { lr = 1, quick = { lrr = 2 } }, {})
  t.raises(with, "lr = a, expected a number", "quick=1", { lr = 1, quick = { lr = "a" } }, {})
  t.raises(with, "this script has no quick values", "quick=1", { lr = 1 }, {})
  t.raises(with, "test_config.lua:%d+: lr=5: expected 0..1", "", { lr = 5 }, { lr = { "rate", range = { 0, 1 } } })
  local cfg = with ""
  t.fails(function() return cfg.coridor end)
end)

-- ---- run folders ----

local mn = require "mneme"
local dir = os.tmpname()
os.remove(dir)

-- A training of nothing: `to` steps by tens from where the run stands; a checkpoint every 50.
local function train(cfg, to, score)
  local r = run.open(cfg, { env = "maze-v0" })
  local w, from = mn.tensor { 0 }, r:latest()
  if from then w:copy(from.tensors.w) end
  for step = (from and from.step or 0) + 10, to, 10 do
    w:data()[0] = w:data()[0] + step
    r:log(step, { ["charts/w"] = w:data()[0], ["losses/nan"] = 0 / 0 })
    if r:due(step) then r:checkpoint(step, { { "w", w } }, { at = step }, score and score(step)) end
  end
  r:close(0)
  return r
end

t.test("a key that is nearly one that Mneme reads, and that nothing reads, is refused at its line", function()
  local path = dir .. "/misspelt.lua"
  files.make_folder(dir)
  local function ran(text)
    files.write(path, { "local mn = require 'mneme'\nlocal cfg = mn.config(", text, "\n)\nreturn cfg\n" })
    return pcall(function() return require("mneme.base.registry").load(path)() end)
  end
  local ok, e = ran "{ learner = 'a2c',\n  num_stpes = 32 }"
  t.ok(not ok and tostring(e):find("misspelt.lua:3: unknown setting 'num_stpes'; did you mean 'num_steps'? (nothing reads num_stpes here", 1, true),
    tostring(e))
  t.eq(e.status, 2)
  ok, e = ran "{ stpes = 32 } -- stpes"
  t.ok(not ok and tostring(e):find "did you mean 'steps'", tostring(e))
  for _, own in ipairs { "{ num_stpes = 32 }, { num_stpes = 'of another machine' }", "{ num_stpes = 32 }).num_stpes, (3", "{ colour = 1, stop = 2 }",
    "{ num_steps = 32 }" } do
    ok, e = ran(own)
    t.ok(ok, own .. ": " .. tostring(e))
  end
end)

t.test("a run folder holds what was set, and equal runs are equal files", function()
  local a = train(with("checkpoint_every=50 core=gru run=" .. dir .. "/a"), 100)
  train(with("checkpoint_every=50 core=gru run=" .. dir .. "/b"), 100)
  local info = json.decode(files.read(dir .. "/a/config.json"))
  t.eq(info.config.core.name, "gru")
  t.eq(info.config.core.d_model, 680)
  t.eq(info.config.lr, 5e-4)
  t.eq(info.env, "maze-v0")
  t.eq(info.script, "experiments/maze.lua")
  t.eq(info.config.run, nil, "a folder may be moved")
  t.eq(a.path, dir .. "/a")
  t.eq(files.read(dir .. "/a/metrics.jsonl"):match "[^\n]*", '{"step": 10, "charts/w": 10, "losses/nan": "NaN"}')
  for _, name in ipairs { "metrics.jsonl", "checkpoints/step-50.safetensors", "checkpoints/step-100.safetensors" } do
    t.eq(files.read(dir .. "/a/" .. name), files.read(dir .. "/b/" .. name), name)
  end
end)

t.test("a folder that holds a run is refused, and so is a resume of nothing", function()
  local ok, e = pcall(with, "run=" .. dir .. "/a")
  t.ok(not ok and tostring(e):find("already holds a run %(resume=.*/a goes on with it%)"), tostring(e))
  t.eq(e.status, 2)
  refused("resume=" .. dir .. "/none", "none: there is no such run")
  refused("resume=/tmp", "/tmp: not a run")
  for _, path in ipairs { "/", "//", "/.", "/../" } do refused("run=" .. path, "expected a folder of its own") end
  refused("resume=" .. dir .. "/a lr=1", "resume takes every value from .*config.json: 'lr' cannot change")
end)

-- Its manifest is of no start of it.
local function as_if_killed(name)
  files.write(dir .. "/" .. name .. "/manifest.json", { require("mneme.base.json").sealed.encode { starts = 0, files = json.array {} } })
end

t.test("resuming cuts the log back and goes on as if nothing had happened", function()
  train(with("checkpoint_every=50 steps=200 run=" .. dir .. "/whole"), 200)
  train(with("checkpoint_every=50 steps=200 run=" .. dir .. "/cut"), 130)      -- dies 30 steps after its checkpoint
  files.append(dir .. "/cut/metrics.jsonl", '{"step": 14')                     -- in the middle of a line, before its start has ended
  as_if_killed "cut"
  local cfg = with("resume=" .. dir .. "/cut")
  t.eq(cfg.checkpoint_every, 50, "settings come from the run")
  local r = train(cfg, 200)
  t.ok(r.resumed)
  for _, name in ipairs { "metrics.jsonl", "checkpoints/step-200.safetensors" } do
    t.eq(files.read(dir .. "/cut/" .. name), files.read(dir .. "/whole/" .. name), name)
  end
  t.eq(#files.read(dir .. "/cut/events.out.tfevents.mneme"), #files.read(dir .. "/whole/events.out.tfevents.mneme"))
end)

local function quietly(f, ...)               -- without what it says on stderr
  local old = io.stderr
  local said = {}
  io.stderr = { write = function(_, ...) for _, s in ipairs { ... } do said[#said + 1] = s end end }
  local ok, result = pcall(f, ...)
  io.stderr = old
  return ok, result, table.concat(said)
end

t.test("a finished run says so and exits with 0, unless it is to go further", function()
  local ok, e, said = quietly(run.open, with("resume=" .. dir .. "/whole"))
  t.ok(not ok and e.status == 0 and said:find "is finished: 200 steps", said)
  train(with("steps=300 resume=" .. dir .. "/whole"), 300)
  t.eq(with("resume=" .. dir .. "/whole").steps, 300, "the next resume goes as far")
end)

t.test("the last three checkpoints and the best are kept", function()
  local r = train(with("checkpoint_every=10 run=" .. dir .. "/best"), 100, function(step) return step == 30 and 0.9 or 0.1 end)
  t.eq(table.concat(files.list(dir .. "/best/checkpoints"), " "),
    "step-100.safetensors step-30.safetensors step-80.safetensors step-90.safetensors")
  t.eq(r:best().step, 30)
  t.eq(run_folder.load(dir .. "/best"):best().counters.at, 30)
  train(with("resume=" .. dir .. "/best"), 120, function() return 0 / 0 end)
  t.eq(table.concat(files.list(dir .. "/best/checkpoints"), " "),
    "step-100.safetensors step-110.safetensors step-120.safetensors step-30.safetensors", "also after resuming")
end)

t.test("a damaged checkpoint is passed over with a warning, and never taken for the newest again", function()
  train(with("checkpoint_every=50 steps=200 run=" .. dir .. "/bad"), 120)
  local path = dir .. "/bad/checkpoints/step-100.safetensors"
  local text = files.read(path)
  local f = io.open(path, "wb")
  f:write(text:sub(1, -2) .. string.char((text:byte(-1) + 1) % 256))
  f:close()
  as_if_killed "bad"                                     -- of a start that ended it is refused
  local ok, r, said = quietly(train, with("resume=" .. dir .. "/bad"), 200)
  t.ok(ok, tostring(r))
  t.ok(said:find "step%-100.safetensors: damaged: its checksum" and said:find "using the one before", said)
  t.eq(files.read(dir .. "/bad/metrics.jsonl"), files.read(dir .. "/cut/metrics.jsonl"))
  t.ok(files.is_file(path .. ".damaged"), "what is damaged is kept for whoever wants to look")
end)

t.test("a damaged config.json is an error of one line", function()
  local path = dir .. "/bad/config.json"
  files.write(path, { '{"config": \n' })
  refused("resume=" .. dir .. "/bad", "^[^\n]*config.json:2:%d+: not valid JSON[^\n]*$", 1)
  files.write(path, { "[]" })
  refused("resume=" .. dir .. "/bad", "config.json: damaged: it has no config", 1)
  for _, key in ipairs { "script", "env", "host" } do
    files.write(path, { ('{"%s": 7, "config": {}}'):format(key) })
    refused("resume=" .. dir .. "/bad", ("config.json: damaged: %s is 7, expected a text"):format(key), 1)
  end
  files.write(path, { '{"config": {"lrr": 1}}' })
  refused("resume=" .. dir .. "/bad", "unknown setting in .*config.json: 'lrr'")
end)

os.execute("rm -rf " .. dir)
