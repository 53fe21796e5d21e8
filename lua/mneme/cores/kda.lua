-- kda.lua -- Kimi Delta Attention: the gated delta rule of gated_deltanet with a decay for each key; its recurrence is rwkv7's.
local fast_weights = require "mneme.models.layers.fast_weights"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

return fast_weights.core {
  doc = "gated delta rule whose keys each decay at a rate of the input (Kimi Delta Attention)",
  source = "Kimi Team 2025, Kimi Linear, arXiv 2510.26692, section 3; flash-linear-attention, fla/layers/kda.py",
  equations = [[
q, k, v = silu(conv(W x)) over the last conv_size inputs of the episode;  q, k scaled to length 1
keep = exp(-exp(A_log) softplus(f_b(f_a x) + dt_bias)), one value per key;  beta = sigma(b x), one per head
S = (I - beta k k^T) diag(keep) S + beta k v^T,  o = S^T q / sqrt(K)
e += relu(out(o / rms(o) * norm.weight * sigma(g_b(g_a x) + bias))), the rms over each head, x = norm1(e)
as published: all of it but the residual block and the initial values of products; published ranks: decay_rank = gate_rank = d_head]],
  config = { d_head = 32, expand_v = 1, conv_size = 4, norm_eps = 1e-6, decay_rank = 32, gate_rank = 32 },
  parts = fast_weights.qkv,
  open = function(cfg) return { { "b", cfg.n_heads } } end,
  gate = "sigmoid", scaled = true, states = { S = "[B,H,K,V]" }, complexity = "4*L*H*V*K", reads = "unlearned",
  memory = function(cfg, own)
    local H, keys, lecun = cfg.n_heads, cfg.n_heads * cfg.d_head, nn.init.lecun_normal()
    local A_log, dt_bias = fast_weights.time_steps(own, H, cfg.d_head, 1, 16, "w")
    local down = own.child("f_a", nn.linear(cfg.d_model, cfg.decay_rank, { bias = false, init = lecun }))
    local up = own.child("f_b", nn.linear(cfg.decay_rank, keys, { bias = false, init = lecun }))
    return function(s)
      local q, k = fast_weights.unit_keys(cfg, s, H)
      local dt = ops.softplus(up(down(s.x)) + dt_bias)
      local w = s.seen("w", ops.exp(-(s.heads(dt, H) * ops.reshape(ops.exp(A_log), { d0 = H, d1 = 1 }))))
      local write = k * s.heads(s.seen("beta", ops.sigmoid(s.part("b", 0))), H)
      return s.seen("retrieved", s.carried("S", ops.wkv7, { r = s.seen("r", q), keep = w, k = s.seen("k_write", write), v = s.seen("v", s.part "v"),
        out = s.seen("k_out", k * w), back = s.seen("k_back", write) }))
    end
  end,
}
