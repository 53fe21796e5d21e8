-- test_typed.lua -- what people type who are nearly right: one line that says what to write instead.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local setting_types = require "mneme.base.setting_types"

local dir = shell.folder()
shell.fine(dir, "run demo core=gru core.d_model=8 hidden=8 steps=2048 num_envs=4 num_steps=32 threads=1 where=0 run=runs/demo")
files.write(dir .. "/ungated.lua", { 'return require("mneme").core.preset("galite", { gate = "none" }, { doc = "linear attention" })\n' })

local rules = "observation = { 1 }, actions = 2, reset = function() return { 0 } end, step = function() return { 0 }, 0 end"
files.write(dir .. "/script.lua", { "local mn = require 'mneme'\nlocal cfg = mn.config { many = 3 }\nreturn mn.env { num_envs = cfg.many, ", rules, " }\n" })
files.write(dir .. "/returns.lua", { "return require('mneme').env { ", rules, " }\n" })

-- What is typed, and what is answered: exit status 2, one line.
local typed = {
  { "run tmaze.lua", "did you mean the experiment tmaze%? mneme run tmaze" }, { "run demo.lua", "mneme run demo" },
  { "tmaze", "did you mean mneme run tmaze%?" }, { "ok.lua", "did you mean mneme run ok.lua%?" }, { "train demo", "did you mean mneme run demo%?" },
  { "plot runs/demo", "did you mean mneme compare runs/demo%?" },
  { "resume runs/demo", "did you mean mneme run resume=runs/demo%?" }, { "runs/demo", "did you mean mneme view runs/demo%?" },
  { "run demo core gru", "write core=gru, without blanks" }, { "run demo core = nothing", "unknown core 'nothing'" },
  { "run demo quick", "write quick=1, without blanks" }, { "run demo gru", "write core=gru" },
  { "run demo --lr steps=64", "'%-%-lr' has no value %(write lr=VALUE" }, { "run demo --num-envs", "write num_envs=VALUE" },
  { "run demo --learning-rate", "write lr=" },
  { "run demo --cuda", "write device=cuda" }, { "eval runs/demo --episodes", "'%-%-episodes' has no value" },
  { "sweep demo --seeds", "'%-%-seeds' has no value" },
  { "compare demo,demo", "written apart: demo demo" }, { "run demo lr=fast", "such as 0.01 or 3e%-4" }, { "run demo ent_coeff=1", "write entropy_coef=1" },
  { "run demo core=griffin", "nearest: lru" },
  { "run demo steps=1x", "steps=1x: expected a number, such as 5e6, 300k or 2M" },
  { "run demo env=memory_maze", "mneme run train env=memory_maze" }, { "run demo d_model=8", "core.d_model=8" },
  { "run demo gpu=1", "write device=cuda" }, { "run demo n_steps=8", "write num_steps=8" }, { "run demo foo=1", "^mneme: unknown setting 'foo'" },
  { "compare runs/demo by=los", "unknown curve for by = 'los'" }, { "compare runs/demo by=value", "write losses/value_loss" },
  { "eval runs/demo episode=100", "write episodes=N" }, { "intervene runs/demo erase=all at=1 episode=3", "write episodes=N" },
  { "eval runs/demo episods=100", "did you mean 'episodes' %(" },
  { "view runs/nothere", "runs/nothere: there is no such run" }, { "run " .. dir .. "/runs", "is a folder, expected a script" },
  { "run " .. dir .. "/runs/demo", "resume=" }, { "check ungated.lua script.lua", "mneme check ungated.lua checks it alone" },
  { "run demo threads=nan", "^mneme: threads=nan: expected a number" },
  { "run demo steps=-5", "^mneme: steps=%-5: expected at least 1\n" }, { "sweep demo core=gru,xyz", "unknown value of axis core: 'xyz'" },
  { "run demo clip_coef=-1 learner=ppo", "^mneme: clip_coef=%-1: expected at least 0 %(clip_coef is called clip here%)" },
  { "run demo steps=64 --steps=128", "^mneme: steps is given twice: steps=64 and steps=128 %(write one of them%)" },
  { "run demo lr=1 learning_rate=1", "lr is given twice: lr=1 and learning_rate=1" }, { "sweep demo seeds=1 seeds=2", "seeds is given twice" },
  { "run demo stop_score=7", "stop_score=7: expected 0..1" }, { "run train stop_score=7", "stop_score=7: expected %-1%.%.1" },
  { "eval runs/demo core.d_model=8", "unknown setting 'core.d_model'" }, { "eval runs/demo env.corridr=8", "did you mean 'corridor' %(" },
  { "run train env=script.lua", "^script.lua:2: mn.config: the settings of this run are declared at .*mneme run script.lua" },
  { "run train env=returns.lua", "returns.lua returns an mn.env, expected the table that mn.env takes", 1 },
  { "run demo threads=auto", "expected a number.*%(write 0: " }, { "run demo steps=one", "expected a number.*%(environment steps" },
  { "run demo device=gpu", "write cuda: " }, { "run demo precision=float32", "write fp32" }, { "run demo core=galite core.gate=input", "write elementwise" },
  { "run demo core.d_model=wide", "expected a number" }, { "run demo batch_size=64", "write num_envs=N and num_steps=N" },
  { "run demo n_seeds=3", "write seeds=3" }, { "run demo jobs=3", "write jobs=3" }, { "run demo env.corridor=3", "itself: corridor=3" },
  { "run demo max_episode_steps=9", "run train env=NAME env.time_limit=9" }, { "run demo core:gru", "write core=gru" }, { "run demo 20", "KEY=20" },
  { "run demo core=gru core=d_model=8", "write core.d_model=8" }, { "run script", "did you mean the file script.lua" }, { "run lstm", "run tmaze core=lstm" },
  { "run config.yaml", "a script is a file of Lua" }, { "run mine.py", "a script is a file of Lua" }, { "run tmaze.py", "mneme run tmaze%)" },
  { "run tmaze trials=3", "mneme sweep SCRIPT lr=.* budget=NxS" }, { "where runs/demo layer=0", "mneme intervene RUN erase=" },
  { "probe runs/demo target=cue", "write facts=NAME" }, { "eval runs/demo checkpoint=first", "RUN/checkpoints" },
  { "help how do I load it", "mneme help docs" }, { "sweep demo seeds=1 seed=1,2", "expected one of them" },
  { "run T-Maze", "did you mean 'tmaze'" }, { "run memory-length", "run train env=NAME: memory_chain" },
  { "eval runs/demo/runs/core=gru,seed=1", "no such run %(the newest is" }, { "eval step", "step: there is no such run %(the newest is runs/demo" },
  { "eval latest", "did you mean the newest, runs/demo" }, { "run resume=latest", "did you mean the newest, runs/demo" },
  { "eval runs/demo/checkpoints/step-2048.safetensors", "did you mean runs/demo checkpoint=2048" },
  { "view runs/demo/checkpoints", "did you mean runs/demo%?" }, { "eval runs/demo/metrics.jsonl", "did you mean runs/demo%?" },
  { "where runs/demo/source/", "did you mean runs/demo%?" },
  { "eval runs/demo deterministic", "write greedy=1" }, { "eval runs/demo corridor=3,4", "expected one value" }, { "eval runs/demo checkpoint=best", "best=1" },
  { "eval runs/demo runs/demo", "mneme compare runs/demo runs/demo" }, { "intervene runs/demo erase=all at=1 out=x.png", "expected a name ending in .svg" },
  { "intervene runs/demo erase=all at=1,2", "one step at a time" }, { "play tmaze keys=right*3", "write 3%*right" },
  { "export runs/demo to=x.pt", "%.py %(PyTorch%)" },
  { "run train learner=ppo num_envs=6 minibatches=4", "minibatches=1, 2, 3 or 6" },
  { "run train learner=ppo horizon=50", "horizon=1, 2, 4, 8, 16, 32, 64 or 128" },
  { "run tmaze previous=action", "mneme run train previous=action" }, { "run train learner=mine", "above mn.config: mn.learners.mine = mn.on_policy" },
  { "list runs gru", "there is no such folder" }, { "list tmaze", "mneme help tmaze" }, { "--list", "mneme list%?" },
  { "run demo core.reset=perhaps", "expected 1 or 0 %(or true or false%)" }, { "run demo carry=perhaps", "carry=perhaps: expected 1 or 0" },
}

