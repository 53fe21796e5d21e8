-- test_delta.lua -- the delta rule against its recurrence in double precision, where decays are 0, 1 or tiny and
-- around the sixteen tokens of a chunk; what it remembers; and what must not come back after a reset.
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local naive_laws = require "tests.support.naive_laws"
local mn = require "mneme"
local ops = mn.ops

local names = { "q", "k", "v", "write", "keep", "C", "s" }

-- Inputs of a call as leaves; keys of length about 1, so that nothing grows.
local function inputs(T, B, H, K, V, keep, keys)
  local P = (keys or 1) * H
  local function normal(shape, stream, scale)
    local x = core_rig.normal(shape, stream, true)
    for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] * (scale or 1) end
    return x
  end
  local function gate(stream, low, high, heads)
    local x = core_rig.normal({ T, B, heads }, stream, true)
    for i = 0, x:size() - 1 do x:data()[i] = low + (high - low) / (1 + math.exp(-x:data()[i])) end
    return x
  end
  local a = { q = normal({ T, B, H, K }, 1), k = normal({ T, B, P, K }, 2, K ^ -0.5), v = normal({ T, B, P, V }, 3),
              write = gate(4, 0, keys and 2 or 1, P), keep = gate(5, 0, 1, H), C = normal({ B, H, V, K }, 6), s = normal({ B, H, K }, 7) }
  for i = 0, a.keep:size() - 1 do a.keep:data()[i] = keep(i, a.keep:data()[i]) end
  return a
end

-- Numbers of leaves as Lua arrays from 0, in double.
local function numbers(a)
  local n = {}
  for _, name in ipairs(names) do
    n[name] = {}
    for i = 0, a[name]:size() - 1 do n[name][i] = a[name]:data()[i] end
  end
  return n
end

local function apply(a, done, how)
  local call = { done = done, erase = how.erase, normalise = how.normalise and 1 or 0, eps = how.eps }
  for _, name in ipairs(names) do call[name] = a[name] end
  return ops.delta_rule(call)
end

local function agree(what, got, want, n)
  local scale, worst = 1, 0
  for i = 0, n - 1 do scale = math.max(scale, math.abs(want[i])) end
  for i = 0, n - 1 do worst = math.max(worst, math.abs(got[i] - want[i]), got[i] ~= got[i] and 1 / 0 or 0) end
  t.ok(worst <= 1e-5 * scale, ("%s: apart by %.3g of %.3g"):format(what, worst, scale))
end

local decays = {
  ["all 0"] = function() return 0 end, ["all 1"] = function() return 1 end, ["all 1e-6"] = function() return 1e-6 end,
  ["between 0 and 1"] = function(_, x) return x end,
  ["of every kind"] = function(i, x) return ({ 0, 1, 1e-6, 1e-42, x })[i % 5 + 1] end,
}
local rules = { { erase = "before", normalise = true, eps = 30 }, { erase = "after", eps = 0 } }

for which, keep in pairs(decays) do
  t.test("the chunks are the recurrence: decays " .. which, function()
    for T, where in pairs { [1] = {}, [15] = { { 0 } }, [16] = { { 15 } }, [17] = { { 16, 1 } },
                            [37] = { { 5, 0 }, { 6, 0 }, { 16, 1 }, { 31 }, { 32, 0 } } } do
      local sizes, done = { T, 2, 2, 5, 3 }, core_rig.done(T, 2, where)
      for _, how in ipairs(rules) do
        local a = inputs(T, 2, 2, 5, 3, keep)
        local y, C, s = naive_laws.delta_rule(numbers(a), sizes, done, how)
        mn.no_grad(function()
          local got_y, got_C, got_s = apply(a, done, how)
          local what = ("T=%d erase=%s "):format(T, how.erase)
          agree(what .. "y", got_y:data(), y, got_y:size())
          agree(what .. "C", got_C:data(), C, got_C:size())
          agree(what .. "s", got_s:data(), s, got_s:size())
        end)
      end
    end
  end)
end

