-- How much does credit leave out?   mneme sweep experiments/credit_angle.lua
-- Along a training the update's gradient over torso and core is held against backpropagation through the newest 8 rollouts, 128 steps; no episode is longer
-- than 100, so that this is the whole gradient.  One layer directly on the observations leaves nothing out with exact credit; two leave out what passes
-- through the lower one, and AGaLiTe's embedding is such a part.
local mn = require "mneme"

local function agalite(layers)
  return { "agalite", n_layers = layers, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, remember = "chrono:20" }
end
local function mingru(layers) return { "mingru", d_model = 32, n_layers = layers, remember = "chrono:20" } end
local cores = { ["mingru, one layer"] = mingru(1), ["mingru, two layers"] = mingru(2), ["agalite, one layer"] = agalite(1), ["agalite, two layers"] = agalite(2) }
local names = { "mingru, one layer", "mingru, two layers", "agalite, one layer", "agalite, two layers" }

local memories, claims = {}, {}
for i, name in ipairs(names) do
  memories[i] = { label = name, set = { core = cores[name] } }
  claims[i] = { id = "nearer-" .. i, source = "ours", text = ("%s: with exact credit the gradient is nearer to the whole one than with the window."):format(name),
    test = { "better", metric = "cosine", a = { memory = name, credit = "exact" }, b = { memory = name, credit = "window" } } }
end
claims[#claims + 1] = { id = "whole", source = "ours", text = "mingru, one layer: with exact credit its cosine is at least 0.999.",
  test = { "at_least", metric = "cosine", a = { memory = names[1], credit = "exact" }, value = 0.999 } }

return mn.study {
  title = "The angle of credit",
  question = "How much of the whole gradient does credit leave out?",
  of = "train",
  axes = { memory = memories, credit = { "window", "exact" } },
  settings = { env = "tmaze", ["env.corridor"] = 20, ["env.time_limit"] = 100, learner = "a2c", num_envs = 8, num_steps = 16, hidden = 32, lr = 1e-3,
    entropy_coef = 0.01, steps = 1e5, threads = 1, debug = "credit" },
  seeds = 10,
  metrics = {
    cosine = { "cosine with the whole gradient, mean over the training", range = { -1, 1 }, mean_of = "credit/cosine" },
    ratio = { "its length, of the whole gradient's, mean over the training", range = { 0, math.huge }, mean_of = "credit/ratio" },
  },
  figures = {
    { "curves", y = "credit/cosine", by = "memory", where = { credit = "window" }, title = "with the window: cosine with the whole gradient" },
    { "curves", y = "credit/cosine", by = "memory", where = { credit = "exact" }, title = "with exact credit: cosine with the whole gradient" },
    { "bars", y = "ratio", x = "memory", by = "credit", title = "length, of the whole gradient's" },
  },
  claims = claims,
}
