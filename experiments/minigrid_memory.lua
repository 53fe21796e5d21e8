-- Which sizes of MiniGrid-Memory need a memory?   mneme sweep experiments/minigrid_memory.lua quick=1
-- An object lies in a room, and at the end of a hallway the agent goes to the one that is the same.  From the end of a short hallway the agent
-- can look back and see the object again.  The environment is ours in C; env=gym:MiniGrid-MemoryS7-v0 env.codes=11 is Minigrid's own.
local mn = require "mneme"

local layer = { n_layers = 1, d_model = 64, d_head = 16, n_heads = 4, d_ffn = 64 }
local function memory(name, core, sizes)
  local set = { core = core }
  for key, value in pairs(sizes) do set["core." .. key] = value end
  return { label = name, set = set }
end
local gru, none = memory("gru", "gru", { d_model = 64 }), memory("no memory", "feedforward", { n_layers = 2, d_model = 64, d_ffn = 64 })
local sizes = {}
for i, n in ipairs { 7, 9, 11, 13 } do sizes[i] = { label = tostring(n), set = { ["env.size"] = n } } end
sizes.quick = { sizes[1], sizes[3] }

return mn.study {
  title = "MiniGrid-Memory: which sizes need a memory?",
  question = "Can an agent without a memory solve a small MiniGrid-Memory, and a larger one not?",
  of = "train",
  axes = { memory = { gru, memory("lstm", "lstm", { d_model = 64 }), memory("mingru", "mingru", { d_model = 64 }), memory("agalite", "agalite", layer), none,
    quick = { gru, none } }, size = sizes },
  settings = { env = "minigrid_memory", learner = "ppo", steps = 2e7, num_envs = 32, num_steps = 64, hidden = 64, lr = 1e-3, entropy_coef = 0.01,
    threads = 1, quick = { steps = 4e5 } },
  seeds = 5,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 } },
  figures = {
    { "bars", y = "score", x = "size", by = "memory", title = "success at the end" },
    { "curves", y = "charts/score", by = "memory", where = { size = "7" }, title = "size 7, while learning" },
  },
  references = { { "no look back, no memory", y = 0.5, of = "score", source = "two ends, even odds" } },
  claims = {
    { id = "small", text = "With size 7 an agent without a memory succeeds in more than 0.6 of its episodes.", source = "ours; set before the runs",
      test = { "at_least", metric = "score", a = { memory = "no memory" }, value = 0.6, where = { size = "7" } } },
    { id = "larger", text = "Without a memory size 7 is solved more often than size 11.", source = "ours; set before the runs",
      test = { "better", metric = "score", a = { size = "7" }, b = { size = "11" }, where = { memory = "no memory" } } },
    { id = "adds", text = "With size 7 a GRU and no memory end within 0.1 of each other.", source = "ours; set before the runs",
      test = { "equal", metric = "score", within = 0.1, a = { memory = "gru" }, b = { memory = "no memory" }, where = { size = "7" } } },
  },
}
