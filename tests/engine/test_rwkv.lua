-- test_rwkv.lua -- RWKV's memories against their defining sums and recurrences in double precision, at the edges too
-- (decays of 0, 1 and 1e-6, keys of 80), and the cores' published beginnings.
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local naive_laws = require "tests.support.naive_laws"
local mn = require "mneme"
local ops = mn.ops

local NAN = 0 / 0

---Normal numbers, times scale.
local function numbers(shape, stream, scale)
  local x = core_rig.normal(shape, stream)
  for i = 0, x:size() - 1 do x:data()[i] = x:data()[i] * (scale or 1) end
  return x
end

---Numbers between 0 and 1, some of them exactly 0, 1 and 1e-6.
local function decays(shape, stream)
  local x, edge = core_rig.normal(shape, stream), { [0] = 0, [1] = 1, [2] = 1e-6 }
  for i = 0, x:size() - 1 do x:data()[i] = edge[(i * 7919) % 23] or 1 / (1 + math.exp(-2 - x:data()[i])) end
  return x
end

local function kept(...)
  local list = {}
  for i = 1, select("#", ...) do list[i] = mn.keep((select(i, ...))) end
  mn.clear_tape()
  return unpack(list)
end

local function all_close(got, want, tolerance, what)
  local scale = 1
  for i = 0, got:size() - 1 do scale = math.max(scale, math.abs(want[i])) end
  for i = 0, got:size() - 1 do t.near(got:data()[i] / scale, want[i] / scale, tolerance, what .. " " .. i) end
end

-- ---- wkv ----

t.test("wkv is the double sum of its definition, with keys of 80 and any decay", function()
  local T, B, D = 41, 2, 70
  for _, size in ipairs { 1, 80 } do
    local a = { k = numbers({ T, B, D }, 1, size), v = numbers({ T, B, D }, 2), decay = numbers({ D }, 3, 3), first = numbers({ D }, 4, 2),
                done = core_rig.done(T, B, { { 5, 0 }, { 16, 1 }, { 17, 1 }, { 40 } }) }
    for i, extreme in ipairs { -90, 90, 1000, -1000 } do a.decay:data()[i] = extreme end      -- w = 0 and w = -infinity
    all_close(kept((ops.wkv4(a))), naive_laws.wkv4(a, T, B, D), 5e-6, "keys of " .. size)
  end
end)

t.test("wkv: nothing was seen is an exponent of -1e38, by hand, by default and after a reset", function()
  local T, B, D = 3, 1, 4
  local a = { k = numbers({ T, B, D }, 1), v = numbers({ T, B, D }, 2), decay = numbers({ D }, 3), first = numbers({ D }, 4) }
  local y, p, q, o = kept(ops.wkv4(a))
  for d = 0, D - 1 do t.near(y:data()[d], a.v:data()[d], 1e-6, "the first step sees itself alone") end
  a.p, a.q, a.o = numbers({ B, D }, 5), numbers({ B, D }, 6), mn.tensor { shape = { B, D } }:fill(-1e38)
  a.p:fill(0) a.q:fill(0)
  local by_hand = kept((ops.wkv4(a)))
  t.eq(core_rig.bytes(by_hand), core_rig.bytes(y))
  a.p, a.q, a.o, a.done = p:fill(NAN), q:fill(NAN), o:fill(NAN), core_rig.done(T, B, { { 0 } })
  local reset = kept((ops.wkv4(a)))
  t.eq(core_rig.bytes(reset), core_rig.bytes(y))
end)

t.test("wkv: the exponent's gradient is that of the scale of both sums", function()
  local B, D = 1, 3
  local a = { k = numbers({ 1, B, D }, 1), v = numbers({ 1, B, D }, 2), decay = numbers({ D }, 3), first = numbers({ D }, 4) }
  for i, name in ipairs { "p", "q", "o" } do a[name] = core_rig.normal({ B, D }, 4 + i, true) end
  a.q:fill(1.5)
  ;(ops.wkv4(a)):sum():backward()
  for d = 0, D - 1 do     -- y depends on p e^o and q e^o alone
    local p, q, o = a.p:data()[d], a.q:data()[d], a.o:grad_data()[d]
    t.near(o, p * a.p:grad_data()[d] + q * a.q:grad_data()[d], 1e-6)
  end
  mn.clear_tape()
end)

