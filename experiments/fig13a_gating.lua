-- Does a gate for every element remember longer than one for a head?   mneme sweep experiments/fig13a_gating.lua quick=1
local mn = require "mneme"

local small = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64 }
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
    corridor = { 120, 160, 200, quick = { 20, 40 }, full = { 200 } },
  },
  settings = { steps = 5e6, threads = 1, quick = { steps = 8e5, hidden = 64, lr = 3e-4, entropy_coef = 0.01 } },
  seeds = { 3 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } } },
  figures = {
    { "lines", y = "score", x = "corridor", by = "core", title = "success against the corridor's length" },
    { "curves", y = "charts/score", by = "core", title = "success while learning, all corridors" },
  },
  references = { { "guessing", y = 0.5, of = "score" } },
  claims = {
    { id = "gate", text = "Elementwise gates succeed more often than a scalar gate.", source = "paper, figure 13a, corridor 200",
      test = { "better", metric = "score", a = { core = "elementwise" }, b = { core = "scalar" } } },
    { id = "forgetting", text = "A memory that forgets succeeds more often than one that only adds.", source = "paper, section 3",
      test = { "better", metric = "score", a = { core = "elementwise" }, b = { core = "none" } } },
  },
  report = {
    scope = "One architecture, three gates, one learner; the paper shows corridor 200 only.",
    hyperparameters = {
      { "lr, entropy_coef", source = "released configuration of T-Maze (quick=1: ours)" }, { "steps", source = "released code: 5M" },
      { "core.eta", source = "ours: 4 for all, the paper does not say" },
    },
  },
}
