-- Which memory finds what it was told?   mneme run recall core=galite task=induction task.length=128
-- Multi-query associative recall (task=mqar), selective copying (task=selective_copy), induction heads (task=induction).
local mn = require "mneme"

local cfg = mn.config({
  task = { "mqar", length = 64, pairs = 8, vocab = 64 }, core = { "gated_deltanet", n_layers = 2 },
  parameters = 1e5, d_embed = 64, batch = 64, steps = 2e7, stop_score = 0.99, eval_every = 2e5, eval_batches = 16,
  lr = 1e-3, lr_schedule = "cosine", warmup = 100, weight_decay = 0.1, max_norm = 1, threads = 1,
  quick = { task = { "mqar", length = 32, pairs = 4, vocab = 32 }, steps = 1e6, batch = 32, eval_every = 1e5 },
}, {
  parameters = { "of the whole model: the core gets the width that makes it so", range = { 1, 1e9 } },
  stop_score = { "training ends where this share of the validation part is answered rightly", range = { 0, 1 } },
  published = function(name) return { core = { name, n_layers = 2 } } end,
})

local task = mn.task(cfg.task, { batch = cfg.batch, seed = cfg.seed })
local function model(core) return mn.sequence_model { task = task, core = core } end
mn.manual_seed(cfg.seed)
cfg.core.d_in = cfg.d_embed
local core = mn.core(mn.sized(cfg.core, cfg.parameters, model))
return mn.supervised(cfg, task, model(core)):train()
