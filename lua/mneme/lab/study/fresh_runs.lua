-- fresh_runs.lua -- the best settings of a tuning again, with seeds that it has not seen, next to the script's own setting: an ordinary
-- study's folder with the axis `pick` = 1, 2, ... and script.  The order of the picks is the tuning's; fresh seeds do not change it.
local declared = require "mneme.lab.study.declared"
local errors = require "mneme.base.errors"
local folder = require "mneme.lab.study.folder"
local made_at = require("mneme.runs.run").made_at
local schedule = require "mneme.lab.search.schedule"
local version = require "mneme.base.version"

---@class FreshRuns
local Fresh = {}
Fresh.__index = Fresh
local fresh_runs = {}

---Refuse seeds that a tuning has used, or may use.
---@param t table of tuning.open
---@param seeds integer[]
function fresh_runs.check(t, seeds)
  for _, seed in ipairs(seeds) do
    if seed >= t.first_seed and seed < t.first_seed + t.trials then
      errors.usage(("seed %.0f is one of the tuning's, which are %d to %d; expected fresh ones"):format(seed, t.first_seed, t.first_seed + t.trials - 1))
    end
  end
end

---@param t table of tuning.open
---@param seeds integer[]
---@return FreshRuns
function fresh_runs.new(t, seeds)
  fresh_runs.check(t, seeds)
  return setmetatable({ t = t, seeds = seeds, later = {}, of = {} }, Fresh)
end

-- The rows of a point: its picks, and the script's own setting if that is none of them; nil: not known yet.
local function rows_of(t, point)
  local picks = t:picks(point)
  if not picks then return nil end
  local rows, same = {}, false
  for i, pick in ipairs(picks) do
    rows[i] = { label = tostring(i), values = pick.values, pick = pick }
    local _, key = t.space:words(pick.values)
    same = same or point.default and key == select(2, t.space:words(point.default))
  end
  if point.default and not same then rows[#rows + 1] = { label = "script", values = point.default } end
  return rows
end

---The fresh runs of a point: { label, values, pick, runs }[]; nil: its picks are not known yet.
function Fresh:rows(point)
  if self.of[point] then return self.of[point] end
  local t, rows = self.t, rows_of(self.t, point)
  for _, row in ipairs(rows or {}) do
    row.runs = {}
    for k, seed in ipairs(self.seeds) do
      local name = ("%spick=%s,seed=%.0f"):format(point.name ~= "" and point.name .. "," or "", row.label, seed)
      local labels, words = { pick = row.label }, { unpack(point.words) }
      for axis, label in pairs(point.labels) do labels[axis] = label end
      for _, word in ipairs((t.space:words(row.values))) do words[#words + 1] = word end
      if t.steps then words[#words + 1] = ("steps=%.0f"):format(t.steps) end
      words[#words + 1] = ("seed=%.0f"):format(seed)
      row.runs[k] = { name = name, path = folder.run_path(t.run, name), labels = labels, seed = seed, words = words }
    end
  end
  if rows then
    self.of[point] = rows
    self:write()
  end
  return rows
end

-- study.json, with the runs of earlier commands that had other seeds.
function Fresh:write()
  local t = self.t
  local info = folder.info(t.run) or { mneme = version, script = t.script, title = t.title, settings = table.concat(t.words, " "), runs = {},
    commit = made_at().commit, host = made_at().host }
  local known = {}
  for _, c in ipairs(info.runs) do known[c.name] = true end
  for _, point in ipairs(t.points) do
    for _, row in ipairs(self.of[point] or {}) do
      for _, run in ipairs(row.runs) do
        if not known[run.name] then info.runs[#info.runs + 1] = { name = run.name, labels = run.labels, seed = run.seed, words = run.words } end
      end
    end
  end
  folder.write_info(t.run, info)
  declared.write_once(t.run, t.script, t.points[1] and t.points[1].words or {})
end

---A run to begin now, and the table of those that are put off.
function Fresh:next()
  for k = 1, #self.seeds do
    for _, point in ipairs(self.t.points) do
      for _, row in ipairs(self:rows(point) or {}) do
        local run = self.t:free({ row.runs[k] }, self.later)
        if run then return run, self.later end
      end
    end
  end
end

-- f(run) for all runs that are known.
local function each(self, f)
  for _, point in ipairs(self.t.points) do
    for _, row in ipairs(self.of[point] or {}) do
      for _, run in ipairs(row.runs) do f(run) end
    end
  end
end

---How many are done or failed, and of these failed.
---@return integer ended
---@return integer failed
function Fresh:ended()
  local n, failed = 0, 0
  each(self, function(run)
    local score = self.t:score(run)
    n, failed = n + (score ~= nil and 1 or 0), failed + (score == false and 1 or 0)
  end)
  return n, failed
end

---How many there will be.
function Fresh:size()
  local n = 0
  for _, point in ipairs(self.t.points) do
    local rows = self.of[point] and #self.of[point]
    n = n + (rows or math.min(self.t.top, schedule.parts(self.t.space, self.t).settings) + (point.default and 1 or 0)) * #self.seeds
  end
  return n
end

function Fresh:over()
  for _, point in ipairs(self.t.points) do if not self:rows(point) then return false end end
  return self:ended() == self:size()
end

return fresh_runs
