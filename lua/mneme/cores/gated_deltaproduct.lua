-- gated_deltaproduct.lua -- Gated DeltaProduct: gated_deltanet with several keys a step, each of which corrects what the one before it left.
local fast_weights = require "mneme.models.layers.fast_weights"
local ops = require("mneme.tensor.tensor").ops

return fast_weights.core {
  doc = "gated delta rule with several keys a step (Gated DeltaProduct)",
  source = "Siems et al. 2025, DeltaProduct, arXiv 2502.10297; flash-linear-attention, fla/layers/gated_deltaproduct.py",
  equations = [[
q, k_1 .. k_n, v_1 .. v_n = silu(conv(W x)) over the last conv_size inputs of the episode, n = keys;  q, k scaled to length 1
b_1 .. b_n = 2 sigma(W_b x);  C = keep C;  for each j: C = C + b_j (v_j - C k_j) k_j^T;  o = C q / sqrt(K)
keep = exp(-exp(A_log) softplus(a x + dt_bias)), one value per head; gated=false: DeltaProduct, which keeps all
e += relu(out(o / rms(o) * norm.weight * silu(g x))), the rms over each head, x = norm1(e)
as published: all of it but the residual block and the initial values of products; keys=1, b halved: gated_deltanet]],
  config = { d_head = 32, expand_v = 1, conv_size = 4, norm_eps = 1e-6, keys = 2, gated = true },
  counts = { keys = 1 },
  parts = function(cfg)
    local keys = cfg.n_heads * cfg.d_head
    return { { "q", keys }, { "k", cfg.keys * keys }, { "v", cfg.keys * keys * cfg.expand_v } }
  end,
  open = function(cfg) return { { "b", cfg.keys * cfg.n_heads }, cfg.gated and { "a", cfg.n_heads } or nil } end,
  gate = "silu", scaled = true, complexity = "L*H*V*K*(1 + 2*P)", reads = "joint", lacks = "its state mixes its elements",
  memory = function(cfg, own)
    local H, A_log, dt_bias = cfg.n_heads
    if cfg.gated then A_log, dt_bias = fast_weights.time_steps(own, H, 1, 0, 16, "keep") end
    return function(s)
      local q, k = fast_weights.unit_keys(cfg, s, cfg.keys * H)
      local keep = A_log and s.seen("keep", ops.exp(-(ops.softplus(s.part("a", 0) + dt_bias) * ops.exp(A_log))))
      local write = s.seen("write", ops.sigmoid(s.part("b", 0))) * 2
      return s.seen("retrieved", s.carried("C", ops.delta_rule, { q = s.seen("q", q), k = s.seen("k", k), v = s.seen("v", s.part("v", cfg.keys * H)),
        write = write, keep = keep, erase = "after", normalise = 0 }))
    end
  end,
}
