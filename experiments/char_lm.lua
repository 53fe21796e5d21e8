-- Which memory reads best?   mneme run char_lm core=gru file=MINE.txt unit=word   mneme sweep experiments/char_lm.lua quick=1
-- The next character (unit=word: word) of a text, by models of equally many parameters; the memory
-- goes on from batch to batch, gradients reach back `length` tokens.
local mn = require "mneme"

local function two(...)
  local list = {}
  for i, name in ipairs { ... } do list[i] = { name, n_layers = 2, label = name } end
  return list
end

local cores = two("agalite", "galite", "gtrxl", "gru", "lstm", "gated_deltanet", "rwkv7", "linear_transformer", "feedforward")
cores.quick = two("agalite", "gtrxl", "gru", "gated_deltanet", "rwkv7", "linear_transformer", "feedforward")
cores.full = two(unpack(mn.names "cores"))

return mn.study {
  title = "Next characters of a text",
  question = "How many bits does a character of English cost memories of equally many parameters?",
  axes = { core = cores },
  settings = {
    file = "", unit = "character", vocab = 1024, length = 128, parameters = 2e5, d_embed = 64, batch = 32, steps = 1e7, eval_every = 5e5,
    eval_batches = 64, lr = 2e-3, lr_schedule = "cosine", warmup = 100, weight_decay = 0.1, max_norm = 1, carry = true, threads = 1,
    quick = { batch = 16, length = 64, steps = 4e5, eval_every = 1e5, eval_batches = 16 },
    full = { length = 512, parameters = 2e7, d_embed = 512, steps = 1e9, eval_every = 1e7, lr = 5e-4, warmup = 2000 },
  },
  about = {
    file = "a text in UTF-8; none: English prose of Debian's package fortunes, or Shakespeare's Coriolanus where it is not installed",
    parameters = { "of the whole model: the core gets the width that makes it so", range = { 1, 1e9 } },
    carry = "does the memory go on from one batch to the next?",
    published = function(name) return { core = { name, n_layers = 2 } } end,
  },
  seeds = 5,
  run = function(cfg)
    local dataset = mn.dataset("text", { file = cfg.file, unit = cfg.unit, vocab = cfg.vocab, length = cfg.length, batch = cfg.batch, seed = cfg.seed })
    local function model(core) return mn.sequence_model { dataset = dataset, core = core } end
    mn.manual_seed(cfg.seed)
    local spec = { d_in = cfg.d_embed }
    for key, value in pairs(cfg.core) do spec[key] = value end
    local core = mn.core(mn.sized(spec, cfg.parameters, model))
    return mn.supervised(cfg, dataset, model(core)):train()
  end,
  metrics = { bits_per_character = { "bits a character, of the part validated on", range = { 0, math.huge }, goal = 0 },
    accuracy = { "share guessed rightly", range = { 0, 1 } } },
  figures = {
    { "bars", y = "bits_per_character", by = "core", title = "bits a character" },
    { "curves", y = "eval/bits_per_character", by = "core", title = "bits a character while learning" },
  },
  claims = {
    { id = "memory", text = "AGaLiTe reads better than a model without memory, by a tenth of a bit or more: the latter takes at least 1.03 times its bits.",
      source = "ours", test = { "ratio", metric = "bits_per_character", a = { core = "feedforward" }, b = { core = "agalite" }, at_least = 1.03 } },
    { id = "gtrxl", text = "AGaLiTe needs fewer bits than GTrXL.", source = "authors' reply to a reviewer: next words were \"similarly promising\"",
      test = { "better", metric = "bits_per_character", a = { core = "gtrxl" }, b = { core = "agalite" } } },
  },
}
