-- How much must be kept to look back so far?   mneme sweep experiments/state_growth.lua
-- Windows have the length that is asked for, and so have the episodes of memories that keep all of them; the others keep
-- the same, however long it is: what they forget is another question (experiments/memory_capacity.lua).
local mn = require "mneme"
local timing = mn.measure.timing

return mn.study {
  title = "What is kept against how far it reaches",
  question = "How does the state of an agent grow with the number of steps that it looks back?",
  axes = { core = mn.names "cores" },
  settings = { size = "published", core = { "agalite" }, longest = 16384, quick = { longest = 2048 } },
  about = { longest = { "steps", range = { 64, 2 ^ 20 }, whole = true } },
  seeds = { 1 },
  run = function(cfg)
    local name, series = cfg.core[1], { x = {}, y = {} }
    cfg.core[1] = nil
    local N = 64
    while N <= cfg.longest do
      local c, bytes = mn.nn.dry(mn.core, name, (timing.looking_back(name, cfg.core, N))), 0
      for _, t in pairs(c:initial(1)) do bytes = bytes + 4 * t:size() end
      series.x[#series.x + 1], series.y[#series.y + 1] = N, bytes / 1024
      N = 2 * N
    end
    local least, most = series.y[1], series.y[#series.y]
    return { kept_kib = series, least_kib = least, most_kib = most, growth = least > 0 and most / least or 1 }
  end,
  metrics = {
    kept_kib = { "what is kept", unit = "KiB", goal = 0 }, least_kib = { "kept for 64 steps", unit = "KiB", goal = 0 },
    most_kib = { "kept for the most steps", unit = "KiB", goal = 0 }, growth = { "the most over the least", goal = 1 },
  },
  figures = {
    { "lines", y = "kept_kib", x = "steps", by = "core", log = "xy", title = "what is kept to look back so far" },
    { "bars", y = "most_kib", by = "core", title = "what is kept for the most steps" },
  },
  claims = {
    { id = "constant", text = "What AGaLiTe keeps grows no more than what a GRU keeps, which is one vector.", source = "paper, section 1",
      test = { "equal", metric = "growth", a = { core = "agalite" }, b = { core = "gru" }, within = 0, exact = true } },
    { id = "window", text = "GTrXL keeps at least ten times more than AGaLiTe for the most steps.", source = "paper, section 1",
      test = { "ratio", metric = "most_kib", a = { core = "gtrxl" }, b = { core = "agalite" }, at_least = 10, exact = true } },
  },
}
