-- full.lua -- the memory as one matrix of values by keys, and the sum of its keys.
local errors = require "mneme.errors"
local tensor = require "mneme.tensor"
local ops = tensor.ops

return {
  doc = "C = decay * C + (b*v)(g*k)^T,  s = (1-g)*s + g*k,  y = C q / den(s.q)",
  check = function(cfg)
    if cfg.decay == "joint" and cfg.gate == "none" then
      errors.raise("core: decay=joint needs a gate", { status = 2 })
    end
  end,
  states = function(cfg) return { C = "[B,H,V,K]", s = cfg.normalise and "[B,H,K]" or nil } end,
  complexity = function() return { step = "2*L*H*V*K" } end,
  run = function(cfg, args, state, new, _, prefix)
    args.C, args.s = state[prefix .. "C"], state[prefix .. "s"]
    local op = cfg.decay == "joint" and ops.joint_gate_attention or ops.linear_attention
    local y, C, s = op(args)
    new[prefix .. "C"] = C
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
