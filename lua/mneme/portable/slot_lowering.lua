-- slot_lowering.lua -- ops whose memory is a list of earlier steps, for one row of time, in terms of primitives.lua: see lowering.lua, whose table
-- these extend.  Positions count from an episode's beginning; position p of a memory of S slots is in slot p below `pinned`, the others take turns
-- in the rest (engine/attention/episode_attention.h).
local primitives = require "mneme.portable.primitives"
local tables = require "mneme.base.tables"
local lowering = require "mneme.portable.lowering"

local BLOCKED = -1e30
local acts = lowering.acts

-- ---- softmax over carried and current keys ----

-- A memory [M,B,...] of the last rows, oldest first: without the oldest, and the row [1,B,...].
local function pushed(memory, now, axis)
  local M = memory.shape[axis + 1]
  return primitives.concat({ memory:slice(axis, 1, M), now }, axis)
end

-- y [B,H,V] of scores [B,H,n] (blocked ones are BLOCKED or `counts` 0) and values [B,H,n,V].
local function mixed(scores, values, counts)
  local top = scores:max(-1):detach()
  local e = (scores - top):exp()
  if counts then e = e * counts end
  return (e / e:sum(-1)):unsqueeze(-2):matmul(values):squeeze(-2)
end

function lowering.attention(x, o)
  local q, k, v = x.q:squeeze(0), x.k:squeeze(0), x.v:squeeze(0)                  -- [B,H,K]
  local B, K = q.shape[1], q.shape[3]
  local M, scale = x.mk and x.mk.shape[1] or 0, 1 / math.sqrt(K)
  local by_content = x.a and x.a:squeeze(0) or x.u and q + x.u or q
  local by_place = x.r and (x.w and q + x.w or q)
  local scores, values = (by_content * k):sum(-1), v:unsqueeze(-2)
  if M > 0 then
    local old = x.mk:transpose { 1, 2, 0, 3 }                                     -- [B,H,M,K]
    local of_old = old:matmul(by_content:unsqueeze(-1)):squeeze(-1)
    scores = primitives.concat({ of_old, scores }, -1)
    values = primitives.concat({ x.mv:transpose { 1, 2, 0, 3 }, values }, -2)
  end
  if x.r then
    local r = x.r:take(0, primitives.filled(q.graph, M + 1, function(j) return M - j end)):transpose { 1, 0, 2 }              -- [H,M+1,K]
    scores = scores + r:matmul(by_place:unsqueeze(-1)):squeeze(-1)
  end
  scores = scores * scale
  if M > 0 then
    local blocked = primitives.filled(q.graph, M, function(j) return o.window >= 0 and M - j > o.window and 1 or 0 end):unsqueeze(0)
    if x.mask then blocked = blocked:maximum(x.mask:swap(0, 1)) end
    if x.done then blocked = blocked:maximum(x.done:reshape(-1, 1)) end
    local own = primitives.constant(q.graph, {}, { 0 }):expand { B, 1 }
    blocked = primitives.concat({ blocked:expand { B, M }, own }, -1):unsqueeze(1)
    scores = blocked:where(BLOCKED, scores)
    values = blocked:unsqueeze(-1):where(0, values)
  end
  return mixed(scores, values):unsqueeze(0)
end

-- All heads see the same rows, as keys and as values.
function lowering.input_attention(x, o)
  local B, H, V = x.a.shape[2], x.a.shape[3], x.a.shape[4]
  local function of_heads(t) return t:unsqueeze(2):expand { t.shape[1], B, H, V } end
  local k, old = of_heads(x.x), of_heads(x.old)
  return lowering.attention({ q = x.q, a = x.a, k = k, v = k, mk = old, mv = old, mask = x.mask, done = x.done, w = x.w, r = x.r }, o)
end

function lowering.memory_read(x, o)
  local level = x.memory:slice(0, o.level, o.level + 1):squeeze(0)                -- [M,B,D]
  local blocked = x.mask:unsqueeze(-1)
  if x.done then blocked = blocked:maximum(x.done:reshape(1, -1, 1)) end
  return blocked:where(0, level)
