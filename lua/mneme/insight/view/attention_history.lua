-- attention_history.lua -- the attention of each head at each step of an episode, as shares that sum to 1.  Computed once per
-- step and cached with the step, since a page is painted far more often than an agent steps.
local ffi = require "ffi"
local implicit_attention = require "mneme.models.implicit_attention"

local attention_history = {}
local MAX_HEADS = 1024                           -- of a layer

-- Entry -> layer * MAX_HEADS + head -> { share = float[n], n, unseen, beside }.
local cache = setmetatable({}, { __mode = "k" })

-- The frame of an earlier step, with the fields that implicit_attention reads; the table is used again for every step.
local earlier = { history = {} }
local function frame_at(now, i)
  if i == #now.history then return now end
  local history = earlier.history
  for k = #history, i + 1, -1 do history[k] = nil end
  for k = 1, i do history[k] = now.history[k] end
  earlier.step, earlier.probes, earlier.reads, earlier.memory = history[i].step, history[i].probes, now.reads, now.memory
  return earlier
end

---The attention of a head at a step of the episode, over all steps up to it.
---@param now Frame for which implicit_attention.problem returns nil
---@param i integer index in now.history, of a step whose probes are kept
---@param layer integer from 0
---@param head integer from 0
---@return ffi.cdata* share float[n], of the first step at 0; with `beside` their sum is 1, or 0 where nothing was read
---@return integer n
---@return integer unseen steps at the beginning of which nothing is known
---@return number beside the share of what is not a step of the history
function attention_history.of(now, i, layer, head)
  local entry, key = now.history[i], layer * MAX_HEADS + head
  local of_step = cache[entry] or {}
  cache[entry] = of_step
  local known = of_step[key]
  if not known then
    local w, n, unseen, beside = implicit_attention.weights(frame_at(now, i), layer, head)
    local share, sum = ffi.new("float[?]", n), beside
    for j = unseen, n - 1 do sum = sum + math.abs(w[j]) end
    for j = unseen, n - 1 do share[j] = sum > 0 and sum < math.huge and math.abs(w[j]) / sum or 0 end
    known = { share = share, n = n, unseen = unseen, beside = beside }
    of_step[key] = known
  end
  return known.share, known.n, known.unseen, known.beside
end

return attention_history