t.test("a command that is nearly right is answered with the right one", function()
  for _, row in ipairs(typed) do
    local text, rc = shell.mneme(dir, row[1])
    t.ok(text:find(row[2]), ("mneme %s: expected '%s', got: %s"):format(row[1], row[2], text))
    t.eq(rc, row[3] or 2, row[1])
    t.eq(select(2, text:gsub("\n", "")), 1, row[1] .. ": lines")
  end
  t.ok(not files.is_folder(dir .. "/runs/demo-1"), "nothing has been run")
end)

t.test("a setting of the environment may have env. in front where a run is played", function()
  local plain, prefixed = shell.mneme(dir, "eval runs/demo corridor=6 episodes=20"), shell.mneme(dir, "eval runs/demo env.corridor=6 episodes=20")
  t.ok(plain:find "success %d")
  t.eq(prefixed, plain)
  t.ok(plain ~= shell.mneme(dir, "eval runs/demo episodes=20"), "the setting matters")
end)

t.test("numbers and switches as people write them; other programs' names", function()
  local base = "run demo core=gru core.d_model=8 hidden=8 num_envs=4 num_steps=32 threads=1 where=0 "
  for i, words in ipairs { "steps=2k core.reset=0", "total_timesteps=2_000 core.reset=1", "steps=0.002M learning_rate=1e-3 carry=yes" } do
    local path = "runs/number" .. i
    local text, rc = shell.mneme(dir, base .. words .. " run=" .. path)
    t.eq(rc, 0, text)
    local info = files.read(dir .. "/" .. path .. "/config.json")
    t.ok(info:find '"steps": 2000[,\n]', info)
    t.ok(info:find('"reset": ' .. (i == 1 and "false" or "true")), info)
  end
end)

