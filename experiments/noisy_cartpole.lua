-- Which memory sees through noise?   mneme run experiments/noisy_cartpole.lua core=agalite noise=0.2
-- A pole is balanced whose velocities are hidden and whose place is blurred; noise=0 velocities=1 is plain CartPole.
-- Settings are those of PopJaxRL's runs of POPGym (Lu et al. 2023); quick=1 has our own, for a minute or two.
local mn = require "mneme"

local cfg = mn.config({
  noise = 0.1, velocities = 0,
  core = { "gru", d_model = 256 }, hidden = 128, previous = "action", learner = "ppo",
  steps = 15e6, stop_score = 1, num_envs = 64, num_steps = 1024, horizon = 0, epochs = 30, minibatches = 8,
  lr = 5e-5, lr_schedule = "constant", gamma = 0.99, lambda = 1, clip = 0.2, entropy_coef = 0, value_coef = 1, max_norm = 0.5,
  quick = {
    core = { "gru", d_model = 64 }, hidden = 64, steps = 5e5, num_envs = 16, num_steps = 128, epochs = 4, minibatches = 4,
    lr = 2e-3, lr_schedule = "linear", lambda = 0.95, value_coef = 0.5, threads = 1,
  },
}, {
  noise = { "standard deviation of the observation noise; POPGym's easy, medium and hard are 0.1, 0.2, 0.3", range = { 0, 1 } },
  velocities = { "1: the observation includes velocities", range = { 0, 1 } },
  previous = "inputs besides the observation: the last action, reward, both (action,reward) or, left empty, neither",
  stop_score = "training ends where the last hundred episodes score this",
  published = {                            -- the others at the size of a gru of 64 to 256
    feedforward = { core = { "feedforward", n_layers = 1, d_model = 64, d_ffn = 64 } },
    agalite = { core = { "agalite", n_layers = 1, d_model = 64, d_head = 16, d_ffn = 64, eta = 4, r = 2 } },
    galite = { core = { "galite", n_layers = 1, d_model = 64, d_head = 16, d_ffn = 64, eta = 2 } },
  },
})

local env = mn.env("noisy_cartpole", { noise = cfg.noise, velocities = cfg.velocities, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = cfg.previous }
return mn.learner(cfg, env, agent):train()
