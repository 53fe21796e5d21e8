-- What does reading N tokens at once cost?   mneme sweep experiments/xformers_scaling.lua quick=1
-- One layer of every attention for encoders, none of them causal, one sequence, without a tape.  The time of softmax
-- grows with N squared and ends what is measured at a minute a sequence; its memory here does not.
local mn = require "mneme"
local timing = mn.measure.timing

local positive = { 0, math.huge }

return mn.study {
  title = "Encoders: time and memory against the length of a sequence",
  question = "From which length on does an approximation pay?",
  jobs = 1,
  axes = {
    attention = mn.names "attentions",
    length = { 256, 1024, 4096, 16384, quick = { 256, 1024, 4096 }, full = { 256, 1024, 4096, 16384, 65536 } },
  },
  settings = { attention = { "softmax" }, length = 256, d_model = 64, n_heads = 2, d_head = 32 },
  about = { length = { "tokens", range = { 1, 2 ^ 20 }, whole = true } },
  seeds = { 5 },
  run = function(cfg)
    local options, more = { n_layers = 1, d_model = cfg.d_model, n_heads = cfg.n_heads, d_head = cfg.d_head, max_len = cfg.length }, timing.memory()
    for key, value in pairs(cfg.attention) do options[key == 1 and "attention" or key] = value end
    mn.manual_seed(cfg.seed)
    local encoder = mn.encoder(options)
    local x = timing.fill(mn.tensor { shape = { 1, cfg.length, cfg.d_model } }, 1, 1)
    local seconds = timing.forward(encoder, x)
    return { milliseconds = 1e3 * seconds, token_us = 1e6 * seconds / cfg.length, memory_mib = more() }
  end,
  metrics = {
    milliseconds = { "a sequence", unit = "ms", range = positive, goal = 0 },
    token_us = { "a token of it", unit = "µs", range = positive, goal = 0 },
    memory_mib = { "more memory of the process", unit = "MiB", range = positive, goal = 0 },
  },
  figures = {
    { "lines", y = "milliseconds", x = "length", by = "attention", log = "xy", statistic = "geometric", title = "a sequence of N tokens" },
    { "lines", y = "token_us", x = "length", by = "attention", log = "xy", statistic = "geometric", title = "a token of it" },
    { "lines", y = "memory_mib", x = "length", by = "attention", log = "xy", title = "memory" },
  },
  claims = {
    { id = "quadratic", text = "Softmax takes at least 8 times as long for 4096 tokens as for 1024.", source = "O(N²)",
      test = { "ratio", metric = "milliseconds", a = { attention = "softmax", length = "4096" }, b = { attention = "softmax", length = "1024" },
        at_least = 8 } },
    { id = "linear", text = "Linear attention is at least 4 times faster than softmax for 4096 tokens.", source = "Katharopoulos et al. 2020, figure 1",
      test = { "ratio", metric = "milliseconds", a = { attention = "softmax" }, b = { attention = "linear" }, where = { length = "4096" },
        at_least = 4 } },
  },
}
