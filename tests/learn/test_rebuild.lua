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
