-- full.lua -- the state as one full matrix of values by keys, and the sum of its keys.
local gates = require "mneme.models.gates"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- C and s after a step.
local function law(cfg, gate)
  if gate.law then return gate.law end
  if gate.beta and gate.gamma then
    return ("C = %s * C + (b*v)(g*k)^T,  s = (1-g)*s + g*k"):format(cfg.decay == "joint" and "(1 - b g^T)" or "(1-b)(1-g)^T")
  end
  if gate.gamma then return "C = 1 (1-g)^T * C + v (g*k)^T,  s = (1-g)*s + g*k" end
  if gate.beta == true then return "C = (1-b) 1^T * C + (b*v) k^T,  s = s + k" end
  local b = gate.beta and "b"                         -- one number a head
  return ("C = %s + %s k^T,  s = %s + %s"):format(gates.kept(b, "C"), gates.written(b, "v"), gates.kept(b, "s"), gates.written(b, "k"))
end

return {
  doc = function(cfg, gate) return law(cfg, gate) .. ",  y = C q / den(s.q)" end,
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
