-- Does a gate for every element remember longer than one for a head?   mneme sweep experiments/fig13a_gating.lua quick=1
-- quick=1: one layer of width 32 and corridors of 20, 40 and 60, where a run takes seconds.
local mn = require "mneme"

local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local function galite(label, options, size)
  local core = { "galite", label = label }
  for _, set in ipairs { options, size or {} } do for key, value in pairs(set) do core[key] = value end end
  return core
end
local elementwise, scalar, none = { gate = "outer" }, { gate = "scalar" }, { gate = "none" }

return mn.study {
  title = "T-Maze: elementwise against scalar gates (figure 13a)",
  question = "Does the outer product of gates, one for every element of the memory, carry a cue further than one number a head?",
  of = "tmaze",
  axes = {
    core = { galite("elementwise", elementwise), galite("scalar", scalar), galite("none", none),
      quick = { galite("elementwise", elementwise, small), galite("scalar", scalar, small), galite("none", none, small) } },
    corridor = { 120, 160, 200, quick = { 20, 40, 60 }, full = { 200 } },
  },
  settings = { size = "published", steps = 5e6, threads = 1, quick = { steps = 1.2e6, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = 5,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    learned = { "success, mean over all of training", mean_of = "charts/score", range = { 0, 1 } } },
  figures = {
    { "bars", y = "score", x = "corridor", by = "core", title = "success at the end" },
    { "curves", y = "charts/score", by = "core", title = "success while learning" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" },
    { "who knows the cue", y = 1, of = "score", source = "the environment's rules" } },
  claims = {
    { id = "gate", text = "Elementwise gates succeed more often than a scalar gate.", source = "paper, figure 13a, corridor 200",
      test = { "better", metric = "score", a = { core = "elementwise" }, b = { core = "scalar" } } },
    { id = "forgetting", text = "A memory that forgets succeeds more often than one that only adds.", source = "paper, section 3",
      test = { "better", metric = "score", a = { core = "elementwise" }, b = { core = "none" } } },
    { id = "sooner", text = "Elementwise gates learn sooner than a scalar gate.", source = "ours",
      test = { "better", metric = "learned", a = { core = "elementwise" }, b = { core = "scalar" } } },
  },
}
