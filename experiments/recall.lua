-- Which memory finds what it was told?   mneme run recall core=galite pairs=4   mneme sweep experiments/recall.lua quick=1
-- Multi-query associative recall by models of equally many parameters; dataset=selective_copy and dataset=induction (with
-- dataset.length=128) ask other things, and know no pairs.
local mn = require "mneme"

local function two(...)
  local list = {}
  for i, name in ipairs { ... } do list[i] = { name, n_layers = 2, label = name } end
  return list
end

local cores = two("gated_deltanet", "rwkv7", "gru", "lstm", "gtrxl", "transformer", "agalite", "galite", "delta", "linear_transformer", "feedforward")
cores.quick = two("gated_deltanet", "rwkv7", "gru", "gtrxl", "agalite", "linear_transformer")
cores.full = two(unpack(mn.names "cores"))

return mn.study {
  title = "Associative recall: how many pairs a memory holds",
  question = "How many keys do memories of equally many parameters answer with the right value?",
  axes = { core = cores, pairs = { 8, 16, 32, quick = { 2, 4, 8 }, full = { 4, 8, 16, 32, 64 } } },
  settings = {
    dataset = { "mqar", length = 128, vocab = 128 }, parameters = 1e5, d_embed = 64, batch = 64, steps = 2e7, stop_score = 0.99,
    eval_every = 2e5, eval_batches = 16, lr = 1e-3, lr_schedule = "cosine", warmup = 100, weight_decay = 0.1, max_norm = 1, threads = 1,
    quick = { dataset = { "mqar", length = 32, vocab = 32 }, steps = 1e6, batch = 32, eval_every = 1e5 },
    full = { dataset = { "mqar", length = 256, vocab = 8192 }, parameters = 2e6, d_embed = 128, steps = 1e9, eval_every = 1e7 },
  },
  about = {
    pairs = { "keys to remember, of dataset=mqar", whole = true, range = { 1, 2.5e5 } },
    parameters = { "of the whole model: the core gets the width that makes it so", range = { 1, 1e9 } },
    stop_score = { "training ends where this share of the validation part is answered rightly", range = { 0, 1 } },
    published = function(name) return { core = { name, n_layers = 2 } } end,
  },
  seeds = 5,
  run = function(cfg)
    local pairs_asked = cfg.dataset[1] == "mqar" and (cfg.dataset.pairs or cfg.pairs) or nil
    local dataset = mn.dataset(cfg.dataset, { batch = cfg.batch, seed = cfg.seed, pairs = pairs_asked })
    local function model(core) return mn.sequence_model { dataset = dataset, core = core } end
    mn.manual_seed(cfg.seed)
    local spec = { d_in = cfg.d_embed }
    for key, value in pairs(cfg.core) do spec[key] = value end
    local core = mn.core(mn.sized(spec, cfg.parameters, model))
    return mn.supervised(cfg, dataset, model(core)):train()
  end,
  metrics = { accuracy = { "share of right answers", range = { 0, 1 } }, steps = { "tokens until 0.99 were right, or training ended",
    range = { 0, math.huge }, goal = 0 } },
  figures = {
    { "lines", y = "accuracy", x = "pairs", by = "core", log = "x", title = "right answers against the number of pairs" },
    { "curves", y = "eval/accuracy", by = "core", where = { pairs = "8" }, title = "while learning, 8 pairs" },
  },
  references = { { "which values, not whose: 8 pairs", y = 0.125, of = "accuracy", source = "one of eight" } },
  claims = {
    { id = "delta", text = "Gated DeltaNet answers more often than plain linear attention.", source = "Arora et al. 2023; Yang et al. 2024",
      test = { "better", metric = "accuracy", a = { core = "gated_deltanet" }, b = { core = "linear_transformer" } } },
    { id = "agalite", text = "AGaLiTe answers more often than plain linear attention.", source = "ours",
      test = { "better", metric = "accuracy", a = { core = "agalite" }, b = { core = "linear_transformer" } } },
  },
}
