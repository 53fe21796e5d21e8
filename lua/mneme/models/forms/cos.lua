-- cos.lua -- approximation=cos (AGaLiTe): the matrix as a sum of channels, each with a vector of values and one of keys.  Which channels, their
-- states and equations; the cosines of their waves are computed by engine/ops/agalite.c.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local gates = require "mneme.models.axes.gates"
local tensor = require "mneme.tensor.tensor"
local C, ops = engine.C, tensor.ops

-- Files hold every cosine channel; the engine one of each mirrored pair.  Which, and with which sign:
local function channels(cfg)
  local form = ({ code = 0, paper = 1, cossin = 2 })[cfg.form]
  local count = ffi.new "int[1]"
  local M = engine.check(C.mn_agalite_channels(engine.ctx, form, cfg.r, count, nil, nil))
  local R = count[0]
  local stored, sign = ffi.new("int[?]", R), ffi.new("int[?]", R)
  C.mn_agalite_channels(engine.ctx, form, cfg.r, count, stored, sign)
  local map = {}
  for i = 0, R - 1 do map[i + 1] = { stored = stored[i], sign = sign[i] } end
  return { file = R, stored = M, map = map }
end

local every = setmetatable({}, { __mode = "k" })      -- configurations of cores that store every channel

---How vectors in place of the matrix are run: f(cfg, args, state, new) says what modulates them.
local function run(modulate)
  return function(cfg, args, state, new, _, prefix)
    modulate(cfg, args, state, new)
    args.tick, args.vs, args.ks, args.s = state.tick, state[prefix .. "v"], state[prefix .. "k"], state[prefix .. "s"]
    local y, vs, ks, s, tick = ops.agalite(args)
    new[prefix .. "v"], new[prefix .. "k"], new.tick = vs, ks, tick
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end
end

local frequencies = {
  code = "w_m = -pi + 2 pi m/(r-1), m = 0..r-1 (r=1: -pi),  D = 2 r,  tau = 2, 3, ... and no reset sets it back",
  paper = "w_m = 2 pi m/r, m = 0..r,  D = 2 r,  tau = 1, 2, ... and no reset sets it back",
  cossin = "w_m = 2 pi m/r, m = 0..r-1, each with a cosine and a sine,  D = r,  tau = 1, 2, ... and no reset sets it back",
}

---The equations of vectors in place of the matrix.
---@param law table of the decay
---@param wave string what modulates channel m
---@param read string y
local function equations(gate, law, wave, read)
  local b, g = gate.beta and "b", gate.gamma and "g"
  return ("v_m = %s + %s %s,  k_m = %s + %s %s,  s = %s + %s\n%s"):format(gates.times(law.v, "v_m"), wave, gates.times(b, "v"),
    gates.times(law.k, "k_m"), wave, gates.times(g, "k"), gates.times(law.k, "s"), gates.times(g, "k"), read)
end

return {
  doc = function(cfg, gate, law)
    return equations(gate, law, "cos(w_m tau)", "y = sum_m v_m (k_m.q) / den(D s.q)") .. "\n" .. frequencies[cfg.form]
  end,
  equations = equations,
  fused = true,                                       -- the released code projects in two fused layers
  clock = true, rescales = true,
  keys = { "r", "form" },
  refuses = function(cfg)
    if cfg.gate == "scalar" or gates.list[cfg.gate].decay then
      return ("approximation=%s needs a decay of values and one of keys, as gate = outer, elementwise or none has, not %s"):format(
        cfg.approximation, cfg.gate)
    end
  end,
  products = "has no cosine form",
  states = function(cfg)
    return { v = "[B,M,H,V]", k = "[B,M,H,K]", s = cfg.normalise and "[B,H,K]" or nil }
  end,
  complexity = function() return { step = "L*H*(2*M*(V + K) + K)" } end,
  lanes = function(V, K, M) return 3 * M * (V + K) + 2 * K end,
  ---What the core as a whole gains: its channels, and where its clock starts.
  extend = function(cfg, core)
    core.channels = channels(cfg)
    core.sizes.M = core.channels.stored
    core.start.tick = cfg.form == "code" and 1 or nil
    -- From now on keep every channel: for a state whose mirrored channels are not equal.
    core.store_all_channels = function()
      every[cfg], core.sizes.M, core.channels = true, core.channels.file, nil
    end
  end,
  run = run(function(cfg, args) args.form, args.r, args.stored = cfg.form, cfg.r, every[cfg] and "all" or "distinct" end),
  runner = run,
}
