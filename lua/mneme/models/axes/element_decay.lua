-- element_decay.lua -- runs a matrix each of whose elements is kept by a factor of its own: a decay that no kernel knows.
--   C = keep * C + (write_v*v)(write_k*k)^T,  s = keep_k*s + write_k*k,  y = C q / den(s.q)
-- It is a recurrence in Lua (mn.recur), whose body works keep out row by row: [T,B,H,V,K] numbers are never there at once.
local recur = require "mneme.tensor.recur"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

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

---The recurrence of one decay.
---@param keep fun(beta: Tensor?, gamma: Tensor?): Tensor, Tensor? of its entry
---@return fun(cfg: table, args: table, C: Tensor, s: Tensor?): Tensor, Tensor, Tensor? y [T,B,H,V], and the states after
return function(keep)
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
