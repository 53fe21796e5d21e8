-- longformer.lua -- causal Longformer: a window of recent tokens, and the first positions of the episode.
-- From position g on, a token attends to the first g and to those 0, dilation, 2*dilation, ... before it, `window` of them;
-- the first g attend to all before them, with separate projections.
local sparse_transformer = require "mneme.models.sparse_transformer"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "a window of recent tokens and the first ones of the episode (Longformer, causal)",
  source = "Beltagy et al. 2020, section 3, as layers of the core transformer; no positional encoding: a token knows its position only from its input",
  equations = [[
y_t = sum_j softmax_j(q_t.k_j / sqrt(dh)) v_j  over j < g and t-j = 0, s, 2s, ... (window of them), counted from the episode's start
y_t for t < g: over all j <= t, with q_global, k_global, v_global
kept: keys and values of the window and of the first g positions]],
  config = sparse_transformer.with { window = 64, globals = 1, dilation = 1 },
  counts = { window = 1, globals = 0, dilation = 1 },
  build = function(cfg)
    local g, D, ring = cfg.globals, cfg.d_head, math.max(1, (cfg.window - 1) * cfg.dilation)
    local projections = { { "q", D }, { "k", D }, { "v", D } }
    local states = { k = "[B,S,H,K]", v = "[B,S,H,K]" }
    if g > 0 then
      for _, name in ipairs { "q_global", "k_global", "v_global" } do projections[#projections + 1] = { name, D } end
      states.k_global, states.v_global = "[B,G,H,K]", "[B,G,H,K]"
    end
    return sparse_transformer.build(cfg, {
      projections = projections, states = states, sizes = { S = g + ring, G = g, W = cfg.window },
      position = { 2 ^ 23, math.floor(2 ^ 22 / ring) * ring }, looks_back = g == 0 and ("L*(W - 1)*%d"):format(cfg.dilation) or nil,
      complexity = { step = "2*L*H*K*min(N, W + G)",
                     sequence = "2*L*H*K*(N*(W + G) - min(N, W + G)*(2*(W + G) - 1 - min(N, W + G))/2)" },
      attend = function(layer)
        local function look(suffix, pinned, rows)
          local k, v = layer.heads("k" .. suffix), layer.heads("v" .. suffix)
          layer.keep("k" .. suffix, k, pinned)
          layer.keep("v" .. suffix, v, pinned)
          local args = { q = layer.heads("q" .. suffix), k = k, v = v, pos = layer.pos, rows = rows,
            mk = layer.state("k" .. suffix), mv = layer.state("v" .. suffix),
            window = cfg.window, dilation = cfg.dilation, globals = g }
          layer.show("attention" .. suffix, ops.window_weights, args)
          return (ops.window_attention(args))
        end
        local y = look("", g, "after")
        return g > 0 and y + look("_global", g, "first") or y
      end,
    })
  end,
}
