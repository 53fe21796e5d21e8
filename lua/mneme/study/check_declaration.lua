-- check_declaration.lua -- checks the metrics, figures, references and claims of a study before any run starts: otherwise a
-- misspelt name would show only when all runs are done.  `where` and the sides of a claim must name
-- a value of the axis in one of the study's sizes.
local claims = require "mneme.study.claims"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local folder = require "mneme.study.folder"
local grid = require "mneme.study.grid"
local only = require "mneme.study.declaration"
local values = require "mneme.base.setting_types"

local checked = {}
local metric_keys = { [1] = "string", unit = "string", range = "table", goal = "number", mean_of = "string", solved = "number" }
local figure_keys = { [1] = "string", y = "string", x = "string", by = "string", where = "table", title = "string", log = "string", statistic = "string",
  numbered = "boolean" }
local reference_keys = { [1] = "string", y = "number", of = "string", source = "string", where = "table", curve = "table" }
local kinds = { curves = true, lines = true, bars = true, heat = true, profile = true, solved = true }
local words_of = { log = { x = true, y = true, xy = true }, statistic = { mean = true, iqm = true, geometric = true } }

local function check_metric(name, metric)
  only(metric, metric_keys, "metric " .. tostring(name))
  local range = metric.range
  if range and not (#range == 2 and type(range[1]) == "number" and type(range[2]) == "number" and range[1] < range[2]) then
    errors.raise(("study: metric %s: range is %s, expected { low, high }"):format(name, values.show(range)))
  end
end

-- A name of a metric, or of what every run uses.
local function check_name(name, metrics, what)
  if not metrics or metrics[name] or metrics[name:match "[^/]*$"] or folder.used[name] then return end
  local known = tables.keys(metrics)
  for _, used in ipairs(tables.keys(folder.used)) do known[#known + 1] = used end
  errors.unknown(what, name, known)
end

-- Labels of axes: { axis = label or list of labels }.
local function check_labels(labels, axes, what)
  for axis, wanted in pairs(labels or {}) do
    if not axes[axis] then errors.unknown(("axis in %s:"):format(what), tostring(axis), tables.keys(axes)) end
    local known = grid.labels(axis, axes[axis])
    for _, label in ipairs(type(wanted) == "table" and wanted or { wanted }) do
      local any = false
      for _, k in ipairs(known) do any = any or k == values.show(label) end
      if not any then errors.unknown(("value of axis %s in %s:"):format(axis, what), values.show(label), known) end
    end
  end
end

-- Curves and series have names of their own, which only runs know; x and by of a series may be no axes.
local function check_figure(f, i, spec)
  local what = "figure " .. i
  only(f, figure_keys, what)
  if not kinds[f[1]] then errors.unknown(what .. ": kind", tostring(f[1]), tables.keys(kinds)) end
  if not f.y then errors.raise(("study: %s has no y = the name of a metric"):format(what)) end
  for key, known in pairs(words_of) do
    if f[key] and not known[f[key]] then errors.unknown(("%s: %s ="):format(what, key), f[key], tables.keys(known)) end
  end
  if f[1] == "bars" or f[1] == "profile" then check_name(f.y, spec.metrics, what .. ": y =") end
  if f[1] == "solved" and not ((spec.metrics or {})[f.y] and spec.metrics[f.y].solved and spec.metrics.steps) then
    errors.raise(("study: %s: y = %s: expected a metric with solved = number, next to a metric steps"):format(what, f.y))
  end
  local free = f[1] == "lines" or f[1] == "heat"
  for _, key in ipairs { "x", "by" } do
    local axis = f[key]
    if axis and not spec.axes[axis] and not free and not (f[1] == "curves" and key == "x") then
      errors.unknown(("axis of %s: %s ="):format(what, key), axis, tables.keys(spec.axes))
    end
  end
  check_labels(f.where, spec.axes, "where of " .. what)
end

-- A learning curve of others: { steps, value } each, in the order of steps.
local function check_curve(curve, what)
  local last = -math.huge
  for k, point in ipairs(curve) do
    local fine = type(point) == "table" and type(point[1]) == "number" and type(point[2]) == "number" and point[1] > last
    if not fine then errors.raise(("%s: curve[%d] is %s, expected { steps, value } with more steps than before"):format(what, k, values.show(point))) end
    last = point[1]
  end
end

---Refuse what cannot be meant.
---@param spec table what mn.study was given, with axes
function checked.study(spec)
  for name, metric in pairs(spec.metrics or {}) do check_metric(name, metric) end
  for i, f in ipairs(spec.figures or {}) do check_figure(f, i, spec) end
  for i, r in ipairs(spec.references or {}) do
    only(r, reference_keys, "reference " .. i)
    if not r[1] or (not r.y) == (not r.curve) then
      errors.raise(("study: reference %d: expected { name, y = number, of = metric } or { name, curve = { { steps, value }, ... }, of = metric }"):format(i))
    end
    check_curve(r.curve or {}, "study: reference " .. i)
    if r.of then check_name(r.of, spec.metrics, ("reference %d: of ="):format(i)) end
    check_labels(r.where, spec.axes, "where of reference " .. i)
  end
  claims.check(spec.claims, spec.axes)
  for i, claim in ipairs(spec.claims or {}) do
    local test, what = claim.test, "claim " .. (claim.id or i)
    if test then
      check_name(test.metric, spec.metrics, what .. ": metric")
      if test.time then check_name(test.time, spec.metrics, what .. ": time") end
      for _, key in ipairs { "a", "b", "where" } do check_labels(test[key], spec.axes, ("%s of %s"):format(key, what)) end
    end
  end
end

return checked