t.test("several keys a step: the recurrence, whole and by rows, whatever is cut", function()
  for keys, lengths in pairs { [2] = { 1, 7, 8, 9, 21 }, [3] = { 5, 6, 16 }, [5] = { 3, 4, 11 } } do
    for _, T in ipairs(lengths) do
      for _, how in ipairs(rules) do
        local B, H, K, V = 2, 2, 5, 3
        local done, a = core_rig.done(T, B, { { 0, 1 }, { T - 1 } }), inputs(T, B, H, K, V, decays["of every kind"], keys)
        local y, C, s = naive_laws.delta_rule(numbers(a), { T, B, H, K, V, keys }, done, how)
        local function compare(got_y, got_C, got_s, way)
          local what = ("%d keys, T=%d erase=%s %s: "):format(keys, T, how.erase, way)
          agree(what .. "y", got_y:data(), y, got_y:size())
          agree(what .. "C", got_C:data(), C, got_C:size())
          agree(what .. "s", got_s:data(), s, got_s:size())
        end
        local x = {}
        for _, name in ipairs { "q", "k", "v", "write", "keep" } do x[name] = mn.sequence { shape = a[name]:shape() }:copy(a[name]) end
        local flags = mn.sequence { shape = { T, B }, dtype = "u8" }:copy(done)
        local plan = mn.plan(function()
          return ops.delta_rule { q = x.q, k = x.k, v = x.v, write = x.write, keep = x.keep, done = flags, C = a.C, s = a.s, eps = how.eps,
            erase = how.erase, normalise = how.normalise and 1 or 0 }
        end)
        local got_y, got_C, got_s = plan()
        compare(got_y, got_C, got_s, "whole")
        for _, each in ipairs { 1, 3, 5 } do
          for from = 0, T - 1, each do plan:rows(from, math.min(from + each, T)) end
          compare(got_y, got_C, got_s, "by " .. each .. " rows")
        end
      end
    end
  end
end)

-- Loss of the recurrence in double: every output weighed.
local function loss(n, sizes, done, how)
  local total = 0
  for _, list in ipairs { naive_laws.delta_rule(n, sizes, done, how) } do
    for i = 0, #list do total = total + core_rig.weight(i) * list[i] end
  end
  return total
end

local function gradients_agree(which, keep, keys)
  t.test(("gradients are the recurrence's: decays %s, keys a step %d"):format(which, keys), function()
    local T, B, H, K, V = keys == 1 and 19 or 7, 1, 2, 3, 2
    local sizes, done = { T, B, H, K, V, keys }, core_rig.done(T, B, { { 4 }, { T - 2 } })
    for _, how in ipairs(rules) do
      local a = inputs(T, B, H, K, V, keep, keys > 1 and keys or nil)
      local n, total = numbers(a), nil
      for _, out in ipairs { apply(a, done, how) } do
        local w = mn.tensor { shape = out:shape() }
        for i = 0, w:size() - 1 do w:data()[i] = core_rig.weight(i) end
        total = total and total + (out * w):sum() or (out * w):sum()
      end
      total:backward()
      for _, name in ipairs(names) do
        local grad, scale = a[name]:grad_data(), 1
        for i = 0, a[name]:size() - 1 do scale = math.max(scale, math.abs(grad[i])) end
        for i = 0, a[name]:size() - 1, name == "C" and 1 or 5 do
          local x, h = n[name][i], 1e-4
          n[name][i] = x + h
          local up = loss(n, sizes, done, how)
          n[name][i] = x - h
          local slope = (up - loss(n, sizes, done, how)) / (2 * h)
          n[name][i] = x
          t.near(grad[i], slope, 2e-5 * scale, ("%s[%d], erase=%s"):format(name, i, how.erase))
        end
      end
      mn.clear_tape()
    end
  end)
end
for which, keep in pairs(decays) do for _, keys in ipairs { 1, 3 } do gradients_agree(which, keep, keys) end end

-- ---- what it remembers ----

