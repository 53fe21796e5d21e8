-- Which memories solve a long corridor with the rate and the entropy that suit each?   mneme sweep tmaze_tuned quick=1
-- Each memory is tuned with the same budget, then runs with seeds that the tuning has not seen; a run stops when it has solved its corridor.
local mn = require "mneme"

local function cores(size, width, reach)
  local list = {}
  local function add(label, name, options)
    local core = { name, label = label }
    for _, from in ipairs { options, (name == "gru" or name == "lstm") and { d_model = width } or size } do
      for key, value in pairs(from) do core[key] = value end
    end
    list[#list + 1] = core
  end
  for _, name in ipairs { "agalite", "agalite_long", "galite", "galite_released" } do add(name, name, {}) end
  add("gtrxl", "gtrxl", { memory = 128 })
  add("gtrxl 256", "gtrxl", { memory = 256 })
  for _, name in ipairs { "gru", "lstm" } do
    add(name, name, {})
    add(name .. " chrono", name, { remember = "chrono:" .. reach })
  end
  return list
end

local core = cores({}, nil, 200)
core.quick = cores({ n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }, 64, 140)

local function solves(id, text, a, b)
  return { id = id, text = text, source = id == "paper" and "paper, figure 1" or "ours", test = { "solves", metric = "score", above = 0.97, fresh = 0.9,
    a = { core = a }, b = { core = b } } }
end

return mn.study {
  title = "T-Maze: memories, each tuned",
  question = "How many of ten fresh seeds solve a long corridor, once each memory has the learning rate and the entropy that suit it?",
  of = "tmaze",
  axes = { core = core, corridor = { 200, quick = { 140 } } },
  settings = { size = "published", steps = 5e6, threads = 1, stop_score = 0.97, quick = { steps = 2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  tune = { lr = "1e-5..3e-3:log", entropy_coef = "1e-4..1e-1:log", budget = "40x3e6",
    quick = { lr = "2e-4..1e-2:log", entropy_coef = "1e-3..1e-1:log", budget = "40x2e6" } },
  seeds = 10,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 },
    steps = { "steps of the run, which stops when solved", range = { 0, math.huge }, goal = 0 } },
  figures = { { "bars", y = "score", by = "core", title = "success at the end, ten fresh seeds" },
    { "bars", y = "steps", by = "core", title = "steps until solved, at most the run's" },
    { "solved", y = "score", by = "core", title = "seeds that have solved it, against steps" }, { "curves", y = "charts/score", by = "core" } },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = {
    solves("paper", "AGaLiTe as published solves more often than GTrXL with 128 steps.", "agalite", "gtrxl"),
    solves("long", "AGaLiTe with gates that begin longer solves more often than as published.", "agalite_long", "agalite"),
    solves("long-gtrxl", "AGaLiTe with gates that begin longer solves more often than GTrXL with 128 steps.", "agalite_long", "gtrxl"),
    solves("long-gru", "AGaLiTe with gates that begin longer solves more often than a GRU.", "agalite_long", "gru"),
    solves("gru", "A GRU with chrono initialisation solves more often than as published.", "gru chrono", "gru"),
    solves("lstm", "An LSTM with chrono initialisation solves more often than as published.", "lstm chrono", "lstm"),
  },
}
