-- test_softmax_attention.lua -- the op `attention` against two loops in double, with windows, positions, resets,
-- blocked slots and sizes that divide nothing; numbers that must not come through; and what the cores that are
-- built on it see.
local t = require "tests.harness"
local contract_rig = require "mneme.models.contract_rig"
local engine = require "mneme.base.engine"
local mn = require "mneme"
local cores = require "mneme.models.cores"
local C, ops = engine.C, mn.ops

local streams = 0
local function random(...)
  local leaf = mn.tensor { shape = { ... }, grad = true }
  streams = streams + 1
  C.mn_random_normal(5, streams, 3, leaf:data(), leaf:size())
  return leaf
end

-- Inputs of a case { T, B, H, K, V, M = 0, window = -1, xl, resets, blocked = "first" | "holes" | "all" }.
local function inputs(case)
  local T, B, H, K, V, M = case.T, case.B, case.H, case.K, case.V, case.M or 0
  local a = { q = random(T, B, H, K), k = random(T, B, H, K), v = random(T, B, H, V), window = case.window or -1 }
  if M > 0 then
    a.mk, a.mv, a.mask = random(M, B, H, K), random(M, B, H, V), mn.tensor { shape = { M, B } }
    for i = 0, M * B - 1 do
      local blocked = case.blocked == "all" or case.blocked == "first" and i < B * M / 3 or case.blocked == "holes" and i * 7 % 3 == 0
      a.mask:data()[i] = blocked and 1 or 0
    end
  end
  if case.xl then a.u, a.w, a.r = random(H, K), random(H, K), random(M + T, H, K) end
  if case.resets then
    a.done = mn.tensor { shape = { T, B }, dtype = "u8" }
    for i = 0, T * B - 1 do a.done:data()[i] = i * 13 % 29 == 5 and 1 or 0 end
  end
  return a
end

local function doubles(leaf)
  if not leaf then return end
  local list, p = {}, leaf:data()
  for i = 0, leaf:size() - 1 do list[i] = tonumber(p[i]) end
  return list
end

-- Every input's numbers in double.
local function in_double(a)
  local d = {}
  for name, value in pairs(a) do d[name] = mn.is_tensor(value) and doubles(value) or value end
  return d
end

-- y from the equations, in double: a list from 0.
local function naive(case, a)
  local T, B, H, K, V, M = case.T, case.B, case.H, case.K, case.V, case.M or 0
  local y = {}
  for b = 0, B - 1 do
    for h = 0, H - 1 do
      local start = -1
      for i = 0, T - 1 do
        if a.done and a.done[i * B + b] == 1 then start = i end
        local score, top = {}, -math.huge
        for j = 0, M + i do
          local seen = j < M and start < 0 and a.mask[j * B + b] == 0 or j >= M and j - M >= start
          if seen and (a.window < 0 or M + i - j <= a.window) then
            local s = 0
            for d = 0, K - 1 do
              local q = a.q[((i * B + b) * H + h) * K + d]
              local k = j < M and a.mk[((j * B + b) * H + h) * K + d] or a.k[(((j - M) * B + b) * H + h) * K + d]
              s = s + (q + (a.u and a.u[h * K + d] or 0)) * k
              if a.r then s = s + (q + a.w[h * K + d]) * a.r[((M + i - j) * H + h) * K + d] end
            end
            score[j] = s / math.sqrt(K)
            top = math.max(top, score[j])
          end
        end
        local sum = 0
        for j, s in pairs(score) do score[j] = math.exp(s - top) sum = sum + score[j] end
        for e = 0, V - 1 do
          local total = 0
          for j, p in pairs(score) do
            total = total + p * (j < M and a.mv[((j * B + b) * H + h) * V + e] or a.v[(((j - M) * B + b) * H + h) * V + e])
          end
          y[((i * B + b) * H + h) * V + e] = total / sum
        end
      end
    end
  end
  return y
end

