-- test_several_numbers.lua -- actions of several numbers, floats or choices, through what shows, records, compares and explains
-- agents: steppers, live channels, where by KL, credit, contributions, patching, readings, a window's keys.
local ffi = require "ffi"
local t = require "tests.harness"
local causal_map = require "mneme.insight.episodes.causal_map"
local contributions = require "mneme.insight.episodes.contributions"
local credit = require "mneme.insight.measure.credit"
local human_play = require "mneme.insight.view.human_play"
local live_channel = require "mneme.insight.episodes.live_channel"
local live_publisher = require "mneme.insight.episodes.live_publisher"
local patching = require "mneme.insight.episodes.patching"
local readings = require "mneme.insight.measure.readings"
local rig = require("tests.support.viewer_rig").new
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"
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
  t.test(name .. ": every frame has its numbers", function()
    local env = make(1)
    local p = stepper.new(env, agent_for(env), { seed = 3 })
    for _ = 1, 60 do
      local now = p:next()
      t.eq(now.action, nil)
      t.eq(#now.did, env.action_space.size)
      t.eq(#now.actions, p.agent.actions)
    end
  end)

  t.test(name .. ": the likeliest action is the policy's mode, and a moment restored goes on alike", function()
    local env = make(2)
    local p = stepper.new(env, agent_for(env), { seed = 3, greedy = true })
    for _ = 1, 5 do
      p:forward()
      local mode = mn.no_grad(function() return p.agent:distribution(p.logits):mode() end):data()
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
    writer.due = function() return true end
    learner.watch = function(at, piece)
      writer.wanted = 1
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

-- Every kind of action, in an environment that is one of many and that a memory helps in.
local spaces_of = {
  discrete = function() return 3 end,
  multi_discrete = function() return mn.multi_discrete { 3, 2, names = { "move", "jump" } } end,
  box = function() return mn.box { low = { -1, -2 }, high = { 1, 2 }, names = { "throttle", "wheel" } } end,
}
local function world(kind, n)
  return mn.env { name = kind, observation = { 2 }, actions = spaces_of[kind](), num_envs = n, time_limit = 8,
    reset = function(self, random) self.cue = random(2) return { self.cue, random() } end,
    step = function(self, a, random) return { 0, random() }, -math.abs((type(a) == "table" and a[1] or a) - self.cue) end,
    truth = function(self) return { cue = self.cue } end, to_know = { cue = "class" }, settable = { cue = { "one", "two" } },
    set = function(self, _, value) self.cue = value + 1 return { self.cue, 0 } end }
end

local own = mn.on_policy { doc = "policy gradients", config = { num_steps = 8, lr = 1e-2 }, loss = function(_, batch)
  local policy = -(batch.policy:log_prob(batch.actions) * batch.advantages):mean()
  return policy + (batch.values - batch.returns):square():mean(), { policy_loss = policy }
end }

local function trained(kind, learner, n)
  local env = world(kind, n)
  local function made() return mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, previous = "action,reward" } end
  mn.manual_seed(2)
  local agent = made()
  local l = (learner == "own" and own or mn[learner])({ num_envs = n, num_steps = 8, steps = 16 * n, minibatches = learner == "ppo" and 1 or nil, seed = 1 },
    env, agent)
  l:begin()
  for _ = 1, 2 do
    l:rollout()
    t.ok(l:update())
  end
  return agent
end

-- What the log-probability of what was done at a step, or its logit, becomes with another observation at an earlier one.
local function chosen(agent, episode, at, s, i, d)
  local x = mn.tensor { shape = { at + 1, 1, 2 } }
  for k = 0, at do
    local seen = ffi.cast("const float *", episode.x[k + 1])
    for j = 0, 1 do x:data()[2 * k + j] = seen[j] + (k == s and j == i and d or 0) end
  end
  local previous, space = agent:previous_leaves(at + 1, 1), agent.action_space
  local done, actions = mn.tensor { shape = { at + 1, 1 }, dtype = "u8" }, mn.tensor { shape = space:shape(at + 1, 1), dtype = space.dtype }
  for k = 0, at do
    space:put(previous.action:data(), k, episode.previous.action[k + 1])
    space:put(actions:data(), k, episode.action[k + 1])
    previous.reward:data()[k], done:data()[k] = episode.previous.reward[k + 1], episode.resets[k + 1]
  end
  local logits = mn.no_grad(function() return (agent(x, done, nil, nil, previous)) end)
  if space.kind == "discrete" then return logits:data()[at * space.n + episode.action[at + 1]] end
  return mn.no_grad(function() return agent:distribution(logits):log_prob(actions) end):data()[at]
end

for kind in pairs(spaces_of) do
  for _, learner in ipairs { "a2c", "ppo", "own" } do
    for _, n in ipairs { 1, 2, 6 } do
      t.test(("%s, %s, %d environments: every tool explains the agent"):format(kind, learner, n), function()
        local agent = trained(kind, learner, n)
        local function player(count, seed) return stepper.new(world(kind, count), agent, { seed = seed or 3, seeded = true }) end
        -- credit, against differences
        local p = player(1)
        local episode = credit.play(p)
        t.eq(episode.T, 8)
        local map = credit.map(agent, p.env, episode, { 5 })
        t.ok(map.reached < 1e-4)
        for s = 0, 5 do
          local slope = (chosen(agent, episode, 5, s, 0, 1e-2) - chosen(agent, episode, 5, s, 0, -1e-2)) / 2e-2
          t.near(map.parts["observation 0"].action[1][s + 1], math.abs(slope), 2e-3 * (1 + math.abs(slope)))
        end
        -- contributions, and memories put into another episode
        local A, B = patching.play(player(1, 4), 20), patching.play(player(1, 5), 20)
        local job = contributions.new(agent, A)
        while not job:work() do end
        t.eq(job.problem, nil)
        for _, of in pairs(job.moved) do for k = 1, #A do t.ok(of[1][k] >= 0 and of[1][k] <= 1) end end
        t.ok(job:weight() > 0, "erasing the memory changes nothing")
        local put = patching.new(agent, A, B, {})
        while not put:work() do end
        t.eq(put.problem, nil)
        local cell = put.cells[1][#put.map.steps]
        t.ok(cell.loss >= 0 and cell.loss <= 1 and cell.probability > 0)
        t.eq(type(put.action), kind == "discrete" and "number" or "table")
        -- the same memory changes nothing
        put = patching.new(agent, B, B, { decision = 4 })
        put:work()
        t.near(put.cells[1][1].loss, 0, 1e-3) t.near(put.cells[1][1].log_odds, 0, 1e-3)
        -- erasing; readings
        local erased = causal_map.new(player(n), player(n), { every = 3 })
        while not erased:work() do end
        t.ok(erased.done)
        if n == 1 and learner == "own" then
          local read = readings.new(player(48), { facts = { "cue" }, last = 3, every = 3 })
          while not read:work() do end
          t.ok(read.cells.cue[1])
        end
        -- a window: the panels
        local r = rig { { source = player(1), scene = scene.load "mind", open = function(o) return player(1, o.seed) end } }
        r.pass(1)
        r.v:seek(2)
        if n == 2 then t.ok(r.paint()) end
      end)
    end
  end
end

t.test("comparing policies names a distribution without kl", function()
  local env = world("box", 1)
  local mine = { size = function(space) return space.size end, of = function(parameters)
    local p = mn.normal(parameters, 0.3)
    return { parameters = parameters, sample = function(_, draw) return (parameters + draw:normal(parameters) * 0.3):detach() end,
      log_prob = function(_, a) return p:log_prob(a):sum(-1) end }
  end }
  local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, distribution = mine }
  t.eq(contributions.problem_of(agent, patching.play(stepper.new(env, agent, { seed = 1, seeded = true }), 4)),
    "not shown: the agent's own distribution has no kl, log_prob or mode")
end)

t.test("play: a key sets one number of several, space takes them; of one number a key is a step", function()
  local game = human_play.new(world("multi_discrete", 1), { scene = scene.load "world" })
  t.eq(table.concat(game.names, "|"), "move 0|move 1|move 2|jump 0|jump 1")
  game:key(("3"):byte())
  game:key(("5"):byte())
  t.eq(game.step, 0)
  local _, page = game:page()
  t.eq(#page.keys, 5)
  t.eq(table.concat(page.hand.numbers, " "), "2 1")
  game:key(32)
  t.eq(game.step, 1)
  t.eq(table.concat(game.last, " "), "2 1")
  game:key(("1"):byte())
  game:key(32)
  t.eq(table.concat(game.last, " "), "0 1", "what was set stays")
  game = human_play.new(makers.pendulum(1), { scene = scene.load "world" })
  game:key(("5"):byte())
  t.eq(game.last[1], 2)
  game:set(1, 0.25)
  t.eq(game.last[1], 0.25)
  t.eq(game.step, 2)
end)
