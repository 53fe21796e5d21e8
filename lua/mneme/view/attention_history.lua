-- attention_history.lua -- what each head read at each step of an episode, as shares of all that it read: worked out once for each
-- step and kept as long as the step is, since pages are painted far more often than agents live.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local recall = require "mneme.models.implicit_attention"

local shares = {}
local MOST_HEADS = 1024                          -- of a layer
local MOST_STEPS = 256                           -- of a long episode those that are looked at

-- Entry -> layer and head in one number -> { share = float[n], n, unseen, beside }.
local kept = setmetatable({}, { __mode = "k" })

-- The frame of an earlier step, as far as recall needs it; one table serves for all.
local earlier = { history = {} }
local function frame_at(now, i)
  if i == #now.history then return now end
  local history = earlier.history
  for k = #history, i + 1, -1 do history[k] = nil end
  for k = 1, i do history[k] = now.history[k] end
  earlier.step, earlier.probes, earlier.reads, earlier.memory = history[i].step, history[i].probes, now.reads, now.memory
  return earlier
end

---What a head read at a step of the episode, of all steps until then.
---@param now Frame one of which recall.problem knows nothing
---@param i integer place in now.history, of a step whose probes are kept
---@param layer integer from 0
---@param head integer from 0
---@return ffi.cdata* share float[n], of the first step at 0; with `beside` their sum is 1, or 0 where nothing was read
---@return integer n
---@return integer unseen steps at the beginning of which nothing is known
---@return number beside the share of what is no step of the history
function shares.of(now, i, layer, head)
  local entry, key = now.history[i], layer * MOST_HEADS + head
  local of_step = kept[entry] or {}
  kept[entry] = of_step
  local known = of_step[key]
  if not known then
    local w, n, unseen, beside = recall.weights(frame_at(now, i), layer, head)
    local share, sum = ffi.new("float[?]", n), beside
    for j = unseen, n - 1 do sum = sum + math.abs(w[j]) end
    for j = unseen, n - 1 do share[j] = sum > 0 and sum < math.huge and math.abs(w[j]) / sum or 0 end
    known = { share = share, n = n, unseen = unseen, beside = beside }
    of_step[key] = known
  end
  return known.share, known.n, known.unseen, known.beside
end

---Which share some heads had of step `from`, at it and at each step after it; of a long episode at some of them.
---@param now Frame
---@param from integer place in now.history
---@param rows table[] { layer, head }
---@param deadline number? of engine.C.mn_clock(false): what is not worked out by then is left out
---@return table<integer, number[]> at place in now.history -> the share of each row
---@return boolean all nothing was left out
function shares.since(now, from, rows, deadline)
  local last, at, stride = #now.history, {}, 1
  while (last - from) / stride > MOST_STEPS do stride = stride * 2 end
  for k = last, from, -1 do
    if k == last or k == from or k % stride == 0 then        -- the same ones whatever `from` is
      if deadline and engine.C.mn_clock(false) > deadline then return at, false end
      if not now.history[k].probes then break end
      at[k] = {}
      for r, row in ipairs(rows) do
        local share, _, unseen = shares.of(now, k, row.layer, row.head)
        at[k][r] = unseen < from and share[from - 1] or 0
      end
    end
  end
  return at, true
end

return shares
