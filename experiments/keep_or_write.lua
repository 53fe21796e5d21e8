-- Does a start with nearly closed gates help because it keeps longer, or because it writes less?   mneme sweep experiments/keep_or_write.lua
-- In AGaLiTe a gate g writes g and keeps 1-g.  Two decays separate these: they keep what the same gate would with another bias,
-- keep = 1 - sigma(x + log a) = (1-g) / (1-g + a g) for g = sigma(x), so that nothing is added to learn.
local mn = require "mneme"

local SHORT, LONG = { beta = 0.5, gamma = 0.25 }, 1 - 0.5 ^ (1 / 80)     -- gates as published; of a half-life of 40, which beta and gamma share
local function odds(g) return g / (1 - g) end
local function decay(doc, a_v, a_k)
  return { doc = ("keep_v = (1-b)/(1-b + %.4g b),  keep_k = (1-g)/(1-g + %.4g g); %s"):format(a_v, a_k, doc), needs = { "beta", "gamma" },
    keep = function(b, g) return (1 - b) / (1 - b + b * a_v), (1 - g) / (1 - g + g * a_k) end }
end
local a_v, a_k = odds(LONG) / odds(SHORT.beta), odds(LONG) / odds(SHORT.gamma)
mn.decays.keeps_longer = decay("gates as published keep half for 40 steps", a_v, a_k)
mn.decays.keeps_shorter = decay("gates of a half-life of 40 keep as little as the published ones", 1 / a_v, 1 / a_k)

local function start(label, set)
  local core = { "agalite", label = label, n_layers = 1, d_model = 32, d_head = 16, d_ffn = 32 }
  for key, value in pairs(set) do core[key] = value end
  return core
end
local root = math.log(odds(math.sqrt(LONG)))           -- gamma is a product of two gates

local claims = {}
local function solves(id, text, a, b)
  for _, corridor in ipairs { 60, 120 } do
    claims[#claims + 1] = { id = id .. "-" .. corridor, text = ("In a corridor of %d, %s."):format(corridor, text), source = "a reader's question",
      test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { core = a }, b = { core = b }, where = { corridor = tostring(corridor) } } }
  end
end
solves("keep-large", "of starts that write much, more seeds learn where it is kept long", "keeps longer", "published")
solves("keep-small", "of starts that write little, more seeds learn where it is kept long", "both", "writes less")
solves("write-short", "of starts that keep short, more seeds learn where little is written", "writes less", "published")
solves("write-long", "of starts that keep long, more seeds learn where little is written", "both", "keeps longer")

return mn.study {
  title = "T-Maze: keep longer, or write less",
  question = "Gates that begin nearly closed keep longer and write less: which of the two lets AGaLiTe learn long corridors?",
  of = "tmaze", seeds = 20,
  axes = {
    core = { start("published", {}), start("keeps longer", { decay = "keeps_longer" }),
      start("writes less", { decay = "keeps_shorter", beta_bias = math.log(odds(LONG)), gamma_bias = root, p_gamma_bias = root }),
      start("both", { remember = 40 }) },
    corridor = { 60, 120 },
  },
  settings = { size = "published", steps = 2e6, threads = 1, stop_score = 0.97, hidden = 32, lr = 1e-3, entropy_coef = 0.01 },
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 }, steps = { "steps of the run, which stops when solved" } },
  figures = { { "bars", y = "score", x = "corridor", by = "core", title = "success at the end" },
    { "solved", y = "score", by = "core", where = { corridor = "60" }, title = "seeds that have solved it, against steps" } },
  references = { { "guessing", y = 0.5, of = "score", source = "two cues, even odds" } },
  claims = claims,
}
