-- implicit_attention.lua -- which past steps a memory reads: how much of each past step's write is in what a head
-- reads now, and how long a head keeps what it writes.  It is computed from probes: keys, queries and gates at each
-- step for recurrent memories; for softmax the weights themselves, which the engine returns for the last step
-- (engine/attention/attention_weights.h).  core.reads names the way a core reads:
--   gated        y = C q,  C = (1-b)(1-g)*C + (b v)(g k)^T          gates b of values and g of keys, where there are any; or
--                C = shrink*C + v k^T, of which f is what is forgotten and the rest a change of scale
--   kept         the same,  C = keep_v keep_k^T * C + (b v)(g k)^T   a decay that is another product of values and keys
--   delta        C = (1-g) C + g b (v - C k) k^T                    keys and queries of length 1
--   fastweight   C = C + b (v - C k) k^T                            keys and queries of sum 1
--   gated_delta  C = keep C (I - b k k^T) + b v k^T
--   bonus        y = r^T (S + diag(first) k v^T),  S = diag(w) S + k v^T
--   unlearned    S = diag(w) S - k_back (k_out^T S) + k_write v^T,  y = r^T S
--   averages     each channel: values weighted with e^k w^(steps between), the newest with e^(first + k)
--   softmax      attention; probes named `attention` hold its weights
--   frames       the last observations, concatenated
-- and if a step has no weight, the reason:
--   joint        each element of a matrix decays at its own rate, because the decay is no product of values and keys
--   vector       one vector per layer, into which every step is mixed
--   nothing      there is no memory
local ffi = require "ffi"
local implicit_attention_rules = require "mneme.models.implicit_attention_rules"
local tables = require "mneme.base.tables"

local implicit_attention = {}
local WINDOW = 16                 -- steps over which a horizon takes the gates' mean
local FOREVER = 1e6               -- steps: what is kept longer counts as kept for ever

local function set(text) return tables.set(tables.found(text, "%S+")) end

-- rule: weights.  needs: kinds of probes that must be there, of as many numbers a head as the first; singles: of any
-- number of them.  may: kinds that may be there.  forgets: gates that forget, and whether they give what is forgotten (1 - gate
-- stays) or what stays.  why: there are no weights.
local ways = {
  gated = { rule = implicit_attention_rules.gated, needs = { "q", "k" }, may = set "beta gamma p_q p_k p_gamma shrink f",
    forgets = { { "gamma", true }, { "beta", true }, { "f" } } },
  kept = { rule = implicit_attention_rules.kept, needs = { "q", "k" }, may = set "beta gamma p_q p_k p_gamma shrink keep_v keep_k",
    forgets = { { "keep_k" }, { "keep_v" } } },
  delta = { rule = implicit_attention_rules.delta, needs = { "q", "k" }, singles = { "gamma", "beta" }, may = set "p_q p_k", forgets = { { "gamma", true } } },
  fastweight = { rule = implicit_attention_rules.fastweight, needs = { "q", "k" }, singles = { "beta" }, may = set "p_q p_k", forgets = {} },
  gated_delta = { rule = implicit_attention_rules.gated_delta, needs = { "q", "k" }, singles = { "keep", "beta" }, forgets = { { "keep" } } },
  bonus = { rule = implicit_attention_rules.bonus, needs = { "r", "k", "w", "first" }, forgets = { { "w" } } },
  unlearned = { rule = implicit_attention_rules.unlearned, needs = { "r", "k_write", "k_out", "k_back", "w" }, forgets = { { "w" } } },
  averages = { rule = implicit_attention_rules.averages, needs = { "w", "first" }, forgets = { { "w" } } },
  softmax = { rule = implicit_attention_rules.softmax },
  frames = { rule = implicit_attention_rules.frames },
  joint = { why = "no weight belongs to a step: this core's decay is no product of values and keys, so each element of its matrix forgets at "
    .. "its own rate", no_horizon = "each element of this core's matrix forgets at its own rate, so a head has no half-life" },
  vector = { why = "no weight belongs to a step: this core keeps one vector a layer, and mixes every step into all of it",
    no_horizon = "this core has no heads with a half-life" },
  nothing = { why = "nothing is read of the past: this core has no memory" },
}

---What a head reads now of each past step of the episode: the weight with which what was written there comes out,
---before any normaliser.  With gates of values it is the mean over their channels; weights of softmax are shares, with
---`beside` they sum to 1.
---@param now Frame
---@param layer integer from 0
---@param head integer from 0
---@param channel integer? of the values, from 0: that one's weights rather than the mean
---@return ffi.cdata*? weights float[n], one for each entry of now.history, until the next call; nil: see `problem`
---@return integer n
---@return integer unseen steps at the beginning of which nothing is known
---@return number beside the share of what is not a step of the history: memory tokens, steps that were not recorded
function implicit_attention.weights(now, layer, head, channel) return ways[now.reads].rule(now, layer, head, channel) end

-- Does a probe hold what an attention gave: [H,N,3], or of all layers [L,H,N,3]?
local function is_attention(array, axes)
  local s = array.shape
  return #s == axes and s[axes] == 3
end

-- Layers and heads of softmax; 0 where probes do not go together.
local function size_of_softmax(now)
  local all = now.probes.attention
  if all then
    if is_attention(all, 4) then return all.shape[1], all.shape[2] end
    return 0, 0
  end
  local layers, heads = 0, nil
  while now.probes["layers." .. layers .. ".attention"] do
    for _, kind in ipairs { ".attention", ".attention_global" } do
      local array = now.probes["layers." .. layers .. kind]
      if array and not (is_attention(array, 3) and (heads or array.shape[1]) == array.shape[1]) then return 0, 0 end
      heads = array and array.shape[1] or heads
    end
    layers = layers + 1
  end
  return layers, heads or 0
