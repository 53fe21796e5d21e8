-- mamba2.lua -- Mamba-2: gated linear attention with one decay a head, of a time step that also scales what is written; keys and queries are shared
-- by the heads.
local fast_weights = require "mneme.models.layers.fast_weights"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

return fast_weights.core {
  doc = "a matrix with a scalar decay whose time step also scales what is written; keys shared by the heads (Mamba-2)",
  source = "Dao and Gu 2024, Transformers are SSMs, arXiv 2405.21060, section 7; state-spaces/mamba, mamba_ssm/modules/mamba2_simple.py",
  equations = [[
x', k, q = silu(conv(W x) + bias) over the last conv_size inputs of the episode (k is B, q is C of the paper, one group)
dt = softplus(W_dt x + dt_bias),  keep = exp(-exp(A_log) dt), one value per head
C = keep C + x' (dt k)^T,  o = C q + D x'
e += relu(out(u / rms(u) * norm.weight)),  u = o * silu(g x), the rms over all heads, x = norm1(e)
as published: all of it but the residual block and the initial values of products; published width: n_heads*d_head = 2*d_model]],
  config = { d_head = 64, d_state = 64, conv_size = 4 },
  sizes = function(cfg) return cfg.d_state, cfg.d_head end,
  parts = function(cfg) return { { "x", cfg.n_heads * cfg.d_head }, { "B", cfg.d_state }, { "C", cfg.d_state } } end,
  open = function(cfg) return { { "dt", cfg.n_heads } } end,
  lacks = "its rows read several steps, through a convolution, so that more of them feed each element",
  conv_bias = true, gate = "silu", gate_first = true, norm = "all", complexity = "2*L*H*V*K", reads = "kept",
  memory = function(cfg, own)
    local H = cfg.n_heads
    local A_log, dt_bias = fast_weights.time_steps(own, H, 1, 1, 16, "keep_k")
    local D, ones = own.leaf("D", { H, 1 }):fill(1), tensor.new { shape = { H, 1 } }:fill(1)
    return function(s)
      local dt, x = ops.softplus(s.part("dt", 0) + dt_bias), s.part "x"
      local keep = ops.exp(-(dt * ops.exp(A_log)))
      return fast_weights.sum(s, s.part("C", 1) * ones, s.part("B", 1) * s.heads(dt, H), x, s.heads(keep, H)) + x * D
    end
  end,
}
