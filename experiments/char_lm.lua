-- Which memory reads best?   mneme run char_lm core=gru file=MINE.txt unit=word
-- The next character (unit=word, unit=bpe: word, symbol) of a text, by models of equally many parameters; the memory
-- goes on from batch to batch, gradients reach back `length` tokens.
local mn = require "mneme"

local cfg = mn.config({
  file = "", unit = "character", vocab = 1024, length = 128, core = { "agalite", n_layers = 2 },
  parameters = 2e5, d_embed = 64, batch = 32, steps = 1e7, eval_every = 5e5, eval_batches = 64,
  lr = 2e-3, lr_schedule = "cosine", warmup = 100, weight_decay = 0.1, max_norm = 1, carry = true, threads = 1,
  quick = { batch = 16, length = 64, steps = 4e5, eval_every = 1e5, eval_batches = 16 },
}, {
  file = "a text in UTF-8; none: English prose of Debian's package fortunes",
  parameters = { "of the whole model: the core gets the width that makes it so", range = { 1, 1e9 } },
  carry = "does the memory go on from one batch to the next?",
  published = function(name) return { core = { name, n_layers = 2 } } end,
})

local task = mn.task("text", { file = cfg.file, unit = cfg.unit, vocab = cfg.vocab, length = cfg.length,
  batch = cfg.batch, seed = cfg.seed })
local function model(core) return mn.sequence_model { task = task, core = core } end
mn.manual_seed(cfg.seed)
cfg.core.d_in = cfg.d_embed
local core = mn.core(mn.sized(cfg.core, cfg.parameters, model))
return mn.supervised(cfg, task, model(core)):train()