-- ---- the matrix memories ----

local function matrix_inputs(T, B, H, K, V)
  return { r = numbers({ T, B, H, K }, 1), k = numbers({ T, B, H, K }, 2), v = numbers({ T, B, H, V }, 3), keep = decays({ T, B, H, K }, 4),
           S = numbers({ B, H, K, V }, 5), done = core_rig.done(T, B, { { 0, 1 }, { 7, 0 }, { 16, 0 }, { 17, 0 }, { 40 } }) }
end

-- Directions of length 1 to take out, and rates of putting back.
local function with_directions(a, T, B, H, K)
  local keys = { k = a.k, a = decays({ T, B, H, K }, 6), k_k = numbers({ H, K }, 7), k_a = numbers({ H, K }, 8) }
  a.k, a.out, a.back = kept(ops.wkv7_keys(keys))
  return a
end

for _, sizes in ipairs { { 45, 2, 2, 5, 3 }, { 41, 2, 1, 17, 65 }, { 49, 2, 2, 64, 64 } } do
  local T, B, H, K, V = unpack(sizes)
  local what = ("%d keys by %d values"):format(K, V)
  t.test("wkv6 is its recurrence, decays of 0, 1 and 1e-6 included: " .. what, function()
    local a = matrix_inputs(T, B, H, K, V)
    a.first = numbers({ H, K }, 9)
    local y, S = kept(ops.wkv6(a))
    local want_y, want_S = naive_laws.wkv6(a, T, B, H, K, V)
    all_close(y, want_y, 2e-6, "y")
    all_close(S, want_S, 2e-6, "S")
  end)
  t.test("wkv7 is its recurrence, decays of 0, 1 and 1e-6 included: " .. what, function()
    local a = with_directions(matrix_inputs(T, B, H, K, V), T, B, H, K)
    local y, S = kept(ops.wkv7(a))
    local want_y, want_S = naive_laws.wkv6(a, T, B, H, K, V)
    all_close(y, want_y, 5e-6, "y")
    all_close(S, want_S, 5e-6, "S")
  end)
end

t.test("wkv7 without forgetting is the delta rule: what was written under a key is read back", function()
  local T, B, H, K = 37, 1, 2, 20
  local a = with_directions(matrix_inputs(T, B, H, K, K), T, B, H, K)
  a.keep:fill(1)
  a.r, a.k, a.back, a.done = a.out, a.out, a.out, nil
  all_close(kept((ops.wkv7(a))), a.v:data(), 1e-5, "y")
end)

