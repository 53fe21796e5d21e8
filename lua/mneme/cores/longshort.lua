-- longshort.lua -- causal Transformer-LS: a window of recent tokens, and every full chunk before it, compressed to a few keys.
-- Chunks count from the episode's start; those of the last `context` tokens are kept.  Keys and values are normalised
-- over all heads, in the window (ln_l) and compressed (ln_s).
local sparse_transformer = require "mneme.models.sparse_transformer"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

local function common_multiple(a, b)
  local x, y = a, b
  while y > 0 do x, y = y, x % y end
  return a / x * b
end

return {
  doc = "a window of recent tokens and a few keys for every chunk before (Transformer-LS, causal)",
  source = "Zhu et al. 2021, section 3, as layers of the core transformer; no positional encoding: a token knows its position only from its input",
  equations = [[
k, v = LN_l of the projections, over all heads
of every full chunk of c tokens: w = softmax over the chunk of p;  rho keys LN_s(w^T k), rho values LN_s(w^T v)
y_t = sum_j softmax_j(q_t.k_j / sqrt(dh)) v_j  over the window tokens up to t and the keys of the chunks before its own
kept: the window, the open chunk, and the keys of the chunks within the last `context` tokens]],
  config = sparse_transformer.with { window = 32, chunk = 16, rho = 2, context = 1024 },
  counts = { window = 1, chunk = 1, rho = 1, context = 1 },
  build = function(cfg)
    local c, rho, D, H = cfg.chunk, cfg.rho, cfg.d_head, cfg.n_heads
    if cfg.context % c ~= 0 then
      errors.raise(("core longshort: context = %d, expected a multiple of chunk = %d"):format(cfg.context, c), { status = 2 })
    end
    local ring = math.ceil(math.max(cfg.window, c) / c) * c
    -- Positions may go back by what all rings divide, and keys of chunks are counted below 2^31.
    local back = common_multiple(ring, cfg.context)
    local most = math.floor(math.min(2 ^ 23, 2 ^ 30 / rho))
    if back + cfg.context + ring > most then
      errors.raise(("core longshort: window = %d, chunk = %d and context = %d come round together only every %d tokens, expected at most %d")
        :format(cfg.window, c, cfg.context, back, most - cfg.context - ring), { status = 2 })
    end
    return sparse_transformer.build(cfg, {
      projections = { { "q", D }, { "k", D }, { "v", D }, { "p", rho } },
      modules = function()
        return { { "ln_l", nn.layer_norm(H * D, cfg.ln_eps) }, { "ln_s", nn.layer_norm(H * D, cfg.ln_eps) } }
      end,
      states = { k = "[B,S,H,K]", v = "[B,S,H,K]", p = "[B,C,H,R]", short = "[B,2,J,H,K]" },
      sizes = { S = ring, C = c, R = rho, J = cfg.context / c * rho, W = cfg.window },
      position = { most, back }, claims = { state = "grows" }, looks_back = "L*J*C/R + C - 1",
      complexity = { step = "2*L*H*K*(min(N, W) + min(J, R*N/C) + R)",
                     sequence = "2*L*H*K*(N*(W + R) - min(N, W)*(2*W - 1 - min(N, W))/2"
                       .. " + R/C*min(N, J*C/R)*(min(N, J*C/R) + 1)/2 + max(N - J*C/R, 0)*J)" },
      attend = function(layer, modules)
        local long, short = modules[1][2], modules[2][2]
        local k, v, p = layer.heads("k", long), layer.heads("v", long), layer.heads "p"
        layer.keep("k", k)
        layer.keep("v", v)
        layer.keep("p", p)
        local args = { q = layer.heads "q", k = k, v = v, pos = layer.pos, p = p,
          mk = layer.state "k", mv = layer.state "v", mp = layer.state "p", short = layer.state "short",
          weight = short.leaves[1], bias = short.leaves[2], window = cfg.window, eps = cfg.ln_eps }
        local y, chunks = ops.longshort_attention(args)
        args.chunks = chunks
        layer.show("attention", ops.longshort_weights, args)
        layer.put("short", ops.kv_chunk_slots { pos = layer.pos, chunks = chunks, short = layer.state "short", chunk = c })
        return y
      end,
    })
  end,
}