-- Fewer than eight rows go one by one, more in blocks of 32.
local cases = {
  { T = 1, B = 2, H = 1, K = 3, V = 2 },
  { T = 6, B = 2, H = 3, K = 16, V = 16, M = 5, window = 4, blocked = "holes", resets = true },
  { T = 7, B = 1, H = 4, K = 20, V = 40, M = 33, xl = true, blocked = "first" },
  { T = 8, B = 1, H = 2, K = 5, V = 7, M = 1, xl = true },
  { T = 33, B = 2, H = 2, K = 16, V = 16, xl = true, resets = true },
  { T = 40, B = 1, H = 2, K = 4, V = 33, M = 3, window = 0 },
  { T = 70, B = 2, H = 1, K = 33, V = 16, M = 37, window = 20, xl = true, blocked = "holes", resets = true },
  { T = 65, B = 2, H = 2, K = 7, V = 5, M = 40, blocked = "first", resets = true },
  { T = 12, B = 1, H = 1, K = 64, V = 64, M = 20, blocked = "all" },
  { T = 3, B = 1, H = 2, K = 64, V = 64, M = 3000, xl = true, blocked = "first" },
  { T = 9, B = 1, H = 1, K = 16, V = 16, M = 3000, window = 2990 },
}

local function named(case)
  return ("T=%d B=%d H=%d K=%d V=%d M=%d%s%s%s%s"):format(case.T, case.B, case.H, case.K, case.V, case.M or 0,
    case.window and " window=" .. case.window or "", case.xl and " with positions" or "", case.resets and " resets" or "",
    case.blocked and " blocked: " .. case.blocked or "")
end

for _, case in ipairs(cases) do
  t.test("attention is its two loops: " .. named(case), function()
    local a = inputs(case)
    local want, y = naive(case, in_double(a)), (ops.attention(a))
    for i = 0, y:size() - 1 do t.near(y:data()[i], want[i], 4e-6, "y " .. i) end
    mn.clear_tape()
  end)
end

-- ---- gradients of blocks ----

local function weighted(y)
  local total = 0
  for i, v in pairs(y) do total = total + contract_rig.weight(i) * v end
  return total
end

