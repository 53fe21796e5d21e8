-- random_sign.lua -- the matrix approximated by r products of vectors written with random signs.  It is unbiased: a sign
-- squared is 1, and the product of two steps' signs is 1 or -1 with equal probability.
-- The signs are a function of (seed, environment, tick, channel) only: replays and resumed runs use the same
-- signs, environments differ, and all layers and heads of an environment share them.  The index of the environment is part
-- of the state (`copy`), so that a state keeps its signs in any batch.
local cos = require "mneme.models.forms.cos"

-- Everything but what modulates the vectors is as in cos, the projections too: the two are compared.
return setmetatable({
  doc = function(_, gate, law)
    return cos.equations(gate, law, "nu_m", "y = (1/r) sum_m v_m (k_m.q) / den(s.q),  nu_m = +-1, drawn at every step")
  end,
  keys = { "r", "seed" },
  products = "has no form with random signs",
  extend = function(cfg, core)
    core.sizes.M, core.states.copy, core.constants.copy = cfg.r, "[B]", true
    core.start.copy = function(t) for b = 0, t:size() - 1 do t:data()[b] = b end end
  end,
  run = cos.runner(function(cfg, args, state, new)
    args.form, args.r, args.seed, args.env, new.copy = "random_sign", cfg.r, cfg.seed, state.copy, state.copy
  end),
}, { __index = cos })
