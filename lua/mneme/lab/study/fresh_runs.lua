-- fresh_runs.lua -- the best settings of a tuning again, with seeds that it has not seen, next to the script's own setting: an ordinary
-- study's folder with the axis `pick` = 1, 2, ... and script.  The order of the picks is the tuning's; fresh seeds do not change it.
local declared = require "mneme.lab.study.declared"
local errors = require "mneme.base.errors"
local folder = require "mneme.lab.study.folder"
local schedule = require "mneme.lab.search.schedule"

---@class FreshRuns
local Fresh = {}
Fresh.__index = Fresh
local fresh_runs = {}

---Refuse seeds that a tuning has used, or may use.
function fresh_runs.check(t, seeds)
  for _, seed in ipairs(seeds) do
    if seed >= t.first_seed and seed < t.first_seed + t.trials then
      errors.usage(("seed %.0f is one of the tuning's, which are %d to %d; expected fresh ones"):format(seed, t.first_seed, t.first_seed + t.trials - 1))
    end
  end
end

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

-- f(run) for all runs that are known.
local function each(self, f)
  for _, point in ipairs(self.t.points) do
    for _, row in ipairs(self.of[point] or {}) do
      for _, run in ipairs(row.runs) do f(run) end
    end
  end
end

---The fresh runs of a point: { label, values, pick, runs }[]; nil: its picks are not known yet.
function Fresh:rows(point)
  if self.of[point] then return self.of[point] end
  local t, rows = self.t, rows_of(self.t, point)
  for _, row in ipairs(rows or {}) do
    row.runs = {}
    for k, seed in ipairs(self.seeds) do
      row.runs[k] = t:run_of(point, t.run, "pick", row.label, row.values, seed)
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
  local t, runs = self.t, {}
  each(self, function(run) runs[#runs + 1] = run end)
  folder.note(t.run, { script = t.script, title = t.title, settings = table.concat(t.words, " ") }, runs)
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

---How many have ended, of these failed, and without a score.
---@return { ended: integer, failed: integer, without: integer }
function Fresh:count()
  local count = { ended = 0, failed = 0, without = 0 }
  each(self, function(run) self.t:add(count, run) end)
  return count
end

---How many there will be.
function Fresh:size()
  local n = 0
  for _, point in ipairs(self.t.points) do
    local rows = self.of[point] and #self.of[point]
    n = n + (rows or math.min(self.t.top, schedule.parts(self.t).settings) + (point.default and 1 or 0)) * #self.seeds
  end
  return n
end

function Fresh:over()
  for _, point in ipairs(self.t.points) do if not self:rows(point) then return false end end
  return self:count().ended == self:size()
end

return fresh_runs
