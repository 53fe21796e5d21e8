-- gla.lua -- gated linear attention: a matrix whose keys each decay at a rate of the input.  hgrn2 is it with k = 1 - keep, retnet with constant rates.
local decays = require "mneme.models.axes.decays"
local fast_weights = require "mneme.models.layers.fast_weights"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local kept = decays.gla.kept

return fast_weights.core {
  doc = "a matrix whose keys decay at rates of the input, of low rank (GLA)",
  source = "Yang et al. 2024, Gated Linear Attention Transformers, arXiv 2312.06635, section 4; flash-linear-attention, fla/layers/gla.py",
  equations = [[
q, k, v = W x;  keep = sigma(decay_b(decay_a x) + bias)^(1/16), one value per key
C = C diag(keep) + v k^T,  o = C q / sqrt(K)
e += relu(out(o / rms(o) * norm.weight * silu(g x))), the rms over each head, x = norm1(e)
as published: all of it but the residual block and the initial values of products (see flow)]],
  config = { d_head = 32, expand_v = 2, decay_rank = 16 },
  counts = { decay_rank = 0 },
  parts = fast_weights.qkv, gate = "silu", scaled = true, complexity = "2*L*H*V*K", reads = "kept",
  credit = function(_, own)
    local down, up = own.modules.decay_a, own.modules.decay_b
    local kinds = { { of = "v", part = "v" }, { part = "k" }, { weight = up.weight, bias = up.bias, before = down and down.weight } }
    return kinds, function(u) return u[1] * u[2], kept(u[3]) end
  end,
  memory = function(cfg, own)
    local rank, keys, lecun = cfg.decay_rank, cfg.n_heads * cfg.d_head, nn.init.lecun_normal()
    local down = rank > 0 and own.child("decay_a", nn.linear(cfg.d_model, rank, { bias = false, init = lecun }))
    local up = own.child("decay_b", nn.linear(down and rank or cfg.d_model, keys, { init = lecun }))
    own.forgets(gate_start.decays("keep_k", up.bias, decays.gla.of_bias, decays.gla.bias_of))
    return function(s)
      return fast_weights.sum(s, s.part "q", s.part "k", s.part "v", s.heads(kept(up(down and down(s.x) or s.x)), cfg.n_heads))
    end
  end,
}
