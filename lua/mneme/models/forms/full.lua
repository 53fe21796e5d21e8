-- full.lua -- the state as one full matrix of values by keys, and the sum of its keys.
local lazy = require "mneme.base.lazy"
local feature_maps = require "mneme.models.axes.feature_maps"
local recur = lazy "mneme.tensor.recur"
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

-- num over the denominator of z = s.q, as the kernels divide: y is 0 where that is 0.
local function divide(cfg, num, z)
  if not cfg.normalise then return num end
  local den, clamp = z + cfg.eps, cfg.den_clamp
  if clamp > 0 then
    local up, down = tensor.new { clamp }, tensor.new { -clamp }
    den = ops.where(ops.between(den, { lo = -clamp, hi = clamp }), ops.where(ops.between(den, { lo = 0 }), up, down), den)
  end
  local nothing = ops.between(den, { lo = 0, hi = 0 })
  return ops.where(nothing, tensor.new { 0 }, num / ops.where(nothing, tensor.new { 1 }, den))
end

-- Of a decay that keeps each element by a factor of its own, which no kernel knows: fun(cfg, args, C, s) gives y [T,B,H,V] and the states after.
--   C = keep * C + (write_v*v)(write_k*k)^T,  s = keep_k*s + write_k*k,  y = C q / den(s.q)
-- It is a recurrence in Lua (mn.recur), whose body works keep out row by row: [T,B,H,V,K] numbers are never there at once.
local function element_decay(keep)
  local function body(x, before)
    local shape, K = x.v:shape(), x.k:shape()[3]
    local B, H, V = shape[1], shape[2], shape[3]
    local function as_sequence(gate) return gate and gate:reshape(1, B, H, -1) end
    local kept, kept_k = keep(as_sequence(x.beta), as_sequence(x.gamma))
    local C = before.C
    if x.shrink then C = C * x.shrink:reshape(B, H, 1, 1) end
    C = kept:reshape(B, H, V, K) * C + x.v:reshape(B, H, V, 1) * x.k:reshape(B, H, 1, K)
    local y, after = { num = (C * x.q:reshape(B, H, 1, K)):sum(-1) }, { C = C }
    if before.s then
      local s = x.shrink and before.s * x.shrink:reshape(B, H, 1) or before.s
      after.s = (kept_k and s * kept_k:reshape(B, H, -1) or s) + x.k
      y.z = (after.s * x.q):sum(-1, 1)
    end
    return y, after
  end

  return function(cfg, args, C, s)
    local v, k, gate = args.v, args.k, args.write_k
    if args.write_v then v = v * args.write_v end
    if args.p_write_k then gate = ops.outer(args.p_write_k, gate) end
    if gate then k = k * gate end
    local y, after = recur(body, { x = { q = args.q, k = k, v = v, beta = args.open.beta, gamma = args.open.gamma, shrink = args.shrink },
      state = { C = C, s = s }, done = args.done, keep = false })
    return divide(cfg, y.num, y.z), after.C, after.s
  end
end

-- One for each decay.
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
