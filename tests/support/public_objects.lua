-- public_objects.lua -- one object of every class that a script may hold, by the name of the class.
local mn = require "mneme"

return function()
  local env = mn.env("tmaze", { corridor = 5, num_envs = 2 })
  local sequences = mn.dataset("mqar", { length = 16, pairs = 2, vocab = 16, batch = 2 })
  local core, w = mn.core("gru", { d_in = 8, d_model = 8 }), mn.tensor { shape = { 2, 2 }, grad = true }
  local agent = mn.agent { env = env, core = { "gru", d_model = 8 } }
  local model = mn.sequence_model { dataset = sequences, core = core }
    local stepper = mn.stepper.new(env, agent)
  local short = { num_steps = 4, minibatches = 1, epochs = 1, steps = 8 }
  local a2c = mn.a2c(short, env, agent)
  local map = mn.causal_map(stepper, mn.stepper.new(mn.env("tmaze", { corridor = 5, num_envs = 2 }), agent))
  local readings = mn.measure.readings.new(mn.stepper.new(mn.env("tmaze", { corridor = 5, num_envs = 64 }), agent))
  local one = mn.env("tmaze", { corridor = 5, num_envs = 1 })
  local function played(seed) return (mn.inspect.patching.play(mn.stepper.new(one, agent, { seed = seed, seeded = true }), 6)) end
  local patched = mn.inspect.patching.new(agent, played(1), played(2), { decision = 2 })
  patched:work()
  local parts = mn.env { name = "parts", observation = { place = { 2 }, eye = { 1 } }, actions = 2, num_envs = 1,
    reset = function() return { place = { 0, 0 }, eye = 0 } end, step = function() return { place = { 0, 0 }, eye = 0 }, 0, true end }
  local history = { { step = 0, observation = { 0 }, policy = { 1 } } }
  return { Tensor = w, Env = env, SequenceTask = sequences, Core = core, Module = mn.nn.linear(3, 2), Agent = agent, SequenceModel = model,
    Optimiser = mn.adam { w }, Plan = mn.plan(function() return mn.add(w, w) end),
    A2C = a2c, PPO = mn.ppo(short, env, agent), Supervised = mn.supervised({ steps = 64 }, sequences, model),
    Stepper = stepper, Interventions = mn.interventions.new(stepper, {}), Canvas = require("mneme.base.canvas").new({}, 100, 100),
    Paper = mn.svg.new(100, "a"), Learner = mn.learners.ppo, Batch = a2c:batch(),
    Space = env.action_space, Categorical = mn.categorical(w), Bernoulli = mn.bernoulli(w),
    Normal = mn.normal(w, 1), CausalMap = map, MemoryRow = map.rows[1], Readings = readings, ObservationGroup = env.observation_space.groups[1],
    ObservationPart = parts.observation_space.parts[1],
    ReferenceScores = env.reference, Contributions = mn.inspect.contributions.new(agent, history),
    PartMap = map:view(), Patching = patched }
end
