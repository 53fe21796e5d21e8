-- solved_curves.lua -- a figure of the share of seeds that have solved their task against steps, by Kaplan and Meier's estimate: a run that
-- ended without having solved it counts until its end, one that failed as not solved to the end of all.
local errors = require "mneme.base.errors"
local study_folder = require "mneme.lab.study.study_folder"
local aggregate = require "mneme.lab.study.aggregate"
local setting_types = require "mneme.base.setting_types"
local kaplan_meier = require("mneme.stats").kaplan_meier

-- The curve of a group of runs as a staircase up to its longest run, and how many seeds it has.
local function staircase(group, y, above, missing)
  local times, solved = {}, {}
  local function result_of(c)
    local score, steps = study_folder.number(c, y), study_folder.number(c, "steps")
    return score and steps and { score, steps } or nil
  end
  for i, entry in ipairs(aggregate.collect(group.runs, result_of, missing)) do
    if #entry.values > 1 then
      errors.raise(("study: figure of who solved it: seed %d of %s has %d runs, expected one: narrow with where = { axis = label }"):format(
        entry.seed, group.name, #entry.values))
    end
    local score, steps = unpack(entry.values[1])
    times[i], solved[i] = steps, score >= above
  end
  if #times == 0 then return nil, 0 end
  local last = math.max(unpack(times))
  for _, c in ipairs(group.runs) do
    if c.status == "failed" then times[#times + 1], solved[#times + 1], missing[c] = last, false, nil end
  end
  local curve, line = kaplan_meier(times, solved), { name = group.name, x = { 0 }, y = { 0 } }
  local function add(x, share) line.x[#line.x + 1], line.y[#line.y + 1] = x, share end
  for i = 2, #curve.x do
    add(curve.x[i], curve.y[i - 1])
    add(curve.x[i], curve.y[i])
  end
  add(last, curve.y[#curve.y])
  return line, #times
end

---@param pick table of select.pick
---@param metric table what the study says of the metric f.y, with solved = from which value on it is solved
---@param o table { styles }; how: how the note counts
---@return integer[] counts
return function(pick, metric, f, o)
  if not metric.solved then errors.raise(("study: figure of who solved it: metric %s has no solved = number"):format(f.y)) end
  local fig, counts = { kind = "profile", x = { label = "steps" }, lines = {},
    y = { label = ("share of seeds that have reached %s"):format(setting_types.show(metric.solved)), range = { 0, 1 } } }, {}
  for _, group in ipairs(pick.groups) do
    local line, n = staircase(group, f.y, metric.solved, pick.missing)
    if line then line.style, fig.lines[#fig.lines + 1], counts[#counts + 1] = o.styles[group.name], line, n end
  end
  o.how = "Kaplan and Meier's estimate from %s: a run that ended without having solved it counts until its end."
  return fig, counts
end
