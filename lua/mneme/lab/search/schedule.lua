-- schedule.lua -- which settings a tuning measures, in which order, with which seeds: an even start (Sobol), a search (noisy expected
-- improvement), then more seeds for the best.  Proposal i depends only on proposals up to i - ahead, so it is the same however many
-- measure at a time, and whatever was killed in between.
local gp = require "mneme.lab.search.gaussian_process"
local improvement = require "mneme.lab.search.improvement"
local sobol = require "mneme.lab.search.sobol"

local schedule = {}
local AGAIN = 0.2                  -- of the trials: further seeds of the best settings, at the end
local EVERY = 4                    -- one proposal in so many of the search is another seed of the best setting so far
local START = 0.25                 -- of the settings, and at least two for each dimension and two more
local PRIOR_SEEDS = 4              -- a setting's own noise counts as much as that of all once it has this many seeds more than one
local LEAST_DEGREES = 4            -- seeds beyond the first of their settings, from which on noise is measured; before, it is fitted
local LEAST_NOISE = 1e-4           -- variance of a mean, in those of the scores

---How a budget is spent.
---@param space SearchSpace
---@param o table { trials, seeds = for each setting, top = how many get further seeds }
---@return table { settings, start, top, again = further seeds of each of the best, one more for the first `extra` }
function schedule.parts(space, o)
  local settings = math.max(1, math.floor((o.trials - math.floor(AGAIN * o.trials)) / o.seeds))
  local rest = o.trials - settings * o.seeds
  local top = math.min(o.top, settings, rest)
  return { settings = settings, start = math.min(settings, math.max(2 * (#space.dims + 1), math.ceil(START * settings))), top = top,
    again = top > 0 and math.floor(rest / top) or 0, extra = top > 0 and rest % top or 0 }
end

-- ---- what is known ----

---The scores of settings from proposals 1 to `upto`; a failed trial scores as the worst that is known.
---@param proposals table[]
---@param upto integer
---@param measured fun(i: integer): (number|false)[]? the scores of a proposal; false: that trial failed; nil: not all are there
---@return table[]? list { id, values, scores, mean }; nil: something is not measured yet
function schedule.known(proposals, upto, measured)
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
  if worst == math.huge then worst = 0 end
  for _, entry in ipairs(list) do
    local sum = 0
    for k, score in ipairs(entry.scores) do
      entry.scores[k] = score or worst
      sum = sum + entry.scores[k]
    end
    entry.mean = sum / #entry.scores
  end
  return list
end

-- The variance of each setting's mean, measured between seeds: its own, drawn towards that of all settings; nil: too few have two.
local function noise_of(list)
  local squares, degrees, own = 0, 0, {}
  for i, entry in ipairs(list) do
    local sum = 0
    for _, score in ipairs(entry.scores) do sum = sum + (score - entry.mean) ^ 2 end
    own[i], squares, degrees = sum, squares + sum, degrees + #entry.scores - 1
  end
  if degrees < LEAST_DEGREES then return nil end
  local noise = {}
  for i, entry in ipairs(list) do
    local n = #entry.scores
    noise[i] = (PRIOR_SEEDS * squares / degrees + own[i]) / (PRIOR_SEEDS + n - 1) / n
  end
  return noise
end

local function mean_and_sd(y)
  local sum, squares = 0, 0
  for _, v in ipairs(y) do sum = sum + v end
  local mean = sum / #y
  for _, v in ipairs(y) do squares = squares + (v - mean) ^ 2 end
  local sd = math.sqrt(squares / math.max(1, #y - 1))
  return mean, sd > 0 and sd or 1
end

---A Gaussian process of the scores of settings.
---@param space SearchSpace
---@param list table[] of schedule.known
---@return GaussianProcess process of scores less `mean`, in units of `sd`
---@return number mean
---@return number sd
function schedule.model(space, list)
  local x, y, counts, noise = {}, {}, {}, noise_of(list)
  for i, entry in ipairs(list) do x[i], y[i], counts[i] = space:encode(entry.values), entry.mean, #entry.scores end
  local mean, sd = mean_and_sd(y)
  for i, v in ipairs(y) do
    y[i] = (v - mean) / sd
    if noise then noise[i] = math.max(noise[i] / sd ^ 2, LEAST_NOISE) end
  end
  return gp.fit(x, y, noise, space.groups, counts), mean, sd
end

---Settings with what is expected of each, the best first.
---@return table[] list { id, values, scores, mean, expected, sd = of what is expected }
function schedule.ranked(space, list)
  local process, mean, sd = schedule.model(space, list)
  for _, entry in ipairs(list) do
    local m, variance = process:predict(space:encode(entry.values))
    entry.expected, entry.sd = mean + sd * m, sd * math.sqrt(variance)
  end
  table.sort(list, function(a, b) return a.expected > b.expected or a.expected == b.expected and a.id < b.id end)
  return list
end

-- What trials of a setting cost, as a function of the encoded setting: a process of the logarithms of measured seconds.
local function cost_model(space, list, seconds)
  local x, y = {}, {}
  for _, entry in ipairs(list) do
    local s = seconds(entry.id)
    if s and s > 0 then x[#x + 1], y[#y + 1] = space:encode(entry.values), math.log(s) end
  end
  if #x < 3 then return nil end
  local mean, sd = mean_and_sd(y)
  for i, v in ipairs(y) do y[i] = (v - mean) / sd end
  local process = gp.fit(x, y, nil, space.groups)
  return function(point) return math.exp(mean + sd * process:predict(point)) end
end

-- ---- what comes next ----

-- A setting that was measured before gets further seeds.
local function proposal(space, o, proposals, setting, why, n)
  local _, key = space:words(setting)
  local id, used = nil, 0
  for _, p in ipairs(proposals) do
    local _, other = space:words(p.values)
    if other == key then id, used = p.setting, used + #p.seeds end
  end
  local seeds = {}
  for k = 1, n do seeds[k] = o.first_seed + used + k - 1 end
  if not id then
    id = 0
    for _, p in ipairs(proposals) do id = math.max(id, p.setting) end
    id = id + 1
  end
  return { setting = id, values = setting, seeds = seeds, why = why }
end

-- Point i of the even start; the script's own setting comes before.
local function start_point(space, o, i)
  local uniform, shift = improvement.random(o.seed, 0), {}
  for d = 1, #space.dims do shift[d] = uniform() end
  local next_point, point = sobol.new(#space.dims, shift), nil
  for _ = 1, i do point = next_point() end
  return space:setting(point)
end

---The next proposal.
---@param space SearchSpace
---@param o table { trials, seeds, top, ahead, seed, first_seed; default = the script's own setting, or nil; seconds = nil |
---  fun(setting): number?, what its trials took: improvement then counts per second }
---@param proposals table[] those before: { setting = its number, values, seeds, why = "start", "search", "again" or "last" }
---@param measured fun(i: integer): (number|false)[]? see schedule.known
---@return table? proposal nil: none now
---@return boolean? over no more will come
function schedule.next(space, o, proposals, measured)
  local parts, i = schedule.parts(space, o), #proposals + 1
  if i <= parts.start then
    local at = o.default and i - 1 or i
    return proposal(space, o, proposals, at == 0 and o.default or start_point(space, o, at), "start", o.seeds)
  elseif i <= parts.settings then
    local upto = math.max(1, i - o.ahead)
    local list = schedule.known(proposals, upto, measured)
    if not list then return nil end
    if (i - parts.start) % EVERY == 0 then
      return proposal(space, o, proposals, schedule.ranked(space, list)[1].values, "again", o.seeds)
    end
    local pending, settings = {}, {}
    for k = upto + 1, i - 1 do pending[#pending + 1] = proposals[k].values end
    for k, entry in ipairs(list) do settings[k] = entry.values end
    local cost = o.seconds and cost_model(space, list, o.seconds)
    local setting = improvement.propose(space, (schedule.model(space, list)), pending, { seed = o.seed, stream = i, settings = settings, cost = cost })
    return proposal(space, o, proposals, setting, "search", o.seeds)
  elseif i <= parts.settings + parts.top then
    local list = schedule.known(proposals, parts.settings, measured)
    if not list then return nil end
    local rank = i - parts.settings
    local entry = schedule.ranked(space, list)[rank]
    if not entry then return nil, true end
    return proposal(space, o, proposals, entry.values, "last", parts.again + (rank <= parts.extra and 1 or 0))
  end
  return nil, true
end

---The best settings, once all is measured: those that got further seeds, by what is expected of them now.
---@return table[]? list see schedule.ranked, at most o.top; nil: something is not measured yet
function schedule.best(space, o, proposals, measured)
  local list, raced, best = schedule.known(proposals, #proposals, measured), {}, {}
  if not list then return nil end
  for _, p in ipairs(proposals) do raced[p.setting] = raced[p.setting] or p.why == "last" end
  for _, want in ipairs { true, false } do
    for _, entry in ipairs(schedule.ranked(space, list)) do
      if raced[entry.id] == want and #best < o.top then best[#best + 1] = entry end
    end
  end
  return best
end

return schedule
