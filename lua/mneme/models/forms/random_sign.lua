-- random_sign.lua -- the matrix as r products of vectors written with random signs, right on average: a sign squared
-- is 1, and the products of different steps' signs are as often 1 as -1.
-- The signs are a function of (seed, copy, tick, channel) and of nothing else: replays and resumed runs meet the same
-- ones, copies differ, and the layers and heads of a copy share theirs.  Which copy a memory is of is part of its state,
-- so that it meets its own signs in whatever batch it is run again.
local cos = require "mneme.models.forms.cos"

-- Everything but what modulates the vectors is as in cos, the projections too: the two are compared.
return setmetatable({
  doc = function(_, gate)
    return cos.equations(gate, "nu_m", "y = (1/r) sum_m v_m (k_m.q) / den(s.q),  nu_m = +-1, drawn at every step")
  end,
  keys = { "r", "seed" },
  joint = "decay=joint has no form with random signs: its decay 1 - beta gamma^T is not a product of vectors",
  extend = function(cfg, core)
    core.sizes.M, core.states.copy, core.constants.copy = cfg.r, "[B]", true
    core.start.copy = function(t) for b = 0, t:size() - 1 do t:data()[b] = b end end
  end,
  run = cos.runner(function(cfg, args, state, new)
    args.form, args.r, args.seed, args.copy, new.copy = "random_sign", cfg.r, cfg.seed, state.copy, state.copy
  end),
}, { __index = cos })
