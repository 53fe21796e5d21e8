-- Which feature map keys a memory best?   mneme sweep experiments/fig13b_feature_map.lua quick=1
-- The paper has the outer product, elu+1 and dpfp; reviewers asked for a learned map, random features, all of them in
-- plain linear attention, and a signed map.  quick=1: one layer of width 32, corridor 20: seconds per run.
local mn = require "mneme"

local maps = { outer_relu = {}, elu1 = { feature = "elu1" }, dpfp = { feature = "dpfp", nu = 2 }, nn = { feature = "nn" }, rfa = { feature = "rfa" },
  identity = { feature = "identity" } }
local names = { "outer_relu", "elu1", "dpfp", "nn", "rfa", "identity" }
local small = { n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }

-- Every map, gated as the paper's memory is, and in linear attention that only adds.
local function cores(size)
  local list = {}
  for _, plain in ipairs { false, true } do
    for _, name in ipairs(names) do
      ---@type table<any, any>
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
  axes = { corridor = { 120, 200, quick = { 20 }, full = { 200 } }, core = { quick = cores(small), unpack(cores()) } },
  settings = { size = "published", steps = 5e6, threads = 1, quick = { steps = 6e5, hidden = 32, lr = 1e-3, entropy_coef = 0.01 } },
  seeds = 5,
  measure = function(path) return mn.measure.denominators.ask(mn.stepper.from_run(path, { num_envs = 4, seed = 1000 }), { steps = 100 }) end,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 } },
    learned = { "success, mean over all of training", mean_of = "charts/score", range = { 0, 1 } },
    near_zero = { "share of divisors s.q within eps of 0", range = { 0, 1 }, goal = 0 },
    negative = { "share of divisors s.q below 0", range = { 0, 1 }, goal = 0 }, read = { "largest number read from the memory", range = { 0, math.huge } } },
  figures = {
    { "bars", y = "score", by = "core", title = "success of each feature map" },
    { "curves", y = "charts/score", by = "core", title = "success while learning" },
    { "bars", y = "near_zero", by = "core", title = "divisors next to nothing" }, { "bars", y = "negative", by = "core", title = "divisors below 0" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" },
    { "who knows the cue", y = 1, of = "score", source = "the environment's rules" } },
  claims = {
    { id = "outer-elu1", text = "The outer product succeeds more often than elu+1.", source = "paper, figure 13b",
      test = { "better", metric = "score", a = { core = "outer_relu" }, b = { core = "elu1" } } },
    { id = "outer-dpfp", text = "The outer product succeeds more often than dpfp.", source = "paper, figure 13b",
      test = { "better", metric = "score", a = { core = "outer_relu" }, b = { core = "dpfp" } } },
    { id = "sooner", text = "The outer product learns sooner than elu+1.", source = "ours",
      test = { "better", metric = "learned", a = { core = "outer_relu" }, b = { core = "elu1" } } },
    { id = "zero", text = "relu leaves nothing to divide by at least once in 100 reads.", source = "ours: 2^-eta of them before training",
      test = { "at_least", metric = "near_zero", a = { core = "outer_relu" }, value = 0.01 } },
    { id = "crosses", text = "With a signed map at least a tenth of the divisors lie below 0.", source = "a reviewer's question",
      test = { "at_least", metric = "negative", a = { core = "identity" }, value = 0.1 } },
    { id = "signed", text = "A signed map, whose normaliser may vanish, succeeds less often than elu+1.", source = "a reviewer's question",
      test = { "better", metric = "score", a = { core = "elu1" }, b = { core = "identity" } } },
  },
}
