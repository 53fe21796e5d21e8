-- naive_attention.lua -- every attention as its definition says, one pair of tokens at a time, in doubles.
-- f(cfg, q, k, v, extras, parameters) with nested lists [N][D] of one copy and head h (from 0), where a normalisation
-- over all heads needs them: [H][N][D].
local naive = {}

local function dot(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + a[i] * b[i] end
  return sum
end

-- y_i = sum of w(i, j) v_j over sum of w(i, j), for tokens that are seen.
local function weighted(N, keys, v, weight, guard)
  local y = {}
  for i = 1, N do
    local sum, row = 0, {}
    for d = 1, #v[1] do row[d] = 0 end
    for j = 1, keys do
      local w = weight(i, j)
      sum = sum + w
      for d = 1, #row do row[d] = row[d] + w * v[j][d] end
    end
    if guard then sum = guard(sum) end
    for d = 1, #row do row[d] = row[d] / sum end
    y[i] = row
  end
  return y
end

-- Softmax over the keys that sees(i, j) lets through (numbers from 0); scale 1/sqrt(dh).
local function softmax(q, k, v, sees, scale)
  scale = scale or 1 / math.sqrt(#q[1])
  local function score(i, j) return dot(q[i], k[j]) * scale end
  local top = {}
  for i = 1, #q do
    top[i] = -math.huge
    for j = 1, #k do if sees(i - 1, j - 1) then top[i] = math.max(top[i], score(i, j)) end end
  end
  return weighted(#q, #k, v, function(i, j) return sees(i - 1, j - 1) and math.exp(score(i, j) - top[i]) or 0 end)
end
naive.weighted_softmax = softmax

-- One head at a time: x.q [H][N][D] ... -> y [H][N][D].
local function by_head(f)
  return function(cfg, x, p)
    local y = {}
    for h = 1, #x.q do
      local one = {}
      for name, t in pairs(x) do one[name] = t[h] end
      y[h] = f(cfg, one, p, h)
    end
    return y
  end
end

naive.softmax = by_head(function(cfg, x)
  return softmax(x.q, x.k, x.v, function(i, j) return j <= i or not cfg.causal end)
end)

naive.longformer = by_head(function(cfg, x)
  local g, w, s = cfg.globals, cfg.window, cfg.dilation
  local function local_sees(i, j)
    if cfg.causal and j > i then return false end
    local apart = math.abs(i - j)
    local near = apart % s == 0 and (cfg.causal and apart < w * s or not cfg.causal and apart <= math.floor(w / 2) * s)
    return j < g or near
  end
  local y = softmax(x.q, x.k, x.v, local_sees)
  local first = g > 0 and softmax(x.q_global, x.k_global, x.v_global, function(i, j) return j <= i or not cfg.causal end)
  for i = 1, math.min(g, #y) do y[i] = first[i] end
  return y
end)

naive.bigbird = by_head(function(cfg, x, _, h)
  local b = cfg.block
  local function listed(list, j)
    for _, one in ipairs(list) do if one == j then return true end end
    return false
  end
  return softmax(x.q, x.k, x.v, function(i, j)
    local bi, bj = math.floor(i / b), math.floor(j / b)
    if cfg.causal and j > i then return false end
    return math.abs(bi - bj) <= 1 or listed(cfg.global_blocks, bi) or listed(cfg.global_blocks, bj) or listed(cfg.random[h][bi + 1], bj)
  end)
end)

-- LayerNorm over all heads of every token, weight and bias [H*D].
local function merged_norm(x, weight, bias, eps)
  local H, N, D, y = #x, #x[1], #x[1][1], {}
  for h = 1, H do y[h] = {} end
  for n = 1, N do
    local mean, var = 0, 0
    for h = 1, H do for d = 1, D do mean = mean + x[h][n][d] / (H * D) end end
    for h = 1, H do for d = 1, D do var = var + (x[h][n][d] - mean) ^ 2 / (H * D) end end
    for h = 1, H do
      y[h][n] = {}
      for d = 1, D do
        local e = (h - 1) * D + d
        y[h][n][d] = (x[h][n][d] - mean) / math.sqrt(var + eps) * weight[e] + bias[e]
      end
    end
  end
  return y
end

-- Tokens from .. to-1 mixed into rho, by a softmax over them of p.
local function compressed(x, p, from, to, rho, into)
  for r = 1, rho do
    for h = 1, #x do
      local sum, row = 0, {}
      for n = from + 1, to do
        local w = math.exp(p[h][n][r])
        sum = sum + w
        for d = 1, #x[h][n] do row[d] = (row[d] or 0) + w * x[h][n][d] end
      end
      for d = 1, #row do row[d] = row[d] / sum end
      into[h] = into[h] or {}
      into[h][#into[h] + 1] = row
    end
  end
end

function naive.longshort(cfg, x, p)
  local N, rho, c, w, y = #x.q[1], cfg.rho, cfg.chunk, cfg.window, {}
  local k = merged_norm(x.k, p["ln_l.weight"], p["ln_l.bias"], cfg.ln_eps)
  local v = merged_norm(x.v, p["ln_l.weight"], p["ln_l.bias"], cfg.ln_eps)
  local ks, vs, whole = {}, {}, math.floor(N / c)
  if cfg.causal then
    for u = 0, whole - 1 do
      compressed(k, x.p, u * c, u * c + c, rho, ks)
      compressed(v, x.p, u * c, u * c + c, rho, vs)
    end
  else
    compressed(k, x.p, 0, N, rho, ks)
    compressed(v, x.p, 0, N, rho, vs)
  end
  local short = ks[1] and #ks[1] or 0
  if short > 0 then
    ks = merged_norm(ks, p["ln_s.weight"], p["ln_s.bias"], cfg.ln_eps)
    vs = merged_norm(vs, p["ln_s.weight"], p["ln_s.bias"], cfg.ln_eps)
  end
  for h = 1, #x.q do
    local keys, values = {}, {}
    for i = 1, short do keys[i], values[i] = ks[h][i], vs[h][i] end
    for n = 1, N do keys[short + n], values[short + n] = k[h][n], v[h][n] end
    y[h] = softmax(x.q[h], keys, values, function(i, j)
      if j < short then return not cfg.causal or math.floor(j / rho) < math.floor(i / c) end
      j = j - short
      if cfg.causal then return j <= i and i - j < w end
      local first, more = math.floor(i / w) * w, math.max(math.floor(w / 2), 1)
      return j >= first - more and j < first + w + more
    end)
  end
  return y
end

-- ---- products of features ----

local function features_of(f, rows)
  local out = {}
  for i, row in ipairs(rows) do out[i] = f(row) end
  return out
end

local function kernel(cfg, fq, fk, v, guard)
  return weighted(#fq, #fk, v, function(i, j) return (j <= i or not cfg.causal) and dot(fq[i], fk[j]) or 0 end, guard)
end

naive.linear = by_head(function(cfg, x)
  local function phi(row)
    local y = {}
    for i, a in ipairs(row) do y[i] = a > 0 and a + 1 or math.exp(a) end
    return y
  end
  return kernel(cfg, features_of(phi, x.q), features_of(phi, x.k), x.v, function(den) return den + cfg.eps end)
end)

naive.rfa = by_head(function(cfg, x, p, h)
  local W = p.features[h]
  local function phi(row)
    local norm, y, m = math.sqrt(dot(row, row)) + 1e-3, {}, #W
    for i = 1, m do
      local z = dot(W[i], row) / norm
      y[i], y[m + i] = math.sin(z) / math.sqrt(m), math.cos(z) / math.sqrt(m)
    end
    return y
  end
  return kernel(cfg, features_of(phi, x.q), features_of(phi, x.k), x.v, function(den)
    return (den < 0 and -1 or 1) * math.max(math.abs(den), cfg.den_clamp)
  end)
end)

naive.performer = by_head(function(cfg, x, p, h)
  local W, D = p.features and p.features[h], #x.q[1]
  local function stabilised(den) return math.abs(den) <= cfg.stabilizer and den + 2 * cfg.stabilizer or den end
  if cfg.kernel == "relu" then
    local function phi(row)
      local y = {}
      for i = 1, W and #W or D do y[i] = math.max(W and dot(W[i], row) or row[i], 0) + cfg.feature_eps end
      return y
    end
    return kernel(cfg, features_of(phi, x.q), features_of(phi, x.k), x.v, stabilised)
  end
  local function logits(row)
    local b, z = {}, {}
    for i, a in ipairs(row) do b[i] = a * D ^ -0.25 end
    for i = 1, #W do z[i] = dot(W[i], b) end
    return z, dot(b, b) / 2
  end
  local function phi(row, top, eps)
    local z, half = logits(row)
    local y = {}
    for i = 1, #z do y[i] = (math.exp(z[i] - half - (top or math.max(unpack(z)))) + eps) / math.sqrt(#z) end
    return y
  end
  local fq = features_of(function(row) return phi(row, nil, cfg.feature_eps) end, x.q)
  local top, logit = -math.huge, {}
  for j, row in ipairs(x.k) do
    local z, half = logits(row)
    logit[j] = math.max(unpack(z)) - (cfg.causal and half or 0)
    top = math.max(top, logit[j])
  end
  if not cfg.causal then
    return kernel(cfg, fq, features_of(function(row) return phi(row, top, cfg.feature_eps) end, x.k), x.v, stabilised)
  end
  local y = {}                                   -- keys under the largest logit so far, for every query again
  top = -math.huge
  for i = 1, #x.q do
    top = math.max(top, logit[i])
    local seen = {}
    for j = 1, i do seen[j] = phi(x.k[j], top, 0) end
    y[i] = kernel({ causal = false }, { fq[i] }, seen, x.v, stabilised)[1]
  end
  return y
end)

-- ---- a few keys for all ----

local function product(a, b)
  local y = {}
  for i = 1, #a do
    y[i] = {}
    for j = 1, #b[1] do
      local sum = 0
      for n = 1, #b do sum = sum + a[i][n] * b[n][j] end
      y[i][j] = sum
    end
  end
  return y
end

naive.linformer = by_head(function(_, x, p)
  local E, F, N, few = p.e, p.f or p.e, #x.q, {}
  for name, m in pairs { k = E, v = F } do
    local cut = {}
    for r = 1, #m do cut[r] = { unpack(m[r], 1, N) } end
    few[name] = product(cut, x[name])
  end
  return softmax(x.q, few.k, few.v, function() return true end)
end)

naive.nystromformer = by_head(function(cfg, x, p, h)
  local N, m, D = #x.q, cfg.landmarks, #x.q[1]
  local scale = D ^ -0.5
  local function means(rows)
    local y = {}
    for u = 1, m do
      y[u] = {}
      for d = 1, D do
        local sum = 0
        for n = (u - 1) * N / m + 1, u * N / m do sum = sum + rows[n][d] end
        y[u][d] = sum * m / N
      end
    end
    return y
  end
  local function identity(n, value)
    local y = {}
    for i = 1, n do
      y[i] = {}
      for j = 1, n do y[i][j] = i == j and (value or 1) or 0 end
    end
    return y
  end
  local function everything() return true end
  local function attention(a, b) return softmax(a, b, identity(#b), everything, scale) end
  local ql, kl = means(x.q), means(x.k)
  local A, largest = attention(ql, kl), 0
  for j = 1, m do
    local sum = 0
    for i = 1, m do sum = sum + A[i][j] end
    largest = math.max(largest, sum)
  end
  local Z = {}
  for i = 1, m do
    Z[i] = {}
    for j = 1, m do Z[i][j] = A[j][i] / largest end
  end
  local function less(value, M)                  -- value*I - M
    local y = identity(m, value)
    for i = 1, m do for j = 1, m do y[i][j] = y[i][j] - M[i][j] end end
    return y
  end
  for _ = 1, cfg.iterations do
    local AZ = product(A, Z)
    Z = product(Z, less(13, product(AZ, less(15, product(AZ, less(7, AZ))))))
    for i = 1, m do for j = 1, m do Z[i][j] = Z[i][j] / 4 end end
  end
  local y = product(product(attention(x.q, kl), Z), product(attention(ql, x.k), x.v))
  for t = 1, N do
    for j = 0, cfg.conv_kernel - 1 do
      local row = x.v[t + j - math.floor(cfg.conv_kernel / 2)]
      for d = 1, row and D or 0 do y[t][d] = y[t][d] + p.conv[h][j + 1] * row[d] end
    end
  end
  return y
end)

return naive
