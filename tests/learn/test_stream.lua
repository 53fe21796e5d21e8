-- test_stream.lua -- learner=stream and stream_q: 1,000 steps against an independent program in float64 (tests/reference/stream.py), streams as one, what a
-- checkpoint holds, what it refuses; and sparse initial values.
local ffi = require "ffi"
local t = require "tests.harness"
local learner_rig = require "tests.support.learner_rig"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local mn = require "mneme"
local module = require "mneme.tensor.module"

local fixture = json.decode(files.read "tests/fixtures/stream.json")
local ACTIONS = 3

-- An environment that replays what the program drew.
local function replayed(case)
  local at, B, n = {}, case.streams, case.n
  local function seen(b)
    local x = {}
    for k = 1, n do x[k] = case.obs[(at[b] * B + b - 1) * n + k] / 64 end
    return x
  end
  local began = 0
  return mn.env { name = "replay", observation = { n }, actions = ACTIONS, num_envs = B, seed = 1,
    reset = function(self)
      if began < B then
        began = began + 1
        at[began], self.b = 0, began
      else self.b = case.over end
      return seen(self.b)
    end,
    step = function(self, action)
      local b, i = self.b, at[self.b] * B + self.b
      t.eq(action, case.action[i])
      at[b] = at[b] + 1
      case.over = b
      return seen(b), case.reward[i] / 32, case.done[i] == 1
    end }
end

local function nothing() return { doc = "nothing", config = { d_in = 1 }, build = function(cfg)
  return { module = module.new({}, function() end), d_out = cfg.d_in, states = {}, sizes = {}, reads = "nothing", forward = function(x) return x, {} end }
end } end

local function make(case)
  local env = replayed(case)
  mn.manual_seed(1)
  local core
  if case.credit == "none" then
    local path = os.tmpname() .. ".lua"
    rawset(_G, "nothing_core", nothing)
    files.write(path, { "return nothing_core()" })
    core = mn.core(path, { d_in = case.n })
    os.remove(path)
  else core = mn.core("mingru", { d_in = case.n, d_model = case.width }) end
  local agent = mn.agent { env = env, core = core, hidden = 8, head_act = "leaky_relu" }
  if case.form then agent:act_by_values "stream_q" end
  local dict = {}
  for name, numbers in pairs(case.initial) do
    local shape = agent:state_dict()[name]:shape()
    dict[name] = mn.tensor { shape = shape }
    for k, x in ipairs(numbers) do dict[name]:data()[k - 1] = x end
  end
  agent:load_state_dict(dict)
  -- The program's actions in place of drawn ones.
  local forced = mn.tensor { shape = { 1, case.streams }, dtype = "i32" }
  agent.choose = function() return forced end
  local l = mn.learners[case.form and "stream_q" or "stream"]({ seed = 1, num_steps = 1, epsilon_start = 0, epsilon_end = 0,
    credit = case.credit == "none" and "trace" or case.credit }, env, agent)
  l:begin()
  return l, agent, forced
end

for _, name in ipairs { "apart", "trace", "exact", "streams", "q", "q_streams" } do
  t.test("1,000 steps are those of an independent program: " .. name, function()
    local case = fixture[name]
    local l, agent, forced = make(case)
    local errors = 0
    for step = 1, 1000 do
      for b = 0, case.streams - 1 do forced:data()[b] = case.action[(step - 1) * case.streams + b + 1] end
      l:rollout()
      t.ok(l:update())
      errors = errors + l.losses.td_error / 1000
      local wanted = case.after[tostring(step)]
      if wanted then
        local moved, apart = 0, 0
        for key, p in pairs(agent:state_dict()) do
          local of_key = 0
          for k = 0, p:size() - 1 do
            local x = wanted[key][k + 1]
            of_key, apart = math.max(of_key, math.abs(x - case.initial[key][k + 1])), math.max(apart, math.abs(x - p:data()[k]))
          end
          t.ok(of_key > 1e-3, ("the program moved %s by %g"):format(key, of_key))
          moved = math.max(moved, of_key)
        end
        t.near(apart / moved, 0, step == 1000 and 2e-5 or 1e-5)          -- float32 against float64: at most 1.04e-5 after 1,000
      end
    end
    t.near(errors / case.td_error, 1, 1e-5)
  end)
end

