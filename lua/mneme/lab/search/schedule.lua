-- schedule.lua -- which settings a tuning measures, in which order, with which seeds: settings that fill the space evenly (Sobol), then more
-- seeds for the best.  What is proposed depends on results alone, so it is the same however many measure at a time, and whatever was killed in
-- between.
local sobol = require "mneme.lab.search.sobol"

local schedule = {}
local AGAIN = 0.2                  -- of the trials: further seeds of the best settings, at the end

---How a budget is spent.
---@param o table { trials, seeds = for each setting, top = how many get further seeds }
---@return table { settings, top, again = further seeds of each of the best, one more for the first `extra` }
function schedule.parts(o)
  local settings = math.max(1, math.floor((o.trials - math.floor(AGAIN * o.trials)) / o.seeds))
  local rest = o.trials - settings * o.seeds
  local top = math.min(o.top, settings, rest)
  return { settings = settings, top = top }
end

-- The settings of proposals 1 to `upto` with their scores, the best mean first: { id, values, scores, mean }[]; a failed trial scores as the worst
-- that is known; nil: something is not measured yet.
local function ranked(proposals, upto, measured)
  local list, by_id, worst = {}, {}, math.huge
  for i = 1, upto do
    local p, scores = proposals[i], measured(i)
    if not scores then return nil end
    local entry = by_id[p.setting]
    if not entry then
      entry = { id = p.setting, values = p.values, scores = {} }
      by_id[p.setting], list[#list + 1] = entry, entry
    end
    for _, score in ipairs(scores) do
      entry.scores[#entry.scores + 1] = score
      if score then worst = math.min(worst, score) end
    end
  end
  for _, entry in ipairs(list) do
    local sum = 0
    for k, score in ipairs(entry.scores) do
      entry.scores[k] = score or worst < math.huge and worst or 0
      sum = sum + entry.scores[k]
    end
    entry.mean = sum / #entry.scores
  end
  table.sort(list, function(a, b) return a.mean > b.mean or a.mean == b.mean and a.id < b.id end)
  return list
end

-- A setting that was measured before gets further seeds.
local function proposal(space, o, proposals, setting, why, n)
  local _, key = space:words(setting)
  local id, used, seeds = nil, 0, {}
  for _, p in ipairs(proposals) do if p.key == key then id, used = p.setting, used + #p.seeds end end
  for k = 1, n do seeds[k] = o.first_seed + used + k - 1 end
  for _, p in ipairs(id and {} or proposals) do used = math.max(used, p.setting) end
  return { setting = id or used + 1, values = setting, key = key, seeds = seeds, why = why }
end

---The next proposal.
---@param o table { trials, seeds, top, seed, first_seed; default = the script's own setting, which comes first, or nil }; keeps the even points
---@param proposals table[] those before: { setting = its number, values, key, seeds, why = "start" or "last" }
---@param measured fun(i: integer): (number|false)[]? the scores of a proposal; false: that trial failed; nil: not all are there
---@return table? proposal nil: none now
---@return boolean? over no more will come
function schedule.next(space, o, proposals, measured)
  local parts, i = schedule.parts(o), #proposals + 1
  if i <= parts.settings then
    o.even = o.even or { next = sobol.new(#space.dims, sobol.shift(#space.dims, o.seed)), [0] = o.default }
    local at = o.default and i - 1 or i
    for k = #o.even + 1, at do o.even[k] = space:setting(o.even.next()) end
    return proposal(space, o, proposals, o.even[at], "start", o.seeds)
  end
  local rank = i - parts.settings
  local list = rank <= parts.top and ranked(proposals, parts.settings, measured)
  if not list then return nil, rank > parts.top end
  local n, rest = math.min(parts.top, #list), o.trials - parts.settings * o.seeds          -- few settings may be all that there are
  if rank > n then return nil, true end
  return proposal(space, o, proposals, list[rank].values, "last", math.floor(rest / n) + (rank <= rest % n and 1 or 0))
end

---The best settings, once all is measured: those that got further seeds, by their means.
---@return table[]? list { id, values, scores, mean }, at most o.top; nil: something is not measured yet
function schedule.best(o, proposals, measured)
  local list, raced, best = ranked(proposals, #proposals, measured), {}, {}
  for _, p in ipairs(proposals) do raced[p.setting] = raced[p.setting] or p.why == "last" end
  for _, want in ipairs(list and { true, false } or {}) do
    for _, entry in ipairs(list) do
      if raced[entry.id] == want and #best < o.top then best[#best + 1] = entry end
    end
  end
  return list and best
end

return schedule
