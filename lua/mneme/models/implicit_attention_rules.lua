-- implicit_attention_rules.lua -- computes the weight of each past step, one function for each way of reading (see
-- implicit_attention.lua): f(now, layer, head, channel) -> weights float[n] valid until the next call, n, unseen, beside.
-- The query goes back in time: at each step it is multiplied with the key, and then decays as the memory did there.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local tables = require "mneme.base.tables"

local rules = {}
local GONE = 1e-7                 -- of a query that has forgotten: what was before is not read

-- Scratch, one buffer a purpose, grown on demand.
local buffers, rooms = {}, {}
local function scratch(name, n, of)
  if (rooms[name] or 0) < n then buffers[name], rooms[name] = ffi.new(of or "float[?]", n), n end
  return buffers[name]
end

-- As many weights as there are steps, all 0.
local function weights(n)
  local w = scratch("w", n)
  ffi.fill(w, 4 * n)
  return w
end

-- "layers.2.k", made once.
local names = setmetatable({}, { __index = function(kinds, kind)
  kinds[kind] = setmetatable({}, { __index = function(layers, layer)
    layers[layer] = "layers." .. layer .. "." .. kind
    return layers[layer]
  end })
  return kinds[kind]
end })

---One head's numbers of a probe, and how many; nil where it was not probed.
---@param entry table a Frame or an Entry
function rules.part(entry, layer, head, kind)
  local array = entry.probes[names[kind][layer]]
  if not array then return nil, 0 end
  local n = tables.product(array.shape, 2)
  return array.values + head * n, n
end
local part = rules.part

---The same, multiplied out where it was probed as two factors, p_KIND (x) KIND.
function rules.whole(entry, layer, head, kind)
  local x, n = part(entry, layer, head, kind)
  local p, m = part(entry, layer, head, "p_" .. kind)
  if not x or not p then return x, n end
  local out = scratch(kind, n * m)
  for a = 0, m - 1 do
    for b = 0, n - 1 do out[a * n + b] = p[a] * x[b] end
  end
  return out, n * m
end
local whole = rules.whole

-- Where a probe lies at each step of an episode, for the loops in engine/recurrent/implicit_attention.c, which know of a step only that much.
-- They are kept: they serve an episode until any of its steps, while what was probed at its oldest ones is there.
local trails, past, known = {}, {}, nil
local function trail(history, layer, head, kind)
  local n = #history
  if past[n] ~= history[n] or (known and not known.probes) then
    trails, past, known = {}, {}, nil
    for j = n, 1, -1 do
      past[j] = history[j]
      if history[j].probes then known = history[j] end
    end
  end
  local name = names[kind][layer]
  if trails[name] == nil then
    local steps, last = ffi.new("const float *[?]", #past), nil
    for j = 1, #past do
      local array = past[j].probes and past[j].probes[name]
      if array then steps[j - 1], last = array.values, past[j] end
    end
    local size = last and select(2, part(last, layer, 0, kind)) or 0
    trails[name] = size > 0 and { steps = steps, of_head = ffi.new("mn_trail", steps, 0, size) }
  end
  local found = trails[name] and trails[name].of_head
  if found then found.from = head * found.n end
  return found or nil
end

-- The query as it will go back: a copy, as it is (unit 0), of length 1 (1) or of sum 1 (2).
local function query(entry, layer, head, unit, kind)
  local q, n = whole(entry, layer, head, kind or "q")
  local u, s = scratch("u", n), 0
  for i = 0, n - 1 do s = s + (unit == 1 and q[i] * q[i] or q[i]) end
  if unit == 1 then s = math.sqrt(s) end
  local scale = unit == 0 and 1 or s > 0 and 1 / s or 0
  for i = 0, n - 1 do u[i] = q[i] * scale end
  return u, n
end

local of_head = ffi.new "mn_recall_gates"

-- apart: what is kept was probed, and not what the gates leave.
local function gated(apart)
  return function(now, layer, head, channel)
    local history, n = now.history, #now.history
    local u, K = query(history[n], layer, head, 0)
    local function of(kind) return trail(history, layer, head, kind) end
    local write_v, keep_v, w = of "beta", apart and of "keep_v" or nil, scratch("w", n)
    of_head.write_v, of_head.write_k, of_head.p_write_k = write_v, of "gamma", of "p_gamma"
    of_head.keep_v, of_head.keep_k, of_head.apart = keep_v, apart and of "keep_k" or nil, apart
    local unseen = C.mn_recall_gated(n, of "k", of "p_k", of_head, of "shrink", channel or -1, u, K,
      scratch("reach", write_v and write_v.n or keep_v and keep_v.n or 1), GONE, w)
    return w, n, unseen, 0
  end
end

rules.gated, rules.kept = gated(false), gated(true)

-- Rules that take out what a key holds before they write: `gates` gives how much is kept and how much is written.
local function corrected(unit, gates, kept_first)
  return function(now, layer, head)
    local history, n = now.history, #now.history
    local u, K = query(history[n], layer, head, unit)
    local w, kept, write = scratch("w", n), scratch("kept", n, "double[?]"), scratch("write", n, "double[?]")
    for j = n, 1, -1 do
      if not history[j].probes then break end
      kept[j - 1], write[j - 1] = gates(history[j], layer, head)
    end
    local unseen = C.mn_recall_corrected(n, trail(history, layer, head, "k"), trail(history, layer, head, "p_k"), kept, write,
      kept_first or false, unit, u, K, scratch("pair", K), w)
    return w, n, unseen, 0
  end
end

local function number(entry, layer, head, kind) return part(entry, layer, head, kind)[0] end

rules.delta = corrected(1, function(e, layer, head)
  local g = number(e, layer, head, "gamma")
  return 1 - g, g * number(e, layer, head, "beta")
end)
rules.fastweight = corrected(2, function(e, layer, head) return 1, number(e, layer, head, "beta") end)
rules.gated_delta = corrected(0, function(e, layer, head)
  return number(e, layer, head, "keep"), number(e, layer, head, "beta")
end, true)

---The state before the step is read, and the step itself by `first`.
function rules.bonus(now, layer, head)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, 0, "r")
  local w, first = scratch("w", n), part(history[n], layer, head, "first")
  local unseen = C.mn_recall_kept(n, trail(history, layer, head, "k"), trail(history, layer, head, "w"), nil, nil, first, u, K, w)
  return w, n, unseen, 0
