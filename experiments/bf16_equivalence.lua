-- Do agents learn the same in bfloat16?   mneme sweep bf16_equivalence      (a CPU with AVX512-BF16 or AMX)
-- The same seeds in precision=fp32 and bf16; a run ends where it solves its task.  Along each, the gradient of a batch is computed in both.
local mn = require "mneme"

local function small(name, more)
  local core = { name, n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
  for key, value in pairs(more or {}) do core[key] = value end
  return core
end
local cores = { agalite = small("agalite", { remember = 10 }), gru = { "gru", d_model = 64 }, gtrxl = small("gtrxl", { memory = 64 }),
  gated_deltanet = small "gated_deltanet" }
local agents = {}
for i, memory in ipairs { "agalite", "gru", "gtrxl" } do agents[i] = { label = "T-Maze, " .. memory, set = { task = "tmaze", memory = memory } } end
agents[4] = { label = "recall, gated_deltanet", set = { task = "recall", memory = "gated_deltanet" } }
agents[5] = { label = "Memory Maze, gru", set = { task = "memory_maze", memory = "gru", learner = "ppo", steps = 4e5, num_envs = 32, num_steps = 64,
  stop_score = -1 } }

local claims = {}
local function equal(agent, id, metric, within, text)
  claims[#claims + 1] = { id = id, text = agent .. ": " .. text, source = "ours; bound set before seeds 1-16 ran, after pilots",
    test = { "equal", metric = metric, within = within, a = { precision = "bf16" }, b = { precision = "fp32" }, where = { agent = agent } } }
end
for i, a in ipairs(agents) do
  if a.set.stop_score then equal(a.label, "score-" .. i, "score", 0.05, "bf16 ends within 0.05 of fp32's score.")          -- others stop at a score
  else equal(a.label, "steps-" .. i, "doublings", math.log(1.5) / math.log(2), "bf16 needs fp32's steps, within a factor of 1.5.") end
end

return mn.study {
  title = "bfloat16 against float32: the same learning?",
  question = "Do agents reach the same score, after as many steps, where products of matrices take bfloat16?",
  axes = { agent = agents, precision = { "fp32", "bf16" } },
  settings = { task = "tmaze", memory = "agalite", learner = "a2c", steps = 2e6, num_envs = 8, num_steps = 256, hidden = 32, lr = 1e-3, entropy_coef = 0.01,
    threads = 1, stop_score = 0.95, every = 5e4, checkpoint_every = 1e9 },
  about = { task = "tmaze, memory_maze or recall", memory = "agalite, gru, gtrxl or gated_deltanet",
    every = { "steps between two measurements of a gradient", range = { 1, 1e9 }, whole = true } },
  seeds = { 16, quick = 2 },
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    local learner
    if cfg.task == "recall" then
      local dataset = mn.dataset({ "mqar", length = 32, vocab = 32 }, { batch = 32, seed = cfg.seed, pairs = 4 })
      learner = mn.supervised(cfg, dataset, mn.sequence_model { dataset = dataset, core = mn.core(cores[cfg.memory]) })
    else
      local env = mn.env(cfg.task, { num_envs = cfg.num_envs, seed = cfg.seed, corridor = cfg.task == "tmaze" and 40 or nil })
      learner = mn.learner(cfg, env, mn.agent { env = env, core = cores[cfg.memory], hidden = cfg.hidden })
    end
    local errors = mn.measure.gradient_error.watch(learner, cfg.every)
    local result = learner:train()
    result.score, result.doublings, result.gradient = result.score or result.accuracy, math.log(result.steps) / math.log(2), errors
    result.worst = math.max(unpack(errors.y))
    return result
  end,
  metrics = { score = { "success, share of the oracle's return, or share of right answers", range = { 0, 1 } },
    steps = { "steps of the run, to the end or until solved" },
    doublings = { "the logarithm of steps to base 2" }, worst = { "largest relative error of a gradient in bf16", range = { 0, math.huge }, goal = 0 } },
  figures = { { "lines", y = "gradient", x = "steps", by = "agent", log = "y", title = "relative error of a gradient in bf16, while learning" },
    { "bars", y = "steps", x = "agent", by = "precision", title = "steps until solved" }, { "bars", y = "score", x = "agent", by = "precision" } },
  claims = claims,
}