end
function lowering.memory_push(x, o)
  local L, _, B, D = unpack(x.memory.shape)
  local now = x.x:reshape(B, L, D):swap(0, 1):unsqueeze(1)                        -- [L,1,B,D]
  local memory = x.memory
  if o.stop == 1 then memory, now = memory:detach(), now:detach() end
  return pushed(memory, now, 1)
end
function lowering.memory_push_mask(x)
  local mask = x.mask
  if x.done then mask = mask:maximum(x.done:reshape(1, -1)) end
  return pushed(mask, primitives.constant(mask.graph, {}, { 0 }):expand { 1, mask.shape[2] }, 0)
end

-- ---- slots by position ----

function lowering.position(x, o)
  local now = x.tick:floor():maximum(0):minimum(o.most - 1)
  if x.done then now = x.done:reshape(-1):where(0, now) end
  local next_ = now + 1
  return now:unsqueeze(0), next_:lt(o.most):where(next_, next_ - o.back)
end

-- Where a position lies: pos of any shape.
local function slot(pos, pinned, S)
  if pinned >= S then return pos end
  local turn = (pos - pinned):maximum(0):mod(S - pinned) + pinned
  return pinned > 0 and pos:lt(pinned):where(pos, turn) or turn
end

function lowering.kv_slots(x, o)
  local B, S, H, D = unpack(x.memory.shape)
  local pos = x.pos:reshape(B, 1)
  local here = primitives.range(pos.graph, S):eq(slot(pos, o.pinned, S)):reshape(B, S, 1, 1)
  local first = pos:eq(0):reshape(B, 1, 1, 1)
  return here:where(x.x:reshape(B, 1, H, D), first:where(0, x.memory))
end

-- For each of S slots, the position that it holds before row `pos` [B,1], negative or more than pos: none.
local function held(pos, pinned, S)
  local slots = primitives.range(pos.graph, S)
  if pinned >= S then return slots end
  local ring, last = S - pinned, pos - 1 - pinned
  local back = (last - slots + pinned + 2 * ring):maximum(0):mod(ring)       -- last and slots both count from pinned
  local turning = last:lt(0):where(-1, last - back)
  turning = turning:lt(0):where(-1, turning + pinned)
  return pinned > 0 and slots:lt(pinned):where(slots, turning) or turning
end

-- Attention of the row at `pos` to slots: sees(position) [B,(H),S] is how often each counts, own: itself.
local function over_slots(x, seen, own)
  local B, _, H, D = unpack(x.mk.shape)
  local q, k = x.q:reshape(B, H, D), x.k:reshape(B, H, D)
  local old = x.mk:transpose { 0, 2, 1, 3 }:matmul(q:unsqueeze(-1)):squeeze(-1)              -- [B,H,S]
  local scores = primitives.concat({ old, (q * k):sum(-1) }, -1) * (1 / math.sqrt(D))
  local S = x.mk.shape[2]
  local counts = primitives.concat({ seen:expand { B, seen.shape[2], S }, own:expand { B, seen.shape[2], 1 } }, -1)
  local none = counts:eq(0)
  local values = primitives.concat({ x.mv:transpose { 0, 2, 1, 3 }, x.v:reshape(B, H, 1, D) }, 2)
  return none:where(BLOCKED, scores), none:unsqueeze(-1):where(0, values), counts
end

function lowering.window_attention(x, o, c)
  local B, S = unpack(x.mk.shape)
  local pos, first = x.pos:reshape(B, 1), o.rows == "first"
  local g = o.globals
  local of_slot = held(pos, first and S or g, S)
  local before = of_slot:lt(pos) * of_slot:lt(0):negated()
  local seen
  if first then seen = before
  else
    local distance = pos - of_slot
    local near = of_slot:lt(g):negated() * distance:lt(o.window * o.dilation)
    if o.dilation > 1 then near = near * distance:maximum(0):mod(o.dilation):eq(0) end
    seen = before * near:maximum(of_slot:lt(g))
  end
  local rows = pos:lt(g)
  if not first then rows = rows:negated() end
  local scores, values, counts = over_slots(x, seen:expand { B, S }:unsqueeze(1), primitives.constant(pos.graph, { 1, 1, 1 }, { 1 }))
  return rows:unsqueeze(-1):where(mixed(scores, values, counts), 0):reshape(c.shapes[1])
