-- Can a cue teach that lies before the rollout?   mneme sweep experiments/far_cue.lua quick=1
-- Rollouts of 32 steps, corridors of 60 and 100: with credit=window no gradient leads from the junction back to the cue, with credit=exact one does.
-- All start with gates that keep what they hold as long as the corridor is (core.remember=chrono), so that nothing else is in the way.  Through
-- longer corridors chance does not walk: far_cue_1000.lua.
local mn = require "mneme"

local mingru = { "mingru", d_model = 64, remember = "chrono" }
local agalite = { "agalite", n_layers = 1, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, remember = "chrono" }
local rtu = { "rtu", d_model = 64, remember = "chrono", max_phase = 0.314 }
local memories = {
  { label = "mingru, window", set = { core = mingru, credit = "window" } }, { label = "mingru, exact", set = { core = mingru, credit = "exact" } },
  { label = "agalite, window", set = { core = agalite, credit = "window" } }, { label = "agalite, exact", set = { core = agalite, credit = "exact" } },
  { label = "rtu, window", set = { core = rtu, credit = "window" } }, { label = "rtu, exact", set = { core = rtu, credit = "exact" } },
  { label = "gru", set = { core = { "gru", d_model = 64, remember = "chrono" } } },
}

local function solves(corridor, core)
  return { id = corridor .. "-" .. core, source = "ours",
    text = ("In a corridor of %d, %s with exact credit lets more seeds learn than with the window."):format(corridor, core),
    test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { memory = core .. ", exact" }, b = { memory = core .. ", window" },
      where = { corridor = tostring(corridor) } } }
end

return mn.study {
  title = "T-Maze: a cue beyond the rollout",
  question = "Can a cue teach that lies before the rollout?",
  of = "tmaze",
  axes = { memory = memories, corridor = { 60, 100 } },
  settings = { num_steps = 32, hidden = 64, lr = 1e-3, entropy_coef = 0.01, steps = 2e6, threads = 1, stop_score = 0.97 },
  seeds = 10,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 }, steps = { "steps of the run, which stops when solved" } },
  figures = {
    { "bars", y = "score", x = "corridor", by = "memory", title = "success at the end" },
    { "solved", y = "score", by = "memory", where = { corridor = "60" }, title = "seeds that have solved a corridor of 60, against steps" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = { solves(60, "mingru"), solves(60, "agalite"), solves(100, "mingru"), solves(100, "agalite"), solves(60, "rtu"), solves(100, "rtu") },
}
