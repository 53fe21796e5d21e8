-- fastweight.lua -- the delta rule of fast weight programmers: a write replaces what its key holds; nothing decays.
-- Schlag, Irie, Schmidhuber 2021, Linear Transformers Are Secretly Fast Weight Programmers, section 4.2: keys and
-- queries sum to 1, so that no normaliser is needed.
local feature_maps = require "mneme.models.axes.feature_maps"
local ops = require("mneme.tensor.tensor").ops

-- Maps whose numbers have either sign: their sum, which keys are divided by, may vanish.
local signed = { identity = true, rfa = true }

return {
  doc = "C = C + b (v - C k) k^T,  y = C q,  k and q of sum 1",
  gate = { beta = function() return 1 end, doc = "b = sigma(beta x), one value per head" },
  own_decay = "update=fastweight does not forget",
  unnormalised = true,
  keys = { "norm_eps" },
  refuses = function(cfg)
    if signed[cfg.feature] then
      return ("update=fastweight divides keys by their sum, which may be 0 with feature=%s; maps without negative numbers "
        .. "(dpfp, elu1, relu ...) go with it"):format(cfg.feature)
    end
  end,
  states = function() return { C = "[B,H,V,K]" } end,
  complexity = function() return { step = "3*L*H*V*K" } end,
  lanes = function(V, K) return 3 * V * K end,
  run = function(cfg, args, state, new, done, prefix)
    feature_maps.whole(args)
    local y, C = ops.delta_rule {
      q = ops.normalise { x = args.q, by = "sum", eps = cfg.norm_eps }, k = ops.normalise { x = args.k, by = "sum", eps = cfg.norm_eps },
      v = args.v, write = args.beta:squeeze(-1), done = done,
      C = state[prefix .. "C"], normalise = 0,
    }
    new[prefix .. "C"] = C
    return y
  end,
}
