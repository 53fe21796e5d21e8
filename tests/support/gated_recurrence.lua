-- gated_recurrence.lua -- the recurrent attention ops as their equations say, token by token in double precision.
local ffi = require "ffi"

local function zeros(n) return ffi.new("double[?]", n) end

-- A feature or gate of one token: x, or p (x) x.
local function outer(x, p, token, n)
  local D, E = #x.shape > 0 and x.shape[4], p and p.shape[4] or 1
  local out = zeros(n)
  for e = 0, E - 1 do
    for d = 0, D - 1 do out[e * D + d] = x.at[token * D + d] * (p and p.at[token * E + e] or 1) end
  end
  return out
end

-- Weights of the channels at time tau, all of them, as published; and D.
local function waves(case, tau)
  local w, r = {}, case.r
  if case.form == "code" then
    for i = 0, r - 1 do w[i + 1] = math.cos((2 * math.pi * i / math.max(r - 1, 1) - math.pi) * tau) end
    return w, 2 * r
  elseif case.form == "paper" then
    for i = 0, r do w[i + 1] = math.cos(2 * math.pi * i / r * tau) end
    return w, 2 * r
  end
  for i = 0, r - 1 do
    w[i + 1], w[r + i + 1] = math.cos(2 * math.pi * i / r * tau), math.sin(2 * math.pi * i / r * tau)
  end
  return w, r
end

local function denominator(case, z)
  local den = z + case.eps
  if case.clamp > 0 then den = (den < 0 and -1 or 1) * math.max(math.abs(den), case.clamp) end
  return den
end

-- n numbers: of an input, of its one number a head, of the default.
local function each(n, x, p, token, default)
  if x and (x.shape[4] == n or p) then return outer(x, p, token, n) end
  local all = zeros(n)
  for i = 0, n - 1 do all[i] = x and x.at[token] or default end
  return all
end

local function rest(n, gate)
  local all = zeros(n)
  for i = 0, n - 1 do all[i] = 1 - gate[i] end
  return all
end

-- What a token of one head writes and keeps, of values and of keys; a scalar gate is a gate of every key.
local function gates(case, x, token, K)
  local write_v, write_k = x.write_v or not case.scalar and x.beta, x.write_k or x.gamma or case.scalar and x.beta
  write_v = each(case.V, write_v, nil, token, 1)
  write_k = each(K, write_k, x.p_write_k or x.p_gamma, token, 1)
  local keep_v = x.beta and not case.scalar and rest(case.V, write_v) or each(case.V, x.keep_v, nil, token, 1)
  local keep_k = (x.gamma or case.scalar) and rest(K, write_k) or each(K, x.keep_k, nil, token, 1)
  return write_v, keep_v, write_k, keep_k
end

-- y, C and s, all [..] flat, of linear and joint attention.
local function matrix_recurrence(case, x)
  local T, B, H, V, K = case.T, case.B, case.H, case.V, case.K
  local y, C, s = zeros(T * B * H * V), zeros(B * H * V * K), zeros(B * H * K)
  if x.C then for i = 0, B * H * V * K - 1 do C[i] = x.C.at[i] end end
  if x.s then for i = 0, B * H * K - 1 do s[i] = x.s.at[i] end end
  for step = 0, T - 1 do
    for bh = 0, B * H - 1 do
      local token = step * B * H + bh
      local q, k = outer(x.q, x.p_q, token, K), outer(x.k, x.p_k, token, K)
      local write_v, keep_v, write_k, keep_k = gates(case, x, token, K)
      local keep = x.done and 1 - x.done.at[step * B + math.floor(bh / H)] or 1
      local z = 0
      for j = 0, K - 1 do
        local at = bh * K + j
        s[at] = keep * keep_k[j] * s[at] + write_k[j] * k[j]
        z = z + s[at] * q[j]
      end
      local den = case.normalise and denominator(case, z) or 1
      for i = 0, V - 1 do
        local sum, v = 0, x.v.at[token * V + i]
        for j = 0, K - 1 do
          local at = (bh * V + i) * K + j
          local decay = case.op == "joint_gate_attention" and 1 - (1 - keep_v[i]) * (1 - keep_k[j]) or keep_v[i] * keep_k[j]
          C[at] = keep * decay * C[at] + write_v[i] * v * write_k[j] * k[j]
          sum = sum + C[at] * q[j]
        end
        y[token * V + i] = sum / den
      end
    end
  end
  return { y = y, C = C, s = s }
end

-- y, vs, ks, s of agalite, from all channels; states of the channels that stand for others come back.
local function wave_recurrence(case, x)
  local T, B, H, V, K, M = case.T, case.B, case.H, case.V, case.K, case.M
  local R = #case.stored
  local y, s = zeros(T * B * H * V), zeros(B * H * K)
  local vs, ks = zeros(B * R * H * V), zeros(B * R * H * K)
  if x.s then for i = 0, B * H * K - 1 do s[i] = x.s.at[i] end end
  for b = 0, x.vs and B - 1 or -1 do
    for r = 0, R - 1 do
      local m, sign = case.stored[r + 1], case.sign[r + 1]
      for i = 0, H * V - 1 do vs[(b * R + r) * H * V + i] = sign * x.vs.at[(b * M + m) * H * V + i] end
      for i = 0, H * K - 1 do ks[(b * R + r) * H * K + i] = sign * x.ks.at[(b * M + m) * H * K + i] end
    end
  end
  for step = 0, T - 1 do
    for bh = 0, B * H - 1 do
      local batch, head, token = math.floor(bh / H), bh % H, step * B * H + bh
      local q, k = outer(x.q, x.p_q, token, K), outer(x.k, x.p_k, token, K)
      local write_v, keep_v, write_k, keep_k = gates(case, x, token, K)
      local keep = x.done and 1 - x.done.at[step * B + batch] or 1
      local w, D = waves(case, x.tick.at[batch] + step + 1)
      local z = 0
      for j = 0, K - 1 do
        local at = bh * K + j
        s[at] = keep * keep_k[j] * s[at] + write_k[j] * k[j]
        z = z + s[at] * q[j]
      end
      local den = case.normalise and denominator(case, D * z) or D
      for r = 0, R - 1 do
        local kappa, row = 0, (batch * R + r) * H + head
        for j = 0, K - 1 do
          local at = row * K + j
          ks[at] = keep * keep_k[j] * ks[at] + w[r + 1] * write_k[j] * k[j]
          kappa = kappa + ks[at] * q[j]
        end
        for i = 0, V - 1 do
          local at = row * V + i
          vs[at] = keep * keep_v[i] * vs[at] + w[r + 1] * write_v[i] * x.v.at[token * V + i]
          y[token * V + i] = y[token * V + i] + vs[at] * kappa / den
        end
      end
    end
  end
  local few_vs, few_ks = zeros(B * M * H * V), zeros(B * M * H * K)
  for b = 0, B - 1 do
    for r = 0, R - 1 do
      local m = case.stored[r + 1]
      if case.sign[r + 1] == 1 then
        for i = 0, H * V - 1 do few_vs[(b * M + m) * H * V + i] = vs[(b * R + r) * H * V + i] end
        for i = 0, H * K - 1 do few_ks[(b * M + m) * H * K + i] = ks[(b * R + r) * H * K + i] end
      end
    end
  end
  return { y = y, vs = few_vs, ks = few_ks, s = s }
end

---The outputs of linear_attention, joint_gate_attention or agalite (case.op) for inputs x = { name = { shape, at = doubles } }.
return function(case, x)
  return (case.op == "agalite" and wave_recurrence or matrix_recurrence)(case, x)
end
