-- Which memory finds what it was told?   mneme run recall core=galite task=induction task.length=128
-- Multi-query associative recall (task=mqar), selective copying (task=selective_copy) and induction heads
-- (task=induction), drawn anew for every batch.
local mn = require "mneme"

local cfg = mn.config({
  task = { "mqar", length = 64, pairs = 8, vocab = 64 },
  core = { "gated_deltanet", n_layers = 2, d_model = 64, n_heads = 2, d_head = 32, d_ffn = 128 },
  d_embed = 64, batch = 64, steps = 2e7, stop_score = 0.99, lr = 1e-3, warmup = 100, weight_decay = 0.1,
  lr_schedule = "cosine", max_norm = 1, eval_every = 2e5, eval_batches = 16,
  quick = { task = { "mqar", length = 32, pairs = 4, vocab = 32 }, steps = 1.5e6, batch = 32, eval_every = 1e5 },
}, {
  stop_score = { "training ends where this share of the validation part is answered rightly", range = { 0, 1 } },
})

local task = mn.task(cfg.task, { batch = cfg.batch, seed = cfg.seed })
mn.manual_seed(cfg.seed)
cfg.core.d_in = cfg.d_embed
local model = mn.sequence_model { task = task, core = mn.core(cfg.core) }
return mn.supervised(cfg, task, model):train()
