-- gated_deltanet.lua -- Gated DeltaNet: a matrix with a scalar decay, and a delta rule that corrects what a key holds.
--   q, k, v = silu(conv(W x)) over the last conv_size inputs of the episode;  q, k scaled to length 1
--   alpha = exp(-exp(A_log) softplus(a x + dt_bias)),  beta = sigma(b x), one value per head
--   C = alpha C (I - beta k k^T) + beta v k^T  =  alpha C + beta (v - alpha C k) k^T,   o = C q
--   attn = out(o / rms(o) * norm.weight * silu(g x))
-- It combines a gate like GaLiTe's with the delta rule of Schlag et al.; recent large models (Qwen3-Next, Kimi Linear)
-- use it in place of most of their attention.
-- As in the paper: all of the above, its initial values (Mamba-2's for the decay), no biases.  As in the other cores
-- here: embedding, norms, feed-forward and residual connections (block.lua).  Weights start with variance 1/d, which is
-- the published 0.02^2 at the published width.  The published code scales o by 1/sqrt(d_head), which the norm undoes.
local fast_weights = require "mneme.models.layers.fast_weights"
local ops = require("mneme.tensor.tensor").ops

-- Names q, k .weight [H*K,d], v, g .weight [H*V,d], q_conv, k_conv, v_conv .weight [.,1,W], a, b .weight [H,d], A_log,
-- dt_bias [H], norm.weight [V], out.weight [d,H*V].
return fast_weights.core {
  doc = "gated delta rule: a matrix with a scalar decay that writes only the error of its prediction (Gated DeltaNet)",
  source = "Yang, Kautz, Hatamizadeh 2024, Gated Delta Networks, arXiv 2412.06464, eq. 10 and figure 1",
  config = { d_head = 64, expand_v = 1, conv_size = 4, norm_eps = 1e-6 },
  parts = fast_weights.qkv,
  open = function(cfg) return { { "a", cfg.n_heads }, { "b", cfg.n_heads } } end,
  gate = "silu", complexity = "3*L*H*V*K", reads = "gated_delta",
  memory = function(cfg, own)
    local H = cfg.n_heads
    local A_log, dt_bias = fast_weights.time_steps(own, H, 1, 0, 16, "keep")
    return function(s)
      local q, k = fast_weights.unit_keys(cfg, s, H)
      q, k = s.seen("q", q), s.seen("k", k)
      local v = s.seen("v", s.part "v")
      local keep = s.seen("keep", ops.exp(-(ops.softplus(s.part("a", 0) + dt_bias) * ops.exp(A_log))))
      local beta = s.seen("beta", ops.sigmoid(s.part("b", 0)))
      return s.seen("retrieved", s.carried("C", ops.delta_rule, { q = q, k = k, v = v, write = beta, keep = keep, erase = "after", normalise = 0 }))
    end
  end,
}
