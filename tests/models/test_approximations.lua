-- test_approximations.lua -- what stands in for the matrix of gated linear attention: random signs, right on average;
-- low rank, exact where the rank suffices, else the nearest, with gradients that hold the kept subspace constant.
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local cores = require "mneme.models.cores"
local mn = require "mneme"
local ops = mn.ops

-- ---- inputs of the ops ----

local function uniform(lo, hi, stream, ...)
  local x = mn.tensor { shape = { ... }, grad = true }
  require("mneme.base.engine").C.mn_random_uniform(5, stream, 3, x:data(), x:size())
  for i = 0, x:size() - 1 do x:data()[i] = lo + (hi - lo) * x:data()[i] end
  return x
end

-- q, k, v and gates of one kind; features are positive, so that s.q is.
local function inputs(T, B, H, V, K, gate, eps)
  local x = { q = uniform(0.1, 1.5, 1, T, B, H, K), k = uniform(0.1, 1.5, 2, T, B, H, K),
              v = uniform(-1, 1, 3, T, B, H, V), eps = eps or 0.1 }
  if gate == "elementwise" then
    x.beta, x.gamma = uniform(0.05, 0.6, 4, T, B, H, V), uniform(0.05, 0.6, 5, T, B, H, K)
  elseif gate == "scalar" then
    x.beta = uniform(0.05, 0.6, 4, T, B, H, 1)
  end
  return x
end

local function with(x, more)
  local out = {}
  for _, set in ipairs { x, more } do for key, value in pairs(set) do out[key] = value end end
  return out
end

-- ---- random signs ----

local T, B, H, V, K = 14, 2, 2, 3, 4

local function signed(x, r, seed, more)
  return mn.no_grad(function()
    return mn.keep((ops.agalite(with(with(x, more or {}), { form = "random_sign", r = r, seed = seed, normalise = false,
                                                             tick = mn.tensor { shape = { B } } }))))
  end)
end

local function exact(x)
  return mn.no_grad(function() return mn.keep((ops.linear_attention(with(x, { normalise = false })))) end)
end

-- Mean and standard error of every number of y over the seeds 1 .. n.
local function moments(x, r, n)
  local sum, squares, size = {}, {}, T * B * H * V
  for i = 1, size do sum[i], squares[i] = 0, 0 end
  for seed = 1, n do
    local y = signed(x, r, seed)
    for i = 1, size do
      local value = y:data()[i - 1]
      sum[i], squares[i] = sum[i] + value, squares[i] + value ^ 2
    end
  end
  for i = 1, size do
    sum[i] = sum[i] / n
    squares[i] = math.sqrt(math.max(0, squares[i] / n - sum[i] ^ 2) / (n - 1))
  end
  return sum, squares
end

