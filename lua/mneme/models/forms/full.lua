-- full.lua -- the state as one full matrix of values by keys, and the sum of its keys.
local lazy = require "mneme.base.lazy"
local element_decay = lazy "mneme.models.axes.element_decay"
local feature_maps = require "mneme.models.axes.feature_maps"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- The factor of C, as a text.
local function factor(law)
  if law.element or law.head then return law.element or law.head end
  if law.joint then return law.doc and "(1 - (1-keep_v)(1-keep_k)^T)" or "(1 - b g^T)" end
  if law.v == "(1-b)" and law.k == "(1-g)" then return "(1-b)(1-g)^T" end
  return (law.v or law.k) and ("%s %s^T"):format(law.v or "1", law.k or "1")
end

-- C and s after a step.
local function equations(gate, law)
  if gate.law then return gate.law end
  local b, g, C = gate.beta, gate.gamma, factor(law)
  local of_head, v = b and b ~= true and not g, b and g and "(b*v)" or b == true and "(b*v)" or b and "b*v" or "v"
  local k = g and "(g*k)" or "k"
  return ("C = %s + %s%s^T,  s = %s + %s"):format(C and C .. (law.head and "*C" or " * C") or "C", v .. (v:find "%)$" and k:find "^%(" and "" or " "), k,
    (law.head or law.k) and (law.head or law.k) .. "*s" or "s", g and "g*k" or of_head and "b*k" or "k")
end

-- A decay of the elements is a recurrence of its own; one for each decay.
local recurrences = setmetatable({}, { __mode = "k" })

return {
  doc = function(_, gate, law) return equations(gate, law) .. ",  y = C q / den(s.q)" end,
  any_decay = true, rescales = true,
  states = function(cfg) return { C = "[B,H,V,K]", s = cfg.normalise and "[B,H,K]" or nil } end,
  complexity = function() return { step = "2*L*H*V*K" } end,
  lanes = function(V, K) return 4 * V * K end,
  run = function(cfg, args, state, new, _, prefix, use)
    local C, s, y = state[prefix .. "C"], state[prefix .. "s"]
    if use.kept_v == "element" then
      recurrences[use.entry] = recurrences[use.entry] or element_decay(use.entry.keep)
      y, C, s = recurrences[use.entry](cfg, feature_maps.whole(args), C, s)
    else
      args.C, args.s = C, s
      y, C, s = (use.entry.joint and ops.joint_gate_attention or ops.linear_attention)(args)
    end
    new[prefix .. "C"] = C
    if cfg.normalise then new[prefix .. "s"] = s end
    return y
  end,
}
