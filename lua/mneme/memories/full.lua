-- full.lua -- the memory as one matrix of values by keys, and the sum of its keys.
local tensor = require "mneme.tensor"
local ops = tensor.ops

return {
  doc = "C = decay * C + (b*v)(g*k)^T,  s = (1-g)*s + g*k,  y = C q / den(s.q)",
  joint = true, rescales = true,
  states = function(cfg) return { C = "[B,H,V,K]", s = cfg.normalise and "[B,H,K]" or nil } end,
  complexity = function() return { step = "2*L*H*V*K" } end,
  lanes = function(V, K) return 4 * V * K end,
  run = function(cfg, args, state, new, _, prefix)
    args.C, args.s = state[prefix .. "C"], state[prefix .. "s"]
    local joint = args.write == "raw" or cfg.decay == "joint" and args.beta and args.gamma
    local y, C, s = (joint and ops.joint_gate_attention or ops.linear_attention)(args)
    new[prefix .. "C"] = C
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