end

function lowering.block_attention(x, _, c)
  local see, shape = c.numbers "see", x.see.shape                                 -- [H,N,R,2]
  local H, N, R = unpack(shape)
  local B, S = unpack(x.mk.shape)
  local size, list = S / N, tables.filled(N * H * N, function() return 0 end)
  for h = 0, H - 1 do
    for i = 0, N - 1 do
      for r = 0, R - 1 do
        local at = ((h * N + i) * R + r) * 2 + 1
        for k = see[at], see[at] + see[at + 1] - 1 do
          local to = (i * H + h) * N + k + 1
          if k >= 0 and k < N then list[to] = list[to] + 1 end
        end
      end
    end
  end
  local pos = x.pos:reshape(B, 1)
  local block = (pos / size):floor():minimum(N - 1):reshape(B)
  local listed = primitives.constant(pos.graph, { N, H, N }, list):take(0, block)          -- [B,H,N]
  local seen = listed:unsqueeze(-1):expand { B, H, N, size }:reshape(B, H, S)
  local own = (seen * primitives.range(pos.graph, S):eq(pos):reshape(B, 1, S)):sum(-1)
  seen = seen * primitives.range(pos.graph, S):lt(pos):reshape(B, 1, S)
  local scores, values, counts = over_slots(x, seen, own)
  return mixed(scores, values, counts):reshape(c.shapes[1])
end

function lowering.longshort_attention(x, o, c)
  local B, S, H, D = unpack(x.mk.shape)
  local J, R, W, E = x.mp.shape[2], x.p.shape[4], x.short.shape[3], H * D
  local pos = x.pos:reshape(B, 1)
  local kept = W / R
  -- the window
  local of_slot = held(pos, 0, S)
  local seen = of_slot:lt(pos) * of_slot:lt(0):negated() * (pos - of_slot):lt(o.window)
  local scores, values = over_slots(x, seen:expand { B, S }:unsqueeze(1), primitives.constant(pos.graph, { 1, 1, 1 }, { 1 }))
  -- full chunks before it, in slots (chunk * R + r) % W
  local full = (pos / J):floor()
  local none = primitives.filled(pos.graph, W, function(i) return math.floor(i / R) end):lt(full:minimum(kept)):negated():reshape(B, 1, W)
  local function of_short(kv) return x.short:slice(1, kv, kv + 1):squeeze(1):transpose { 0, 2, 1, 3 } end       -- [B,H,W,D]
  local q = x.q:reshape(B, H, D, 1)
  local far = none:where(BLOCKED, of_short(0):matmul(q):squeeze(-1) * (1 / math.sqrt(D)))
  scores, values = primitives.concat({ far, scores }, -1), primitives.concat({ none:unsqueeze(-1):where(0, of_short(1)), values }, 2)
  local y = mixed(scores, values):reshape(c.shapes[1])
  -- the chunk that ends here, of this row and the J - 1 before it
  local function of_chunk(memory, slots, now)                                      -- [B,J,...]
    if J == 1 then return now end
    local at = (pos - primitives.filled(pos.graph, J - 1, function(i) return J - 1 - i end) + 4 * slots * J):mod(slots)   -- [B,J-1], before this row
    local picked = at:unsqueeze(-1):eq(primitives.range(pos.graph, slots)):matmul(memory:reshape(B, slots, -1))   -- [B,J-1,...]
    return primitives.concat({ picked, now }, 1)
  end
  local w = of_chunk(x.mp, J, x.p:reshape(B, 1, H * R)):softmax(1):reshape(B, J, H, R):transpose { 0, 2, 3, 1 }  -- [B,H,R,J]
  local function compressed(memory, now)
    local tokens = of_chunk(memory, S, now:reshape(B, 1, E)):reshape(B, J, H, D):swap(1, 2)              -- [B,H,J,D]
    return (w:matmul(tokens):swap(1, 2):reshape(B, R, E):normed(-1, o.eps) * x.weight + x.bias):reshape(B, 1, R, H, D)
  end
  return y, primitives.concat({ compressed(x.mk, x.k), compressed(x.mv, x.v) }, 1)
end

