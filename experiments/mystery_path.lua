-- Which memory keeps the path that it fell from?   mneme run mystery_path core=gru level=hard
-- The path is hidden: the agent finds it by falling off, and gains what it remembers of that.
local mn = require "mneme"

local cfg = mn.config({
  env = "mystery_path_grid", level = "easy", observation = "pixels", core = { "agalite", eta = 4, r = 2 },
  steps = 150e6, num_envs = 128, num_steps = 128, minibatches = 8, epochs = 3, hidden = 256,
  lr = 2.5e-4, lr_schedule = "constant", entropy_coef = 3e-4, gamma = 0.99, lambda = 0.95, clip = 0.2, clip_values = false,
  value_coef = 0.5, max_norm = 5, bootstrap_truncated = false,    -- the released code counts a time limit as an end
  quick = {
    observation = "vector", core = { "gru", d_model = 128 }, steps = 1e6, num_envs = 64, minibatches = 4, hidden = 64,
    lr = 1e-3, lr_schedule = "linear", entropy_coef = 0.01, threads = 1,
  },
}, {
  env = { "mystery_path: small steps, 512 of them; mystery_path_grid: cells and quarter turns, 128 steps" },
  level = { "easy: origin and goal are seen, and each new cell pays 0.1; hard: neither, as memory-gym has it" },
  observation = { "pixels: 84 x 84 colours, as published; vector: the same as a few dozen numbers" },
})

local task = mn.env(cfg.env, { level = cfg.level, observation = cfg.observation, num_envs = cfg.num_envs, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local agent = mn.agent { task = task, core = cfg.core, hidden = cfg.hidden }
return mn.ppo(cfg, task, agent):train()