-- Write one value under each of some keys; then ask for all of them, writing nothing.
local function store_and_ask(K, V, writes)
  local T, n = #writes + K, #writes
  local q, k, v = mn.tensor { shape = { T, 1, 1, K } }, mn.tensor { shape = { T, 1, 1, K } }, core_rig.normal({ T, 1, 1, V }, 3)
  local write = mn.tensor { shape = { T, 1, 1 } }
  for step, key in ipairs(writes) do k:data()[(step - 1) * K + key], write:data()[step - 1] = 1, 1 end
  for key = 0, K - 1 do q:data()[(n + key) * K + key] = 1 end
  local y = mn.no_grad(function() return mn.keep((ops.delta_rule { q = q, k = k, v = v, write = write, normalise = 0 })) end)
  return function(key, i) return y:data()[(n + key) * V + i] end, function(step, i) return v:data()[(step - 1) * V + i] end
end

t.test("K orthogonal keys are recalled exactly, and a key written again holds the new value alone", function()
  local K, V, writes = 24, 7, {}
  for key = 0, K - 1 do writes[key + 1] = key end
  local read, value = store_and_ask(K, V, writes)
  for key = 0, K - 1 do for i = 0, V - 1 do t.eq(read(key, i), value(key + 1, i), "key " .. key) end end
  for _, again in ipairs { 3, 20, 3 } do writes[#writes + 1] = again end
  read, value = store_and_ask(K, V, writes)
  local last = {}
  for step, key in ipairs(writes) do last[key] = step end
  for key = 0, K - 1 do for i = 0, V - 1 do t.near(read(key, i), value(last[key], i), 2e-7, "key " .. key) end end
end)

t.test("a key of zeros writes nothing and reads nothing; over its length it stays zero", function()
  local a = inputs(20, 1, 1, 4, 3, function() return 1 end)
  a.k:fill(0)
  mn.no_grad(function()
    local _, C = ops.delta_rule { q = a.q, k = a.k, v = a.v, write = a.write, C = a.C, normalise = 0 }
    for i = 0, C:size() - 1 do t.eq(C:data()[i], a.C:data()[i]) end
  end)
  for _, by in ipairs { "l2", "sum", "rms" } do
    for _, eps in ipairs { 0, 1e-6 } do
      a.k:zero_grad()
      local y = ops.normalise { x = a.k, by = by, eps = eps }
      ops.sum { x = y }:backward()
      for i = 0, y:size() - 1 do
        t.eq(y:data()[i], 0, by)
        t.ok(a.k:grad_data()[i] < 1.1e6 and a.k:grad_data()[i] >= 0, by .. ": gradient " .. a.k:grad_data()[i])
      end
      mn.clear_tape()
    end
  end
end)

t.test("rows of any size have length 1", function()
  for _, size in ipairs { 1e-38, 1e-30, 1e-19, 1, 1e19, 1e37 } do
    local x = mn.tensor { data = { { 3 * size, 4 * size } } }
    local y = ops.normalise { x = x, by = "l2", eps = 0 }
    t.near(y:data()[0], 0.6, 1e-6, size)
    t.near(y:data()[1], 0.8, 1e-6, size)
  end
end)

t.test("10,000 steps stay finite, with nothing forgotten and everything overwritten", function()
  local T, K, V = 10000, 8, 4
  for _, scale in ipairs { 0.5, 1 } do
    local a = inputs(T, 1, 1, K, V, function() return 1 end)
    a.write:fill(scale)
    local most, y, C = 0, nil, nil
    mn.no_grad(function()
      local key = ops.normalise { x = a.k, by = "l2", eps = 0 }
      y, C = ops.delta_rule { q = key, k = key, v = a.v, write = a.write, C = a.C, normalise = 0 }
      for i = 0, C:size() - 1 do most = math.max(most, math.abs(C:data()[i])) end
      t.ok(core_rig.finite(y) and core_rig.finite(C) and most < 1000, "C grows to " .. most)
      -- What has just been written under a key of length 1 with write = 1 is what is read.
      if scale == 1 then for i = 0, y:size() - 1 do t.near(y:data()[i], a.v:data()[i], 1e-3) end end
    end)
  end
end)

-- ---- resets ----

t.test("what a reset drops may be infinite or no number", function()
  local T, B, H, K, V = 35, 1, 1, 4, 3
  for _, poison in ipairs { 0 / 0, 1 / 0 } do
    for _, at in ipairs { 0, 1, 7, 16, 34 } do
      local how = { erase = "before", normalise = true, eps = 30 }
      local done, a = core_rig.done(T, B, { { at } }), inputs(T, B, H, K, V, function(_, x) return x end)
      local want, want_C = apply(a, done, how)
      local y, C = mn.keep(want), mn.keep(want_C)
      mn.clear_tape()
      a.C:fill(poison)
      a.s:fill(poison)
      local function check(got, after, what)
        for i = at * V, T * V - 1 do t.near(got:data()[i], y:data()[i], 1e-5, what) end
        for i = 0, C:size() - 1 do t.near(after:data()[i], C:data()[i], 1e-5, what .. ", state") end
      end
      local got, after = apply(a, done, how)
      check(got, after, "whole, reset at " .. at)
      ops.sum { x = got:slice { from = at } }:backward()
      for _, name in ipairs { "q", "k", "v", "write", "keep" } do
        local row = a[name]:size() / T
        for i = at * row, T * row - 1 do t.ok(a[name]:grad_data()[i] == a[name]:grad_data()[i], name .. ": no number") end
      end
      for i = 0, at == 0 and a.C:size() - 1 or -1 do t.eq(a.C:grad_data()[i], 0) end
      mn.clear_tape()
      local x = {}
      for _, name in ipairs { "q", "k", "v", "write", "keep" } do x[name] = mn.sequence { shape = a[name]:shape() }:copy(a[name]) end
      local flags = mn.sequence { shape = { T, B }, dtype = "u8" }:copy(done)
      local plan = mn.plan(function()
        return ops.delta_rule { q = x.q, k = x.k, v = x.v, write = x.write, keep = x.keep, done = flags, C = a.C, s = a.s, eps = 30 }
      end)
      got, after = plan()
      for step = 0, T - 1 do plan:rows(step, step + 1) end
      check(got, after, "row by row, reset at " .. at)
    end
  end
end)

t.test("a short convolution sees the last inputs of its episode", function()
  local T, B, D, W = 9, 2, 3, 4
  local x, w, state = core_rig.normal({ T, B, D }, 1), core_rig.normal({ D, W }, 2), core_rig.normal({ B, W - 1, D }, 3)
  local began = { [0] = { [2] = true, [7] = true }, [1] = { [0] = true } }
  local done = core_rig.done(T, B, { { 2, 0 }, { 7, 0 }, { 0, 1 } })
  local y = ops.short_conv { x = x, w = w, state = state, done = done }
  for b = 0, B - 1 do
    for step = 0, T - 1 do
      for d = 0, D - 1 do
        local sum, at = 0, step
        for j = W - 1, 0, -1 do                   -- backwards, until the episode's first
          local from = at >= 0 and x:data()[(at * B + b) * D + d] or state:data()[(b * (W - 1) + W - 1 + at) * D + d]
          sum = sum + w:data()[d * W + j] * from
          if began[b][at] then break end
          at = at - 1
        end
        t.near(y:data()[(step * B + b) * D + d], sum, 1e-5, ("step %d, copy %d"):format(step, b))
      end
    end
  end
end)

t.test("the gated delta rule of the family survives keys without a single number, even with norm_eps=0", function()
  for _, update in ipairs { "delta", "fastweight" } do
    mn.manual_seed(1)
    local c = mn.core("galite", { d_in = 3, d_model = 6, n_layers = 1, n_heads = 1, d_head = 4, d_ffn = 5,
                                  feature = "relu", update = update, norm_eps = 0 })
    c:state_dict()["layers.0.attn.k.bias"]:fill(-100)
    local x = core_rig.normal({ 5, 2, 3 }, 1, true)
    local y = c(x)
    y:sum():backward()
    t.ok(core_rig.finite(y), update .. ": y is not finite")
    for name, p in pairs(c:named_parameters()) do
      for i = 0, p:size() - 1 do t.ok(p:grad_data()[i] - p:grad_data()[i] == 0, update .. ": gradient of " .. name) end
    end
    mn.clear_tape()
  end
end)
