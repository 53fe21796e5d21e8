-- test_training_recorder.lua -- episodes of training and of evaluation that become files: the latest whole one, as it was lived,
-- and what the agent had in mind.
local ffi = require "ffi"
local t = require "tests.harness"
local episode_recorder = require "mneme.insight.episodes.episode_recorder"
local training_recorder = require "mneme.insight.episodes.training_recorder"
local envs = require "mneme.envs.env"
local fresh_episodes = require "mneme.insight.episodes.fresh_episodes"
local files = require "mneme.base.files"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local trajectory_replay = require "mneme.insight.episodes.trajectory_replay"
local env_rig = require "tests.support.env_rig"
local trajectory = require "mneme.insight.episodes.trajectory"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

-- With the setting that the recorder reads: no episode comes by time alone.
local function recorded(learner)
  learner.cfg = { record_every = 1e6 }
  return learner
end

-- What a diary sees of a learner, with fixed actions; it writes down what copy 0 lived through.
local function learner_of(env, T)
  local B = env.num_envs
  local r = env_rig.rig(env)
  local room = ffi.new("char[?]", (T + 1) * B * r.bytes)
  local row, lived = { x = {}, done = {}, played = {} }, {}
  for k = 0, T do
    row.x[k], row.done[k], row.played[k] = room + k * B * r.bytes, ffi.new("uint8_t[?]", B), ffi.new("int32_t[?]", B)
  end
  env:reset_raw(row.x[T], 3)
  local learner = { env = env, T = T, row = row, room = room, lived = lived, agent = { title = function() return "nobody" end } }
  function learner.advance()
    ffi.copy(row.x[0], row.x[T], B * r.bytes)
    ffi.copy(row.done[0], row.done[T], B)
    for k = 0, T - 1 do
      for b = 0, B - 1 do row.played[k][b] = env_rig.act(b, #lived, env.action_space.n) end
      env:step_raw(row.played[k], row.x[k + 1], r.reward, r.terminated, r.truncated)
      for b = 0, B - 1 do row.done[k + 1][b] = math.max(r.terminated[b], r.truncated[b]) end
      lived[#lived + 1] = { action = row.played[k][0], reward = r.reward[0], over = row.done[k + 1][0] ~= 0 }
    end
  end
  return learner
end

-- First and last step of the latest whole episode among those lived, not counting the very first.
local function latest(lived)
  local last, first
  for k = #lived, 1, -1 do
    if lived[k].over then
      if last then first = k + 1 break end
      last = k
    end
  end
  return first, last
end

local counted = 0
local function in_lua(spoilt)
  return envs.new { name = "walk", observation = { 2 }, actions = 3, num_envs = 2,
    reset = function(self, random) self.x, self.goal = 0, 2 + random(9) return { 0, random() } end,
    step = function(self, action, random)
      self.x = self.x + action
      counted = counted + 1
      return { self.x, spoilt and counted or random() }, action / 3, self.x >= self.goal, 1
    end }
end

for _, case in ipairs { { "tmaze", function() return envs.new("tmaze", { corridor = 3, num_envs = 3, time_limit = 30 }) end },
  { "rules in Lua", in_lua }, { "long episodes", function() return envs.new("tmaze", { corridor = 50, num_envs = 2, time_limit = 45 }) end } } do
  t.test("training: the latest whole episode of copy 0, " .. case[1], function()
    local learner = learner_of(case[2](), 7)
    local book = training_recorder.open(recorded(learner), { path = path "run" })
    book:write(0)
    t.eq(#files.list(path "run/episodes"), 0, "nothing was lived")
    for k = 1, 40 do
      book:before()
      learner.advance()
      book:after(k)
      local first, last = latest(learner.lived)
      book:write(k)
      if first then
        local back = trajectory.read(path("run/episodes/step-%d.mnt"):format(k))
        t.eq(back.steps, last - first + 1)
        for i = 0, back.steps - 1 do
          t.eq(back.actions[i], learner.lived[first + i].action)
          t.eq(back.rewards[i], learner.lived[first + i].reward)
          t.eq(back.flags[i] ~= 0, i == back.steps - 1)
        end
        t.eq(trajectory_replay.new(back, back.script and learner.env):verify(), nil)
        t.eq(back.about.title, "nobody")
      end
      t.ok(#book.rollouts <= 20, "rollouts pile up")
    end
    t.ok(#files.list(path "run/episodes") > 20)
    os.execute("rm -r '" .. path "run" .. "'")
  end)
end

-- What a diary says on stderr in a few rollouts that each end with an episode written.
local function complaints(learner, folder_of_run)
  local book = training_recorder.open(recorded(learner), { path = folder_of_run })
  local kept, said = io.stderr, ""
  io.stderr = { write = function(_, text) said = said .. text end }                -- luacheck: ignore
  for k = 1, 9 do
    book:before()
    learner.advance()
    book:after(k)
    if k > 5 then book:write(k) end
  end
  io.stderr = kept                                                                 -- luacheck: ignore
  return said
end

t.test("training: rules that do not repeat themselves are told once, and nothing is written", function()
  local said = complaints(learner_of(in_lua(true), 20), path "odd")
  t.ok(said:find "^mneme: warning: episodes are no longer recorded: walk%-v0 is not deterministic[^\n]*\n$", said)
  t.eq(#files.list(path "odd/episodes"), 0)
end)

t.test("training: a folder that cannot be made is told once, and training goes on", function()
  files.write(path "file", { "" })
  local said = complaints(learner_of(in_lua(), 20), path "file")
  t.ok(said:find "^mneme: warning: episodes are no longer recorded: [^\n]*file/episodes: cannot be made: Not a directory\n$", said)
end)

t.test("evaluation: every nth episode of all copies, with what the agent had in mind", function()
  local env = mn.env("tmaze", { corridor = 4, num_envs = 3, time_limit = 12 })
  local core = mn.core("gru", { d_in = 16, d_model = 8 })
  local p = stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, { seed = 4, title = "a gru" })
  local kept = io.stderr
  local function play(name, options)
    options.folder = path(name)
    local book = episode_recorder.new(p, options)
    p:restart()
    local out = fresh_episodes.play(p, 10, { album = book })
    return out, files.list(path(name)), book
  end
  local out, names, book = play("all", { episodes = 10, internals = true })
  t.eq(#names, 10)
  t.eq(book.written, 10)
  for n = 0, 9 do
    local back = trajectory.read(path(("all/episode-%d.mnt"):format(n)))
    t.eq(back.copy, n % 3)
    t.eq(back.steps, out.length[n + 1], "episode " .. n)
    local ret, again = 0, trajectory_replay.new(back)
    for k = 0, back.steps - 1 do
      ret = ret + back.rewards[k]
      local seen = trajectory.recorded(back, k, "observation")
      for i = 0, 15 do t.eq(seen[i], again.obs[i], "the observation that the agent saw") end
      local policy, sum = trajectory.recorded(back, k, "policy"), 0
      for i = 0, 3 do sum = sum + policy[i] end
      t.near(sum, 1, 1e-5)
      t.ok(trajectory.recorded(back, k, "memory:h") or trajectory.recorded(back, k, "memory:layers.0.h"), "no memory")
      again:advance()
    end
    t.near(ret, out.ret[n + 1], 1e-4)
    t.eq(again.problem, nil)
  end
  local fewer
  fewer, names = play("some", { episodes = 10, every = 4 })
  t.eq(table.concat(names, " "), "episode-0.mnt episode-4.mnt episode-8.mnt")
  t.eq(#trajectory.read(path "some/episode-4.mnt").fields, 0)
  t.eq(#fewer.score, 10)
  t.eq(io.stderr, kept)
end)

os.execute("rm -r '" .. folder .. "'")
