-- test_train_script.lua -- `mneme run train`: every environment there is, with one learner or the other by turns; environments of a file; what is
-- misspelt.  What the learners make of each kind of observation and action: test_learners.lua.
local t = require "tests.harness"
local files = require "mneme.base.files"
local mn = require "mneme"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SMALL = "num_envs=4 num_steps=16 steps=320 hidden=8 core.d_model=8 threads=1 "
local function mneme(words) return shell.mneme(dir, words) end
local function fine(words) return shell.fine(dir, words) end
local function refused(words, what) shell.refused(dir, words, what) end

local needed = { gridworld = "env.map='#####\n##1##\n#S?.#\n##2##\n#####' " }       -- settings without which there is no environment
for i, id in ipairs(mn.names "envs") do
  local name = id:gsub("%-v%d+$", "")
  t.test("train, evaluate and show " .. name, function()
    local learner = i % 2 == 0 and "ppo" or "a2c"
    local said = fine(("run train env=%s learner=%s %s%srun=%s"):format(name, learner, needed[name] or "", SMALL, name))
    t.ok(said:find("gru on " .. id, 1, true) and said:find("320 steps", 1, true), said)
    fine(("eval %s episodes=2 num_envs=2 time_limit=20"):format(name))
    fine(("view %s out=there.png wait=0"):format(name))           -- without what causes the outcome, which takes seconds
  end)
end

t.test("an environment of a file: its settings, evaluation, resuming", function()
  files.write(dir .. "/sign.lua", { [[
return function(settings)
  return { name = "sign", observation = { 2 }, actions = 2, time_limit = 5,
    reset = function(self, random) self.sign = random(2) return { self.sign - 1, 0 } end,
    step = function(self, action) return { 0, 0 }, (settings.gain or 1) * (action == self.sign - 1 and 1 or 0), false, 1 end }
end
]] })
  files.write(dir .. "/plain.lua", { [[
return { observation = { 1 }, actions = 2, time_limit = 5, reset = function() return { 1 } end, step = function() return { 1 }, 2, false, 0 end }
]] })
  fine("run train env=sign.lua env.gain=3 " .. SMALL .. "run=sign")
  t.ok(fine "eval sign episodes=20":find "length  5%.0")
  fine "run train resume=sign steps=640"
  fine("run train env=plain.lua learner=ppo " .. SMALL .. "run=plain")
  t.ok(fine "eval plain episodes=20":find "return  10%.000")
  local said, status = mneme "run train env=nothere.lua"
  t.ok(status == 1 and said:find("cannot open nothere.lua", 1, true), said)
end)

t.test("settings go where they belong, and what is misspelt is found", function()
  fine("run train env=tmaze env.corridor=7 core=lstm learner=ppo clip_coef=0.3 norm_reward=1 previous=action " .. SMALL .. "run=set")
  local config = files.read(dir .. "/set/config.json")
  for _, pair in ipairs { '"corridor": 7', '"clip": 0.3', '"norm_reward": true', '"previous": "action"' } do t.ok(config:find(pair, 1, true), pair) end
  refused("run train env=tmaz", "unknown environment 'tmaz'; did you mean 'tmaze'")
  refused("run train env.corridr=3", "unknown setting of tmaze: 'corridr'; did you mean 'corridor'")
  refused("run train core=gruu", "did you mean 'gru'")
  refused("run train learner=poo", "unknown learner 'poo'; did you mean 'ppo'")
  refused("run train epochs=3", "epochs is a setting of ppo and pqn, and the learner of this run is a2c")
  local help = fine "run train --help learner=ppo"
  t.ok(help:find("any environment, core and learner, without a script", 1, true) and help:find "\n  env +tmaze" and help:find "\n  clip +0.2", help)
end)

os.execute("rm -rf '" .. dir .. "'")
