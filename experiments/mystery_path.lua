-- Which memory keeps the path that it fell from?   mneme run mystery_path core=gru   mneme sweep experiments/mystery_path.lua quick=1
-- The path is hidden: the agent finds it by falling off, and gains what it remembers of that.
local mn = require "mneme"

local small = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64 }
local function core(name, options, remember)
  local of = { name, label = name .. (remember and " " .. remember .. " steps" or ""), remember = remember }
  for key, value in pairs(options) do of[key] = value end
  return of
end
local function gtrxl(memory) return { "gtrxl", memory = memory, label = "gtrxl " .. memory } end

return mn.study {
  title = "Mystery Path: return of each memory",
  question = "Does a memory of where it fell bring an agent further along a path that it cannot see?",
  axes = {
    core = { core("agalite", { eta = 4, r = 2 }), gtrxl(128), "gru", "lstm", "feedforward",
      quick = { core("gru", { d_model = 128 }), core("agalite", small), core("agalite", small, 40),
        core("feedforward", { n_layers = 2, d_model = 64, d_ffn = 64 }),
        { "gtrxl", memory = 128, n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64, label = "gtrxl 128" } },
      full = { core("agalite", { eta = 4, r = 2 }), { "agalite", eta = 8, r = 2, label = "agalite, eta 8" }, gtrxl(32), gtrxl(64), gtrxl(128), "gru",
        "lstm", "feedforward" } },
    env = { "mystery_path_grid", "mystery_path", quick = { "mystery_path_grid" } },
    level = { "easy", quick = { "easy" } },
  },
  settings = {
    size = "published", observation = "pixels", learner = "ppo", steps = 150e6, num_envs = 128, num_steps = 128, minibatches = 8, epochs = 3, hidden = 256,
    lr = 2.5e-4, lr_schedule = "constant", entropy_coef = 3e-4, gamma = 0.99, lambda = 0.95, clip = 0.2, clip_values = false,
    value_coef = 0.5, max_norm = 5, bootstrap_truncated = false,    -- the released code counts a time limit as an end
    quick = { observation = "vector", steps = 6e6, num_envs = 64, minibatches = 4, hidden = 64, lr = 1e-3, lr_schedule = "linear",
      entropy_coef = 0.01, threads = 1 },
  },
  about = {
    env = { "mystery_path: small steps, 512 of them; mystery_path_grid: cells and quarter turns, 128 steps" },
    level = { "easy: origin and goal are seen, and each new cell pays 0.1; hard: neither, as memory-gym has it" },
    observation = { "pixels: 84 x 84 colours, as published; vector: the same as a few dozen numbers" },
  },
  seeds = 5,
  run = function(cfg)
    local env = mn.env(cfg.env, { level = cfg.level, observation = cfg.observation, num_envs = cfg.num_envs, seed = cfg.seed })
    mn.manual_seed(cfg.seed)
    return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
  end,
  metrics = { mean_return = { "return, last 100 episodes", goal = 1.81 }, score = { "success, last 100 episodes", range = { 0, 1 } } },
  figures = { { "bars", y = "mean_return", x = "env", by = "core" },
    { "curves", y = "charts/episodic_return", by = "core", where = { env = "mystery_path_grid" }, title = "return while learning, on the grid" } },
  references = { { "who knows the path", y = 1.81, of = "mean_return", source = "1 and 0.1 a cell, of 10.1 cells in the mean with both ends" },
    { "random, on the grid", y = 0.26, of = "mean_return", source = "1500 episodes of memory-gym 1.0.2" } },
  claims = { { id = "memory", text = "A GRU gets further than a network without memory.", source = "Pleines et al. 2023",
    test = { "better", metric = "mean_return", a = { core = "gru" }, b = { core = "feedforward" } } },
    { id = "agalite-gtrxl", text = "AGaLiTe's return is at least 1.37 times that of GTrXL.", source = "paper, abstract, without environment and memory",
      test = { "ratio", metric = "mean_return", a = { core = "agalite" }, b = { core = "gtrxl 128" }, at_least = 1.37 } },
    { id = "long", text = "AGaLiTe with a half-life of 40 steps at the start gets further than as published.", source = "ours",
      test = { "better", metric = "mean_return", a = { core = "agalite 40 steps" }, b = { core = "agalite" } } } },
}
