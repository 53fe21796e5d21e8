-- What does reading all of a longer list cost, and what does it bring?   mneme sweep experiments/listops_scale.lua quick=1
-- Encoders on ListOps: every attention, at lengths in powers of two, since blocks and landmarks must divide them; lists
-- have a quarter of them to all of them as tokens, as the Long Range Arena's 500 to 2000.  Each run reads as many lists.
local mn = require "mneme"

local BATCH = 32
local function length(N, updates) return { label = tostring(N), set = { length = N, steps = updates * BATCH * N } } end

return mn.study {
  title = "ListOps: encoders against the length of lists",
  question = "What do approximations of softmax attention lose and save as lists grow?",
  axes = {
    attention = { "softmax", "linear", "linformer", "nystromformer", "longformer", "bigbird", full = mn.names "attentions", quick = {
      "softmax", "linear", { "linformer", k = 16, label = "linformer" },
      { "nystromformer", landmarks = 16, label = "nystromformer" }, { "performer", m = 64, label = "performer" }, { "rfa", label = "rfa" },
      { "longformer", window = 16, label = "longformer" }, { "bigbird", block = 16, label = "bigbird" },
      { "longshort", window = 16, rho = 8, label = "longshort" } } },
    length = { length(256, 5000), length(512, 5000), length(1024, 5000), length(2048, 5000),
      quick = { length(32, 500), length(64, 500), length(128, 500) } },
  },
  settings = { attention = { "softmax" }, d_model = 64, n_heads = 2, d_head = 32, d_ffn = 128, n_layers = 2, lr = 1e-4, lr_schedule = "linear",
    warmup = 1000, max_norm = 1, eval_every = 2 ^ 40, eval_batches = 62, threads = 1, quick = { lr = 1e-3, warmup = 100 } },
  seeds = { 6, quick = 5 },
  run = function(cfg)
    local dataset = mn.dataset("listops", { min_length = cfg.length / 4, max_length = cfg.length + 1, batch = BATCH, seed = cfg.seed })
    local options = { d_model = cfg.d_model, n_heads = cfg.n_heads, d_head = cfg.d_head, d_ffn = cfg.d_ffn, n_layers = cfg.n_layers,
      positions = "learned", max_len = dataset.length }
    for key, value in pairs(cfg.attention) do options[key == 1 and "attention" or key] = value end
    mn.manual_seed(cfg.seed)
    local result = mn.supervised(cfg, dataset, mn.sequence_model { dataset = dataset, encoder = mn.encoder(options) }):train()
    result.gain = result.accuracy and result.accuracy - result.commonest
    return result
  end,
  metrics = { accuracy = { "share of right answers", range = { 0, 1 } }, commonest = { "share of the commonest answer", range = { 0, 1 } },
    gain = { "right answers beyond the commonest answer's share", range = { -1, 1 } },
    cpu_s = { "processor time of a run", unit = "s", range = { 0, math.huge }, goal = 0 } },
  figures = {
    { "lines", y = "accuracy", x = "length", by = "attention", log = "x", title = "right answers against the length of lists" },
    { "lines", y = "cpu_s", x = "length", by = "attention", log = "xy", statistic = "geometric", title = "processor time for as many lists" },
    { "lines", y = "peak_mib", x = "length", by = "attention", log = "x", title = "memory of the process" },
  },
  references = { { "the commonest answer", y = 0.16, of = "accuracy", source = "a sixth of the lists at every length" } },
  claims = {
    { id = "reads", text = "Softmax attention answers more than a tenth beyond the commonest answer.", source = "ours",
      test = { "at_least", metric = "gain", a = { attention = "softmax" }, value = 0.1 } },
    { id = "nystromformer", text = "Nyströmformer answers as often as softmax, within 0.05.", source = "Xiong et al. 2021",
      test = { "equal", metric = "accuracy", a = { attention = "nystromformer" }, b = { attention = "softmax" }, within = 0.05 } },
    { id = "linformer", text = "Linformer answers as often as softmax, within 0.05.", source = "Tay et al. 2021",
      test = { "equal", metric = "accuracy", a = { attention = "linformer" }, b = { attention = "softmax" }, within = 0.05 } },
  },
}
