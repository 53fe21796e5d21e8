-- Which memory can keep count of nested lists?   mneme run listops core=gtrxl max_length=1000 min_length=500
-- ListOps of the Long Range Arena, read from left to right and answered at the last token.  Sizes and schedule are
-- those of Nyströmformer's comparison (Xiong et al. 2021): 2 layers of 64, 5,000 updates of 32 lists.
local mn = require "mneme"

local cfg = mn.config({
  min_length = 500, max_length = 2000, max_depth = 10, max_args = 10, core = { "agalite", n_layers = 2 },
  parameters = 1e5, d_embed = 64, batch = 32, steps = 5000 * 32 * 1999, eval_every = 6.4e6, eval_batches = 62,
  lr = 1e-4, lr_schedule = "linear", warmup = 1000, max_norm = 1, threads = 0,
  quick = { min_length = 3, max_length = 30, max_depth = 3, max_args = 5, steps = 1e6, eval_every = 1e5, lr = 2e-3,
    warmup = 100, eval_batches = 16, threads = 1 },
}, {
  min_length = "a list has more tokens than this", max_length = "and fewer than this",
  parameters = { "of the whole model: the core gets the width that makes it so", range = { 1, 1e9 } },
  published = function(name) return { core = { name, n_layers = 2 } } end,
})

local dataset = mn.dataset("listops", { min_length = cfg.min_length, max_length = cfg.max_length, max_depth = cfg.max_depth,
  max_args = cfg.max_args, batch = cfg.batch, seed = cfg.seed })
local function model(core) return mn.sequence_model { dataset = dataset, core = core } end
mn.manual_seed(cfg.seed)
cfg.core.d_in = cfg.d_embed
local core = mn.core(mn.sized(cfg.core, cfg.parameters, model))
return mn.supervised(cfg, dataset, model(core)):train()