t.test("wkv7_keys: directions have length 1, however large or small the key; none for a key of 0", function()
  local sizes, K = { 1, 1e30, 1e-11, 0 }, 20
  local a = { k = core_rig.normal({ #sizes, 1, 1, K }, 1, true), a = decays({ #sizes, 1, 1, K }, 2), k_k = numbers({ 1, K }, 3), k_a = numbers({ 1, K }, 4) }
  for i, size in ipairs(sizes) do for j = 0, K - 1 do a.k:data()[(i - 1) * K + j] = a.k:data()[(i - 1) * K + j] * size end end
  local write, out, back = ops.wkv7_keys(a)
  for i, size in ipairs(sizes) do
    local length = 0
    for j = 0, K - 1 do length = length + out:data()[(i - 1) * K + j] ^ 2 end
    t.near(math.sqrt(length), size == 0 and 0 or 1, 1e-5, "key of " .. size)
  end
  ;(out * out + back):sum():backward()
  t.ok(core_rig.finite(write) and core_rig.finite(mn.tensor { shape = { #sizes * K } }:copy(a.k)))
  for i = 0, #sizes * K - 1 do t.ok(a.k:grad_data()[i] == a.k:grad_data()[i], "NaN") end
  mn.clear_tape()
end)

t.test("wkv_out: a read-out of zeros, and one of 1e18, are finite", function()
  local T, H, V = 2, 2, 5
  local a = { y = numbers({ T, 1, H, V }, 1, 1e18), weight = numbers({ H, V }, 2), bias = numbers({ H, V }, 3),
              gate = numbers({ T, 1, H, V }, 4), act = "silu" }
  for i = 0, H * V - 1 do a.y:data()[i] = 0 end
  local z = kept((ops.wkv_out(a)))
  t.ok(core_rig.finite(z))
  for i = 0, H * V - 1 do
    local g = a.gate:data()[i]
    t.near(z:data()[i], a.bias:data()[i] * g / (1 + math.exp(-g)), 1e-6)
  end
  a.r = a.gate
  t.fails(function() ops.wkv_out(a) end)
end)

t.test("token_shift: what mix weighs, parts of low, wrong parts", function()
  local x, mix = numbers({ 2, 1, 3 }, 1), numbers({ 3 }, 2)
  local low = numbers({ 2, 1, 2, 3 }, 3)
  local current, previous, more = ops.token_shift { x = x, mix = mix, weighs = "current" }, ops.token_shift { x = x, mix = mix },
    ops.token_shift { x = x, mix = mix, low = low, part = 1 }
  for i = 0, 2 do
    local now, old, m = x:data()[3 + i], x:data()[i], mix:data()[i]
    t.near(current:data()[i], m * old, 1e-6, "nothing comes before the first step")
    t.near(current:data()[3 + i], m * now + (1 - m) * old, 1e-6)
    t.near(previous:data()[3 + i], (1 - m) * now + m * old, 1e-6)
    t.near(more:data()[3 + i], now + (old - now) * (m + low:data()[9 + i]), 1e-6)
  end
  t.fails(function() ops.token_shift { x = x, mix = mix, low = low, part = 2 } end)
  mn.clear_tape()
end)

-- ---- the cores ----

local names = { "rwkv4", "rwkv6", "rwkv7" }

t.test("parameters are as many as the equations say", function()
  local d, d_in, L, f, H, V, R = 24, 16, 3, 40, 2, 5, 7
  local P, frame = H * V, d_in * d + d + 4 * d + L * (4 * d + 2 * d * f)
  local counts = {
    rwkv4 = frame + L * (4 * d * d + 5 * d + d * d + 2 * d),
    rwkv6 = frame + L * (5 * P * d + 6 * d + 2 * 5 * d * R + P + (d + P) * 9 + P + 2 * P + d * d + 2 * d),
    rwkv7 = frame + L * (4 * P * d + 6 * d + 2 * P + (d + P) * (9 + 4 + 6) + 3 * P + 2 * P + d) + (L - 1) * (P + (d + P) * 3),
  }
  for name, count in pairs(counts) do
    local config = { d_in = d_in, d_model = d, n_layers = L, d_ffn = f }
    if name ~= "rwkv4" then config.n_heads, config.d_head, config.decay_rank = H, V, 9 end
    if name == "rwkv6" then config.mix_rank = R end
    if name == "rwkv7" then config.rate_rank, config.value_rank, config.gate_rank = 4, 3, 6 end
    t.eq(mn.core(name, config):describe().parameters, count, name)
  end
end)

t.test("as published, a fresh core passes its input through: what it adds starts at zero", function()
  for _, name in ipairs(names) do
    mn.manual_seed(1)
    local c = mn.core(name, { d_in = 3, d_model = 32, n_layers = 2 })
    local x, start = numbers({ 4, 2, 3 }, 1), core_rig.warm(c, 2)
    local y, after = core_rig.run(c, x, nil, start)
    t.near(core_rig.apart(y, core_rig.run(c, x)), 0, 1e-6, name)
    local p = c:state_dict()
    local first = p["layers.0.attn.decay"]:data()
    t.ok(first[0] < first[31], name .. ": decays rise with the channel")
    t.ok(core_rig.apart(after["layers.1.att_x"], start["layers.1.att_x"]) > 1e-3, name)
  end
end)

t.test("wrong settings say what is known", function()
  t.fails(function() mn.core("rwkv6", { mix_rank = 0 }) end)
  t.fails(function() mn.core("rwkv7", { gate_rank = 1.5 }) end)
  t.raises(function() mn.core("rwkv4", { embed_act = "tanh" }) end, "tanh")
  t.raises(function() mn.core("rwkv4", { n_heads = 2 }) end, "n_heads")
end)
