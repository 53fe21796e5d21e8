-- What does an approximate memory lose?   mneme sweep experiments/fig13c_approximation.lua quick=1
-- Rank 1 to 8 of each approximation against the exact sum; a reviewer called rank 1 suboptimal, and the released form at
-- r = 2 computes what it does at r = 1.  quick=1: one layer of width 32, corridor 20: seconds per run.
local mn = require "mneme"

local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
local kinds = { cos = { "agalite" }, paper = { "agalite", form = "paper" }, cossin = { "agalite", form = "cossin" },
  random_sign = { "galite", approximation = "random_sign" }, svd = { "galite", approximation = "svd" } }

local function cores(ranks, size)
  local list = { { "galite", label = "exact" } }
  for _, kind in ipairs { "cos", "paper", "cossin", "random_sign", "svd" } do
    for _, r in ipairs(ranks) do
      local core = { kinds[kind][1], r = r, label = kind .. " " .. r }
      for key, value in pairs(kinds[kind]) do if key ~= 1 then core[key] = value end end
      list[#list + 1] = core
    end
  end
  for _, core in ipairs(list) do for key, value in pairs(size or {}) do core[key] = value end end
  return list
end

return mn.study {
  title = "T-Maze: approximations of the memory and their rank (figure 13c)",
  question = "How much of the success of the exact memory do r channels keep?",
  of = "tmaze",
  axes = { corridor = { 120, 200, quick = { 20 }, full = { 200 } },
    core = { quick = cores({ 1, 2, 8 }, small), full = cores { 1, 2, 3, 4, 5, 6, 7, 8 }, unpack(cores { 1, 2, 4, 8 }) } },
  settings = { size = "published", steps = 5e6, threads = 1, quick = { steps = 6e5, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = 5,
  measure = function(path) return { beyond = mn.measure.weight_transplant.difference(path, { r = 1, eps = 1e-12 }, { eps = 1e-12 }) } end,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    learned = { "success, mean over all of training", mean_of = "charts/score", range = { 0, 1 } },
    beyond = { "difference from r = 1 with the same weights, relative", goal = 0 } },
  figures = { { "lines", y = "score", x = "rank", by = "core", numbered = true, log = "x", title = "success of each approximation and rank" },
    { "curves", y = "charts/score", by = "core", title = "success while learning" } },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" },
    { "who knows the cue", y = 1, of = "score", source = "the environment's rules" } },
  claims = {
    { id = "cos-exact", text = "The released approximation at r = 2 succeeds as often as the exact memory, within 0.1.",
      source = "paper, figure 13c", test = { "equal", metric = "score", within = 0.1, a = { core = "cos 2" }, b = { core = "exact" } } },
    { id = "r1-r2", text = "The released form does the same with r = 1 and r = 2.", source = "our reading of the released code",
      test = { "equal", metric = "score", within = 0.1, a = { core = "cos 1" }, b = { core = "cos 2" } } },
    { id = "same-function", text = "With the same weights r = 1 and r = 2 of the released form say the same, but for rounding.",
      source = "our reading of the released code", test = { "equal", metric = "beyond", within = 1e-4, a = { core = "cos 2" }, b = { core = "cos 1" },
        exact = true } },
    { id = "rank", text = "Rank 1 of the exact series succeeds less often than rank 8.", source = "a reviewer's doubt",
      test = { "better", metric = "score", a = { core = "cossin 8" }, b = { core = "cossin 1" } } },
  },
}
