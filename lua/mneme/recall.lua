-- recall.lua -- what of the past a memory reads: how much of what was written at each past step is in what a head
-- reads now, and how long a head keeps what is written; from keys, queries and gates that were probed at each step.
-- A core says by a word, core.reads, which of these rules is its own:
--   gated        y = C q,  C = (1-b)(1-g)*C + (b v)(g k)^T          gates b of values and g of keys, where there are any
--   delta        C = (1-g) C + g b (v - C k) k^T                    keys and queries of length 1
--   fastweight   C = C + b (v - C k) k^T                            keys and queries of sum 1
--   gated_delta  C = keep C (I - b k k^T) + b v k^T
--   softmax      y = sum_j softmax_j(q.k_j / sqrt(dh)) v_j          over itself and the M steps before it
--   kept         w is the part of each channel that is kept; keys and queries meet in another way
-- The query goes back in time: at each step it meets the key, and then forgets as the memory did there.
local ffi = require "ffi"

local recall = {}
local WINDOW = 16                 -- steps over which a horizon takes the gates' mean
local GONE = 1e-7                 -- of a query that has forgotten: what was before is not read
local FOREVER = 1e6               -- steps: what is kept longer counts as kept for ever

-- Scratch, one buffer a purpose, grown on demand.
local buffers, rooms = {}, {}
local function scratch(name, n)
  if (rooms[name] or 0) < n then buffers[name], rooms[name] = ffi.new("float[?]", n), n end
  return buffers[name]
end

-- "layers.2.k", made once.
local names = setmetatable({}, { __index = function(kinds, kind)
  kinds[kind] = setmetatable({}, { __index = function(layers, layer)
    layers[layer] = "layers." .. layer .. "." .. kind
    return layers[layer]
  end })
  return kinds[kind]
end })

-- One head's numbers of a probe, and how many; nil where it was not probed.
local function part(entry, layer, head, kind)
  local array = entry.probes[names[kind][layer]]
  if not array then return nil, 0 end
  local n = 1
  for i = 2, #array.shape do n = n * array.shape[i] end
  return array.values + head * n, n
end

-- The same, multiplied out where it was probed as two factors, p_KIND (x) KIND.
local function whole(entry, layer, head, kind)
  local x, n = part(entry, layer, head, kind)
  local p, m = part(entry, layer, head, "p_" .. kind)
  if not x or not p then return x, n end
  local out = scratch(kind, n * m)
  for a = 0, m - 1 do
    for b = 0, n - 1 do out[a * n + b] = p[a] * x[b] end
  end
  return out, n * m
end

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
local function query(entry, layer, head, unit)
  local q, n = whole(entry, layer, head, "q")
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
  return read, left
end

local function gated(now, layer, head, channel)
  local history, n = now.history, #now.history
  local u, K = query(history[n], layer, head, "one")
  local w, reach, V, start = scratch("w", n), nil, 0, 0
  for i = 0, K - 1 do start = start + math.abs(u[i]) end
  ffi.fill(w, 4 * n)
  for j = n, 1, -1 do
    local e = history[j]
    if not e.probes then return w, n, j end
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
  return w, n, 0
end

-- Rules that take out what a key holds before they write: `gates` gives how much is kept and how much is written.
local function corrected(unit, gates, kept_first)
  return function(now, layer, head)
    local history, n = now.history, #now.history
    local u, K = query(history[n], layer, head, unit)
    local w = scratch("w", n)
    for j = n, 1, -1 do
      local e = history[j]
      if not e.probes then return w, n, j end
      local k = whole(e, layer, head, "k")
      local scale = lengths[unit](k, K)
      local keep, write = gates(e, layer, head)
      local read = dot(u, k, K) * scale
      local out = write * read * scale * (kept_first and keep or 1)
      for i = 0, K - 1 do u[i] = keep * u[i] - out * k[i] end
      w[j - 1] = write * read
    end
    return w, n, 0
  end
end

local function number(entry, layer, head, kind) return part(entry, layer, head, kind)[0] end

local function softmax(now, layer, head)
  local history, n = now.history, #now.history
  local q, K = part(history[n], layer, head, "q")
  local window = now.memory.mask and now.memory.mask.shape[1] or n
  local w, first, top, sum = scratch("w", n), 0, -math.huge, 0
  for j = n, 1, -1 do
    if not history[j].probes or j < n - window then first = j break end
    w[j - 1] = dot(q, part(history[j], layer, head, "k"), K) / math.sqrt(K)
    top = math.max(top, w[j - 1])
  end
  for j = first, n - 1 do w[j] = math.exp(w[j] - top) sum = sum + w[j] end
  for j = first, n - 1 do w[j] = w[j] / sum end
  for j = 0, first - 1 do w[j] = 0 end
  return w, n, history[math.max(1, first)].probes and 0 or first
end

local rules = {
  gated = gated, softmax = softmax,
  delta = corrected("length", function(e, layer, head)
    local g = number(e, layer, head, "gamma")
    return 1 - g, g * number(e, layer, head, "beta")
  end),
  fastweight = corrected("sum", function(e, layer, head) return 1, number(e, layer, head, "beta") end),
  gated_delta = corrected("one", function(e, layer, head)
    return number(e, layer, head, "keep"), number(e, layer, head, "beta")
  end, true),
}