function lowering.kv_chunk_slots(x, o)
  local B, _, W, H, D = unpack(x.short.shape)
  local R, pos = x.chunks.shape[3], x.pos:reshape(B, 1)
  local kept, full = W / R, ((pos + 1) / o.chunk):floor()
  local of_slot = primitives.filled(pos.graph, W, function(i) return math.floor(i / R) end)
  local ends = (full * o.chunk):eq(pos + 1)
  local here = (ends * of_slot:eq((full - 1):maximum(0):mod(kept))):reshape(B, 1, W, 1, 1)
  local empty = pos:eq(0):reshape(B, 1, 1, 1, 1)
  local now = x.chunks:unsqueeze(2):expand { B, 2, kept, R, H, D }:reshape(B, 2, W, H, D)
  return here:where(now, empty:where(0, x.short))
end

-- ---- the recurrent memory transformer: a segment of one token ----

local function layer(p, z, o, M)                         -- p(n): the next n parameters; z [B,M+1+M,D]
  local B, N, D = unpack(z.shape)
  local A, H = o.heads * o.d_head, o.heads
  local qkv, qkv_bias, out, out_bias = p(3 * A, D), p(3 * A), p(D, A), p(D)
  local norms = { { p(D), p(D) }, { p(D), p(D) } }
  local ffn = { p(o.d_ffn, D), p(o.d_ffn), p(D, o.d_ffn), p(D) }
  local gates = tables.filled(o.flow == "gtrxl" and 2 or 0, function() return { w = p(3, D, D), u = p(3, D, D), bias = p(D) } end)
  local function norm(i, t) return t:normed(-1, o.eps) * norms[i][1] + norms[i][2] end
  local close = o.flow == "postnorm" and acts.none or acts.relu
  local function joined(i, before, y)
    if o.flow == "residual" then return before + y end
    if o.flow == "postnorm" then return norm(i, before + y) end
    return lowering.gru_gate { x = before, y = y, w = gates[i].w, u = gates[i].u, bias = gates[i].bias }
  end
  local function entering(i, t) return o.flow == "postnorm" and t or norm(i, t) end
  local all = entering(1, z):matmul(qkv, true) + qkv_bias
  local function part(k) return all:slice(-1, k * A, (k + 1) * A):reshape(B, N, H, o.d_head):swap(1, 2) end       -- [B,H,N,K]
  local blocked = {}
  for i = 0, N - 1 do for j = 0, N - 1 do
    blocked[#blocked + 1] = (i < M and j >= M or i == M and j > M) and 1 or 0
  end end
  local scores = part(0):matmul(part(1), true) * (1 / math.sqrt(o.d_head))
  local weights = primitives.constant(z.graph, { N, N }, blocked):where(BLOCKED, scores):softmax(-1)
  local y = weights:matmul(part(2)):swap(1, 2):reshape(B, N, A)
  local h = joined(1, z, close(y:matmul(out, true) + out_bias))
  local hidden = (entering(2, h):matmul(ffn[1], true) + ffn[2]):relu()
  return joined(2, h, close(hidden:matmul(ffn[3], true) + ffn[4]))
end

-- Its second output, `kept`, is here the memory after it, which rmt_memory hands on.
function lowering.rmt(x, o)
  local e = x.e:squeeze(0):unsqueeze(1)                                          -- [B,1,D]
  local M, D, B, L = x.mem0.shape[1], x.mem0.shape[2], e.shape[1], x.params.shape[1]
  local begun = x.mem0:unsqueeze(0):expand { B, M, D }
  local mem = x.mem or begun
  if x.done and x.mem then mem = x.done:reshape(-1, 1, 1):where(begun, mem) end
  local z = primitives.concat({ mem, e, mem }, 1)
  for n = 0, L - 1 do
    local at, flat = 0, x.params:slice(0, n, n + 1):squeeze(0)
    z = layer(function(...)
      local size = primitives.product { ... }
      at = at + size
      return flat:slice(0, at - size, at):reshape(...)
    end, z, o, M)
  end
  return z:slice(1, M, M + 1):swap(0, 1), z:slice(1, M + 1, 2 * M + 1)
end
function lowering.rmt_memory(x) return x.kept end

return lowering