t.test("random signs: the numerator is right on average, and the closer the more channels there are", function()
  local x = inputs(T, B, H, V, K, "elementwise")
  local want, spread = exact(x), {}
  for _, r in ipairs { 1, 16 } do
    local mean, err = moments(x, r, 400)
    local worst, squares, count, total = 0, 0, 0, 0
    for i = 1, #mean do
      total = total + err[i] ^ 2
      if err[i] > 1e-6 then                  -- a first step has one token and no error
        local z = (mean[i] - want:data()[i - 1]) / err[i]
        worst, squares, count = t.larger(worst, math.abs(z)), squares + z * z, count + 1
      else
        t.near(mean[i], want:data()[i - 1], 1e-5)
      end
    end
    t.ok(count > 0.8 * #mean, "nothing varies")
    t.ok(worst < 4.5, ("r = %d: a mean is %.2f standard errors off"):format(r, worst))
    t.ok(squares / count > 0.5 and squares / count < 1.6, ("r = %d: mean square of z is %.2f"):format(r, squares / count))
    spread[r] = math.sqrt(total)
  end
  t.near(spread[1] / spread[16], 4, 0.4, "sixteen times the channels, a quarter of the error")
end)

t.test("random signs: one step is exact, and y is the numerator over den(s.q)", function()
  local x = inputs(1, B, H, V, K, "elementwise")
  local function read(op, more) return mn.no_grad(function() return mn.keep((op(with(x, more)))) end) end
  local y = read(ops.agalite, { form = "random_sign", r = 5, tick = mn.tensor { shape = { B } } })
  t.ok(core_rig.apart(y, read(ops.linear_attention, {})) < 1e-6)
end)

t.test("random signs are a function of seed, copy and tick; each channel has its own", function()
  local x = inputs(T, B, H, V, K, "none")
  for _, name in ipairs { "q", "k", "v" } do             -- both copies see the same
    local p, row = x[name]:data(), x[name]:size() / (T * B)
    for step = 0, T - 1 do for i = 0, row - 1 do p[(2 * step + 1) * row + i] = p[2 * step * row + i] end end
  end
  local y = signed(x, 3, 1)
  t.ok(core_rig.bytes(y) == core_rig.bytes(signed(x, 3, 1)))
  t.ok(core_rig.apart(y, signed(x, 3, 2)) > 0.1, "seeds")
  local row, apart = H * V, 0
  for i = 0, row - 1 do apart = t.larger(apart, math.abs(y:data()[(T - 1) * 2 * row + i] - y:data()[((T - 1) * 2 + 1) * row + i])) end
  t.ok(apart > 0.1, "copies")
  -- 300 channels of one token hold its key 300 times, with their signs.
  local one = inputs(1, 1, 1, 1, 1, "none")
  local _, vs = ops.agalite(with(one, { form = "random_sign", r = 300, tick = mn.tensor { shape = { 1 } } }))
  local ups, changes = 0, 0
  for m = 0, 299 do
    t.near(math.abs(vs:data()[m]), math.abs(one.v:data()[0]), 0)
    if vs:data()[m] > 0 then ups = ups + 1 end
    if m > 0 and vs:data()[m] ~= vs:data()[m - 1] then changes = changes + 1 end
  end
  t.ok(math.abs(ups - 150) < 40 and math.abs(changes - 150) < 40, ("%d ups, %d changes"):format(ups, changes))
  mn.clear_tape()
end)

-- ---- low rank, against matrices in double ----

local function matrix(n, m) local A = {} for i = 1, n do A[i] = {} for j = 1, m do A[i][j] = 0 end end return A end

local function product(A, Bt, transposed)      -- A B, or A B^T
  local out = matrix(#A, transposed and #Bt or #Bt[1])
  for i = 1, #A do
    for j = 1, #out[1] do
      local sum = 0
      for k = 1, #A[1] do sum = sum + A[i][k] * (transposed and Bt[j][k] or Bt[k][j]) end
      out[i][j] = sum
    end
  end
  return out
end

local function transpose(A)
  local out = matrix(#A[1], #A)
  for i = 1, #A do for j = 1, #A[1] do out[j][i] = A[i][j] end end
  return out
end

-- Eigenvalues and vectors (columns) of a symmetric matrix, by Jacobi's rotations.
local function eigen(A)
  local n = #A
  local E, S = matrix(n, n), matrix(n, n)
  for i = 1, n do E[i][i] = 1 for j = 1, n do S[i][j] = A[i][j] end end
  for _ = 1, 30 do
    for p = 1, n - 1 do
      for q = p + 1, n do
        if math.abs(S[p][q]) > 1e-300 then
          local theta = 0.5 * math.atan2(2 * S[p][q], S[q][q] - S[p][p])
          local c, s = math.cos(theta), math.sin(theta)
          for _, M in ipairs { S, E } do
            for i = 1, n do M[i][p], M[i][q] = c * M[i][p] - s * M[i][q], s * M[i][p] + c * M[i][q] end
          end
          for i = 1, n do S[p][i], S[q][i] = c * S[p][i] - s * S[q][i], s * S[p][i] + c * S[q][i] end
        end
      end
    end
  end
  return S, E
end

-- 1 - P, for the projector P onto the r leading left singular directions of C; and the r-th and next singular value.
local function discarding(C, r)
  local S, E = eigen(product(C, C, true))
  local order, out = {}, matrix(#C, #C)
  for i = 1, #C do order[i] = i end
  table.sort(order, function(a, b) return S[a][a] > S[b][b] end)
  for place = r + 1, #C do
    local k = order[place]
    for i = 1, #C do for j = 1, #C do out[i][j] = out[i][j] + E[i][k] * E[j][k] end end
  end
  return out
end

-- y of all steps of one copy and head, and U W^T at the end.  cuts[t]: what the base run discards, found where absent.
local function low_rank(x, size, r, cuts, head)
  local C, s, y = matrix(size.V, size.K), {}, {}
  for j = 1, size.K do
    s[j] = x.s and x.s[head * size.K + j] or 0
    for i = 1, size.V do
      for c = 1, x.U and r or 0 do C[i][j] = C[i][j] + x.U[(head * size.V + i - 1) * r + c] * x.W[(head * size.K + j - 1) * r + c] end
    end
  end
  for step = 0, size.T - 1 do
    local token, z = step * size.heads + head, 0
    local fresh = x.done and x.done[step * size.B + math.floor(head / size.H) + 1] == 1
    for j = 1, size.K do
      local g = x.gamma and x.gamma[token * size.K + j] or x.beta and x.scalar and x.beta[token + 1]
      local k = x.k[token * size.K + j] * (g or 1)
      s[j] = (fresh and 0 or s[j]) * (1 - (g or 0)) + k
      z = z + s[j] * x.q[token * size.K + j]
      for i = 1, size.V do
        local b = x.beta and not x.scalar and x.beta[token * size.V + i]
        C[i][j] = (fresh and 0 or C[i][j]) * (1 - (b or 0)) * (1 - (g or 0)) + (b or 1) * x.v[token * size.V + i] * k
      end
    end
    local at = head * size.T + step + 1
    if not cuts[at] then cuts[at] = { discarding(C, r), discarding(transpose(C), r) } end
    local corner = product(product(cuts[at][1], C), cuts[at][2])
    for i = 1, size.V do
      local sum = 0
      for j = 1, size.K do
        C[i][j] = C[i][j] - corner[i][j]
        sum = sum + C[i][j] * x.q[token * size.K + j]
      end
      y[step * size.V + i] = sum / (z + x.eps)
    end
  end
  return y, C
end

-- Numbers of the tensors among a call's arguments, from 1.
local function numbers(x, more)
  local out = with(x, more or {})
  for name, value in pairs(out) do
    if mn.is_tensor(value) then
      out[name] = {}
      for i = 0, value:size() - 1 do out[name][i + 1] = value:data()[i] end
    end
  end
  return out
end

local function cotangent(i) return ((i * 37 + 11) % 19 - 9) / 9 end

-- The op against the reference: y, the product of the final factors, gradients of sum(cotangent * y).
local function check_low_rank(size, r, gate, state, done)
  local T1, B1, H1, V1, K1 = size.T, size.B, size.H, size.V, size.K
  size.heads = B1 * H1
  local x = inputs(T1, B1, H1, V1, K1, gate)
  if state then
    x.U, x.W, x.s = uniform(-1, 1, 6, B1, H1, V1, r), uniform(-1, 1, 7, B1, H1, K1, r), uniform(0.5, 1, 8, B1, H1, K1)
  end
  x.done = done and core_rig.done(T1, B1, done)
  local y, U, W = ops.low_rank_attention(with(x, { r = r }))
  local weights = mn.tensor { shape = y:shape() }
  for i = 0, weights:size() - 1 do weights:data()[i] = cotangent(i) end
  local got, factors = numbers { y = y }.y, numbers { U = U, W = W }
  ;(y * weights):sum():backward()
  local base, cuts = numbers(x, { scalar = gate == "scalar" }), {}

  local function loss(compare)
    local total = 0
    for head = 0, size.heads - 1 do
      local want, C = low_rank(base, size, r, cuts, head)
      for step = 0, T1 - 1 do
        for i = 1, V1 do
          local at = (step * size.heads + head) * V1 + i
          total = total + cotangent(at - 1) * want[step * V1 + i]
          if compare then t.near(got[at], want[step * V1 + i], 2e-5, ("y[%d]"):format(at)) end
        end
      end
      for i = 1, compare and V1 or 0 do
        for j = 1, K1 do
          local sum = 0
          for c = 1, r do sum = sum + factors.U[(head * V1 + i - 1) * r + c] * factors.W[(head * K1 + j - 1) * r + c] end
          t.near(sum, C[i][j], 2e-5, "the final matrix")
        end
      end
    end
    return total
  end
  loss(true)
  for name, leaf in pairs(x) do
    if mn.is_tensor(leaf) and name ~= "done" then
      local grad, values, n, scale = leaf:grad_data(), base[name], leaf:size(), 1e-2
      for i = 0, n - 1 do scale = math.max(scale, math.abs(grad[i])) end
      for try = 0, 9 do
        local i, h = (try * 7919 + 3) % n + 1, 1e-5
        local old = values[i]
        values[i] = old + h
        local up = loss()
        values[i] = old - h
        local down = loss()
        values[i] = old
        t.near(grad[i - 1], (up - down) / (2 * h), 3e-4 * scale, ("gradient of %s[%d]"):format(name, i - 1))
      end
    end
  end
  mn.clear_tape()
end

t.test("svd: the nearest matrix of rank r, and its gradient with the kept subspace constant", function()
  check_low_rank({ T = 9, B = 1, H = 2, V = 4, K = 5 }, 2, "elementwise")
  check_low_rank({ T = 18, B = 2, H = 1, V = 5, K = 3 }, 1, "elementwise", true, { { 3, 0 }, { 9, 1 } })
  check_low_rank({ T = 7, B = 1, H = 1, V = 3, K = 6 }, 2, "scalar", true)
  check_low_rank({ T = 6, B = 1, H = 1, V = 5, K = 5 }, 3, "none", true, { { 0 } })
end)

-- ---- low rank, where it is exact ----

-- y and all gradients of an op, by name.
local function results(op, x)
  for _, leaf in pairs(x) do if mn.is_tensor(leaf) and leaf:wants_grad() then leaf:zero_grad() end end
  local y = op(x)
  local weights = mn.tensor { shape = y:shape() }
  for i = 0, weights:size() - 1 do weights:data()[i] = cotangent(i) end
  local out = { y = mn.keep(y) }
  ;(y * weights):sum():backward()
  for name, leaf in pairs(x) do
    if mn.is_tensor(leaf) and leaf:wants_grad() then
      out[name] = mn.tensor { shape = leaf:shape() }
      for i = 0, leaf:size() - 1 do out[name]:data()[i] = leaf:grad_data()[i] end
    end
  end
  mn.clear_tape()
  return out
end

t.test("svd with r >= min(T, V, K) is the whole matrix, gradients too", function()
  for _, case in ipairs {
    { T = 20, V = 7, K = 11, r = 20 }, { T = 40, V = 4, K = 11, r = 4 }, { T = 40, V = 9, K = 3, r = 3 },
    { T = 33, V = 3, K = 3, r = 10 }, { T = 50, V = 16, K = 32, r = 16 },
  } do
    for _, gate in ipairs { "elementwise", "scalar", "none" } do
      local x = inputs(case.T, 2, 1, case.V, case.K, gate)
      x.done = core_rig.done(case.T, 2, { { 6, 0 }, { 17, 1 }, { 18, 1 } })
      local want = results(ops.linear_attention, x)
      local got = results(ops.low_rank_attention, with(x, { r = case.r }))
      for name, tensor in pairs(want) do
        local tolerance = name == "y" and 1e-5 or 2e-4
        local apart = core_rig.apart(got[name], tensor)
        t.ok(apart <= tolerance, ("T=%d V=%d K=%d r=%d, gate %s: %s is %g off"):format(case.T, case.V, case.K, case.r, gate, name, apart))
      end
    end
  end
end)

t.test("svd as a core is galite where the rank suffices", function()
  for _, gate in ipairs { "outer", "elementwise", "none" } do
    local x, done = core_rig.normal({ 30, 3, 5 }, 1), core_rig.done(30, 3, { { 4, 0 }, { 16 }, { 21, 2 } })
    local y = core_rig.run(core_rig.build { "galite", gate = gate, eps = 1e-2 }, x, done)
    local low = core_rig.run(core_rig.build { "galite", gate = gate, eps = 1e-2, approximation = "svd", r = 4 }, x, done)
    t.ok(core_rig.apart(low, y) < 1e-5, gate .. ": " .. core_rig.apart(low, y))
  end
end)

-- ---- low rank, where there is little to decompose ----

t.test("svd: columns are orthogonal, share the singular values, and stand in falling order", function()
  local x, r = inputs(25, 1, 1, 6, 9, "elementwise"), 3
  local _, U, W = ops.low_rank_attention(with(x, { r = r }))
  local f, last = numbers { U = U, W = W }, math.huge
  for i = 1, r do
    for j = 1, i do
      local uu, ww = 0, 0
      for k = 0, 5 do uu = uu + f.U[k * r + i] * f.U[k * r + j] end
      for k = 0, 8 do ww = ww + f.W[k * r + i] * f.W[k * r + j] end
      if i == j then
        t.near(uu, ww, 1e-5)
        t.ok(uu < last and uu > 0, "order")
        last = uu
      else
        t.near(uu, 0, 1e-5)
        t.near(ww, 0, 1e-5)
      end
    end
  end
  mn.clear_tape()
end)

t.test("svd: zeros, repetitions, gates at their ends and cancellation are nothing special", function()
  local function fill(value) return function(x) x:fill(value) end end
  local function some_rows(every, value)
    return function(x)
      local row = x:size() / x:shape()[1]
      for i = 0, x:size() - 1 do if math.floor(i / row) % every == 0 then x:data()[i] = value end end
    end
  end
  local function first_row(x)
    local row = x:size() / x:shape()[1]
    for i = row, x:size() - 1 do x:data()[i] = x:data()[i % row] end
  end
  for name, change in pairs {
    ["no keys"] = { k = fill(0) }, ["no values"] = { v = fill(0) }, ["nothing at all"] = { k = fill(0), v = fill(0) },
    ["some keys are zero"] = { k = some_rows(2, 0) }, ["some values are zero"] = { v = some_rows(3, 0) },
    ["always the same token"] = { k = first_row, v = first_row }, ["always the same key"] = { k = first_row },
    ["open gates"] = { beta = fill(1), gamma = fill(1) }, ["closed gates"] = { beta = fill(0), gamma = fill(0) },
    ["gates at both ends"] = { beta = some_rows(2, 1), gamma = some_rows(3, 0) },
    ["gates that hardly open"] = { beta = fill(1e-6), gamma = fill(1e-40) },
    ["tiny"] = { k = fill(1e-30), v = fill(1e-30) }, ["denormal"] = { k = fill(1e-42), v = fill(-1e-42) },
    ["huge"] = { k = fill(1e15), v = some_rows(2, -1e15) },
  } do
    for _, r in ipairs { 1, 4 } do
      local x = inputs(40, 2, 1, 4, 6, "elementwise", 0.5)
      x.done = core_rig.done(40, 2, { { 20, 1 } })
      for key, f in pairs(change) do f(x[key]) end
      local got, want = results(ops.low_rank_attention, with(x, { r = r })), results(ops.linear_attention, x)
      for key, tensor in pairs(got) do t.ok(core_rig.finite(tensor), ("%s, r = %d: %s is not finite"):format(name, r, key)) end
      if r == 4 then t.ok(core_rig.apart(got.y, want.y) < 2e-5, ("%s: y is %g off"):format(name, core_rig.apart(got.y, want.y))) end
    end
  end
end)

t.test("settings that make no sense are refused, and why is said", function()
  for _, case in ipairs {
    { { decay = "joint", approximation = "svd" }, "decay=joint has no form of low rank" },
    { { decay = "joint", approximation = "random_sign" }, "decay=joint has no form with random signs" },
    { { approximation = "svd", form = "paper" }, "it belongs to approximation=cos" },
    { { approximation = "random_sign", form = "cossin" }, "it belongs to approximation=cos" },
    { { approximation = "random_sign", r = 0 }, "r = 0" }, { { approximation = "svd", r = 300 }, "r = 300, expected at most 256" },
    { { approximation = "random_sign", gate = "scalar" }, "needs a decay of values and one of keys" },
    { { approximation = "svd", gate = "mega" }, "but gate=mega has none" },
    { { approximation = "svd", r = 1.5 }, "r = 1.5" },
  } do
    t.raises(function() cores.new("galite", case[1]) end, case[2])
  end
  local x = inputs(2, 1, 1, 3, 4, "none")
  t.fails(function() ops.low_rank_attention(with(x, { r = 1000 })) end)
  t.fails(function() ops.low_rank_attention(with(x, { r = 2, U = mn.tensor { shape = { 1, 1, 3, 3 } } })) end)
end)
