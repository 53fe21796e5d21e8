-- random_sign.lua -- the matrix as r products of vectors written with random signs, right on average: a sign squared
-- is 1, and the products of different steps' signs are as often 1 as -1.
-- The signs are a function of (seed, copy, tick, channel) and of nothing else: replays and resumed runs meet the same
-- ones, copies differ, and the layers and heads of a copy share theirs.
local tensor = require "mneme.tensor"
local ops = tensor.ops

return {
  doc = "v_m = (1-b)*v_m + nu_m b*v,  k_m likewise,  nu_m = +-1 at random,  y = (1/r) sum_m v_m (k_m.q) / den(s.q)",
  fused = true,                                       -- projections as in cos, which it is compared with
  clock = true, rescales = true,
  keys = { "r", "seed" },
  refuses = function(cfg)
    if cfg.gate == "scalar" or cfg.gate == "mega" then
      return ("approximation=random_sign needs a decay of values and one of keys, as gate = outer, elementwise or none has, not %s"):format(cfg.gate)
    end
  end,
  joint = "decay=joint has no form with random signs: its decay 1 - beta gamma^T is not a product of vectors",
  states = function(cfg)
    return { v = "[B,M,H,V]", k = "[B,M,H,K]", s = cfg.normalise and "[B,H,K]" or nil }
  end,
  complexity = function() return { step = "L*H*(2*M*(V + K) + K)" } end,
  lanes = function(V, K, M) return 3 * M * (V + K) + 2 * K end,
  extend = function(cfg, core) core.sizes.M = cfg.r end,
  run = function(cfg, args, state, new, _, prefix)
    args.form, args.r, args.seed = "random_sign", cfg.r, cfg.seed
    args.tick, args.vs, args.ks, args.s = state.tick, state[prefix .. "v"], state[prefix .. "k"], state[prefix .. "s"]
    local y, vs, ks, s, tick = ops.agalite(args)
    new[prefix .. "v"], new[prefix .. "k"], new.tick = vs, ks, tick
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
