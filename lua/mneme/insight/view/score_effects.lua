-- score_effects.lua -- which settings of many runs go with their scores: by how much of the scores' spread the runs of one value agree.
local mean = require("mneme.stats").mean
local tables = require "mneme.base.tables"

local FEWEST, VALUES = 4, 6                   -- runs; values of a setting: of more numbers, as many ranges

-- Values that are told apart, as groups of runs: a setting of many numbers in ranges of as many runs each.
local function groups_of(runs, key)
  local numbers, list = true, tables.groups(runs, function(r) return r.settings[key] end)
  for k, of in ipairs(list) do
    list[k] = tables.map(of.items, function(r) return r.score end)
    list[k].name, list[k].number, numbers = of.name, tonumber(of.name), numbers and tonumber(of.name) ~= nil
  end
  table.sort(list, function(a, b) if numbers then return a.number < b.number end return a.name < b.name end)
  if #list <= VALUES then return list end
  if not numbers then return {} end
  local n, ranges, many = 0, {}, 0
  for _, g in ipairs(list) do n = n + #g end
  for _, g in ipairs(list) do
    local at = math.min(VALUES, 1 + math.floor(VALUES * many / n))
    local range = ranges[at] or { first = g.name, number = g.number }
    ranges[at], range.last, many = range, g.name, many + #g
    for _, score in ipairs(g) do range[#range + 1] = score end
    range.name = range.first == range.last and range.first or range.first .. " to " .. range.last
  end
  list = {}
  for at = 1, VALUES do list[#list + 1] = ranges[at] end
  return list
end

---@param runs table[] { score, settings = texts by name }
---@param names string[] of settings that differ
---@return table[] effects { name, share = of the spread of scores that lies between the values, groups = { name, mean, n } }, the largest first; none
---  of fewer than four runs, of equal scores, or of a setting whose every value has one run
return function(runs, names)
  local scores, effects = tables.map(runs, function(r) return r.score end), {}
  local all, spread = #scores > 0 and mean(scores), 0
  for _, x in ipairs(scores) do spread = spread + (x - all) ^ 2 end
  if #runs < FEWEST or spread == 0 then return effects end
  for _, name in ipairs(names) do
    local groups, between, within, most = groups_of(runs, name), 0, 0, 0
    for _, g in ipairs(groups) do
      g.mean, g.n, most = mean(g), #g, math.max(most, #g)
      between = between + #g * (g.mean - all) ^ 2
      for _, x in ipairs(g) do within = within + (x - g.mean) ^ 2 end
    end
    if #groups > 1 and most > 1 then effects[#effects + 1] = { name = name, share = between / math.max(between + within, 1e-12), groups = groups } end
  end
  table.sort(effects, function(a, b) if a.share ~= b.share then return a.share > b.share end return a.name < b.name end)
  return effects
end
