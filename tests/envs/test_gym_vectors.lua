-- test_gym_vectors.lua -- vector environments of Gymnasium in each autoreset mode, as single ones and whole; and runs whose environments cannot be
-- played again.
local t = require "tests.harness"
local ffi = require "ffi"
local python, why = require("tests.support.python")()
if not python then t.test("gym: vector environments of Gymnasium", function() t.skip(why) end) return end
ffi.cdef "int setenv(const char *name, const char *value, int overwrite); int kill(int pid, int signal);"
ffi.C.setenv("PYTHON", python, 1)

local envs = require "mneme.envs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"
local gym_rig = require "tests.support.gym_rig"
local FILE, trace, walk = gym_rig.FILE, gym_rig.trace, gym_rig.walk

-- ---- vector environments ----

local MODES = { "NextStep", "SameStep", "Disabled" }
local old = shell.run("/", ("'%s' -c 'from gymnasium.vector import AutoresetMode' 2>&1"):format(python)) ~= ""

t.test("gym: a vector environment of any mode is stepped as single copies, whose bits are those of the single environment", function()
  if old then t.skip "this Gymnasium has no autoreset modes" return end
  local single = walk { num_envs = 3, seed = 5 }
  single:reset()
  local expected = trace(single, 80)
  for _, mode in ipairs(MODES) do
    local env = envs.new(FILE .. "Vector", { num_envs = 3, seed = 5, mode = mode, score = "up", workers = 2 })
    env:reset()
    local saved
    local first = trace(env, 40)
    saved = env:save(1)
    local rest = trace(env, 80, 41)
    t.eq(first .. "|" .. rest, expected, mode)
    env:restore(1, saved)
    t.ok(env:save(1) == saved)
    t.ok(env.time_limit == 0 and not env.skips)
    env:close()
  end
  single:close()
  local env = envs.new(FILE .. "Vector", { num_envs = 2, task = "mixed", time_limit = 3 })
  t.eq(tostring(env.action_space), "Box(2): arm -3e+38..3e+38, go -1..1")
  env:reset()
  for k = 1, 4 do
    local _, reward, _, truncated = env:step { { 100, 0.5 }, { -3, 9 } }
    t.near(reward:data()[0], 105, 1e-5)
    t.near(reward:data()[1], 7, 1e-5)
    t.eq(truncated:data()[0], k == 3 and 1 or 0)
  end
  env:close()
  t.raises(function() envs.new(FILE .. "Vector", { mode = json.null, kwargs = { mode = json.null } }) end, "autoreset_mode None, expected NextStep")
end)

-- What copy i of a vector lives through, by a policy of its own count of steps; steps that only begin an episode are left out.
local function lives(mode, n, steps)
  local env = envs.new(FILE .. "Vector", { num_envs = n, seed = 5, mode = mode, score = "up", infos = "up", vector = 1 })
  t.ok(env.skips)
  local parts, counts, lost = {}, {}, 0
  local function see(i, x) parts[i] = parts[i] .. ("%.9g %.9g|"):format(x[2 * i], x[2 * i + 1]) end
  local obs = env:reset():data()
  for i = 0, n - 1 do
    parts[i], counts[i] = "", 0
    see(i, obs)
  end
  local wait = {}
  for _ = 1, steps do
    local actions = {}
    for i = 0, n - 1 do actions[i + 1] = (counts[i] * 7 + i * 3) % 2 end
    local x, reward, terminated, truncated, info = env:step(actions)
    for i = 0, n - 1 do
      local over = terminated:data()[i] + truncated:data()[i] > 0
      if wait[i] then
        t.ok(over and info.length:data()[i] == 0 and reward:data()[i] == 0 and info.ret:data()[i] == 0, "a step that only begins an episode")
        wait[i], lost = false, lost + 1
        see(i, x:data())
      else
        counts[i] = counts[i] + 1
        parts[i] = parts[i] .. ("%.9g %d %d "):format(reward:data()[i], terminated:data()[i], truncated:data()[i])
        if over then
          see(i, info.final_obs:data())
          parts[i] = parts[i] .. ("%d %.6g %g "):format(info.length:data()[i], info.ret:data()[i], info.score:data()[i])
          wait[i] = mode == "NextStep"
        end
        if not wait[i] then see(i, x:data()) end
      end
    end
  end
  t.raises(function() env:restore(0, env:save(0)) end, "cannot be played again")
  t.raises(function() env:reset { 1, 2, 3 } end, "no list of seeds")
  local told = {}
  env:metrics(told)
  t.ok(told["env/up"] > 0 and told["env/up"] < 1)
  env:close()
  return parts, lost
end

