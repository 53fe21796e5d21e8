-- Which memory solves which of POPGym's tasks?   mneme sweep experiments/popgym.lua quick=1
-- Sixteen tasks on three levels, compared by normalised, since what no memory gets differs from task to task: 0 is the best policy known without a
-- memory, 1 a perfect one (docs/tasks.md).  Carts and pendulums are told the last action, as all of POPGym's baselines were: how one was pushed is not seen.
local mn = require "mneme"

local gru = { label = "gru", set = { core = { "gru", d_model = 64 } } }
local none = { label = "no memory", set = { core = { "feedforward", n_layers = 2, d_model = 64, d_ffn = 64 } } }
local memories = { gru, { label = "lstm", set = { core = { "lstm", d_model = 64 } } }, { label = "mingru", set = { core = { "mingru", d_model = 64 } } },
  { label = "agalite", set = { core = { "agalite", n_layers = 1, d_model = 64, d_head = 16, n_heads = 4, d_ffn = 64 } } },
  { label = "gtrxl", set = { core = { "gtrxl", n_layers = 1, d_model = 64, d_head = 16, n_heads = 4, d_ffn = 64 } } }, none, quick = { gru, none } }

-- Each task's environment, and what a GRU is published to return on the three levels.
local tasks = { { "repeat_first", 1, 1, 0.940 }, { "repeat_previous", 1, -0.315, -0.428 }, { "autoencode", -0.283, -0.425, -0.456 },
  { "count_recall", 0.177, -0.528, -0.475 }, { "concentration" }, { "battleship" }, { "minesweeper" }, { "higher_lower", 0.529, 0.511, 0.506 },
  { "multiarmed_bandit", 0.619, 0.538, 0.516 }, { "position_only_cartpole", 1, 1, 1 }, { "velocity_only_cartpole" },
  { "noisy_position_only_cartpole", 0.995, 0.642, 0.390 }, { "position_only_pendulum" }, { "noisy_position_only_pendulum" },
  { "labyrinth_escape" }, { "labyrinth_explore" } }
local levels, worlds, grades, published, claims = { "easy", "medium", "hard" }, {}, {}, {}, {}
for l, level in ipairs(levels) do grades[l] = { label = level, set = { ["env.level"] = level } } end
for i, task in ipairs(tasks) do
  worlds[i] = { label = task[1], set = { env = task[1], previous = (task[1]:find "cartpole" or task[1]:find "pendulum") and "action" or nil } }
  for l, level in ipairs(levels) do
    if task[l + 1] then
      published[#published + 1] = { ("GRU, %s %s, published"):format(task[1], level), y = task[l + 1], of = "mean_return",
        where = { memory = "gru", task = task[1], level = level }, source = "POPGym, table 3 (largest mean of an epoch), as a third party copied it" }
    end
  end
  claims[i] = { id = task[1], text = ("On the easy level of %s a GRU scores higher than no memory."):format(task[1]), source = "ours",
    test = { "better", metric = "score", a = { memory = "gru" }, b = { memory = "no memory" }, where = { task = task[1], level = "easy" } } }
end
worlds.quick, grades.quick = { worlds[1], worlds[2] }, { grades[1] }

return mn.study {
  title = "POPGym: memories, tasks and levels",
  question = "How much of what a perfect memory adds does each memory reach, on each task of POPGym?",
  of = "train",
  axes = { memory = memories, task = worlds, level = grades },
  settings = { learner = "ppo", steps = 15e6, num_envs = 64, num_steps = 128, epochs = 4, minibatches = 4, hidden = 64, lr = 1e-3,
    lr_schedule = "linear", norm_reward = 1, entropy_coef = 0.01, threads = 1, quick = { steps = 1e6 } },
  seeds = { 3, quick = 5 },
  metrics = { normalised = { "score between no memory (0) and a perfect one (1), last 100 episodes", goal = 1 },
    score = { "score, last 100 episodes", range = { 0, 1 } }, mean_return = { "return, last 100 episodes", range = { -2, 1 } } },
  figures = { { "heat", y = "normalised", x = "task", by = "memory", where = { level = "easy" }, title = "normalised, easy" },
    { "bars", y = "normalised", x = "level", by = "memory", where = { task = "repeat_previous" }, title = "repeat_previous, by level" },
    { "curves", y = "charts/score", by = "memory", where = { task = "repeat_previous", level = "easy" }, title = "repeat_previous, easy, while learning" } },
  references = published,
  claims = claims,
}
