-- hgrn2.lua -- HGRN2: gla whose keys are what its gate forgets, so that what a key gains is what it loses.
local fast_weights = require "mneme.models.layers.fast_weights"
local gate_start = require "mneme.models.gate_start"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local SHUT = 10                  -- of bounds' first row: the lower bounds are then e^-10

return fast_weights.core {
  doc = "a matrix that writes what its forget gates let go, with lower bounds that rise with the layers (HGRN2)",
  source = "Qin et al. 2024, HGRN2: Gated Linear RNNs with State Expansion, arXiv 2404.07904; flash-linear-attention, fla/layers/hgrn2.py",
  equations = [[
q = silu(W_q x), v = W_v x;  low = sum over layers 1 .. n of softmax(bounds), softmax over the layers: 0 in layer 0, as n/L at the start
k = (1 - low) sigma(-(f x + bias)),  keep = 1 - k
C = C diag(keep) + v k^T,  o = C q / sqrt(K)
e += relu(out(o / rms(o) * norm.weight)), the rms over all heads, x = norm1(e)
as published: all of it but the residual block, the initial values of products, and f's bias, which begins at 0: core.remember sets it, and low to 0]],
  config = { n_heads = 8, d_head = 16, expand_v = 1 },
  parts = function(cfg)
    local keys = cfg.n_heads * cfg.d_head
    return { { "q", keys }, { "f", keys }, { "v", keys * cfg.expand_v } }
  end,
  norm = "all", scaled = true, complexity = "2*L*H*V*K", reads = "kept",
  shared = function(cfg)
    local bounds = tensor.new { shape = { cfg.n_layers, cfg.n_heads * cfg.d_head }, grad = true }
    return nn.module { named = { { "bounds", bounds } } }
  end,
  credit = function(cfg, own, n, shared)
    local kinds = { { of = "v", part = "v" }, { part = "f" }, { bias = own.named["f.bias"] } }
    for l = 0, n > 0 and cfg.n_layers - 1 or -1 do kinds[#kinds + 1] = { bias = shared.leaves[1], from = l * cfg.n_heads * cfg.d_head } end
    return kinds, function(u)
      local k, all, below = ops.sigmoid(-(u[2] + u[3])), nil, nil
      for l = 4, #u do
        local e = u[l]:exp()
        all = all and all + e or e
        if l > 4 and l <= n + 4 then below = below and below + e or e end
      end
      if all then k = k * (1 - below / all) end
      return u[1] * k, 1 - k
    end
  end,
  memory = function(cfg, own, n, shared)
    local keys, bounds = cfg.n_heads * cfg.d_head, shared.leaves[1]
    local bias = own.leaf("f.bias", { keys })
    local gate = gate_start.decays("keep_k", bias, function(b, i)
      local all, low = 0, 0
      for l = 0, cfg.n_layers - 1 do
        local e = math.exp(bounds:data()[l * keys + i])
        all, low = all + e, low + (l > 0 and l <= n and e or 0)
      end
      return 1 - (1 - low / all) / (1 + math.exp(b))
    end, function(keep) return math.log(keep / (1 - keep)) end)
    local set = gate.set
    gate.set = function(keeps)
      for i = 0, keys - 1 do bounds:data()[i] = SHUT end
      set(keeps)
    end
    own.forgets(gate)
    return function(s)
      local k = ops.sigmoid(-(s.part("f", 0) + bias))
      if n > 0 then
        local e = bounds:exp()
        k = k * (1 - e:slice(0, 1, n + 1):sum(0) / e:sum(0))
      end
      k = s.heads(k, cfg.n_heads)
      return fast_weights.sum(s, s.part("q"):silu(), k, s.part "v", 1 - k)
    end
  end,
}
