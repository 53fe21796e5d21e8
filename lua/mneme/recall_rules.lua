-- recall_rules.lua -- how memories read what was written at each past step, one function for each way of reading (see
-- recall.lua): f(now, layer, head, channel) -> weights float[n] until the next call, n, unseen, beside.
-- The query goes back in time: at each step it meets the key, and then forgets as the memory did there.
local ffi = require "ffi"

local rules = {}
local GONE = 1e-7                 -- of a query that has forgotten: what was before is not read

-- Scratch, one buffer a purpose, grown on demand.
local buffers, rooms = {}, {}
local function scratch(name, n)
  if (rooms[name] or 0) < n then buffers[name], rooms[name] = ffi.new("float[?]", n), n end
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
  local n = 1
  for i = 2, #array.shape do n = n * array.shape[i] end
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

local function dot(a, b, n)
  local sum = 0
  for i = 0, n - 1 do sum = sum + a[i] * b[i] end
  return sum
end

-- 1 over a vector's length or sum; 0 of one that is all zero.
local lengths = {
  one = function() return 1 end,
  length = function(x, n) local s = math.sqrt(dot(x, x, n)) return s > 0 and 1 / s or 0 end,
  sum = function(x, n) local s = 0 for i = 0, n - 1 do s = s + x[i] end return s > 0 and 1 / s or 0 end,
}

-- The query as it will go back: a copy, scaled.
local function query(entry, layer, head, unit, kind)
  local q, n = whole(entry, layer, head, kind or "q")
  local u = scratch("u", n)
  local scale = lengths[unit](q, n)
  for i = 0, n - 1 do u[i] = q[i] * scale end
  return u, n
end

-- One step of the query's way back, over keys and gates of which either may be a product of two factors: what it
-- reads there; it forgets as the memory did, and what is left of it comes second.
local function meet(u, e, layer, head)
  local k, n = part(e, layer, head, "k")
  local p, m = part(e, layer, head, "p_k")
  local g, inner = part(e, layer, head, "gamma")
  local f, outer = part(e, layer, head, "p_gamma")
  local shrink = part(e, layer, head, "shrink")
  if f then n, m = inner, outer elseif not p then m = 1 end
  local read, left = 0, 0
  for a = 0, m - 1 do
    local at, key, keys = u + a * n, p and p[a] or 1, p and k or k + a * n
    if g then
      local gate, gates = f and f[a] or 1, f and g or g + a * n
      for b = 0, n - 1 do
        local x, forget = at[b], gate * gates[b]
        read = read + x * forget * key * keys[b]
        x = x * (1 - forget)
        at[b], left = x, left + math.abs(x)
      end
    else
      read, left = read + key * dot(at, keys, n), math.huge
    end
  end
  if shrink then for i = 0, m * n - 1 do u[i] = u[i] * shrink[0] end end
  return read, left
end

function rules.gated(now, layer, head, channel)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, "one")
  local w, reach, V, start = weights(n), nil, 0, 0
  for i = 0, K - 1 do start = start + math.abs(u[i]) end
  for j = n, 1, -1 do
    local e = history[j]
    if not e.probes then return w, n, j, 0 end
    local b, values = part(e, layer, head, "beta")
    if j == n then
      V = math.max(1, values)
      reach = scratch("reach", V)
      if V == 1 then channel = nil end           -- one gate for all of them
      for d = 0, V - 1 do reach[d] = 1 end
    end
    local read, left = meet(u, e, layer, head)
    local through = 0
    for d = 0, V - 1 do
      local gate = b and b[d] or 1
      if not channel or channel == d then through = through + reach[d] * gate end
      if b then reach[d] = reach[d] * (1 - gate) end
    end
    w[j - 1] = read * through / (channel and 1 or V)
    if left < GONE * start then break end
  end
  return w, n, 0, 0
end

-- Rules that take out what a key holds before they write: `gates` gives how much is kept and how much is written.
local function corrected(unit, gates, kept_first)
  return function(now, layer, head)
    local history, n = now.history, #now.history
    local u, K = query(history[n], layer, head, unit)
    local w = weights(n)
    for j = n, 1, -1 do
      local e = history[j]
      if not e.probes then return w, n, j, 0 end
      local k = whole(e, layer, head, "k")
      local scale = lengths[unit](k, K)
      local keep, write = gates(e, layer, head)
      local read = dot(u, k, K) * scale
      local out = write * read * scale * (kept_first and keep or 1)
      for i = 0, K - 1 do u[i] = keep * u[i] - out * k[i] end
      w[j - 1] = write * read
    end
    return w, n, 0, 0
  end
end

local function number(entry, layer, head, kind) return part(entry, layer, head, kind)[0] end

rules.delta = corrected("length", function(e, layer, head)
  local g = number(e, layer, head, "gamma")
  return 1 - g, g * number(e, layer, head, "beta")
end)
rules.fastweight = corrected("sum", function(e, layer, head) return 1, number(e, layer, head, "beta") end)
rules.gated_delta = corrected("one", function(e, layer, head)
  return number(e, layer, head, "keep"), number(e, layer, head, "beta")
end, true)

---The state before the step is read, and the step itself by `first`.
function rules.bonus(now, layer, head)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, "one", "r")
  local w, first = weights(n), part(history[n], layer, head, "first")
  for j = n, 1, -1 do
    local e = history[j]
    if not e.probes then return w, n, j, 0 end
    local k, keep, read = part(e, layer, head, "k"), part(e, layer, head, "w"), 0
    for i = 0, K - 1 do
      if j == n then read = read + u[i] * first[i] * k[i]
      else read, u[i] = read + u[i] * k[i], u[i] * keep[i] end
    end
    w[j - 1] = read
  end
  return w, n, 0, 0
end

---Each channel forgets at its rate, and what is put back for what was taken out along a direction.
function rules.unlearned(now, layer, head)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, "one", "r")
  local w = weights(n)
  for j = n, 1, -1 do
    local e = history[j]
    if not e.probes then return w, n, j, 0 end
    local keep, out = part(e, layer, head, "w"), part(e, layer, head, "k_out")
    w[j - 1] = dot(u, part(e, layer, head, "k_write"), K)
    local back = dot(u, part(e, layer, head, "k_back"), K)
    for i = 0, K - 1 do u[i] = keep[i] * u[i] - back * out[i] end
  end
  return w, n, 0, 0
end

---Each channel an average, with weights e^key that decay: all channels' mean, or one channel's.
function rules.averages(now, layer, _, channel)
  local history, n = now.history, #now.history
  local _, K = part(history[n], layer, 0, "w")
  local w, keep, first = weights(n), part(history[n], layer, 0, "w"), part(history[n], layer, 0, "first")
  local at, begin = names.k[layer], 1
  for j = n, 1, -1 do if not history[j].probes then begin = j + 1 break end end
  local from, to = channel or 0, channel or K - 1
  for i = from, to do
    local rate, top, sum = math.log(math.max(1e-37, keep[i])), -math.huge, 0
    local score = scratch("score", n)
    for j = begin, n do
      score[j - 1] = history[j].probes[at].values[i] + (j == n and first[i] or (n - 1 - j) * rate)
      top = math.max(top, score[j - 1])
    end
    for j = begin - 1, n - 1 do score[j] = math.exp(score[j] - top) sum = sum + score[j] end
    for j = begin - 1, n - 1 do w[j] = w[j] + score[j] / (sum * (to - from + 1)) end
  end
  return w, n, begin - 1, 0
end

-- What a row of an attention gave, as { steps back, how many steps, weight } each: see engine/weights.h.
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

-- The number in the history, from 1, of the step so many steps back; nil: it is not there.
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
