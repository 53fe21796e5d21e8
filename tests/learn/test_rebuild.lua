-- test_rebuild.lua -- a run whose environment is written in its script can be evaluated and looked at, too.
local t = require "tests.harness"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local dir = shell.folder()

files.write(dir .. "/sign.lua", { [[
local mn = require "mneme"
local cfg = mn.config { gain = 1, core = { "gru", d_model = 8 }, num_envs = 4, num_steps = 8, hidden = 8, steps = 64 }
local env = mn.env { name = "sign", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 5,
  reset = function(self, random) self.sign = random(2) return { self.sign - 1, cfg.gain } end,
  step = function(self, action) return { 0, 0 }, cfg.gain, false, 0 end }
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.a2c(cfg, env, agent):train()
]] })

local function mneme(words) return shell.mneme(dir, words) end

t.test("eval and view make the environment again by the run's script, with the run's settings, and train nothing", function()
  t.eq(select(2, mneme "run sign.lua run=there gain=3 threads=1"), 0)
  local checkpoints = table.concat(files.list(dir .. "/there/checkpoints"), " ")
  local said = shell.fine(dir, "eval there episodes=20")
  t.ok(said:find "return  15%.000  %+%- 0%.000", said)         -- five steps of gain=3
  t.ok(said:find "length  5%.0 ", said)
  t.ok(mneme "eval there episodes=20 time_limit=7":find "return  21%.000")
  t.eq(select(2, mneme "view there out=there.png"), 0)
  t.eq(files.read(dir .. "/there.png"):sub(2, 4), "PNG")
  t.eq(table.concat(files.list(dir .. "/there/checkpoints"), " "), checkpoints)
end)

t.test("an episode of a run whose environment is in its script is shown and compared; elsewhere the reason is told", function()
  local episode = dir .. "/there/episodes/step-64.mnt"
  t.ok(files.is_file(episode), "training left no episode")
  local said, status = shell.mneme(dir, "view there/episodes/step-64.mnt out=episode.png")
  t.eq(status, 0, said)
  t.ok(not said:find "warning", said)
  said, status = mneme "diff there/episodes/step-64.mnt there/episodes/step-64.mnt"
  t.ok(status == 0 and said == "equal in all 5 steps\n", said)
  files.write(dir .. "/stray.mnt", { (files.read(episode)) })
  said, status = mneme "view stray.mnt out=stray.png"
  t.ok(status == 1 and said:find "stray.mnt: the rules of sign%-v0 are Lua functions of sign.lua: only that file can replay it %(env=RUN", said)
end)

t.test("an episode that lies anywhere is shown and compared with the run, the script or the file of its environment", function()
  files.write(dir .. "/rules.lua", { [[
return { name = "sign", observation = { 2 }, actions = 2, time_limit = 5, reset = function(self, random) self.sign = random(2) return { self.sign - 1, 3 } end,
  step = function() return { 0, 0 }, 3, false, 0 end }
]] })
  files.write(dir .. "/with_gain.lua", { (("return function(settings)\n" .. files.read(dir .. "/rules.lua") .. "end\n"):gsub(" 3", " (settings.gain or 3)")) })
  t.eq(select(2, mneme "play rules.lua keys=5*1 record=played.mnt"), 0)
  t.eq(select(2, mneme "play with_gain.lua gain=3 seed=2 keys=5*1 record=gained.mnt"), 0)
  for _, name in ipairs { "stray", "played", "gained" } do
    for _, from in ipairs { "there", "rules.lua", "with_gain.lua" } do
      local said, status = mneme(("view %s.mnt env=%s out=%s.png"):format(name, from, name))
      t.ok(status == 0 and not said:find "warning", said)
      said, status = mneme(("diff %s.mnt %s.mnt env=%s"):format(name, name, from))
      t.ok(status == 0 and said == "equal in all 5 steps\n", said)
    end
  end
  local said, status = mneme "view stray.mnt env=sign.lua out=stray.png"           -- whose gain is 1
  t.ok(status == 0 and said:find "warning: stray.mnt: step 0: reward 1, recorded 3", said)
  for words, expected in pairs { ["view stray.mnt env=nowhere out=s.png"] = "nowhere: there is no such run", ["view there env=rules.lua out=s.png"] =
      "env=rules.lua goes with a trajectory", ["diff there there env=rules.lua"] = "env=rules.lua goes with trajectories",
      ["play rules.lua gain=3 keys=1"] = "it has no setting 'gain'" } do
    said, status = mneme(words)
    t.ok(status ~= 0 and said:find(expected, 1, true), said)
  end
  t.eq(select(2, mneme "eval there episodes=2 record=kept"), 0)
  t.eq(select(2, mneme "view kept/episode-1.mnt out=kept.png"), 0)                 -- the run that recorded it is at its place
  said, status = shell.run(dir, "mkdir -p away; cd away; '" .. shell.program .. "' view ../kept/episode-1.mnt out=kept.png")
  t.ok(status == 1 and said:find "env=RUN", said)
end)

t.test("the environment of a script can be played by hand, with the script's settings", function()
  local said, status = mneme "play sign.lua gain=3 keys=5*1"
  t.ok(status == 0 and said:find "^episode 0: score 0.00, return %+15.00, 5 steps\n$", said)
  said, status = mneme "play sign.lua gian=3 keys=1"
  t.ok(status == 2 and said:find "did you mean 'gain'", said)
  files.write(dir .. "/nothing.lua", { "print 'hello'" })
  said, status = mneme "play nothing.lua keys=1"
  t.ok(status == 1 and said:find "trains no agent in an environment", said)
end)

t.test("what the script alone decides cannot be changed from outside; a script that is gone is missed", function()
  local said, status = mneme "eval there gain=4"
  t.eq(status, 2)
  t.ok(said:find "gain cannot change: its environment is written in sign.lua", said)
  os.rename(dir .. "/sign.lua", dir .. "/other.lua")
  t.eq(select(2, mneme "eval there episodes=4"), 0, "renamed: it has the same text")
  os.rename(dir .. "/other.lua", dir .. "/other.txt")
  t.eq(select(2, mneme "eval there episodes=4"), 0, "the copy that the run keeps, which a run of one's own wrote")
  said, status = shell.stranger(dir, "eval there episodes=4")
  t.ok(status == 2 and said:find("trust=1", 1, true), said)
  t.eq(select(2, mneme "eval there episodes=4 trust=1"), 0)
end)

os.execute("rm -r " .. dir)
