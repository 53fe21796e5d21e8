-- svd.lua -- the matrix as a product of two thin ones, truncated to rank r at every step by a singular value
-- decomposition: the best approximation by r pairs of vectors, for comparison with cos and random_sign.
-- Exact for r >= min(steps since the reset, d_head, K).  Gradients treat the kept subspace as constant.
local gates = require "mneme.models.axes.gates"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = function(_, gate, law)
    local b, g, of_keys = gate.beta and "b", gate.gamma and "g", law.k or law.head
    if not g and gate.beta ~= true then b, g = nil, b end           -- one number a head: a gate of keys
    return ("U W^T = the nearest matrix of rank r to (%s) (%s)^T + (%s)(%s)^T,  s = %s + %s,  y = U (W^T q) / den(s.q)"):format(
      gates.times(law.v, "U"), gates.times(of_keys, "W"), gates.times(b, "v"), gates.times(g, "k"), gates.times(of_keys, "s"), gates.times(g, "k"))
  end,
  rescales = true,
  keys = { "r" },
  refuses = function(cfg)
    if gates.list[cfg.gate].decay then return ("approximation=svd needs a decay that scales rows of U and W, but gate=%s has none"):format(cfg.gate) end
    if cfg.r > 256 then return ("r = %d, expected at most 256 with approximation=svd"):format(cfg.r) end
  end,
  products = "has no form of low rank",
  states = function(cfg)
    return { U = "[B,H,V,R]", W = "[B,H,K,R]", s = cfg.normalise and "[B,H,K]" or nil }
  end,
  -- Inner products of R + 1 columns, their mixture into R, and some 25 cubes for the small decomposition.
  complexity = function()
    return { step = "L*H*((V + K)*((R + 1)*(R + 2)/2 + R*(R + 3)) + 2*K + 25*(R + 1)^3)" }
  end,
  extend = function(cfg, core)
    core.sizes.R = cfg.r
    core.claims.gradients, core.decomposes = "in part", true
  end,
  run = function(cfg, args, state, new, _, prefix)
    args.r = cfg.r
    args.U, args.W, args.s = state[prefix .. "U"], state[prefix .. "W"], state[prefix .. "s"]
    local y, U, W, s = ops.low_rank_attention(args)
    new[prefix .. "U"], new[prefix .. "W"] = U, W
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
