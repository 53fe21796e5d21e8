-- Which memory is best over many tasks, at equal size and equally tuned?   mneme sweep experiments/board.lua quick=1
-- A memory of your own: core=FILE.lua runs its column alone, core=gru,FILE.lua that and another's.  Scores are normalised: 0 is the best
-- policy known without a memory, 1 a perfect one (docs/tasks.md), so that tasks can be averaged and ranked together.
local mn = require "mneme"
local function one(name, label, memory) return { name, n_layers = 1, memory = memory, label = label or name } end
local agalite, galite, sums, delta, gtrxl = one "agalite", one "galite", one "linear_transformer", one "gated_deltanet", one("gtrxl", nil, 128)
local nothing, exact = one("feedforward", "no memory"), { label = "mingru exact", set = { core = "mingru", credit = "exact" } }
-- POPGym's, and what its GRU is published to return on the easy and on the hard level (experiments/popgym.lua says where).
local names = { { "repeat_first", 0.940, 1 }, { "repeat_previous", 1, -0.428 }, { "autoencode", -0.283, -0.456 }, { "count_recall", 0.177, -0.475 },
  { "concentration" }, { "position_only_cartpole", 1, 1 } }
local narrow = { { "higher_lower", 0.529, 0.506 }, { "multiarmed_bandit", 0.619, 0.516 }, { "velocity_only_cartpole" } }
local tasks, published, SMALL = { quick = {} }, {}, 30000
for _, of in ipairs { { names, "easy", 2 }, { names, "hard", 3 }, { narrow, "easy", 2 }, { narrow, "hard", 3 } } do
  for _, task in ipairs(of[1]) do
    local label = task[1] .. " " .. of[2]
    tasks[#tasks + 1] = { label = label, set = { env = task[1], ["env.level"] = of[2] } }
    published[#published + 1] = task[of[3]] and { "GRU, " .. label .. ", published", y = task[of[3]], of = "mean_return", steps = 15e6,
      where = { core = "gru", task = label }, source = "POPGym, table 3" } or nil
  end
end
for i = 1, #names do tasks.quick[i] = tasks[i] end
for _, of in ipairs { { "memory_chain", "memory_length", 30 }, { "tmaze", "corridor", 60 }, { "minigrid_memory", "size", 13 } } do
  tasks[#tasks + 1] = { label = of[1] .. " " .. of[3], set = { env = of[1], ["env." .. of[2]] = of[3] } }
end
tasks[#tasks + 1] = { label = "rock_sample 7,8", set = { env = "rock_sample", ["env.size"] = 7, ["env.rocks"] = 8 } }
for _, i in ipairs { #tasks - 3, #tasks - 2 } do table.insert(tasks.quick, tasks[i]) end
local function claim(id, text, a, b, within)
  return { id = id, text = text, source = "ours", test = { within and "equal" or "better", metric = "normalised", a = { core = a }, b = { core = b },
    where = { size = SMALL }, within = within } }
end
local function over_tasks(kind, y, title, x) return { kind, y = y, by = "core", x = x, where = { size = SMALL }, title = title } end

return mn.study {
  title = "The board: memories on many tasks",
  question = "Which memory is best over many tasks, at equal size and with a learning rate that suits it?",
  of = "train", seeds = 5,
  axes = {
    core = { "gru", "lstm", "mingru", nothing, agalite, galite, sums, delta, gtrxl, exact, "rtu", one "mamba2", one "rwkv4",
      quick = { "gru", "lstm", "mingru", nothing, agalite, galite, sums, delta, gtrxl } }, task = tasks, size = { SMALL, 100000, quick = { SMALL } } },
  settings = { learner = "ppo", steps = 15e6, num_envs = 64, num_steps = 128, epochs = 4, minibatches = 4, hidden = 64, lr_schedule = "linear",
    norm_reward = 1, entropy_coef = 0.01, threads = 1, quick = { steps = 1e6 } },
  tune = { lr = "1e-4..1e-2:log", budget = "16x5e6", quick = { lr = "3e-4..1e-2:log", budget = "6x3e5" } },
  metrics = { normalised = { "score between no memory (0) and a perfect one (1), last 100 episodes", goal = 1 },
    score = { "score, last 100 episodes", range = { 0, 1 } }, mean_return = { "return, last 100 episodes" } },
  references = published,
  figures = { over_tasks("heat", "normalised", "normalised score", "task"), over_tasks("ranks", "normalised", "mean rank over tasks", "task"),
    over_tasks("bars", "normalised", "mean over tasks"), over_tasks("bars", "cpu_s", "what a run costs"),
    over_tasks("curves", "charts/score", "while learning", "task") },
  claims = {
    claim("memory", "A GRU scores higher than no memory.", "gru", "no memory"),
    claim("forget", "GaLiTe, whose gates forget, scores higher than the linear transformer, which keeps all.", "galite", "linear_transformer"),
    claim("matrix", "GaLiTe's matrix scores higher than minGRU's vector.", "galite", "mingru"),
    claim("delta", "Gated DeltaNet, which overwrites, scores higher than GaLiTe, which adds.", "gated_deltanet", "galite"),
    claim("agalite-gru", "AGaLiTe scores higher than a GRU.", "agalite", "gru"),
    claim("agalite-gtrxl", "AGaLiTe scores higher than GTrXL with 128 steps.", "agalite", "gtrxl"),
    claim("exact-credit", "minGRU scores higher with exact credit than with the window.", "mingru exact", "mingru"),
    claim("approximation", "AGaLiTe's approximation changes the normalised score by less than 0.05.", "agalite", "galite", 0.05),
  },
}