end

---Each channel forgets at its rate, and what is put back for what was taken out along a direction.
function rules.unlearned(now, layer, head)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, 0, "r")
  local w = scratch("w", n)
  local function of(kind) return trail(history, layer, head, kind) end
  return w, n, C.mn_recall_kept(n, of "k_write", of "w", of "k_back", of "k_out", nil, u, K, w), 0
end

---Each channel an average, with weights e^key that decay: all channels' mean, or one channel's.
function rules.averages(now, layer, _, channel)
  local history, n = now.history, #now.history
  local _, K = part(history[n], layer, 0, "w")
  local w, keep, first = weights(n), part(history[n], layer, 0, "w"), part(history[n], layer, 0, "first")
  local keys, begin = trail(history, layer, 0, "k").steps, 1
  for j = n, 1, -1 do if keys[j - 1] == nil then begin = j + 1 break end end
  local from, to = channel or 0, channel or K - 1
  for i = from, to do
    local rate, top, sum = math.log(math.max(1e-37, keep[i])), -math.huge, 0
    local score = scratch("score", n)
    for j = begin, n do
      score[j - 1] = keys[j - 1][i] + (j == n and first[i] or (n - 1 - j) * rate)
      top = math.max(top, score[j - 1])
    end
    for j = begin - 1, n - 1 do score[j] = math.exp(score[j] - top) sum = sum + score[j] end
    for j = begin - 1, n - 1 do w[j] = w[j] + score[j] / (sum * (to - from + 1)) end
  end
  return w, n, begin - 1, 0
end

-- What a row of an attention gave, as { steps back, how many steps, weight } each: see engine/attention/attention_weights.h.
local function entries(now, layer, head, kind)
  local own = now.probes[names[kind][layer]]
  local array = own or now.probes[kind]
  if not array then return nil, 0 end
  local s = array.shape
  return array.values + (own and head or layer * s[2] + head) * s[#s - 1] * 3, s[#s - 1]
end

---f(back, steps, weight) for everything that a head attends to; what numbers of a file make no sense is passed over.
function rules.each_entry(now, layer, head, f)
  for _, kind in ipairs { "attention", "attention_global" } do
    local x, n = entries(now, layer, head, kind)
    for i = 0, n - 1 do
      local back, steps = x[3 * i], x[3 * i + 1]
      if back >= 0 and back < 2 ^ 24 and steps >= 0 and steps < 2 ^ 24 then f(math.floor(back), math.floor(steps), x[3 * i + 2]) end
    end
  end
end

-- The number in the history, from 1, of the step that many steps back; nil: it is not there.
local function step_back(now, n, back)
  local history, step = now.history, now.step - back
  local guess = n - (history[n].step - step)
  if history[guess] and history[guess].step == step then return guess end
  for j = n, 1, -1 do                            -- a history with gaps
    if history[j].step <= step then return history[j].step == step and j or nil end
  end
end

function rules.softmax(now, layer, head)
  local n = #now.history
  local w, beside, oldest = weights(n), 0, now.step - now.history[1].step
  rules.each_entry(now, layer, head, function(back, steps, weight)
    local share = 0
    for d = back, math.min(back + steps - 1, oldest) do
      local j = step_back(now, n, d)
      if j then w[j - 1], share = w[j - 1] + weight / steps, share + weight / steps end
    end
    beside = beside + weight - share
  end)
  return w, n, 0, beside
end

---How many observations lie side by side in a memory of frames.
function rules.held(now) return now.memory.frames and now.memory.frames.shape[1] + 1 end

function rules.frames(now)
  local n = #now.history
  local w, held = weights(n), math.min(n, rules.held(now))
  for j = n - held, n - 1 do w[j] = 1 / held end
  return w, n, 0, 0
end

return rules