t.test("gradients over several blocks are slopes of the two loops", function()
  for _, case in ipairs { cases[5], cases[7], cases[8], cases[3] } do
    local a = inputs(case)
    local y = (ops.attention(a))
    local w = mn.tensor { shape = y:shape() }
    for i = 0, w:size() - 1 do w:data()[i] = contract_rig.weight(i) end
    ;(y * w):sum():backward()
    local exact = in_double(a)
    for name, leaf in pairs(a) do
      if mn.is_tensor(leaf) and name ~= "mask" and name ~= "done" then
        local grad, rest, direction, slope, size = leaf:grad_data(), exact[name], doubles(random(leaf:size())), 0, 1
        for i = 0, leaf:size() - 1 do
          slope = slope + direction[i] * grad[i]
          size = size + math.abs(direction[i] * grad[i])
        end
        local ends = {}
        for _, h in ipairs { 1e-5, -1e-5 } do
          exact[name] = {}
          for i = 0, leaf:size() - 1 do exact[name][i] = rest[i] + h * direction[i] end
          ends[#ends + 1] = weighted(naive(case, exact))
        end
        exact[name] = rest
        t.near(slope, (ends[1] - ends[2]) / 2e-5, 2e-6 * size, named(case) .. ": " .. name)
      end
    end
    mn.clear_tape()
  end
end)

-- ---- numbers that must not come through ----

local function finite(leaf, what, gradient)
  local p = gradient and leaf:grad_data() or leaf:data()
  for i = 0, leaf:size() - 1 do t.ok(p[i] - p[i] == 0, what .. " is not finite at " .. i) end
end

t.test("equal scores give the mean; one large score gives its value", function()
  for _, T in ipairs { 3, 40 } do
    local v = random(T, 1, 1, 2)
    local flat = mn.tensor { shape = { T, 1, 1, 3 } }
    local y, sum = (ops.attention { q = flat, k = random(T, 1, 1, 3), v = v }), 0
    for i = 0, T - 1 do
      sum = sum + v:data()[2 * i]
      t.near(y:data()[2 * i], sum / (i + 1), 1e-6)
    end
    local q, k = mn.tensor { shape = { T, 1, 1, 1 } }:fill(1), mn.tensor { shape = { T, 1, 1, 1 } }
    k:data()[1] = 100
    y = (ops.attention { q = q, k = k, v = v })
    for i = 1, T - 1 do t.near(y:data()[2 * i + 1], v:data()[3], 1e-6) end
  end
end)

t.test("huge scores, and scores beyond float32, leave finite numbers", function()
  for _, T in ipairs { 2, 40 } do
    for _, huge in ipairs { 1e15, 1e19, 3e38 } do
      local q, k, v = random(T, 1, 2, 1), random(T, 1, 2, 1), random(T, 1, 2, 3)
      for i = 0, q:size() - 1 do q:data()[i], k:data()[i] = (i % 3 - 1) * huge, (i % 5 - 2) * huge / 2 end
      local y = (ops.attention { q = q, k = k, v = v })
      finite(y, "y")
      if huge < 1e38 then                  -- beyond, a sum of slopes may itself be too large for float32
        y:sum():backward()
        for name, leaf in pairs { q = q, k = k, v = v } do finite(leaf, "gradient of " .. name, true) end
      end
      mn.clear_tape()
    end
  end
end)

t.test("what is blocked or dropped by a reset may hold NaN, forward and backward", function()
  for _, T in ipairs { 3, 40 } do
    for _, how in ipairs { "mask", "done" } do
      local case = { T = T, B = 1, H = 2, K = 4, V = 4, M = 6, xl = true, blocked = how == "mask" and "holes" or nil }
      local a = inputs(case)
      if how == "done" then
        a.done = mn.tensor { shape = { T, 1 }, dtype = "u8" }
        a.done:data()[0] = 1
      end
      local clean = contract_rig.bytes((ops.attention(a)))
      for m = 0, 5 do
        if how == "done" or a.mask:data()[m] ~= 0 then
          for i = 0, 7 do a.mk:data()[m * 8 + i], a.mv:data()[m * 8 + i] = 0 / 0, 1 / 0 end
        end
      end
      local y = (ops.attention(a))
      t.ok(contract_rig.bytes(y) == clean, "y changed")
      y:sum():backward()
      for _, name in ipairs { "q", "k", "v", "u", "w", "r", "mk", "mv" } do finite(a[name], name, true) end
      mn.clear_tape()
    end
  end
end)

t.test("attention: arguments that do not fit together", function()
  local function call(more, without)
    local a = inputs { T = 3, B = 1, H = 1, K = 2, V = 2, M = 2, xl = true }
    for _, name in ipairs(without) do a[name] = nil end
    for name, value in pairs(more) do a[name] = value end
    return function() ops.attention(a) end
  end
  t.fails(call({}, { "mv" }))
  t.fails(call({}, { "mk", "mv" }))
  t.fails(call({}, { "r" }))
  t.fails(call({ r = random(4, 1, 2) }, {}))
  t.fails(call({ window = 0.5 }, {}))
end)

-- ---- memories of the last rows ----

-- The last M of what was carried and rows 0 .. n-1, and which of them are blocked.
t.test("remember and its mask, read after any number of rows", function()
  local T, B, L, M, D = 5, 2, 2, 3, 2
  local x, done = mn.sequence { shape = { T, B, L * D } }, mn.sequence { shape = { T, B }, dtype = "u8" }
  local memory, mask = mn.tensor { shape = { L, M, B, D } }, mn.tensor { data = { { 1, 0 }, { 0, 0 }, { 0, 0 } } }
  for i = 0, x:size() - 1 do x:data()[i] = i end
  for i = 0, memory:size() - 1 do memory:data()[i] = -1 - i end
  done:data()[2 * B + 1] = 1
  local plan = mn.plan(function(...)
    local p, q, r, s = ...
    return p * 1, (ops.memory_push { x = p, memory = q }), (ops.memory_push_mask { x = p, mask = r, done = s })
  end)
  local _, after, after_mask = plan(x, memory, mask, done)
  for _, reads in ipairs { { 1, 2, 3, 4, 5 }, { 2, 5 }, { 4 } } do
    local n = 0
    for _, till in ipairs(reads) do
      plan:rows(n, till)
      n = till
      for m = 0, M - 1 do
        local row = m + n - M
        for b = 0, B - 1 do
          local blocked = (row < 0 and mask:at(m + n + 1, b + 1) == 1 or b == 1 and row < 2 and n > 2) and 1 or 0
          t.eq(after_mask:at(m + 1, b + 1), blocked, ("mask of slot %d, copy %d after %d rows"):format(m, b, n))
          for l = 0, L - 1 do
            local want = row < 0 and memory:at(l + 1, m + n + 1, b + 1, 1) or x:at(row + 1, b + 1, l * D + 1)
            t.eq(after:at(l + 1, m + 1, b + 1, 1), want)
          end
        end
      end
    end
  end
  plan:rows(0, 2)
  local kept = mn.keep(after)              -- a copy reads it too
  t.eq(kept:at(1, M, 1, 1), x:at(2, 1, 1))
  plan:rows(2, 3)
  local doubled = after * 2                -- and so does an op outside the plan
  t.eq(doubled:at(1, M, 1, 1), 2 * x:at(3, 1, 1))
  local other = mn.plan(function() return after * 3 end)
  local tripled = other()
  plan:rows(3, 4)
  other:run()                              -- and a plan that depends on it
  t.eq(tripled:at(1, M, 1, 1), 3 * x:at(4, 1, 1))
  mn.clear_tape()
end)

t.test("weights for people are worked out when somebody reads them, and at no other time", function()
  local T, B, H, K = 5, 2, 2, 3
  local function sequence() return mn.sequence { shape = { T, B, H, K } } end
  local q, k, memory = sequence(), sequence(), mn.tensor { shape = { 1, 2, B, H * K } }
  q:copy(contract_rig.normal({ T, B, H, K }, 1))
  k:copy(contract_rig.normal({ T, B, H, K }, 2))
  local plan = mn.plan(function(p, r, m)
    return p * 1, (ops.attention_weights { q = p, k = r, v = r }), (ops.memory_push { x = ops.reshape(r, { d0 = T, d1 = B, d2 = H * K }), memory = m })
  end)
  local _, weights, after = plan(q, k, memory)
  local p, one = weights:data(), 3 * T                 -- of one head
  plan:rows(0, 2)
  t.ok(after:at(1, 2, 1, 1) == k:at(2, 1, 1, 1) and p[3 * 2] ~= 0, "final states are read: the weights stay those of the whole")
  for rows = 2, 4 do
    if rows > 2 then plan:rows(rows - 1, rows) end
    t.ok(p == weights:data())
    for b = 0, B * H - 1 do
      local sum = 0
      for i = 0, T - 1 do
        t.eq(p[b * one + 3 * i + 1], i < rows and 1 or 0)
        sum = sum + p[b * one + 3 * i + 2]
      end
      t.near(sum, 1, 1e-6)
    end
  end
  plan:rows(4, 5)
  t.eq(p[3 * 4 + 1], 0, "nobody has read them")
  local other = mn.plan(function() return weights * 2 end)
  t.eq(other():data()[3 * 4 + 1], 2, "a plan that leans on them does")
  plan:rows(0, 1)
  other:run()
  t.eq(p[3 * 1 + 1], 0)
  mn.clear_tape()
end)

t.test("carried final states are the copies of kept ones, written over or not", function()
  local T, B, L, M, D = 4, 2, 2, 3, 2
  local x, done = mn.sequence { shape = { T, B, L * D } }, mn.sequence { shape = { T, B }, dtype = "u8" }
  for i = 0, x:size() - 1 do x:data()[i] = i end
  done:data()[B + 1] = 1
  for _, shared in ipairs { false, true } do                 -- where two final states read a leaf, neither may write over it
    local function states()
      local memory, mask = mn.tensor { shape = { L, M, B, D } }, mn.tensor { data = { { 1, 0 }, { 0, 0 }, { 0, 0 } } }
      for i = 0, memory:size() - 1 do memory:data()[i] = -1 - i end
      return { memory = memory, mask = mask, twice = shared and mn.tensor { shape = { L, M, B, D } } or nil }
    end
    local function stepped()
      local state = states()
      local plan = mn.plan(function(p, q, s)
        local function pushed() return (ops.memory_push { x = p, memory = q.memory }) end
        return p * 1, { memory = pushed(), mask = (ops.memory_push_mask { x = p, mask = q.mask, done = s }), twice = shared and pushed() or nil }
      end)
      local _, after = plan(x, state, done)
      return plan, state, after
    end
    local plan, state, after = stepped()
    local kept_plan, kept, kept_after = stepped()
    for _, rows in ipairs { 1, 2, T, 1 } do
      for _, each in ipairs { plan, kept_plan } do
        for row = 0, rows - 1 do each:rows(row, row + 1) end
      end
      if rows == 2 then after.mask:data() end                -- made already: nothing is left to write over
      plan:carry(after, state)
      mn.keep(kept_after, kept)
      for name, t_of in pairs(state) do
        for i = 0, t_of:size() - 1 do t.eq(t_of:data()[i], kept[name]:data()[i], ("%s[%d] after %d rows"):format(name, i, rows)) end
      end
      t.ok(not pcall(plan.rows, plan, rows, rows + 1), "rows begin again")
    end
  end
  mn.clear_tape()
end)

t.test("recall gives one level, zeros where a slot is closed, whatever it holds", function()
  local memory, mask = mn.tensor { shape = { 2, 2, 2, 1 } }, mn.tensor { data = { { 1, 0 }, { 0, 0 } } }
  for i = 0, 7 do memory:data()[i] = i + 1 end
  memory:data()[4] = 0 / 0
  local function numbers(y) return table.concat({ y:at(1, 1, 1), y:at(1, 2, 1), y:at(2, 1, 1), y:at(2, 2, 1) }, " ") end
  t.eq(numbers((ops.memory_read { memory = memory, mask = mask, level = 1 })), "0 6 7 8")
  local done = mn.tensor { data = { { 0, 1 }, { 1, 0 } }, dtype = "u8" }
  t.eq(numbers((ops.memory_read { memory = memory, mask = mask, level = 1, done = done })), "0 0 7 0")
  t.fails(function() ops.memory_read { memory = memory, mask = mask, level = 2 } end)
end)

-- ---- the cores ----

t.test("gtrxl has the published number of parameters; its idle biases have no gradient", function()
  t.eq(cores.new("gtrxl", {}):describe().parameters, 1584256)
  local c = contract_rig.build { "gtrxl", memory = 3 }
  c(contract_rig.normal({ 9, 2, c.config.d_in }, 1), nil, contract_rig.warm(c, 2)):sum():backward()
  for name, p in pairs(c:named_parameters()) do
    local idle, size = name:find "attn%.k%.bias" or name:find "attn%.pos%.bias", 0
    for i = 0, p:size() - 1 do size = size + math.abs(p:grad_data()[i]) end
    t.ok(idle and size == 0 or not idle and size > 0, name)
  end
  mn.clear_tape()
end)

t.test("settings that make no sense", function()
  t.raises(function() cores.new("gtrxl", { flow = "postnorm" }) end, "postnorm")
  t.fails(function() cores.new("gtrxl", { memory = 0 }) end)
  t.fails(function() cores.new("gtrxl", { d_model = 5 }) end)
  t.fails(function() cores.new("transformer", { memory = 2.5 }) end)
  t.raises(function() cores.new("transformer", { flow = "up" }) end, "up")
end)