t.test("gym: a whole vector gives each copy the same life in each mode; the steps that only begin an episode are told", function()
  if old then t.skip "this Gymnasium has no autoreset modes" return end
  local same, none = lives("SameStep", 3, 60)
  t.eq(none, 0)
  for _, mode in ipairs { "NextStep", "Disabled" } do
    local other, lost = lives(mode, 3, 60)
    t.eq(lost > 0, mode == "NextStep")
    for i = 0, 2 do
      local n = math.min(#same[i], #other[i])
      t.ok(n > 500 and same[i]:sub(1, n) == other[i]:sub(1, n), ("%s: copy %d lives otherwise"):format(mode, i))
    end
  end
  local function refused(words, name, settings)
    settings.vector = settings.vector or 1
    t.raises(function() envs.new(name, settings) end, words)
  end
  refused("Walk is no gymnasium.vector.VectorEnv", FILE .. "Walk", {})
  refused("registers no vector of its own", "gym:MountainCar-v0", {})
  refused("workers=2, expected 1", FILE .. "Vector", { workers = 2 })
  refused("vector=3, expected 1", FILE .. "Vector", { vector = 3 })
  refused("time_limit, expected none", FILE .. "Vector", { time_limit = 9 })
  local env = envs.new("gym:CartPole-v1", { vector = 1, num_envs = 5 })
  env:reset()
  local lengths = 0
  for _ = 1, 60 do
    local _, _, terminated, _, info = env:step { 1, 1, 1, 1, 1 }
    for i = 0, 4 do lengths = lengths + (terminated:data()[i] == 1 and info.length:data()[i] or 0) end
  end
  t.ok(lengths > 200 and lengths < 300)
  env:close()
end)

local here = shell.folder()
shell.run(here, ("cp '%s' envs.py"):format((FILE:match "^gym:(.*):$")))
local function mneme(words) return shell.run(here, ("PYTHON='%s' '%s' %s"):format(python, shell.program, words)) end
local TRAIN = "run train env=gym:envs.py:Walk env.score=up core=gru core.d_model=8 hidden=8 num_envs=%d num_steps=16 learner=%s minibatches=1 "

t.test("gym: a run whose environment cannot be played again goes on with new episodes, and says so; a vector likewise", function()
  local function trained(words)
    local said, status = mneme(words)
    t.eq(status, 0, said)
    return said
  end
  shell.run(here, "sed 's/how=\"raise\"/how=\"random\"/' envs.py > luck.py")
  for n, learner in pairs { [1] = "a2c", [2] = "ppo", [6] = "a2c" } do
    local run = "luck" .. n
    trained(TRAIN:format(n, learner):gsub("envs.py:Walk env.score=up", "luck.py:Fails"):gsub(learner == "a2c" and "minibatches=1 " or "%z", "")
      .. ("steps=%d run=%s previous=action,reward norm_obs=1 norm_reward=1 threads=1"):format(64 * n, run))
    local said = trained(("run resume=%s steps=%d threads=1"):format(run, 128 * n))
    t.ok(said:find(("%d of %d environments begin a new episode here.*not reproducible"):format(n, n)), said)
  end
  if old then return end
  for learner, more in pairs { a2c = "", ppo = "minibatches=1 " } do
    local words = TRAIN:format(6, learner):gsub("Walk", "Vector"):gsub("minibatches=1 ", "") .. more .. "env.vector=1 threads=1 run=v" .. learner
    trained(words .. " steps=960")
    local said = trained(("run resume=v%s steps=1920 threads=1"):format(learner))
    t.ok(said:find "6 of 6 environments begin a new episode here", said)
    local lengths = files.text(("%s/v%s/metrics.jsonl"):format(here, learner)):match '.*"charts/episodic_length": ([%d.]+)'
    t.ok(tonumber(lengths) > 9, "steps that only begin an episode count as none")
    trained(("eval v%s episodes=12"):format(learner))
    trained(("intervene v%s erase=all at=1 episodes=4"):format(learner))
  end
  local said, status
  for _, learner in ipairs { "pqn", "stream", "stream_q" } do
    said, status = mneme(("run train env=gym:envs.py:Vector env.vector=1 num_envs=2 num_steps=16 core.d_model=8 steps=64 core=gru run=no learner=%s"):format(
      learner))
    t.ok(status ~= 0 and said:find "steps that only begin an episode, which this learner would learn from", said)
  end
  files.append(here .. "/own.lua", [[
local mn = require "mneme"
mn.learners.mine = mn.on_policy { loss = function(self, batch) return (batch.policy:entropy() * -1):mean() end }
local cfg = mn.config { learner = "mine", steps = 64, num_envs = 2, num_steps = 16, live = false }
if cfg.live then
  mn.learners.mine = mn.on_policy { loss = function(self, batch) return (batch.policy:entropy() * batch.live):sum() / batch.live:sum() end }
end
local env = mn.env("gym:envs.py:Vector", { vector = 1, num_envs = 2 })
return mn.learner(cfg, env, mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8 }):train()
]])
  said, status = mneme "run own.lua run=own"
  t.ok(status ~= 0 and said:find "own.lua:2" and said:find "reads no batch.live", said)
  trained "run own.lua live=1 run=own2"
end)

shell.run("/", ("rm -rf '%s'"):format(here))
