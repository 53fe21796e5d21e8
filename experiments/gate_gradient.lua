-- How much of a gradient reaches a step N steps back, by how the gates begin?   mneme sweep experiments/gate_gradient.lua
-- Nothing is trained: one backward pass from the last output of a new core to every input, and what the half-life predicts.
local mn = require "mneme"

local starts = { "published", "3", "10", "40", "160" }
local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local cores = {}
for _, about in ipairs { { "agalite", "agalite", small }, { "agalite, 4 layers", "agalite", {} }, { "gru", "gru", {} }, { "lstm", "lstm", {} } } do
  for _, start in ipairs(starts) do
    local core = { about[2], remember = start, label = about[1] .. " " .. start }
    for key, value in pairs(about[3]) do core[key] = value end
    cores[#cores + 1] = core
  end
end

return mn.study {
  title = "Gradients that reach the past, by how gates begin",
  question = "What does the half-life that gates begin with leave of a gradient from a junction to its cue?",
  axes = { core = cores },
  settings = { core = { "agalite" }, size = "published", back = 256, copies = 16 },
  about = { back = { "steps from the last output to the first input", range = { 2, 4096 }, whole = true },
    copies = { "sequences", range = { 1, 1024 }, whole = true } },
  seeds = { 10 },
  run = function(cfg)
    mn.manual_seed(cfg.seed)
    return mn.measure.gradient_reach.measure(cfg.core, cfg.back, cfg.copies)
  end,
  metrics = { reaches = { "gradient 200 steps back, relative to the last step's", range = { 0, math.huge } },
    half_life = { "steps in which a gradient halves, measured", range = { 0, math.huge } },
    longer = { "measured half-life, in half-lives that the gates begin with", range = { 0, math.huge } } },
  figures = {
    { "lines", y = "measured", x = "steps", by = "core", log = "y", statistic = "geometric", title = "gradient against steps back" },
    { "bars", y = "half_life", by = "core", title = "steps in which a gradient halves" },
  },
  claims = {
    { id = "reaches", text = "200 steps back a start of 40 steps leaves at least a million times the gradient of the published start.", source = "ours",
      test = { "ratio", metric = "reaches", a = { core = "agalite 40" }, b = { core = "agalite published" }, at_least = 1e6 } },
    { id = "layers", text = "So it does in four layers of width 128.", source = "ours", test = { "ratio", metric = "reaches",
      a = { core = "agalite, 4 layers 40" }, b = { core = "agalite, 4 layers published" }, at_least = 1e6 } },
    { id = "half-life", text = "A gradient halves no sooner than what the gates keep: its half-life is at least that of the start.", source = "ours",
      test = { "at_least", metric = "longer", a = { core = "agalite 40" }, value = 1 } },
    { id = "gru", text = "A GRU with a start of 40 steps leaves at least a thousand times the gradient of its published start.", source = "ours",
      test = { "ratio", metric = "reaches", a = { core = "gru 40" }, b = { core = "gru published" }, at_least = 1e3 } },
  },
}
