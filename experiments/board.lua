-- Which memory is best over many tasks, at equal size and equally tuned?   mneme sweep experiments/board.lua quick=1
-- A memory of your own: core=FILE.lua runs its column alone, core=gru,FILE.lua that and another's.  Scores are normalised: 0 is the best
-- policy known without a memory, 1 a perfect one (docs/tasks.md), so that tasks can be averaged and ranked together.
local mn = require "mneme"

local function one(name, label, memory) return { name, n_layers = 1, memory = memory, label = label or name } end
local agalite, galite, sums, delta, gtrxl = one "agalite", one "galite", one "linear_transformer", one "gated_deltanet", one("gtrxl", nil, 128)
local nothing, exact = one("feedforward", "no memory"), { label = "mingru exact", set = { core = "mingru", credit = "exact" } }

local names = { "repeat_first", "repeat_previous", "autoencode", "count_recall", "concentration", "position_only_cartpole" }
local narrow = { "higher_lower", "multiarmed_bandit", "velocity_only_cartpole" }
local tasks = { quick = {} }
for _, of in ipairs { { names, "easy" }, { names, "hard" }, { narrow, "easy" }, { narrow, "hard" } } do
  for _, name in ipairs(of[1]) do tasks[#tasks + 1] = { label = name .. " " .. of[2], set = { env = name, ["env.level"] = of[2] } } end
end
for i = 1, #names do tasks.quick[i] = tasks[i] end
for _, of in ipairs { { "memory_chain", "memory_length", 30 }, { "tmaze", "corridor", 60 }, { "minigrid_memory", "size", 13 } } do
  tasks[#tasks + 1] = { label = of[1] .. " " .. of[3], set = { env = of[1], ["env." .. of[2]] = of[3] } }
end
tasks[#tasks + 1] = { label = "rock_sample 7,8", set = { env = "rock_sample", ["env.size"] = 7, ["env.rocks"] = 8 } }
for _, i in ipairs { #tasks - 3, #tasks - 2 } do table.insert(tasks.quick, tasks[i]) end

local SMALL = 30000
local function better(id, text, a, b)
  return { id = id, text = text, source = "ours", test = { "better", metric = "normalised", a = { core = a }, b = { core = b }, where = { size = SMALL } } }
end

return mn.study {
  title = "The board: memories on many tasks",
  question = "Which memory is best over many tasks, at equal size and with a learning rate that suits it?",
  of = "train",
  axes = {
    core = { "gru", "lstm", "mingru", nothing, agalite, galite, sums, delta, gtrxl, exact, "rtu", one "mamba2", one "rwkv4",
      quick = { "gru", "lstm", "mingru", nothing, agalite, galite, sums, delta, gtrxl } },
    task = tasks, size = { SMALL, 100000, quick = { SMALL } },
  },
  settings = { learner = "ppo", steps = 15e6, num_envs = 64, num_steps = 128, epochs = 4, minibatches = 4, hidden = 64, lr_schedule = "linear",
    norm_reward = 1, entropy_coef = 0.01, threads = 1, quick = { steps = 1e6 } },
  tune = { lr = "1e-4..1e-2:log", budget = "16x5e6", quick = { lr = "3e-4..1e-2:log", budget = "6x3e5" } },
  seeds = 5,
  metrics = { normalised = { "score between no memory (0) and a perfect one (1), last 100 episodes", goal = 1 },
    score = { "score, last 100 episodes", range = { 0, 1 } } },
  figures = {
    { "heat", y = "normalised", x = "task", by = "core", where = { size = SMALL }, title = "normalised score" },
    { "ranks", y = "normalised", x = "task", by = "core", where = { size = SMALL }, title = "mean rank over tasks" },
    { "bars", y = "normalised", by = "core", where = { size = SMALL }, title = "mean over tasks" },
    { "curves", y = "charts/score", by = "core", where = { size = SMALL, task = "repeat_previous easy" }, title = "repeat_previous, easy, while learning" },
  },
  claims = {
    better("memory", "A GRU scores higher than no memory.", "gru", "no memory"),
    better("forget", "GaLiTe, whose gates forget, scores higher than the linear transformer, which keeps all.", "galite", "linear_transformer"),
    better("matrix", "GaLiTe's matrix scores higher than minGRU's vector.", "galite", "mingru"),
    better("delta", "Gated DeltaNet, which overwrites, scores higher than GaLiTe, which adds.", "gated_deltanet", "galite"),
    better("agalite-gru", "AGaLiTe scores higher than a GRU.", "agalite", "gru"),
    better("agalite-gtrxl", "AGaLiTe scores higher than GTrXL with 128 steps.", "agalite", "gtrxl"),
    better("exact-credit", "minGRU scores higher with exact credit than with the window.", "mingru exact", "mingru"),
    { id = "approximation", text = "AGaLiTe's approximation changes the normalised score by less than 0.05.", source = "ours",
      test = { "equal", metric = "normalised", a = { core = "agalite" }, b = { core = "galite" }, where = { size = SMALL }, within = 0.05 } },
  },
}
