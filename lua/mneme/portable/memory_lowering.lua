-- memory_lowering.lua -- ops with a memory, for one row of time, in terms of primitives.lua: see lowering.lua, whose table these extend.  A state is
-- dropped where an episode begins (`fresh`), and never multiplied by 0, so that an infinity in it is dropped, too.
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"
local lowering = require "mneme.portable.lowering"

local FAR = -1e38
local acts = lowering.acts

-- `done` [1,B] beside a tensor [B,...] of `axes` axes, as a mask; nil: no episode begins.
local function begins(x, axes)
  if not x.done then return nil end
  return x.done:reshape(tables.filled(axes, function(i) return i == 1 and -1 or 1 end))
end
-- A state [B,...] as it is where the row begins; nil: zeros of that shape.
local function carried(x, state, otherwise)
  local mask = begins(x, #state.shape)
  return mask and mask:where(otherwise or 0, state) or state
end
local function zeros(x, shape, value) return primitives.constant(x.graph, {}, { value or 0 }):expand(shape) end
local function row(x) return x:squeeze(0) end                 -- [1,B,...] as [B,...]
local function rows(x) return x:unsqueeze(0) end
local function dot(a, b) return (a * b):sum(-1) end           -- keeps the last axis, of size 1
-- M [...,V,K] by k [...,K]: [...,V]
local function times(M, k) return M:matmul(k:unsqueeze(-1)):squeeze(-1) end
local function outer(a, b) return a:unsqueeze(-1) * b:unsqueeze(-2) end

-- ---- recurrences ----

function lowering.gru(x)
  local D = x.w.shape[2]
  local i = row(x.i)
  local h = x.h and carried(x, x.h) or zeros(i, { i.shape[1], D })
  local u = h:matmul(x.w, true)
  local function part(t, k) return t:slice(-1, k * D, (k + 1) * D) end
  local r, z = (part(i, 0) + part(u, 0)):sigmoid(), (part(i, 1) + part(u, 1)):sigmoid()
  local new = (part(i, 2) + r * (part(u, 2) + x.bias)):tanh()
  local y = (1 - z) * new + z * h
  return rows(y), y
end

function lowering.lstm(x)
  local D, i = x.w.shape[2], row(x.i)
  local h, c = x.h and carried(x, x.h) or zeros(i, { i.shape[1], D }), x.c and carried(x, x.c) or zeros(i, { i.shape[1], D })
  local all = i + h:matmul(x.w, true)
  local function part(k) return all:slice(-1, k * D, (k + 1) * D) end
  c = part(1):sigmoid() * c + part(0):sigmoid() * part(2):tanh()
  h = part(3):sigmoid() * c:tanh()
  return rows(h), h, c
end

function lowering.slstm_gate(x)
  local all, D = x.x + x.r, x.c.shape[#x.c.shape]
  local function part(k) return all:slice(-1, k * D, (k + 1) * D) end
  local keep = x.m - (-part(1)):softplus()
  local m = keep:maximum(part(0))
  local a, b = (keep - m):exp(), (part(0) - m):exp()
  local c, n = a * x.c + b * part(2):tanh(), a * x.n + b
  return part(3):sigmoid() * (c / n), c, n, m
end

function lowering.minlstm_gate(x)
  local z = (-x.f):softplus() - (-x.i):softplus()
  return z:sigmoid() * x.v, (-z):sigmoid()
end

-- h = a h + x; x and a [T,B,...], a also without [T,B].
local function scan(product, sum, none)
  return function(x)
    local now, a = row(x.x), x.a
    if #a.shape == #x.x.shape then a = row(a) end
    local kept = x.h and product(a, carried(x, x.h, none))
    local h = kept and (sum and sum(kept, now) or kept + now) or now
    return rows(h), h
  end
end
lowering.gated_scan = scan(function(a, h) return a * h end)
-- The same of logarithms: of nothing it is -infinity, for which FAR stands.
lowering.log_scan = scan(function(a, h) return a + h:maximum(FAR) end, function(kept, now)
  local top = kept:maximum(now):detach()
  return ((kept - top):exp() + (now - top):exp()):log() + top
end, FAR)
lowering.complex_scan = scan(function(a, h)
  local D = h.shape[#h.shape] / 2
  local function halves(t) return t:slice(-1, 0, D), t:slice(-1, D, 2 * D) end
  local ar, ai = halves(a)
  local hr, hi = halves(h)
  return primitives.concat({ ar * hr - ai * hi, ar * hi + ai * hr }, -1)
end)

function lowering.short_conv(x, o)
  local now = row(x.x)
  local W, D = x.w.shape[2], now.shape[2]
  local past = x.state and carried(x, x.state) or zeros(now, { now.shape[1], W - 1, D })
  local all = primitives.concat({ past, now:unsqueeze(1) }, 1)
  return rows(acts[o.act]((all * x.w:swap(0, 1)):sum(1):squeeze(1))), all:slice(1, 1, W)
end

function lowering.frame_stack(x, o, c)
  local now = row(x.x):unsqueeze(1)
  local past = x.past and carried(x, x.past) or zeros(now, { now.shape[1], o.frames - 1, now.shape[3] })
  local all = primitives.concat({ past, now }, 1)
  return all:reshape(c.shapes[1]), all:slice(1, 1, o.frames)
end

function lowering.token_shift(x, o)
  local now, m = row(x.x), x.mix
  local before = x.prev and carried(x, x.prev) or zeros(now, now.shape)
  if o.weighs == "current" then m = 1 - m end
  if x.low then m = m + row(x.low):slice(1, o.part, o.part + 1):squeeze(1) end
  return rows(now + (before - now) * m), now
end

-- z [T,B,H,M]
function lowering.running_max(x, o)
  local z = row(x.z)
  local top = z:max(-1):squeeze(-1)
  local old = (o.of == "token" or not x.c) and zeros(z, top.shape, FAR) or carried(x, x.c, FAR)
  local moved = x.a and old + row(x.a) or old
  top = top:maximum(moved)
  return rows(top), rows((moved - top):exp()), top
end

-- Positions are turned by whole turns and a rest, which floats hold: a frequency is a part of 11 bits, whose products with positions below
-- 8192 are exact, and what remains.
function lowering.rotary(x, o)
  local T, B, H, D = unpack(x.x.shape)
  local large, small = {}, {}
  for i = 0, D / 2 - 1 do
    local turns = o.base ^ (-2 * i / D) / (2 * math.pi)
    local _, e = math.frexp(turns)
    local unit = 2 ^ (e - 11)
    large[i + 1] = math.floor(turns / unit) * unit
    small[i + 1] = turns - large[i + 1]
  end
  local tick = x.tick:reshape(T, B, 1, 1)
  local turned = tick * primitives.constant(x.x.graph, { D / 2 }, large)
  local angle = ((turned - turned:floor()) + tick * primitives.constant(x.x.graph, { D / 2 }, small)) * (2 * math.pi)
  local pairs_ = x.x:reshape(T, B, H, D / 2, 2)
  local u, v = pairs_:slice(-1, 0, 1):squeeze(-1), pairs_:slice(-1, 1, 2):squeeze(-1)
  local cosine, sine = angle:cos(), angle:sin()
  local y = primitives.concat({ (u * cosine - v * sine):unsqueeze(-1), (u * sine + v * cosine):unsqueeze(-1) }, -1)
  return y:reshape(T, B, H, D), x.tick + 1
end

-- ---- feature maps ----

function lowering.dpfp(x, o)
  local u = primitives.concat({ x.x:relu(), (-x.x):relu() }, -1)
  return primitives.concat(tables.filled(o.nu, function(j) return u * u:rolled(-1, j) end), -1)
end
function lowering.fourier(x)
  return primitives.concat({ x.x:sin(), x.x:cos() }, -1) * (1 / math.sqrt(x.x.shape[#x.x.shape]))
end
function lowering.favor_logits(x)
  local D = x.x.shape[4]
  local z = x.x:unsqueeze(-2):matmul(x.w, true):squeeze(-2) * D ^ -0.25
  return (z - dot(x.x, x.x) * (0.5 / math.sqrt(D))):maximum(-1e30):minimum(1e30)
end
function lowering.favor_features(x, o)
  return ((x.z - x.top:unsqueeze(-1)):exp() + o.eps) * (1 / math.sqrt(x.z.shape[4]))
end

-- ---- gated linear attention ----

-- y from the numerator [B,H,V] and s.q [B,H,1].
local function divided(num, z, o, scale)
  if not (o.normalise == 1) then return scale == 1 and num or num / scale end
  local den = (scale == 1 and z or z * scale) + o.eps
  if o.den_clamp > 0 then den = den:abs():lt(o.den_clamp):where(den:lt(0):where(-o.den_clamp, o.den_clamp), den) end
  local none = den:eq(0)
  return none:where(0, num / none:where(1, den))
end

local function feature(x, p)
  if not p then return row(x) end
  local y = outer(row(p), row(x))
  return y:reshape(y.shape[1], y.shape[2], -1)
end

-- The row's q, and how much of k and v it writes and keeps: see recurrent/galite_decay.h.
local function gated(x, of_values)
  local g = { q = feature(x.q, x.p_q), shrink = x.shrink and row(x.shrink):unsqueeze(-1) or nil }
  local k, v = feature(x.k, x.p_k), row(x.v)
  local K = k.shape[3]
  local beta, scalar = x.beta, false
  local gate_k = x.gamma and feature(x.gamma, x.p_gamma) or x.write_k and feature(x.write_k, x.p_write_k)
  local rest_k = x.gamma ~= nil
  if beta and beta.shape[4] == 1 and not x.gamma and not x.write_k and not x.keep_k and not of_values then
    gate_k, rest_k, scalar = row(beta), true, true
  end
  g.write_k = gate_k and gate_k * k or k
  g.keep_k = rest_k and 1 - gate_k or x.keep_k and row(x.keep_k) or primitives.constant(v.graph, {}, { 1 })
  if g.shrink then g.keep_k = g.keep_k * g.shrink end
  if beta and not scalar then
    g.write_v, g.lost_v = row(beta) * v, row(beta)
  else
    g.write_v = x.write_v and row(x.write_v) * v or v
    g.lost_v = x.keep_v and 1 - row(x.keep_v) or nil
  end
  g.K, g.V, g.shape = K, v.shape[3], v.shape
  return g
end

local function attention(decayed)
  return function(x, o)
    local g = gated(x)
    local B, H, K, V = g.shape[1], g.shape[2], g.K, g.V
    local C = x.C and carried(x, x.C) or zeros(g.q, { B, H, V, K })
    local s = x.s and carried(x, x.s) or zeros(g.q, { B, H, K })
    C = decayed(g, C) + outer(g.write_v, g.write_k)
    s = g.keep_k * s + g.write_k
    return rows(divided(times(C, g.q), dot(s, g.q), o, 1)), C, s
  end
end
local function beside_values(keep_k) return #keep_k.shape > 0 and keep_k:unsqueeze(-2) or keep_k end
lowering.linear_attention = attention(function(g, C)
  C = C * beside_values(g.keep_k)
  return g.lost_v and C * (1 - g.lost_v):unsqueeze(-1) or C
end)
lowering.joint_gate_attention = attention(function(g, C)
  local whole = g.shrink and g.shrink:unsqueeze(-1) or 1
  return g.lost_v and C * (whole - g.lost_v:unsqueeze(-1) * (whole - beside_values(g.keep_k))) or C * whole
end)

-- Channels as in agalite.c: { step, sine, weight }, and the period of their phases.
local function channels(form, r, all)
  local list, count = {}, all and (form == "code" and r or form == "paper" and r + 1 or 2 * r) or form == "code" and math.floor((r + 1) / 2)
    or form == "paper" and math.floor(r / 2) + 1 or r
  local cosines = math.floor(r / 2) + 1
  for m = 0, count - 1 do
    if all then list[m + 1] = form == "code" and { r == 1 and 1 or 2 * m - (r - 1), false, 1 } or { m % r, form == "cossin" and m >= r, 1 }
    elseif form == "code" then list[m + 1] = r == 1 and { 1, false, 1 } or { 2 * m - (r - 1), false, 2 * m == r - 1 and 1 or 2 }
    elseif form == "paper" or m < cosines then list[m + 1] = { m, false, (form == "cossin" and m == 0 or 2 * m == r) and 1 or 2 }
    else list[m + 1] = { m - cosines + 1, true, 2 } end
  end
  return list, form ~= "code" and r or r > 1 and 2 * (r - 1) or 2
end

function lowering.agalite(x, o, c)
  if o.form == "random_sign" then c.refuse "form=random_sign, whose signs are random numbers" end
  local g = gated(x, true)
  local B, H, K, V = g.shape[1], g.shape[2], g.K, g.V
  local list, N = channels(o.form, o.r, o.stored == "all")
  local M, wave, weight = #list, {}, {}
  for p = 0, N - 1 do
    for m, channel in ipairs(list) do
      local angle = 2 * math.pi * ((channel[1] * p) % N) / N
      wave[p * M + m], weight[m] = channel[2] and math.sin(angle) or math.cos(angle), channel[3]
    end
  end
  local clock = x.tick + 1
  local w = primitives.constant(g.q.graph, { N, M }, wave):take(0, clock:mod(N)):reshape(B, M, 1, 1)
  local vs = x.vs and carried(x, x.vs) or zeros(g.q, { B, M, H, V })
  local ks = x.ks and carried(x, x.ks) or zeros(g.q, { B, M, H, K })
  local s = x.s and carried(x, x.s) or zeros(g.q, { B, H, K })
  local keep_k = #g.keep_k.shape > 0 and g.keep_k:unsqueeze(1) or g.keep_k
  ks = keep_k * ks + w * g.write_k:unsqueeze(1)
  s = g.keep_k * s + g.write_k
  vs = (g.lost_v and (1 - g.lost_v):unsqueeze(1) * vs or vs) + w * g.write_v:unsqueeze(1)
  local kappa = dot(ks, g.q:unsqueeze(1)) * primitives.constant(g.q.graph, { M, 1, 1 }, weight)            -- [B,M,H,1]
  local y = divided((kappa * vs):sum(1):squeeze(1), dot(s, g.q), o, o.form == "cossin" and o.r or 2 * o.r)
  return rows(y), vs, ks, s, clock:lt(2 ^ 24):where(clock, clock:mod(N))
end

function lowering.delta_rule(x, o)
  local q, all_k, all_v, all_write = row(x.q), row(x.k), row(x.v), row(x.write):unsqueeze(-1)
  local B, H, K, V = q.shape[1], q.shape[2], q.shape[3], all_v.shape[3]
  local keep = x.keep and row(x.keep):unsqueeze(-1)
  local C = x.C and carried(x, x.C) or zeros(q, { B, H, V, K })
  local s = x.s and carried(x, x.s) or zeros(q, { B, H, K })
  for key = 0, all_k.shape[2] / H - 1 do                    -- of a step: the first forgets
    local function of(t) return t.shape[2] == H and t or t:slice(1, key * H, (key + 1) * H) end
    local k, v, write = of(all_k), of(all_v), of(all_write)
    local u = write * (v - (o.erase == "after" and keep or 1) * times(C, k))
    C = (keep and C * keep:unsqueeze(-1) or C) + outer(u, k)
    s, keep = (keep and s * keep or s) + write * k, nil
  end
  return rows(divided(times(C, q), dot(s, q), o, 1)), C, s
end

-- ---- RWKV ----

function lowering.wkv4(x)
  local k, v = row(x.k), row(x.v)
  local w = -x.decay:minimum(88):exp()
  local p, q = x.p and carried(x, x.p) or zeros(k, k.shape), x.q and carried(x, x.q) or zeros(k, k.shape)
  local o = x.o and carried(x, x.o, FAR) or zeros(k, k.shape, FAR)
  local function mixed(a, b)
    local top = a:maximum(b)
    local of_a, of_b = (a - top):exp(), (b - top):exp()
    return of_a * p + of_b * v, of_a * q + of_b, top
  end
  local num, den = mixed(o, x.first + k)
  p, q, o = mixed(w + o, k)
  return rows(num / den), p, q, o
end

-- S [B,H,K,V]
local function read(r, S) return r:unsqueeze(-2):matmul(S):squeeze(-2) end
function lowering.wkv6(x)
  local r, k, v = row(x.r), row(x.k), row(x.v)
  local S = x.S and carried(x, x.S) or zeros(k, { k.shape[1], k.shape[2], k.shape[3], v.shape[3] })
  local y = read(r, S) + dot(r, x.first * k) * v
  return rows(y), S * row(x.keep):unsqueeze(-1) + outer(k, v)
end
function lowering.wkv7(x)
  local r, k, v = row(x.r), row(x.k), row(x.v)
  local S = x.S and carried(x, x.S) or zeros(k, { k.shape[1], k.shape[2], k.shape[3], v.shape[3] })
  S = S * row(x.keep):unsqueeze(-1) - outer(row(x.back), read(row(x.out), S)) + outer(k, v)
  return rows(read(r, S)), S
end
function lowering.wkv7_keys(x)
  local z = x.k * x.k_k
  local out = z / z:square():sum(-1):sqrt():maximum(1e-12)
  return x.k * (1 + (x.a - 1) * x.k_a), out, x.a * out
end
function lowering.wkv_out(x, o)
  local z = x.y:normed(-1, o.eps) * x.weight + x.bias
  if x.r then z = z + dot(x.r * x.k, x.bonus) * x.v end
  return z * acts[o.act](x.gate)
end

return lowering
