-- tuning_picks.lua -- reads the settings that a tuning picked.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local run_folder = require "mneme.runs.run_folder"

local journal = {}

local SHAPE = { tune = { ranges = "string", by = "string" }, trials = "number", steps = "number", first_seed = "number",
  points = { { name = "string", labels = { ["*"] = "string" }, picks = { { setting = "number", mean = "number", seeds = "number" } }, seeds = "number" } } }

---Is this what tuned.json holds?
function journal.is_tuned(t)
  if type(t) ~= "table" or run_folder.fault(t, SHAPE, "") or not (t.tune and t.trials and t.first_seed and t.points) then return false end
  for _, point in ipairs(t.points) do
    local pick = (point.picks or {})[1]
    if not (point.name and point.labels and point.seeds and pick and pick.mean and pick.seeds and type(pick.values) == "table") then return false end
  end
  return t.points[1] ~= nil and t.tune.ranges ~= nil and t.tune.by ~= nil
end

---What is known of a study's tuning; nil: it has none, or it is not over.
---@return table? { tune, trials, steps, first_seed, points = { name, labels, picks, default, seeds, trials }, kept = the file that it was taken from }
function journal.tuned(path)
  local file = path .. "/tune/tuned.json"
  local t = files.is_file(file) and json.decode((files.read(file)), file) or nil
  if t ~= nil and not journal.is_tuned(t) then errors.fail(file .. ": not the end of a tuning", "remove it: mneme sweep writes it again") end
  return t
end

return journal
