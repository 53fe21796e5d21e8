-- How should gates begin?  Corridors against the half-life of what a new AGaLiTe writes.   mneme sweep experiments/gate_start.lua quick=1
-- quick=1: one layer of width 32, where a run takes seconds; runs stop when they have solved their corridor.
local mn = require "mneme"

local starts = { "published", "1", "3", "10", "40", "160", "chrono:256" }
local function cores(size)
  local list = {}
  for i, start in ipairs(starts) do
    list[i] = { "agalite", remember = start, label = start == "published" and start or start:find "chrono" and "chrono" or start .. " steps" }
    for key, value in pairs(size or {}) do list[i][key] = value end
  end
  return list
end

local core = cores()
core.quick = cores { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }

local function solves(corridor, a, b)
  return { id = corridor .. "-" .. b:gsub(" ", "-"), source = "ours",
    text = ("In a corridor of %d, the start %s lets more seeds learn than the start %s."):format(corridor, a, b),
    test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { core = a }, b = { core = b }, where = { corridor = tostring(corridor) } } }
end

return mn.study {
  title = "T-Maze: how gates begin",
  question = "How far does a new AGaLiTe learn to carry a cue, by the half-life that its gates begin with?",
  of = "tmaze",
  axes = {
    core = core,
    corridor = { 60, 120, 200, 256 },
  },
  settings = { size = "published", steps = 5e6, threads = 1, stop_score = 0.97,
    quick = { steps = 2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = { 10, quick = 30 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 }, steps = { "steps of the run, which stops when solved" } },
  figures = {
    { "bars", y = "score", x = "corridor", by = "core", title = "success at the end" },
    { "bars", y = "steps", x = "corridor", by = "core", title = "steps until solved, at most the run's" },
    { "solved", y = "score", by = "core", where = { corridor = "120" }, title = "seeds that have solved it, against steps" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = {
    solves(60, "10 steps", "published"),
    solves(120, "40 steps", "published"),
    solves(200, "40 steps", "published"),
    solves(60, "10 steps", "1 steps"),
    { id = "60-sooner", text = "In a corridor of 60, the start 10 steps solves it sooner than the start 160 steps.", source = "ours",
      test = { "sooner", metric = "score", above = 0.97, fresh = 0.9, time = "steps", a = { core = "10 steps" }, b = { core = "160 steps" },
        where = { corridor = "60" } } },
  },
}
