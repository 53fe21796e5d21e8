-- How many past bits does a memory hold before it has learned?   mneme sweep experiments/memory_capacity.lua quick=1
-- Random bits go into an untrained memory.  Linear probes ask all that it holds, and its last output, for the bit of k
-- steps before; the shares told, less those of shuffled answers, summed over all k, are its memory capacity (Jaeger
-- 2001).  Windows are as long as asked.
local mn = require "mneme"
local linear_probes, timing = mn.measure.linear_probes, mn.measure.timing

return mn.study {
  title = "Memory capacity before training",
  question = "How far back do untrained memories reach, and how much of what they hold do they say?",
  axes = {
    core = { "agalite", "galite", "gated_linear", "linear_transformer", "delta", "rwkv6", "rwkv7", "gru", "lstm", "gtrxl",
      quick = { "agalite", "galite", "linear_transformer", "gru", "lstm", "gtrxl" }, full = mn.names "cores" },
  },
  settings = { size = "published", core = { "agalite" }, d_model = 64, longest = 64, copies = 512, quick = { longest = 24, copies = 256 } },
  about = { longest = { "steps back", range = { 2, 1024 }, whole = true }, copies = { "samples", range = { 20, 4096 }, whole = true } },
  seeds = { 5 },
  run = function(cfg)
    local B, T, name = cfg.copies, cfg.longest + 8, cfg.core[1]
    local options, known = { d_in = 4, d_model = cfg.d_model, n_layers = 1, n_heads = 4, d_head = 16, d_ffn = 64 }, mn.core(name).config
    for key in pairs(options) do if known[key] == nil then options[key] = nil end end
    for key, value in pairs(cfg.core) do if key ~= 1 then options[key] = value end end
    mn.manual_seed(cfg.seed)
    local core = mn.core(name, (timing.looking_back(name, options, T)))
    local x = mn.sequence { shape = { T, B, 4 } }
    mn.nn.init.uniform(1)(x:data(), 1, x:size())
    for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] > 0 and 1 or -1 end
    local y, state = mn.no_grad(function() return unpack(mn.keep { core(x) }) end)
    local samples = { held = linear_probes.of_state(core, state, B), said = { n = B, d = core.d_out, x = y:data() + (T - 1) * B * core.d_out } }
    local result, copies = { held = { x = {}, y = {} }, said = { x = {}, y = {} }, held_bits = 0, said_bits = 0 }, {}
    for b = 1, B do copies[b] = b end
    for back = 0, cfg.longest do
      local bits = {}
      for b = 1, B do bits[b] = x:data()[((T - 1 - back) * B + b - 1) * 4] end
      for what, s in pairs(samples) do
        local r = s.d > 0 and linear_probes.examine { x = s.x, n = B, d = s.d, y = bits, episode = copies } or { score = 0, selectivity = 0 }
        result[what].x[back + 1], result[what].y[back + 1] = back, r.score
        result[what .. "_bits"] = result[what .. "_bits"] + r.selectivity
      end
    end
    return result
  end,
  metrics = { held = { "share of a bit that is read", range = { 0, 1 }, goal = 1 }, said = { "share of a bit that is read", range = { 0, 1 }, goal = 1 },
    held_bits = { "capacity, all that is held", unit = "bits", range = { 0, math.huge } },
    said_bits = { "capacity, the last output", unit = "bits", range = { 0, math.huge } } },
  figures = {
    { "lines", y = "held", x = "steps back", by = "core", title = "read from the whole state" },
    { "lines", y = "said", x = "steps back", by = "core", title = "read from the last output" }, { "bars", y = "held_bits", by = "core" },
  },
  claims = { { id = "window", text = "GTrXL, whose window holds all of it, holds more than AGaLiTe.", source = "ours",
    test = { "better", metric = "held_bits", a = { core = "gtrxl" }, b = { core = "agalite" } } } },
}
