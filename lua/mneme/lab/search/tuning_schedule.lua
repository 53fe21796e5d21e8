-- tuning_schedule.lua -- which settings a tuning measures, in which order, with which seeds: settings that fill the space evenly (Sobol), then more
-- seeds for the best.  What is proposed depends on results alone, so it is the same however many measure at a time, and whatever was killed in
-- between.
local sobol = require "mneme.lab.search.sobol"
local tables = require "mneme.base.tables"

local tuning_schedule = {}
local AGAIN = 0.2                  -- of the trials: further seeds of the best settings, at the end

---How many settings a budget measures; the rest of its trials are further seeds of the best.
---@param o table { trials, seeds = for each setting }
function tuning_schedule.settings(o) return math.max(1, math.floor((o.trials - math.floor(AGAIN * o.trials)) / o.seeds)) end

-- The settings of proposals with all their scores, the best mean first: { id, values, scores, mean }[]; a failed trial scores as the worst that is known.
local function ranked(proposals)
  local worst = math.huge
  for _, p in ipairs(proposals) do for _, score in ipairs(p.scores) do worst = math.min(worst, score or worst) end end
  local list = tables.map(tables.groups(proposals, function(p) return p.setting end), function(of)
    local scores, sum = {}, 0
    for _, p in ipairs(of.items) do
      for _, score in ipairs(p.scores) do scores[#scores + 1] = score or worst < math.huge and worst or 0 end
    end
    for _, score in ipairs(scores) do sum = sum + score end
    return { id = of.name, values = of.items[1].values, scores = scores, mean = sum / #scores }
  end)
  table.sort(list, function(a, b) return a.mean > b.mean or a.mean == b.mean and a.id < b.id end)
  return list
end

-- One more proposal; a setting that was measured before gets further seeds.
local function propose(space, o, proposals, values, why, n)
  local _, key = space:words(values)
  local id, used, seeds, last = nil, 0, {}, 0
  for _, p in ipairs(proposals) do
    if p.key == key then id, used = p.setting, used + #p.seeds end
    last = math.max(last, p.setting)
  end
  for k = 1, n do seeds[k] = o.first_seed + used + k - 1 end
  proposals[#proposals + 1] = { setting = id or last + 1, values = values, key = key, seeds = seeds, why = why }
end

---What is measured first, whatever the results.
---@param o table { trials, seeds, top, seed, first_seed; default = the script's own setting, which comes first, or nil }
---@return table[] proposals { setting = its number, values, key, seeds, why = "start" or "last" }
function tuning_schedule.start(space, o)
  local list, point = {}, sobol.new(#space.dims, sobol.shift(#space.dims, o.seed))
  for i = 1, tuning_schedule.settings(o) do propose(space, o, list, i == 1 and o.default or space:setting(point()), "start", o.seeds) end
  return list
end

---Adds what is measured last: further seeds of the best.
---@param proposals table[] of schedule.start, each with the scores of its seeds, (number|false)[]; false: that trial failed
function tuning_schedule.finish(space, o, proposals)
  local list, rest = ranked(proposals), o.trials - tuning_schedule.settings(o) * o.seeds
  local n = math.min(o.top, rest, #list)
  for rank = 1, n do propose(space, o, proposals, list[rank].values, "last", math.floor(rest / n) + (rank <= rest % n and 1 or 0)) end
end

---The best settings: those that got further seeds, by their means.
---@return table[] list { id, values, scores, mean }, at most o.top
function tuning_schedule.best(o, proposals)
  local list, raced, best = ranked(proposals), {}, {}
  for _, p in ipairs(proposals) do raced[p.setting] = raced[p.setting] or p.why == "last" end
  for _, want in ipairs { true, false } do
    for _, entry in ipairs(list) do
      if raced[entry.id] == want and #best < o.top then best[#best + 1] = entry end
    end
  end
  return best
end

return tuning_schedule
