-- test_normaliser.lua -- norm_obs, norm_reward, clip_reward: Gymnasium's numbers; what the agent reads while it acts, in updates, at
-- time limits and in evaluation; the same for any number of threads, and after a resume.
local ffi = require "ffi"
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local mn = require "mneme"
local normaliser = require "mneme.learn.normaliser"
local learner_rig = require "tests.support.learner_rig"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"

local dir = shell.folder()
local all_learners = learner_rig.learners "norm_obs"

-- ---- Gymnasium ----

local function floats(list)
  local p = ffi.new("float[?]", #list)
  for i, x in ipairs(list) do p[i - 1] = x end
  return p
end
local function flat(rows)
  local list = {}
  for _, row in ipairs(rows) do for _, x in ipairs(row) do list[#list + 1] = x end end
  return list
end

-- As much of a learner as a normaliser looks at, whose steps are those of the fixture.
local function stream(f, settings)
  local l = { T = f.T, B = f.B, gamma = f.gamma, row_bytes = 4 * f.B * f.n, env = { id = "stream", observation_space = { shape = { f.n }, dtype = "f32" } },
    row = { x = {}, inputs = {}, reward = {}, done = {}, previous = {} }, outcome_at = { terminated = ffi.new("uint8_t[?]", f.B) } }
  for key, value in pairs { norm_obs = false, norm_reward = false, clip_obs = 0, clip_reward = 0 } do
    l[key] = settings[key] == nil and value or settings[key]
  end
  for row = 0, f.T do
    l.row.x[row], l.row.inputs[row] = floats(flat(f.obs[row + 1])), ffi.new("float[?]", f.B * f.n)
    l.row.done[row] = ffi.new("uint8_t[?]", f.B)
    for b = 0, row > 0 and f.B - 1 or -1 do l.row.done[row][b] = f.terminated[row][b + 1] + f.truncated[row][b + 1] end
    if row < f.T then l.row.reward[row] = floats(f.reward[row + 1]) end
  end
  l.normaliser = normaliser.of_learner("test", l)
  return l
end

local function through(l, f, check)
  l.row.x[f.T], l.row.x[0] = l.row.x[0], l.row.x[f.T]              -- begin() takes the row in which a rollout ends
  l.normaliser:begin(l)
  l.normaliser:before(l)
  l.row.x[f.T] = l.row.x[0]
  for step = 0, f.T - 1 do
    for b = 0, f.B - 1 do l.outcome_at.terminated[b] = f.terminated[step + 1][b + 1] end
    l.normaliser:after(l, step)
    check(step)
  end
end

t.test("observations and rewards are those of Gymnasium's wrappers", function()
  local f = json.decode((files.read(shell.root .. "tests/fixtures/normalise.json")))
  local l = stream(f, { norm_obs = true, norm_reward = true })
  local seen, paid = 0, 0
  local function observed(row)
    for i, want in ipairs(flat(f.normalised_obs[row + 1])) do
      t.near(l.row.inputs[row][i - 1], want, 1e-5 * math.max(1, math.abs(want)), "observation after step " .. row)
      seen = seen + math.abs(want)
    end
  end
  through(l, f, function(step)
    if step == 0 then observed(0) end
    observed(step + 1)
    for b, want in ipairs(f.normalised_reward[step + 1]) do
      t.near(l.row.reward[step][b - 1], want, 1e-6 * math.max(1, math.abs(want)), "reward of step " .. step)
      paid = paid + math.abs(want)
    end
  end)
  t.ok(seen > 100 and paid > 20, "the stream is empty")
  local o, r = l.normaliser.of_observation, l.normaliser.of_return
  for k = 0, f.n - 1 do
    t.near(o.mean[k], f.obs_mean[k + 1], 1e-9 * math.abs(f.obs_mean[k + 1]))
    t.near(o.var[k], f.obs_var[k + 1], 1e-9 * f.obs_var[k + 1])
  end
  t.near(o.count[0], f.obs_count, 1e-9)
  t.near(r.mean[0], f.return_mean, 1e-9)
  t.near(r.var[0], f.return_var, 1e-9 * f.return_var)
  t.near(r.count[0], f.return_count, 1e-9)
end)

t.test("clip_obs and clip_reward cut what is normalised", function()
  local f = json.decode((files.read(shell.root .. "tests/fixtures/normalise.json")))
  local l, cut = stream(f, { norm_obs = true, norm_reward = true, clip_obs = 1.5, clip_reward = 0.7 }), 0
  local function clipped(x, most) return math.max(-most, math.min(most, x)) end
  through(l, f, function(step)
    for i, want in ipairs(flat(f.normalised_obs[step + 2])) do
      t.near(l.row.inputs[step + 1][i - 1], clipped(want, 1.5), 2e-5)
      if math.abs(want) > 1.5 then cut = cut + 1 end
    end
    for b, want in ipairs(f.normalised_reward[step + 1]) do
      t.near(l.row.reward[step][b - 1], clipped(want, 0.7), 1e-6)
      if math.abs(want) > 0.7 then cut = cut + 1 end
    end
  end)
  t.ok(cut > 20, "nothing was clipped")
end)

-- ---- in a learner ----

-- A learner whose raw rewards are noted: list of texts of 4 B bytes.
local function noted(make, settings)
  local l = learner_rig.learner(make, "gru", settings)
  local rewards, roll = {}, l.env.roll
  l.env.roll = function(env, r, step, action)
    local cut = roll(env, r, step, action)
    rewards[#rewards + 1] = ffi.string(r.reward + step * l.B, 4 * l.B)
    return cut
  end
  return l, rewards
end

for name, make in pairs(all_learners) do
  local function settings(more)
    local all = { num_steps = 20, minibatches = 1, epochs = 1, window = 0, steps = 1e4, lr = 0, time_limit = 9, norm_obs = false, norm_reward = false }
    for key, value in pairs(more) do all[key] = value end
    return all
  end

  -- How many samples it counts before the first, and by what the variance is multiplied of n.
  local function first(l) return l.normaliser.norm == "welford" and 0 or 1e-4 end
  local function sample(l, n) return l.normaliser.norm == "welford" and n / (n - 1) or 1 end

  t.test(name .. ": the agent reads, acts on and learns from normalised observations; x stays as the environment gave it", function()
    local l, state, logits = learner_rig.learner(make, "gru", settings { norm_obs = true }), nil, nil
    for _ = 1, 3 do
      state = mn.keep(l.next)
      logits = learner_rig.acted(l)
      t.ok(l:update())
    end
    local s = l.normaliser.of_observation
    t.near(s.count[0], first(l) + 3 * 61, 1e-9)
    for i = 0, 3 * 16 - 1 do
      local k = i % 16
      t.near(l.row.inputs[20][i], (l.row.x[20][i] - s.mean[k]) / math.sqrt(s.var[k] * sample(l, 183) + 1e-8), 1e-5)
    end
    t.ok(learner_rig.apart(l.x, l.inputs) > 0.5, "nothing was normalised")
    local again
    mn.no_grad(function() again = mn.keep((l.agent(learner_rig.rows(l.inputs, 0, 20), learner_rig.rows(l.resets, 0, 20), state))) end)
    t.near(learner_rig.apart(logits, again), 0, 1e-5)
    if l.losses.approx_kl then t.near(l.losses.approx_kl, 0, 1e-6) end            -- the minibatch reads the same
  end)

  t.test(name .. ": a reward is divided by the deviation of returns, clipped, and given to the agent so", function()
    for _, case in ipairs { { norm_reward = true }, { clip_reward = 0.5 }, { norm_reward = true, clip_reward = 0.1 } } do
      local l, raw = noted(make, settings { norm_reward = case.norm_reward, clip_reward = case.clip_reward, previous = "action,reward",
        bootstrap_truncated = 0 })
      local b3, paid, told = l.B, 0, 0
      for rollout = 0, 2 do
        l:rollout()
        for step = 0, 19 do
          local was = ffi.cast("const float *", raw[rollout * 20 + step + 1])
          for b = 0, b3 - 1 do
            local got, most = l.row.reward[step][b], case.clip_reward or math.huge
            t.eq(l.row.paid[step][b], was[b])
            paid = paid + math.abs(was[b])
            t.ok(math.abs(got) <= most * (1 + 1e-6) and (got == 0) == (was[b] == 0) and got * was[b] >= 0, "a reward")
            if not case.norm_reward then t.near(got, math.max(-most, math.min(most, was[b])), 1e-6) end
            if l.row.done[step + 1][b] == 0 then
              t.eq(l.row.previous.reward[step + 1][b], got)
              told = told + math.abs(got)
            else t.eq(l.row.previous.reward[step + 1][b], 0) end
          end
        end
      end
      t.ok(paid > 0 and told > 0, "nothing was paid")
      if case.norm_reward then t.near(l.normaliser.of_return.count[0], first(l) + 180, 1e-9) end
    end
  end)

  t.test(name .. ": at a time limit, V is that of the normalised last observation", function()
    local l = learner_rig.learner(make, "gru", settings { corridor = 100, time_limit = 4, num_steps = 4, gamma = 0.5, norm_obs = true,
      clip_reward = 0.25, context = 4 })
    local final, paid, roll, uncut = nil, nil, l.env.roll, l.normaliser.uncut
    l.env.roll = function(env, r, step, action)
      local cut = roll(env, r, step, action)
      final = final or env.ended.length[0] == 4 and ffi.string(env.ended.final_obs, l.row_bytes) or nil
      return cut
    end
    l.normaliser.uncut = function(self, learner, step)
      paid = paid or l.row.reward[step][0]
      return uncut(self, learner, step)
    end
    local statistics
    local after = l.normaliser.after
    l.normaliser.after = function(self, learner, step)
      after(self, learner, step)
      if step == 3 then statistics = ffi.string(self.of_observation.bytes:data(), self.of_observation.bytes:size()) end
    end
    l:rollout()
    local s, x = ffi.cast("const double *", statistics), mn.tensor { shape = { 1, l.B, 16 } }
    local raw = ffi.cast("const float *", final)
    for i = 0, 3 * 16 - 1 do x:data()[i] = (raw[i] - s[i % 16]) / math.sqrt(s[16 + i % 16] * sample(l, 15) + 1e-8) end
    local value
    mn.no_grad(function() local _, v = l.agent(x) value = v:data()[0] end)      -- context=4: the memory was cleared just then
    t.ok(math.abs(paid) <= 0.25)
    t.near(l.rewards:data()[3 * l.B] + (l.followed and 0.5 * l.followed[0] or 0), paid + 0.5 * value, 1e-5)
  end)

  t.test(name .. ": off where that is the default; floats alone can be normalised", function()
    local l = learner_rig.learner(make, "gru", settings {})
    t.eq(l.normaliser, nil)
    for _, item in ipairs(l:contents()) do t.ok(not item[1]:find "^normalise", item[1]) end
    local function codes(more)
      local env = mn.env { observation = { 2 }, dtype = "u8", codes = 5, actions = 3, num_envs = 4, reset = function() return { 1, 2 } end,
        step = function() return { 1, 2 }, 1 end }
      return learner_rig.learner(make, { "gru", d_model = 8 }, settings { env = env, norm_obs = more.norm_obs, clip_reward = more.clip_reward })
    end
    t.raises(function() codes { norm_obs = true } end, "norm_obs=1: the observations of lua%-v0 are codes %(u8%), expected floats")
    codes { clip_reward = 1 }
    t.raises(function() codes { clip_reward = -1 } end, "clip_reward=%-1, expected a number of at least 0")
  end)
end

-- ---- runs ----

local ALL = "norm_obs=1 norm_reward=1 clip_reward=5 previous=action,reward env=noisy_cartpole env.velocities=1 num_envs=4 num_steps=32 "
  .. "core.d_model=16 hidden=16 lr=1e-3 checkpoint_every=1280"
local function mneme(words) return shell.mneme(dir, words) end
local function fine(words) return shell.fine(dir, words) end
-- All tensors of a checkpoint.
local function checkpoint(run, step)
  local tensors, list = safetensors.load(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, run, step)).tensors, {}
  for name, tensor in pairs(tensors) do list[#list + 1] = name .. learner_rig.bytes(tensor) end
  table.sort(list)
  t.ok(tensors["normalise.observation"] and tensors["normalise.return"] and tensors["normalise.returns"], "no statistics")
  return table.concat(list)
end

for name, class in pairs(all_learners) do
  t.test(name .. ": statistics resume bit for bit, and are the same with any number of threads", function()
    -- A share of random actions that falls is another one where training is to be shorter.
    local words = ALL .. (class.defaults.epsilon_end and " epsilon_start=0.1 epsilon_end=0.1" or "")
    fine(("run train learner=%s %s threads=1 steps=5120 run=%s-one"):format(name, words, name))
    fine(("run train learner=%s %s threads=3 steps=5120 run=%s-three"):format(name, words, name))
    t.ok(checkpoint(name .. "-one", 5120) == checkpoint(name .. "-three", 5120), "threads matter")
    fine(("run train learner=%s %s threads=1 steps=2560 run=%s-torn"):format(name, words, name))
    fine(("run train resume=%s-torn steps=5120 threads=2"):format(name))
    t.ok(checkpoint(name .. "-one", 5120) == checkpoint(name .. "-torn", 5120), "resuming matters")
  end)
end

t.test("evaluation, interventions and pictures use the statistics of the checkpoint, and leave them as they are", function()
  local path = dir .. "/a2c-one"
  local p = stepper.from_run(path, { num_envs = 2, seed = 7 })
  local stored = safetensors.load(path .. "/checkpoints/step-5120.safetensors").tensors["normalise.observation"]
  local bytes = ffi.string(stored:data(), stored:size())
  local s, n, moved = ffi.cast("const double *", bytes), p.n, 0
  for _ = 1, 70 do
    p:forward()
    local inputs, x = p.inputs:data() + p.row * 2 * n, p:observations()
    for i = 0, 2 * n - 1 do
      local want = (x[i] - s[i % n]) / math.sqrt(s[n + i % n] + 1e-8)
      t.near(inputs[i], math.max(-10, math.min(10, want)), 1e-5)
      moved = math.max(moved, math.abs(inputs[i] - x[i]))
    end
    p:step()
    local reward = ffi.cast("const double *", safetensors.load(path .. "/checkpoints/step-5120.safetensors").tensors["normalise.return"]:data())
    for b = 0, 1 do
      if p.done[b] == 0 then t.near(p.previous.reward:data()[p.row * 2 + b], math.min(5, p.reward[b] / math.sqrt(reward[1] + 1e-8)), 1e-6) end
    end
  end
  t.ok(moved > 0.1, "observations were left as they are")
  local kept = p.agent.normaliser.of_observation.bytes
  t.ok(ffi.string(kept:data(), kept:size()) == bytes, "the statistics have moved")
  fine "eval a2c-one episodes=20 record=shown internals=1"
  fine "intervene a2c-one erase=layers.0 at=3 episodes=20"
  fine "view a2c-one out=there.png wait=0"
  fine "diff a2c-one a2c-one"
end)

t.test("what was trained on normalised observations is evaluated to the same score", function()
  local said = fine("run noisy_cartpole quick=1 noise=0 velocities=1 core=feedforward size=published norm_obs=1 norm_reward=1 stop_score=0.9 run=pole")
  local score = tonumber(said:match "fresh episodes: (%S+) sampled")
  t.ok(score > 0.8, said)
  local evaluated = tonumber(fine("eval pole episodes=200"):match "s[cu][oc]%w+ +(%S+)")
  t.ok(math.abs(evaluated - score) < 0.1, ("trained to %g, evaluated at %g"):format(score, evaluated))
  local file = files.list(dir .. "/pole/checkpoints")[1]
  local path = dir .. "/pole/checkpoints/" .. file
  local whole = safetensors.load(path)
  local list = {}
  for name, tensor in pairs(whole.tensors) do if name ~= "normalise.observation" then list[#list + 1] = { name, tensor } end end
  safetensors.write(path, list, whole.metadata)
  for _, other in ipairs(files.list(dir .. "/pole/checkpoints")) do
    if other ~= file then os.remove(dir .. "/pole/checkpoints/" .. other) end
  end
  local text, status = mneme "eval pole episodes=2"
  t.ok(status == 1 and text:find "has no statistics of each observation", text)
end)

os.execute("rm -rf '" .. dir .. "'")
