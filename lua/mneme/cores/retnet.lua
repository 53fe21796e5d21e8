-- retnet.lua -- retention: gla with one constant decay a head, and positions in queries and keys.
local fast_weights = require "mneme.models.layers.fast_weights"
local gate_start = require "mneme.models.gate_start"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

return fast_weights.core("retnet", {
  doc = "a matrix that decays at a constant rate a head, with rotary positions (RetNet)",
  source = "Sun et al. 2023, Retentive Network, arXiv 2307.08621, section 2; flash-linear-attention, fla/layers/multiscale_retention.py",
  equations = [[
q, k, v = W x;  q, k rotated by their position;  keep = 1 - 2^(-5-h) of head h, the same at every step, not learned
C = keep C + v k^T,  o = C q / sqrt(K)
e += relu(out(o / rms(o) * norm.weight * silu(g x))), the rms over each head, x = norm1(e)
as published: all of it but the residual block and the initial values of products (see flow)]],
  config = { d_head = 32, expand_v = 2 },
  parts = fast_weights.qkv, gate = "silu", scaled = true, rotary = true, complexity = "2*L*H*V*K", reads = "kept",
  memory = function(cfg, own)
    local keep = own.buffer("keep", { cfg.n_heads, 1 })
    for h = 0, cfg.n_heads - 1 do keep:data()[h] = 1 - 2 ^ (-5 - h) end
    own.forgets(gate_start.decays("keep_k", keep, function(x) return x end, function(x) return x end))
    return function(s)
      return fast_weights.sum(s, s.turned(s.part "q"), s.turned(s.part "k"), s.part "v", ops.expand_time { x = keep, like = s.x })
    end
  end,
})
