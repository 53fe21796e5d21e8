-- Which feature map keys a memory best?   mneme sweep experiments/fig13b_feature_map.lua quick=1
-- The paper compares outer products with elu+1 and dpfp; its reviewers asked for a learned map, random features, all of
-- them inside plain linear attention too, and a signed map.
local mn = require "mneme"

local maps = { outer_relu = {}, elu1 = { feature = "elu1" }, dpfp = { feature = "dpfp", nu = 2 }, nn = { feature = "nn" },
  rfa = { feature = "rfa" }, identity = { feature = "identity" } }
local names = { "outer_relu", "elu1", "dpfp", "nn", "rfa", "identity" }
local small = { n_layers = 2, d_model = 64, d_head = 32, d_ffn = 64 }

-- Every map, gated as the paper's memory is, and in linear attention that only adds.
local function cores(size)
  local list = {}
  for _, plain in ipairs { false, true } do
    for _, name in ipairs(names) do
      local core = { "galite", gate = plain and "none" or "outer", label = (plain and "plain " or "") .. name }
      for _, set in ipairs { maps[name], size or {} } do for key, value in pairs(set) do core[key] = value end end
      list[#list + 1] = core
    end
  end
  return list
end

return mn.study {
  title = "T-Maze: feature maps (figure 13b)",
  question = "Does the outer product of features carry a cue further than maps that others use?",
  of = "tmaze",
  axes = { corridor = { 120, 200, quick = { 20 }, full = { 200 } },
    core = (function() local axis = cores() axis.quick = cores(small) return axis end)() },
  settings = { steps = 5e6, threads = 1, quick = { steps = 6e5, hidden = 64, lr = 3e-4, entropy_coef = 0.01 } },
  seeds = { 3 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } } },
  figures = {
    { "bars", y = "score", by = "core", title = "success of each feature map" },
    { "curves", y = "charts/score", by = "core", title = "success while learning" },
  },
  references = { { "guessing", y = 0.5, of = "score" } },
  claims = {
    { id = "outer-elu1", text = "The outer product succeeds more often than elu+1.", source = "paper, figure 13b",
      test = { "better", metric = "score", a = { core = "outer_relu" }, b = { core = "elu1" } } },
    { id = "outer-dpfp", text = "The outer product succeeds more often than dpfp.", source = "paper, figure 13b",
      test = { "better", metric = "score", a = { core = "outer_relu" }, b = { core = "dpfp" } } },
    { id = "signed", text = "A signed map, whose normaliser may vanish, succeeds less often than elu+1.", source = "a reviewer's question",
      test = { "better", metric = "score", a = { core = "elu1" }, b = { core = "identity" } } },
  },
}
