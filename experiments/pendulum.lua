-- Swing a pendulum up by a continuous action, with or without seeing its speed.   mneme run pendulum velocity=hidden
-- Gymnasium's Pendulum-v1, whose return is about -150 when it is held upright; velocity=shown core=feedforward needs no memory.
local mn = require "mneme"

local cfg = mn.config({
  velocity = "hidden", core = { "gru", d_model = 64 }, learner = "ppo",
  steps = 4e5, num_envs = 16, num_steps = 200, hidden = 64,
  lr = 1e-3, epochs = 10, minibatches = 4, entropy_coef = 0, gamma = 0.9, lambda = 0.95, norm_reward = true,
  quick = { steps = 2e5 },
}, {
  velocity = { "is the speed observed", choices = { "hidden", "shown" } },
})

local env = mn.env("pendulum", { velocity = cfg.velocity, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
