-- longshort.lua -- Transformer-LS: a window around each token, and the whole sequence compressed, in one softmax.
-- A softmax over positions of learned logits p compresses all keys and values:  P = softmax(p), short keys LN_s(P^T k),
-- k and v = LN_l of the projections over all heads.  Without causal, tokens form groups of w and attend to their group and
-- max(w/2, 1) more on each side; with causal, every full chunk of c tokens is compressed to rho keys; a token attends to
-- those of earlier chunks and to the w tokens up to its own.
local encoder_attention = require "mneme.models.encoder_attention"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

-- Ranges over [short keys; tokens], `short` of them.
local function both_ways(cfg, N)
  local w, rows = cfg.window, {}
  local more = math.max(math.floor(w / 2), 1)
  for i = 0, N - 1 do
    local from = math.max(math.floor(i / w) * w - more, 0)
    local to = math.min(math.floor(i / w) * w + w + more, N)
    rows[i + 1] = { { 0, cfg.rho }, { cfg.rho + from, to - from } }
  end
  return encoder_attention.ranges { rows }
end

local function causal(cfg, N)
  local c, rows, short = cfg.chunk, {}, math.floor(N / cfg.chunk) * cfg.rho
  for i = 0, N - 1 do
    local from = math.max(i - cfg.window + 1, 0)
    rows[i + 1] = { { 0, math.floor(i / c) * cfg.rho }, { short + from, i - from + 1 } }
  end
  return encoder_attention.ranges { rows }
end

-- LayerNorm over all heads together: x [B,H,N,D].
local function merged(norm, x)
  local s = x:shape()
  local y = norm(ops.reshape(ops.transpose(x, { a = 1, b = 2 }), { d0 = s[1], d1 = s[3], d2 = s[2] * s[4] }))
  return ops.transpose(ops.reshape(y, { d0 = s[1], d1 = s[3], d2 = s[2], d3 = s[4] }), { a = 1, b = 2 })
end

return {
  doc = "a local window and a compressed view of the whole sequence, in one softmax",
  source = "Zhu et al. 2021 (Transformer-LS), section 3",
  config = { window = 64, rho = 16, chunk = 16, causal = false, ln_eps = 1e-5 },
  extras = function(cfg) return { { "p", cfg.rho } } end,
  build = function(cfg, sizes)
    local width, rho, c = sizes.H * sizes.D, cfg.rho, cfg.chunk
    local long, short = nn.layer_norm(width, cfg.ln_eps), nn.layer_norm(width, cfg.ln_eps)
    local ranges = encoder_attention.by_length(function(N) return (cfg.causal and causal or both_ways)(cfg, N) end)
    -- P^T x: over all positions [B,H,rho,D], or inside every full chunk, one after another.
    local function compressed(P, x, s, whole)
      if not whole then return merged(short, ops.matmul(P, x)) end
      if whole * c < s[3] then x = ops.slice { x = x, axis = 2, from = 0, to = whole * c } end
      x = ops.reshape(x, { d0 = s[1], d1 = s[2], d2 = whole, d3 = c, d4 = s[4] })
      return merged(short, ops.reshape(ops.matmul(P, x), { d0 = s[1], d1 = s[2], d2 = whole * rho, d3 = s[4] }))
    end
    return nn.module({ children = { { "ln_l", long }, { "ln_s", short } } }, function(_, q, k, v, extras)
      local s, p, whole = q:shape(), extras.p, nil
      k, v = merged(long, k), merged(long, v)
      if cfg.causal then
        whole = math.floor(s[3] / c)
        if whole == 0 then return ops.sparse_attention { q = q, k = k, v = v, ranges = ranges(s[3]) } end
        if whole * c < s[3] then p = ops.slice { x = p, axis = 2, from = 0, to = whole * c } end
        p = ops.reshape(p, { d0 = s[1], d1 = s[2], d2 = whole, d3 = c, d4 = rho })
      end
      local P = ops.softmax(encoder_attention.turned(p))
      local keys = ops.concat(compressed(P, k, s, whole), k, { axis = 2 })
      local values = ops.concat(compressed(P, v, s, whole), v, { axis = 2 })
      return ops.sparse_attention { q = q, k = keys, v = values, ranges = ranges(s[3]) }
    end)
  end,
}
