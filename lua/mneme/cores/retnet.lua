-- retnet.lua -- retention: gla with one constant decay a head, and positions in queries and keys.
local fast_weights = require "mneme.models.layers.fast_weights"
local gate_start = require "mneme.models.gate_start"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

return fast_weights.core {
  doc = "a matrix that decays at a constant rate a head, with rotary positions (RetNet)",
  source = "Sun et al. 2023, Retentive Network, arXiv 2307.08621, section 2; flash-linear-attention, fla/layers/multiscale_retention.py",
  equations = [[
q, k, v = W x;  q, k rotated by their position;  keep = 1 - 2^(-5-h) of head h, the same at every step, not learned
C = keep C + v k^T,  o = C q / sqrt(K)
e += relu(out(o / rms(o) * norm.weight * silu(g x))), the rms over each head, x = norm1(e)
as published: all of it but the residual block and the initial values of products (see flow)]],
  config = { d_head = 32, expand_v = 2 },
  parts = fast_weights.qkv, gate = "silu", scaled = true, rotary = true, complexity = "2*L*H*V*K", reads = "kept",
  credit = function(cfg, own)
    local K, VK = cfg.d_head, cfg.d_head * cfg.d_head * cfg.expand_v
    local function of_elements(value, dtype)
      local t = tensor.new { shape = { cfg.n_heads * VK }, dtype = dtype }
      for e = 0, t:size() - 1 do t:data()[e] = value(math.floor(e / VK), e % K) end
      return t
    end
    local head = of_elements(function(h) return h end, "i32")
    local even, odd = of_elements(function(_, j) return j - j % 2 end, "i32"), of_elements(function(_, j) return j - j % 2 + 1 end, "i32")
    local sign, pair = of_elements(function(_, j) return 2 * (j % 2) - 1 end), tensor.new { shape = { 1, K } }
    for j = 0, K - 1 do pair:data()[j] = 1 - j % 2 end             -- (1, 0) rotated: its cosine and sine
    local kinds = { { of = "v", part = "v" }, { part = "k" }, { part = "k", row = function(j) return j + 1 - 2 * (j % 2) end } }   -- the other of its pair
    return kinds, function(u, states)
      local turned = ops.rotary { x = ops.expand_time { x = pair, like = u[1] }, tick = states.tick }
      local function every(index) return (ops.index_select { x = turned:reshape(u[1]:shape()[1], u[1]:shape()[2], K), index = index, axis = -1 }) end
      return u[1] * (u[2] * every(even) + u[3] * (sign * every(odd))), ops.index_select { x = own.named.keep:reshape(cfg.n_heads), index = head }
    end
  end,
  memory = function(cfg, own)
    local keep = own.buffer("keep", { cfg.n_heads, 1 })
    for h = 0, cfg.n_heads - 1 do keep:data()[h] = 1 - 2 ^ (-5 - h) end
    own.forgets(gate_start.decays("keep_k", keep, function(x) return x end, function(x) return x end))
    return function(s)
      return fast_weights.sum(s, s.turned(s.part "q"), s.turned(s.part "k"), s.part "v", ops.expand_time { x = keep, like = s.x })
    end
  end,
}
