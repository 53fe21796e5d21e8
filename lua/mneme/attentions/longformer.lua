-- longformer.lua -- a sliding window, and global positions with separate projections.  A token attends to its window and
-- to the first g positions, in one softmax; those g attend to everything.  Row i >= g attends to j with |i-j| <= (window/2)*dilation, causal
-- 0 <= i-j < window*dilation, and i-j a multiple of dilation.
local encoder_attention = require "mneme.models.encoder_attention"
local ops = require("mneme.tensor.tensor").ops

-- What rows g .. N-1 see.
local function window_ranges(cfg, N)
  local g, s, rows = cfg.globals, cfg.dilation, {}
  local back = (cfg.causal and cfg.window - 1 or math.floor(cfg.window / 2)) * s
  local ahead = cfg.causal and 0 or back
  for i = g, N - 1 do
    local from = i - back
    if from < g then from = from + math.ceil((g - from) / s) * s end     -- the first g are seen anyway
    rows[#rows + 1] = { { from, math.floor((i + ahead - from) / s) + 1, s }, g > 0 and { 0, g } or nil }
  end
  return encoder_attention.ranges { rows }
end

return {
  doc = "a sliding window, and global positions with separate projections",
  source = "Beltagy et al. 2020, section 3",
  config = { window = 64, globals = 1, dilation = 1, causal = false },
  extras = function(cfg, sizes)
    if cfg.globals == 0 then return {} end
    return { { "q_global", sizes.D }, { "k_global", sizes.D }, { "v_global", sizes.D } }
  end,
  build = function(cfg)
    local g = cfg.globals
    local windows = encoder_attention.by_length(function(N) return window_ranges(cfg, N) end)
    local whole = encoder_attention.by_length(function(N) return encoder_attention.ranges { { { { 0, N } } } } end)
    local function rows(x, from, to) return ops.slice { x = x, axis = 2, from = from, to = to } end
    return encoder_attention.plain(function(q, k, v, extras)
      local N = q:shape()[3]
      local first, rest
      if g > 0 then       -- causally, only the first keys are before them
        local n = math.min(g, N)
        local m = cfg.causal and n or N
        local function part(x, to) return to < N and rows(x, 0, to) or x end
        first = ops.sparse_attention { q = part(extras.q_global, n), k = part(extras.k_global, m), v = part(extras.v_global, m),
          ranges = whole(m), causal = cfg.causal }
        if g >= N then return first end
      end
      rest = ops.sparse_attention { q = g > 0 and rows(q, g, N) or q, k = k, v = v, ranges = windows(N), stride =
        math.min(cfg.dilation, N - g) }
      return first and ops.concat(first, rest, { axis = 2 }) or rest
    end)
  end,
}
