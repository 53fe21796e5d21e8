-- What does a step cost after N others, and a whole sequence?   mneme sweep experiments/fig12_latency.lua quick=1
-- Every memory in its published size, one copy, one thread; those that look back over a window have one of that length.
local mn = require "mneme"
local timing = mn.measure.timing

local compared = { "agalite", "galite", "linear_transformer", "rwkv6", "gru", "transformer", "gtrxl" }
local positive = { 0, math.huge }

return mn.study {
  title = "Latency and memory against context length (figure 12)",
  question = "What do a step, a sequence and what is remembered cost as the context grows?",
  jobs = 1,
  axes = {
    core = mn.names "cores",
    context = { 128, 512, 2048, quick = { 128, 2048 }, full = { 128, 256, 512, 1024, 2048, 4096 } },
  },
  settings = { size = "published", core = { "agalite" }, context = 128 },
  about = { context = { "steps before the one that is timed, and of the sequence", range = { 64, 2 ^ 20 }, whole = true } },
  seeds = { 5 },
  run = function(cfg)
    local name, more = cfg.core[1], timing.memory()
    cfg.core[1] = nil
    local step, core = timing.step(name, cfg.core, cfg.context)
    local acting = more()
    local sequence = timing.sequence(name, cfg.core, cfg.context)
    return { step_us = 1e6 * step, sequence_ms = 1e3 * sequence, token_us = 1e6 * sequence / cfg.context,
      state_kib = 4 * core:state_floats() / 1024, acting_mib = acting, sequence_mib = more() }
  end,
  metrics = {
    step_us = { "one step of one environment", unit = "µs", range = positive, goal = 0 },
    sequence_ms = { "a sequence of as many steps", unit = "ms", range = positive, goal = 0 },
    token_us = { "a step of such a sequence", unit = "µs", range = positive, goal = 0 },
    state_kib = { "what is remembered", unit = "KiB", range = positive, goal = 0 },
    acting_mib = { "more memory of the process, acting", unit = "MiB", range = positive },
    sequence_mib = { "more memory of the process, with the sequence", unit = "MiB", range = positive },
  },
  figures = {
    { "lines", y = "step_us", x = "context", by = "core", where = { core = compared }, log = "xy", statistic = "geometric",
      title = "one step, by the number of steps before" },
    { "lines", y = "sequence_ms", x = "context", by = "core", where = { core = compared }, log = "xy", statistic = "geometric",
      title = "a whole sequence" },
    { "lines", y = "state_kib", x = "context", by = "core", where = { core = compared }, log = "xy", title = "what is remembered" },
    { "lines", y = "sequence_mib", x = "context", by = "core", where = { core = compared }, log = "x", title = "peak memory of the process" },
    { "bars", y = "step_us", by = "core", where = { context = "2048" }, title = "one step after 2048, every memory" },
    { "bars", y = "token_us", by = "core", where = { context = "2048" }, title = "a step of a sequence of 2048, every memory" },
    { "bars", y = "sequence_mib", by = "core", where = { context = "2048" }, title = "memory of the process with that sequence, every memory" },
  },
  claims = {
    { id = "flat", text = "A step of AGaLiTe after 2048 others costs at most 1.25 times what it costs after 128.", source = "paper, figure 12",
      test = { "ratio", metric = "step_us", a = { core = "agalite", context = "128" }, b = { core = "agalite", context = "2048" },
        at_least = 0.8 } },
    { id = "grows", text = "A step of GTrXL that looks back 2048 steps costs at least twice one that looks back 128.", source = "paper, figure 12",
      test = { "ratio", metric = "step_us", a = { core = "gtrxl", context = "2048" }, b = { core = "gtrxl", context = "128" }, at_least = 2 } },
    { id = "faster", text = "After 2048 steps AGaLiTe is faster than GTrXL.", source = "paper, figure 12",
      test = { "better", metric = "step_us", a = { core = "gtrxl" }, b = { core = "agalite" }, where = { context = "2048" } } },
  },
}
