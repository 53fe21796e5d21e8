-- How long a chain does learning at every step span?   mneme sweep experiments/memory_chain.lua quick=1
-- One environment, no rollout: stream AC(lambda) learns from each step once.  With credit=trace a gradient spans that step alone, with credit=exact
-- all steps of the episode.  A bit is shown at first and asked for at the end; nothing in between can be done wrong.
-- "That keeps": its gates begin by keeping as long as the chain is (core.remember=chrono); minGRU's published ones begin with a half-life of one step.
-- RTU's that keep have radii and phases as LRU's for long sequences: channels that turn by less each step.  Of AGaLiTe's wide and narrow heads the narrow
-- ones read an average that no wave turns over, and join what they read to an observation by a sum.  AGaLiTe that keeps reads observations as they are
-- (flow=postnorm), with keys that are never 0, and divides by nothing: a rare large input outweighs many small ones.
local mn = require "mneme"

local rtu, mingru, keeps = { "rtu", d_model = 32 }, { "mingru", d_model = 32 }, { "mingru", d_model = 32, remember = "chrono" }
local agalite = { "agalite", n_layers = 1, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, r = 1, remember = "chrono" }
local slow = { "rtu", d_model = 32, r_min = 0.99, max_phase = 0.314 }
local narrow = { "agalite", n_layers = 1, d_model = 32, d_head = 4, n_heads = 8, d_ffn = 32, r = 1, form = "paper", flow = "residual", remember = "chrono" }
local steady = { "agalite", n_layers = 1, d_model = 32, d_head = 16, n_heads = 2, d_ffn = 32, r = 1, form = "paper", flow = "postnorm", feature = "outer_elu1",
  embed_act = "none", normalise = false, remember = "128" }
local memories = {
  { label = "rtu, exact", set = { core = rtu, credit = "exact" } }, { label = "rtu, trace", set = { core = rtu, credit = "trace" } },
  { label = "mingru that keeps, exact", set = { core = keeps, credit = "exact" } },
  { label = "mingru that keeps, trace", set = { core = keeps, credit = "trace" } },
  { label = "mingru, exact", set = { core = mingru, credit = "exact" } }, { label = "mingru, trace", set = { core = mingru, credit = "trace" } },
  { label = "agalite, exact", set = { core = agalite, credit = "exact" } },
  { label = "rtu that keeps, exact", set = { core = slow, credit = "exact" } }, { label = "rtu that keeps, trace", set = { core = slow, credit = "trace" } },
  { label = "agalite of narrow heads, exact", set = { core = narrow, credit = "exact" } },
  { label = "agalite that keeps, exact", set = { core = steady, credit = "exact" } },
  { label = "gru, trace", set = { core = { "gru", d_model = 32 }, credit = "trace" } },
}

local function solves(length, core)
  return { id = length .. "-" .. core:gsub("%s", "-"), source = core == "rtu" and "Elelimy et al. 2026, arXiv 2605.24709" or "ours",
    text = ("At %d steps, %s with exact credit lets more seeds learn than with gradients of one step."):format(length, core),
    test = { "solves", metric = "score", above = 0.97, fresh = 0.9, a = { memory = core .. ", exact" }, b = { memory = core .. ", trace" },
      where = { length = tostring(length) } } }
end

local function learns(core)
  return { id = "128-learned-by-" .. core:gsub("%s", "-"), source = "ours",
    text = ("%s with exact credit learns a chain of 128 steps: its score in fresh episodes is at least 0.97."):format(core),
    test = { "at_least", metric = "score", value = 0.97, a = { memory = core .. ", exact", length = "128" } } }
end

local lengths = {}
for i, n in ipairs { 2, 8, 32, 128 } do lengths[i] = { label = tostring(n), set = { ["env.memory_length"] = n } } end

return mn.study {
  title = "Memory chain: learning at every step",
  question = "How long a chain does learning at every step span?",
  of = "train",
  axes = { memory = memories, length = lengths },
  settings = { env = "memory_chain", learner = "stream", num_envs = 1, hidden = 32, steps = 2e6, threads = 1, stop_score = 0.98, quick = { steps = 4e5 } },
  seeds = 10,
  metrics = { score = { "success, mean of the last 100 episodes", range = { 0, 1 }, solved = 0.97 }, steps = { "steps of the run, which stops when solved" } },
  figures = {
    { "bars", y = "score", x = "length", by = "memory", title = "success at the end" },
    { "solved", y = "score", by = "memory", where = { length = "128" }, title = "seeds that have solved a chain of 128, against steps" },
  },
  references = { { "guessing", y = 0.5, of = "score", source = "two bits, even odds" } },
  claims = { solves(128, "rtu"), solves(128, "mingru that keeps"), solves(32, "mingru"), learns "rtu that keeps", learns "mingru that keeps",
    learns "agalite of narrow heads", learns "agalite that keeps" },
}
