-- test_several_numbers.lua -- actions of several numbers, floats or choices, through what shows, records and compares agents: steppers, live
-- channels, trajectories, where by KL; and what refuses them.
local ffi = require "ffi"
local t = require "tests.harness"
local live_channel = require "mneme.insight.episodes.live_channel"
local live_publisher = require "mneme.insight.episodes.live_publisher"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"
local trajectory = require "mneme.insight.episodes.trajectory"
local trajectory_replay = require "mneme.insight.episodes.trajectory_replay"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"
local mn = require "mneme"

local folder = shell.folder()

local function choices(n)
  return mn.env { name = "choices", observation = { 2 }, actions = mn.multi_discrete { 3, 2, names = { "move", "jump" } }, num_envs = n, time_limit = 12,
    reset = function(self, random) self.a, self.b = random(3), random(2) return { self.a, self.b } end,
    step = function(self, a, random)
      local r = (a[1] == self.a - 1 and 1 or 0) + (a[2] == self.b - 1 and 1 or 0)
      self.a, self.b = random(3), random(2)
      return { self.a, self.b }, r
    end }
end

local makers = { pendulum = function(n) return mn.env("pendulum", { num_envs = n, time_limit = 30 }) end, choices = choices }

local function agent_for(env)
  mn.manual_seed(5)
  return mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, previous = "action,reward" }
end

for name, make in pairs(makers) do
  t.test(name .. ": an agent's steps are recorded, written, read and replayed, and every frame has its numbers", function()
    local env = make(1)
    local p = stepper.new(env, agent_for(env), { seed = 3 })
    local rec = trajectory_writer.new(env, 0, {})
    rec:begin(p:observations())
    local done = {}
    for k = 0, 59 do
      local now = p:next()
      t.eq(now.action, nil)
      t.eq(#now.did, env.action_space.size)
      t.eq(#now.actions, p.agent.actions)
      done[k] = now.did
      local before = env.action_space:read(p:acting(), 0)
      p:step()
      p.acted = false
      rec:add(before, p.reward[0], p.terminated[0] ~= 0, p.truncated[0] ~= 0, p:observations())
    end
    rec:write(folder .. "/a.mnt")
    local back = trajectory.read(folder .. "/a.mnt")
    t.eq(back.space.kind, env.action_space.kind)
    local replay = trajectory_replay.new(back, env)
    for k = 0, 59 do
      local now = replay:next()
      for i, x in ipairs(now.did) do t.eq(x, done[k][i]) end
      t.eq(now.action, nil)
    end
    t.eq(replay:verify(), nil)
    trajectory.write(folder .. "/b.mnt", back)
    t.eq(require("mneme.base.files").read(folder .. "/b.mnt"), require("mneme.base.files").read(folder .. "/a.mnt"))
  end)

  t.test(name .. ": the likeliest action is the policy's mode, and a moment restored goes on alike", function()
    local env = make(2)
    local p = stepper.new(env, agent_for(env), { seed = 3, greedy = true })
    for _ = 1, 5 do
      p:forward()
      local mode = p.agent:distribution(p.logits:detach()):mode():data()
      local size = env.action_space.size
      for i = 0, 2 * size - 1 do t.eq(p:acting()[i], mode[p.row * 2 * size + i]) end
      p:step()
    end
    local q = stepper.new(make(2), p.agent, { seed = 3, greedy = true })
    q:restore(p:branch())
    p:restart_plan()
    for _ = 1, 5 do
      p:forward()
      q:forward()
      for i = 0, 2 * env.action_space.size - 1 do t.eq(p:acting()[i], q:acting()[i]) end
      p:step()
      q:step()
    end
  end)

  t.test(name .. ": a live training shows what was done", function()
    local env = make(2)
    local learner = mn.a2c({ steps = 64, num_steps = 8, seed = 1 }, env, agent_for(env))
    local writer = live_publisher.writer(learner, folder .. "/live", "test", function() return learner.step end)
    local reader, tell, seen, space = live_channel.reader(folder .. "/live"), learner.watch, 0, env.action_space
    writer.due, writer.wanted = function() return true end, function() return 1 end
    learner.watch = function(at, piece)
      tell(at, piece)
      local now = reader:next()
      t.eq(now.action, nil)
      t.eq(now.space.kind, space.kind)
      for k, x in ipairs(now.did) do
        t.eq(x, learner.row.action[at][space.size + k - 1])
        seen = seen + 1
      end
    end
    learner:begin()
    learner:rollout()
    writer:close()
    t.eq(seen, 8 * space.size)
  end)

  t.test(name .. ": the divergence of two policies is that of their distributions", function()
    local env = make(1)
    local agent = agent_for(env)
    local was, now = ffi.new("float[?]", 3 * agent.actions), ffi.new("float[?]", 3 * agent.actions)
    for i = 0, 3 * agent.actions - 1 do was[i], now[i] = math.sin(i), math.cos(2 * i) end
    local kl = agent:divergence(was, now, 3)
    for b = 0, 2 do
      local p, sum = agent:show_policy(was + b * agent.actions, ffi.new("float[?]", agent.actions)), 0
      local q = agent:show_policy(now + b * agent.actions, ffi.new("float[?]", agent.actions))
      if name == "choices" then for a = 0, 4 do sum = sum + p[a] * math.log(p[a] / q[a]) end
      else sum = math.log(q[1] / p[1]) + (p[1] ^ 2 + (p[0] - q[0]) ^ 2) / (2 * q[1] ^ 2) - 0.5 end
      t.near(kl[b], sum, 1e-4 * math.max(1, sum))
    end
  end)
end

t.test("what is made for one choice of a few refuses others in one sentence", function()
  local env = makers.pendulum(1)
  t.raises(function() env.action_space:need_discrete("mneme credit", env.id) end,
    "mneme credit works with one choice of a few at each step; the actions of pendulum%-v1 are Box%(1%): torque %-2%.%.2$")
  local agent = agent_for(env)
  t.raises(function() require("mneme.insight.measure.credit").new(agent, env.observation_space, {}) end, "mneme credit works with one choice")
  t.ok(require("mneme.insight.episodes.contributions").problem_of(agent, { { step = 0 } }):find "one choice of a few")
end)