---What a head reads now of each past step of the episode: the weight with which what was written there comes out,
---before any normaliser.  With gates of values it is the mean over their channels.
---@param now Frame
---@param layer integer from 0
---@param head integer from 0
---@param channel integer? of the values, from 0: that one's weights rather than the mean
---@return ffi.cdata*? weights float[n], one for each entry of now.history, until the next call; nil: see `problem`
---@return integer n
---@return integer unseen steps at the beginning of which nothing is known
function recall.weights(now, layer, head, channel) return rules[now.reads](now, layer, head, channel) end

-- Kinds of probes that rules read, one row a head.
local read = { q = true, k = true, r = true, w = true, beta = true, gamma = true, keep = true,
  p_q = true, p_k = true, p_gamma = true }
local needed = { delta = { "gamma", "beta" }, fastweight = { "beta" }, gated_delta = { "keep", "beta" } }

---The layers and heads of a core whose queries are probed; 0 where its probes do not go together, as those of a file
---may not.
---@return integer layers, integer heads
function recall.size(now)
  local heads, layers, odd = nil, 0, false
  for name, probe in pairs(now.probes) do
    local layer, kind = name:match "^layers%.(%d+)%.([%a_]+)$"
    if layer and read[kind] then
      heads, layers = heads or probe.shape[1], math.max(layers, layer + 1)
      odd = odd or #probe.shape == 0 or probe.shape[1] ~= heads
    end
  end
  return odd and 0 or layers, odd and 0 or heads or 0
end

-- Do queries, keys and gates of a layer have numbers that go together?
local function fits(now, layer)
  local _, q = part(now, layer, 0, "q")
  local function size(kind)
    local x, n = part(now, layer, 0, kind)
    local p, m = part(now, layer, 0, "p_" .. kind)
    return x and (p and n * m or n)
  end
  local K = size "q"
  if not K or q == 0 or size "k" ~= K then return false end
  for _, kind in ipairs(needed[now.reads] or {}) do if not size(kind) then return false end end
  return now.reads ~= "gated" or (size "gamma" or K) == K
end

---Why there are no weights; nil: there are.
function recall.problem(now)
  local layers = recall.size(now)
  local last = now.history[#now.history]
  for layer = 0, math.max(1, layers) - 1 do
    if not (last and last.probes and layers > 0 and fits(now, layer)) then return "this core shows no queries and keys" end
  end
  if not rules[now.reads] then return "this core's way of reading has no weights" end
end

-- Which gates forget, and whether they tell what goes (1 - gate stays) or what stays.
local forgets = {
  gated = { { "gamma", true }, { "beta", true } }, delta = { { "gamma", true } }, fastweight = {},
  gated_delta = { { "keep" } }, kept = { { "w" } },
}

-- What is left after n steps, of each gate's channels the mean: logs holds their logarithms a step.
local function left(groups, n)
  local all = 1
  for _, group in ipairs(groups) do
    local sum = 0
    for i = 0, group.n - 1 do sum = sum + math.exp(n * group.logs[i]) end
    all = all * sum / group.n
  end
  return all
end

---In how many steps half of what a head holds is gone, if its gates go on as they did on average in the last steps;
---what a new key takes out does not count.
---@return number? steps math.huge: never; nil: its gates were not probed
---@return number? slowest the same of the channels that keep longest
function recall.horizon(now, layer, head)
  local history, groups = now.history, {}
  local window = now.memory.mask and now.memory.mask.shape[1]
  if now.reads == "softmax" then return window, window end
  if not history[#history].probes then return nil end
  local slowest = 0
  for _, gate in ipairs(forgets[now.reads] or { { "none" } }) do
    local logs, n, count = nil, 0, 0
    for j = #history, math.max(1, #history - WINDOW + 1), -1 do
      if not history[j].probes then break end
      local x, size = whole(history[j], layer, head, gate[1])
      if not x then break end
      if not logs then logs, n = ffi.new("double[?]", size), size end
      for i = 0, n - 1 do logs[i] = logs[i] + math.log(math.max(1e-30, gate[2] and 1 - x[i] or x[i])) end
      count = count + 1
    end
    local top = -math.huge
    for i = 0, n - 1 do
      logs[i] = logs[i] / count
      top = math.max(top, logs[i])
    end
    if logs then groups[#groups + 1], slowest = { logs = logs, n = n }, slowest + top end
  end
  if #groups == 0 then
    local never = forgets[now.reads] and now.reads ~= "kept" and math.huge or nil
    return never, never
  end
  slowest = math.log(0.5) / math.min(slowest, -1e-30)
  if slowest > FOREVER then slowest = math.huge end
  local lo, hi = 0, 1
  while left(groups, hi) > 0.5 do
    lo, hi = hi, hi * 2
    if hi > FOREVER then return math.huge, slowest end
  end
  for _ = 1, 16 do
    local middle = (lo + hi) / 2
    if left(groups, middle) > 0.5 then lo = middle else hi = middle end
  end
  return hi, slowest
end

return recall