t.test("help of what is typed", function()
  for topic, pattern in pairs { overwrite = "mneme run overwrite %-%-help", demo = "mneme run demo %-%-help", mind = "^scene mind: ",
    tensor = "^mn.tensor%(", lr = "learning rate",
    core = "\n  gru ", ["mn.adam"] = "^mn.adam%(.-%)\n", ["mn.linear"] = "^mn.linear ",
    adam = "^mn.adam%(.*inputs", ["core.eta"] = "^eta: a setting of cores", ["gate=mega"] = "gate=mega", axes = "core.gate",
    memories = "\n  gru ", n_envs = "num_envs=N: environments that are stepped together",
    environments = "\n  tmaze%-v", studies = "\n  fig13a_gating ", experiment = "\n  demo ",
    scene = "\n  mind ", learner = "\n  ppo ",
    num_envs = "environments that are", sight = "mneme run memory_maze sight=7", runs = "mneme list runs", settings = "key=value",
    ["core ungated.lua"] = "linear attention.*parameters" } do
    local text, rc = shell.mneme(dir, "help " .. topic)
    t.ok(rc == 0 and text:find(pattern), ("help %s: %s"):format(topic, text))
  end
end)

t.test("every setting of every experiment has a meaning; a study says what it is", function()
  local registry, script = require "mneme.base.registry", require "mneme.runs.script"
  local studies = 0
  for _, name in ipairs(registry.names "experiments") do
    local text, rc = shell.run(dir, ("COLUMNS=2000 '%s' run %s --help"):format(shell.program, name))
    t.eq(rc, 0, text)
    local survey = script.survey(registry.file("experiments", name, "experiment"), {})
    for key, entry in pairs(survey.schema) do
      if not entry.of_learner then
        local line = text:match("\n  " .. key .. " +([^\n]*)")
        local shown = setting_types.show(entry.default)      -- a long one has its meaning in the next line
        t.ok(#shown > 24 or line ~= shown and line ~= "", ("run %s --help: %s has no meaning: %s"):format(name, key, tostring(line)))
      end
    end
    if survey.spec then
      studies = studies + 1
      t.ok(text:find "\nstudy\n  question " and text:find "\n  runs +%d+: %d+ point" and text:find("mneme sweep " .. name), text)
      for axis in pairs(survey.spec.axes) do t.ok(text:find("\n  axis " .. axis .. " "), text) end
      t.eq(select(2, text:gsub("\n  claim %d", "")), #(survey.spec.claims or {}), name)
    end
  end
  t.ok(studies >= 20)
end)

t.test("a study that is run says that it is one point of many, and how to run all", function()
  local text, rc = shell.mneme(dir, "run params_memory_ops run=runs/one")
  t.ok(rc == 0 and text:find "one point of 9, with one seed of 1; all 9 runs.*mneme sweep params_memory_ops\n", text)
  local swept = shell.mneme(dir, "sweep params_memory_ops core=gru jobs=1 estimate=0 run=runs/swept")
  t.ok(not swept:find "one point" and not files.read(dir .. "/runs/swept/runs/core=gru,seed=1/log.txt"):find "one point", swept)
end)

t.test("check names the line of a core's file", function()
  files.write(dir .. "/wrong.lua", { [[
local mn = require "mneme"
return { doc = "keeps what it should clear", config = { d_in = 4, reset = true }, build = function(cfg)
  local net = mn.nn.linear(cfg.d_in, 4)
  return { module = net, d_out = 4, states = { h = "[B,K]" }, sizes = { K = 4 }, forward = function(x, _, state)
    local y = net(x)
    return y, { h = state.h:matmul(y) }
  end }
end }
]] })
  local text, rc = shell.mneme(dir, "check core=wrong.lua")
  t.ok(rc == 1 and text:find "wrong.lua:6: matmul: " and text:find "its forward begins at wrong.lua:4", text)
end)

os.execute(("rm -rf '%s'"):format(dir))

t.test("--help of a study that tunes says what the tuning runs first; of one elsewhere, the command has its path", function()
  local told = shell.mneme(shell.folder(), "run tmaze_tuned --help")
  t.ok(told:find("tuning, quick=1  entropy_coef, lr: 40x2e6 trials x steps for each memory", 1, true), told)
  local there = shell.folder()
  files.write(there .. "/mine.lua", { [[
local mn = require "mneme"
return mn.study { title = "mine", axes = { a = { 1, 2 } }, settings = { steps = 10 }, metrics = { score = { "score" } },
  run = function(cfg) return { score = cfg.a } end }
]] })
  told = shell.mneme(shell.folder(), ("run '%s/mine.lua' --help"):format(there))
  t.ok(told:gsub("%s+", ""):find("mnemesweep" .. there .. "/mine.lua", 1, true), told)
end)
