-- figure_references.lua -- values of others in a study's figures: numbers are horizontal lines, learning curves are lines beside ours.
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local figure_references = {}

---@class Reference
---@field y number? a value; or
---@field curve number[][]? { steps, value } of a learning curve, steps increasing
---@field steps number? after how many steps y was measured: shown beside ours of about as many alone, and not in figures
---@field of string? the metric
---@field where table<string, any>? the place in the study, axis -> label

local function is_of(r, spec, name)
  local metrics = tables.keys(spec.metrics or {})
  local of = r.of or #metrics == 1 and metrics[1]
  return of == name or of == name:match "[^/]*$" or of == (name == "charts/episodic_return" and "mean_return")
end

---Is a run at a reference's place?
function figure_references.fits(run, where)
  for axis, label in pairs(where or {}) do
    if not setting_types.same(run.labels[axis], label) then return false end
  end
  return true
end

---The horizontal lines of a figure; nil: there are none.
function figure_references.levels(spec, name)
  local list = tables.map(spec.references or {}, function(r) return r.y and not r.steps and is_of(r, spec, name) and { name = r[1], y = r.y } or nil end)
  return #list > 0 and list or nil
end

---A curve's value after so many steps, by straight lines between its points; nil outside of them.
function figure_references.at(curve, steps)
  for i, point in ipairs(curve) do
    local before = curve[i - 1]
    if steps == point[1] then return point[2] end
    if steps < point[1] then return before and before[2] + (point[2] - before[2]) * (steps - before[1]) / (point[1] - before[1]) end
  end
end

---The learning curves of others as lines of a figure, as far as ours go; only where all of the figure's runs are at their place.
---@param last number of our steps
function figure_references.curves(spec, name, runs, last)
  local list = {}
  for _, r in ipairs(spec.references or {}) do
    local here = r.curve and is_of(r, spec, name)
    for _, run in ipairs(here and runs or {}) do here = here and figure_references.fits(run, r.where) end
    if here then
      local line = { name = r[1], x = {}, y = {} }
      local function add(steps, value) line.x[#line.x + 1], line.y[#line.y + 1] = steps, value end
      for _, point in ipairs(r.curve) do
        if point[1] <= last then add(point[1], point[2]) end
      end
      local ends = figure_references.at(r.curve, last)
      if ends and #line.x > 0 and line.x[#line.x] < last then add(last, ends) end
      if #line.x > 0 then list[#list + 1] = line end
    end
  end
  return list
end

return figure_references