end

---The layers and heads of a core that can be asked for; 0 where its probes do not go together, as those of a file may
---not.
---@param now Frame
---@return integer layers, integer heads
function implicit_attention.size(now)
  local way = ways[now.reads] or {}
  if now.reads == "softmax" then return size_of_softmax(now) end
  if now.reads == "frames" then return implicit_attention_rules.held(now) and 1 or 0, 1 end
  local read, heads, layers, odd = {}, nil, 0, false
  for _, list in ipairs { way.needs or {}, way.singles or {} } do
    for _, kind in ipairs(list) do read[kind] = true end
  end
  for name, probe in pairs(now.probes) do
    local layer, kind = name:match "^layers%.(%d+)%.([%a_]+)$"
    if layer and (read[kind] or (way.may or {})[kind]) then
      heads, layers = heads or probe.shape[1], math.max(layers, layer + 1)
      odd = odd or #probe.shape == 0 or probe.shape[1] ~= heads
    end
  end
  return odd and 0 or layers, odd and 0 or heads or 0
end

-- Do queries, keys and gates of a layer have numbers that go together?
local function fits(now, layer)
  local way = ways[now.reads]
  local function size(kind)
    local x, n = implicit_attention_rules.part(now, layer, 0, kind)
    local p, m = implicit_attention_rules.part(now, layer, 0, "p_" .. kind)
    return x and (p and n * m or n)
  end
  local K = size(way.needs[1])
  if not K or K == 0 then return false end
  for _, kind in ipairs(way.needs) do if size(kind) ~= K then return false end end
  for _, kind in ipairs(way.singles or {}) do if not size(kind) then return false end end
  if now.reads == "averages" then
    local k = now.probes["layers." .. layer .. ".k"]
    return k and #k.shape == 1 and k.shape[1] == K
  end
  if now.reads == "kept" then
    local keep_k, keep_v, beta = size "keep_k" or 1, size "keep_v", size "beta"
    if keep_k ~= 1 and keep_k ~= K or keep_v and beta and keep_v ~= beta then return false end
  end
  return now.reads ~= "gated" and now.reads ~= "kept" or (size "gamma" or K) == K
end

---Does a core look at steps of a certain distance, rather than forget little by little?
---@param now Frame
---@return boolean
function implicit_attention.reaches(now) return now.reads == "softmax" or now.reads == "frames" end

---Why there are no weights; nil: there are.
---@param now Frame
---@return string?
function implicit_attention.problem(now)
  local way, last = ways[now.reads], now.history[#now.history]
  if not way then return "this core does not say how it reads its memory (`reads`), and no weights that were tried are those that it reads with" end
  if way.why then return way.why end
  local layers, heads = implicit_attention.size(now)
  local shown = last and layers > 0 and heads > 0 and (last.probes or implicit_attention.reaches(now))
  for layer = 0, shown and way.needs and layers - 1 or -1 do shown = shown and fits(now, layer) end
  return not shown and "what this core reads with was not recorded" or nil
end

---What to know of the weights of all heads, besides that they are shares; nil: nothing.
---@param now Frame
---@param beside number the greatest share of a head that is not of a displayed step
---@return string?
function implicit_attention.note(now, beside)
  if now.reads == "frames" then return "the observations that lie side by side" end
  if now.reads ~= "softmax" then return nil end
  local layers, heads = implicit_attention.size(now)
  local chunks, memory = false, false
  for row = 0, layers * heads - 1 do
    implicit_attention_rules.each_entry(now, math.floor(row / heads), row % heads, function(_, steps, weight)
      chunks, memory = chunks or steps > 1 and weight > 0, memory or steps == 0 and weight > 0
    end)
  end
  if memory then return ("up to %.0f %% goes to memory tokens"):format(100 * beside) end
  return chunks and "a chunk's weight is spread over its steps" or nil
end

-- ---- how long ----

---Why there is no horizon.
---@param now Frame
---@return string
function implicit_attention.no_horizon(now) return (ways[now.reads] or {}).no_horizon or "this core has no decay to show" end

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

-- How many steps back the oldest one lies that a head of softmax sees now.
local function reach(now, layer, head)
  local most = 0
  implicit_attention_rules.each_entry(now, layer, head, function(back, steps, weight)
    if weight > 0 then most = math.max(most, back + steps - 1) end
  end)
  return most
end

---In how many steps half of what a head holds is gone, if its gates go on as they did on average in the last steps;
---what a new key takes out does not count.  Of softmax and frames: how many steps back can be read now.
---@param now Frame
---@param layer integer from 0
---@param head integer from 0
---@return number? steps math.huge: never; nil: its gates were not probed
---@return number? slowest the same of the channels that keep longest
function implicit_attention.horizon(now, layer, head)
  local history, groups = now.history, {}
  if implicit_attention.reaches(now) then
    local steps = now.reads == "frames" and implicit_attention_rules.held(now) - 1 or reach(now, layer, head)
    return steps, steps
  end
  local forgets = (ways[now.reads] or {}).forgets
  if not forgets or not history[#history].probes then return nil end
  local slowest = 0
  for _, gate in ipairs(forgets) do
    local logs, n, count = nil, 0, 0
    for j = #history, math.max(1, #history - WINDOW + 1), -1 do
      if not history[j].probes then break end
      local x, size = implicit_attention_rules.whole(history[j], layer, head, gate[1])
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
  if #groups == 0 then return math.huge, math.huge end
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

return implicit_attention
