-- delta.lua -- the released gated delta rule: a decaying matrix, corrected by the error of what a key returns.
-- Keys and queries have length 1.  An all-zero key (relu can make one) stays zero and writes nothing; the released
-- code divides by its length.
local feature_maps = require "mneme.models.axes.feature_maps"
local ops = require("mneme.tensor.tensor").ops

local function one() return 1 end

return {
  doc = "C = (1-g) C + g b (v - C k) k^T,  s = (1-g) s + g b k,  y = C q / den(s.q),  k and q of length 1",
  gate = { beta = one, gamma = one, doc = "b = sigma(beta x),  g = sigma(gamma x), one value per head" },
  own_decay = "update=delta has a scalar decay",
  keys = { "norm_eps" },
  states = function(cfg) return { C = "[B,H,V,K]", s = cfg.normalise and "[B,H,K]" or nil } end,
  complexity = function() return { step = "3*L*H*V*K" } end,
  lanes = function(V, K) return 3 * V * K end,
  run = function(cfg, args, state, new, done, prefix)
    feature_maps.whole(args)
    local gamma = args.gamma:squeeze(-1)
    local y, C, s = ops.delta_rule {
      q = ops.normalise { x = args.q, by = "l2", eps = 1e-6 }, k = ops.normalise { x = args.k, by = "l2", eps = cfg.norm_eps },
      v = args.v, write = gamma * args.beta:squeeze(-1), keep = ops.scale { x = gamma, a = -1, b = 1 }, done = done,
      C = state[prefix .. "C"], s = state[prefix .. "s"],
      eps = cfg.eps, den_clamp = cfg.den_clamp, normalise = cfg.normalise,
    }
    new[prefix .. "C"] = C
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
