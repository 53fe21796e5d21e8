-- How many seeds of each memory solve a long corridor, with gates as published and gates that begin longer?   mneme sweep tmaze_solved
-- Published sizes and learner settings; a run stops when it has solved its corridor, so seeds are counted and timed.  quick=1: small and short.
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
    add(name .. " 40 steps", name, { remember = 40 })
  end
  return list
end

local core = cores({}, nil, 200)
core.quick = cores({ n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }, 64, 120)

local claims = {}
local function solves(id, text, source, a, b, corridors)
  for _, corridor in ipairs(corridors) do
    claims[#claims + 1] = { id = id .. "-" .. corridor, text = ("In a corridor of %d, %s."):format(corridor, text), source = source,
      test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { core = a }, b = { core = b }, where = { corridor = tostring(corridor) } } }
  end
end
solves("paper", "AGaLiTe as published solves more often than GTrXL with 128 steps", "paper, figure 1", "agalite", "gtrxl", { 120, 200 })
solves("long", "AGaLiTe with gates that begin longer solves more often than as published", "ours", "agalite_long", "agalite", { 120, 200 })
solves("long-gtrxl", "AGaLiTe with gates that begin longer solves more often than GTrXL with 128 steps", "ours", "agalite_long", "gtrxl", { 120, 200 })
solves("long-gru", "AGaLiTe with gates that begin longer solves more often than a GRU", "ours", "agalite_long", "gru", { 120, 200 })
solves("lstm", "an LSTM with chrono initialisation solves more often than as published", "ours", "lstm chrono", "lstm", { 120 })
solves("gru", "a GRU with chrono initialisation solves more often than as published", "ours", "gru chrono", "gru", { 120 })

return mn.study {
  title = "T-Maze: which memories solve long corridors",
  question = "How many of ten seeds solve a corridor of 120 to 200 steps, and after how many steps?",
  of = "tmaze", seeds = 10,
  axes = { core = core, corridor = { 120, 160, 200, quick = { 60, 120, 200 } } },
  settings = { size = "published", steps = 5e6, threads = 1, stop_score = 0.97, quick = { steps = 2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 },
    steps = { "steps of the run, which stops when solved", range = { 0, math.huge }, goal = 0 } },
  figures = {
    { "lines", y = "score", x = "corridor", by = "core", title = "success at the end against the corridor's length" },
    { "bars", y = "steps", x = "corridor", by = "core", title = "steps until solved, at most the run's" },
    { "solved", y = "score", by = "core", where = { corridor = "120" }, title = "seeds that have solved it, against steps" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = claims,
}