t.test("a time limit's last observation is bootstrapped, or counts as an end", function()
  for _, bootstraps in ipairs { true, false } do
    local l, cut = learner_rig.learner(mn.learners.stream, "mingru", {
      num_envs = 2, num_steps = 1, time_limit = 3, corridor = 20, bootstrap_truncated = bootstraps,
      gamma = 0.5, lambda = 0.5, entropy_coef = 0, norm_reward = false }), 0
    for step = 1, 9 do
      l:rollout()
      for b = 0, 1 do
        local ended, before = l.row.done[1][b], l.pieces[1].at.values[b]
        local follows = (bootstraps or ended == 0) and 0.5 * l.followed[b] or 0
        t.eq(ended, step % 3 == 0 and 1 or 0)
        t.near(l.optimiser.delta_data[b], l.row.reward[0][b] + follows - before, 1e-6)
        for _, net in ipairs(l.optimiser.networks) do                     -- a trace ends with its episode; of the gates' bias
          local sum, n = 0, net.z[2]:size() / 2
          for k = b * n, b * n + n - 1 do sum = sum + math.abs(net.z[2]:data()[k]) end
          t.eq(sum == 0, ended == 1)
        end
        cut = cut + ended
      end
    end
    t.eq(cut, 6)
  end
end)

-- ---- as a command: resumed bit for bit, by any number of threads; evaluated ----

local dir = shell.folder()

local function run(words)
  local said = shell.fine(dir, words)
  return said
end

local function bytes_of(path)
  local all = {}
  for name, x in pairs(safetensors.read(path).tensors) do all[name] = ffi.string(x.data, x.bytes) end
  return all
end

t.test("a run resumes bit for bit, with any number of threads and streams, and is evaluated", function()
  for i, case in ipairs { "learner=stream core=mingru core.d_model=8 credit=exact num_envs=1 previous=action,reward",
    "learner=stream core=lru core.d_model=8 core.d_state=4 core.n_layers=2 credit=exact num_envs=2",
    "learner=stream core=gru core.d_model=8 num_envs=3", "learner=stream core=gtrxl core.d_model=8 core.n_layers=1 num_envs=1",
    "learner=stream_q epsilon_decay=0 core=mingru core.d_model=8 credit=exact num_envs=1",
    "learner=stream_q epsilon_decay=0 core=gru core.d_model=8 num_envs=3" } do
    local words = "run train env=tmaze env.corridor=3 hidden=8 " .. case
    run(("%s run=whole%d steps=768 threads=1"):format(words, i))
    run(("%s run=parts%d steps=384 threads=2"):format(words, i))
    run(("run train resume=parts%d steps=768 threads=1"):format(i))
    local whole, parts, n = bytes_of(("%s/whole%d/checkpoints/step-768.safetensors"):format(dir, i)),
      bytes_of(("%s/parts%d/checkpoints/step-768.safetensors"):format(dir, i)), 0
    for name, bytes in pairs(whole) do
      t.ok(parts[name] == bytes, case .. ": " .. name)
      n = n + 1
    end
    t.ok(n > 20)
    t.eq(whole["obgd.critic.000"] ~= nil and whole["obgd.actor.000"] ~= nil, whole["obgd.q.000"] == nil)
  end
  t.ok(run "eval whole1 episodes=5":find "success")
  t.ok(run "eval whole5 episodes=5":find "success")
end)

local function sparse_zeros(p, rows, cols)
  for r = 0, rows - 1 do
    local zeros = 0
    for c = 0, cols - 1 do
      zeros = zeros + (p[r * cols + c] == 0 and 1 or 0)
      t.ok(math.abs(p[r * cols + c]) <= 1 / math.sqrt(cols))
    end
    t.eq(zeros, math.min(math.ceil(0.9 * cols), cols - 1))
  end
end

t.test("sparse initial values: nine tenths of each row are 0, and one value is not", function()
  for _, shape in ipairs { { 3, 10 }, { 5, 7 }, { 2, 1 }, { 4, 128 } } do
    local p = ffi.new("float[?]", shape[1] * shape[2])
    mn.nn.init.sparse(0.9)(p, shape[1], shape[2])
    sparse_zeros(p, shape[1], shape[2])
  end
end)

t.test("what it has no use for, and what others refuse", function()
  local function learner(name, cfg, core, extra)
    return function()
      local env = mn.env("tmaze", { num_envs = 1, corridor = 3 })
      mn.learners[name](cfg, env, mn.agent { env = env, core = { core or "gru", d_model = 8 }, hidden = 8 }, extra)
    end
  end
  learner("stream", {})()
  t.fails(learner("stream", { credit = "window" }))
  t.fails(learner("stream", { credit = "exact" }))
  t.fails(learner("stream", {}, "gru", { aux = function(batch) return batch.values:sum() end }))
  learner("stream_q", {})()
  t.fails(learner("stream_q", { credit = "window" }))
  t.fails(learner("stream_q", { credit = "exact" }))
  t.fails(learner("pqn", { credit = "trace" }))
end)
