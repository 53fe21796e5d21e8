-- figure_runs.lua -- selects and groups the runs of a figure, and describes those that are
-- missing.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local grid = require "mneme.lab.study.grid"
local setting_types = require "mneme.base.setting_types"

local select_runs = {}
local NAMED = 4                -- missing runs that a note names; of more it gives the number

-- All values of each axis, in the order of the grid.
local function axes_of(runs)
  local axes = {}
  for _, c in ipairs(runs) do
    for name, label in pairs(c.labels) do
      axes[name] = axes[name] or { list = {} }
      if not axes[name][label] then axes[name][label], axes[name].list[#axes[name].list + 1] = true, label end
    end
  end
  return axes
end

---Runs by their value of an axis, in the order of the grid.
---@return table[] { name, runs }
function select_runs.groups(runs, axis)
  return grid.groups(runs, function(c) return c.labels[axis] or "–" end)          -- an axis that only later runs have
end

---The value of an axis as a number.
function select_runs.number(label, axis)
  local v = setting_types.number(label)
  if not v then errors.raise(("study: a figure has x = %s, and its value %s is no number"):format(axis, label)) end
  return v
end

-- What `where` means here: a value that this study does not have (a quick one has others) becomes its last.
local function wanted(where, axes)
  local want, swapped = {}, {}
  for _, name in ipairs(tables.keys(where or {})) do
    local axis, values = axes[name], where[name]
    if not axis then errors.unknown("axis in where of a figure:", name, tables.keys(axes)) end
    want[name] = {}
    local any = false
    for _, v in ipairs(type(values) == "table" and values or { values }) do
      for _, label in ipairs(axis.list) do
        if setting_types.same(label, v) then any, want[name][label] = true, true end
      end
    end
    if not any then
      local last = axis.list[#axis.list]
      want[name][last] = true
      swapped[#swapped + 1] = { axis = name, from = setting_types.show(type(values) == "table" and values[#values] or values), to = last }
    end
  end
  return want, swapped
end

-- Names of series that belong to y: y itself, or y/ROW.
local function series_of(runs, y)
  local whole, rows, seen = false, {}, {}
  for _, c in ipairs(runs) do
    for name in pairs(c.series or {}) do
      local row = name:sub(1, #y + 1) == y .. "/" and name:sub(#y + 2) or nil
      whole = whole or name == y
      if row and not seen[row] then seen[row], rows[#rows + 1] = true, row end
    end
  end
  table.sort(rows, function(a, b)
    local n, m = tonumber(a:match "%d+"), tonumber(b:match "%d+")
    if n and m and n ~= m and a:gsub("%d+", "") == b:gsub("%d+", "") then return n < m end
    return a < b
  end)
  return whole, rows
end

---The runs of a figure.
---@return table { runs, groups = { name, runs, series }[], series = y is one, missing, swapped, pooled }
function select_runs.pick(study, f)
  local axes = axes_of(study.runs)
  local want, swapped = wanted(f.where, axes)
  local runs = tables.map(study.runs, function(c)
    for name, labels in pairs(want) do if not labels[c.labels[name]] then return nil end end
    return c
  end)
  local whole, rows = series_of(runs, f.y)
  local known = false                            -- before a run is done nobody knows which series there will be
  for _, c in ipairs(runs) do known = known or c.status == "done" end
  local strange = f.x and not axes[f.x] or f.by and not axes[f.by]
  local series = (whole or #rows > 0 or not known and strange) and (f[1] == "lines" or f[1] == "heat")
  local pick = { runs = runs, missing = {}, swapped = swapped, series = series }
  for _, key in ipairs { "by", "x" } do
    if f[key] and not axes[f[key]] and not pick.series and f[1] ~= "curves" then
      errors.unknown(("axis for %s ="):format(key), f[key], tables.keys(axes))
    end
  end
  if pick.series and not whole and known then
    pick.groups = tables.map(rows, function(row) return { name = row, runs = runs, series = f.y .. "/" .. row } end)
  elseif f.by and axes[f.by] then pick.groups = select_runs.groups(runs, f.by)
  elseif f.by and not pick.series then errors.unknown("axis for by =", f.by, tables.keys(axes))
  else pick.groups = { { name = f.y, runs = runs } } end
  for _, group in ipairs(pick.groups) do group.series = group.series or f.y end
  local here = axes_of(runs)
  pick.pooled = tables.map(tables.keys(here), function(name)
    local shown = name == f.by or name == f.x and not pick.series
    return not shown and #here[name].list > 1 and ("%s %s"):format(name, table.concat(here[name].list, ", ")) or nil
  end)
  return pick
end

---A title with the values that took the place of others.
function select_runs.title(title, pick)
  for _, s in ipairs(pick.swapped) do
    title = (" " .. title .. " "):gsub("([^%w.])" .. s.from:gsub("%p", "%%%0") .. "([^%w.])", function(a, b) return a .. s.to .. b end):sub(2, -2)
  end
  return title
end

local reasons = { done = "without this number", open = "not finished" }

---What a note says of the choice of runs.
---@return string begins with a blank, or is empty
function select_runs.note(pick)
  local parts = {}
  if #pick.pooled > 0 then parts[1] = ("Each seed's number is its mean over %s."):format(table.concat(pick.pooled, " and ")) end
  for _, s in ipairs(pick.swapped) do parts[#parts + 1] = ("%s %s in place of %s, which this study does not have."):format(s.axis, s.to, s.from) end
  local never = {}                               -- by name, since each line of a figure may have said it
  for c in pairs(pick.missing) do if c.status == "not swept" then never[c.name] = true end end
  for _, status in ipairs { "failed", "open", "done", "not swept" } do
    local names = status == "not swept" and tables.keys(never) or {}
    for _, c in ipairs(pick.runs) do
      if pick.missing[c] and c.status == status then names[#names + 1] = c.name end
    end
    local word = reasons[status] or status
    if #names > NAMED then
      local all = #pick.runs + (status == "not swept" and #names or 0)
      parts[#parts + 1] = ("Left out, %s: %d of %d runs, among them %s."):format(word, #names, all, table.concat(names, "; ", 1, NAMED - 1))
    elseif #names > 0 then parts[#parts + 1] = ("Left out, %s: %s."):format(word, table.concat(names, "; ")) end
  end
  return #parts > 0 and " " .. table.concat(parts, " ") or ""
end

return select_runs
