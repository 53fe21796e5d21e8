-- study_about.lua -- what a study is before it runs: its axes, how many runs they make, and its claims.
local parse_seeds = require "mneme.runs.parse_seeds"
local tables = require "mneme.base.tables"
local grid = require "mneme.lab.study.grid"

local study_about = {}

-- The sizes that a study has: "" and those that its axes, settings or seeds name.
local function sizes_of(spec)
  return tables.map({ "", "quick", "full" }, function(size)
    local has = size == "" or (spec.settings or {})[size] ~= nil or spec.seeds[size] ~= nil
    for _, axis in pairs(spec.axes) do has = has or axis[size] ~= nil end
    return has and size or nil
  end)
end

-- The values of an axis in a size; "runs, quick=1": what a row of a size is called.
local function values_of(name, axis, size) return grid.list(name, axis, size ~= "" and size or nil) end
local function titled(title, size) return title .. (size ~= "" and ", " .. size .. "=1" or "") end

---How many points, seeds and runs a study has.
function study_about.count(spec, size)
  local points = 1
  for name, axis in pairs(spec.axes) do points = points * #values_of(name, axis, size) end
  local seeds = #parse_seeds("study", tostring(spec.seeds[size] or spec.seeds[1] or 1))
  return points * seeds, points, seeds
end

---What --help of a study says besides its settings, as rows { title, text }.
---@param typed string what the command line names it: that name, or a path
function study_about.rows(spec, name, typed)
  local rows = { { "question", spec.question or spec.title } }
  for _, axis in ipairs(tables.keys(spec.axes)) do
    local texts = tables.map({ "", "quick", "full" }, function(size)
      if size ~= "" and not spec.axes[axis][size] then return nil end
      local labels = tables.map(values_of(axis, spec.axes[axis], size), function(value) return value.label end)
      return (size ~= "" and size .. "=1: " or "") .. table.concat(labels, ", ")
    end)
    rows[#rows + 1] = { "axis " .. axis, table.concat(texts, "; ") }
  end
  for _, size in ipairs(sizes_of(spec)) do
    local runs, points, seeds = study_about.count(spec, size)
    rows[#rows + 1] = { titled("runs", size), ("%d: %d point%s x %d seed%s"):format(runs, points, points == 1 and "" or "s", seeds, seeds == 1 and "" or "s") }
  end
  for i, claim in ipairs(spec.claims or {}) do
    rows[#rows + 1] = { ("claim %d"):format(i), claim.text .. (claim.source and (" (%s)"):format(claim.source) or "") }
  end
  for _, size in ipairs(spec.tune and sizes_of(spec) or {}) do
    local options, ranges = require("mneme.lab.study.tuning").declared(spec.tune, size ~= "" and size or nil)
    rows[#rows + 1] = { titled("tuning", size), ("%s: %s trials x steps for each memory, before these runs"):format(table.concat(tables.keys(ranges), ", "),
      tostring(options.budget)) }
  end
  rows[#rows + 1] = { "all runs", ("mneme sweep %s quick=1, which says how long before it starts, then mneme report runs/%s"):format(typed, name) }
  return rows
end

---What `mneme run STUDY` says before it runs one point.
---@param typed string what the command line names it
---@return string? line nil: there is only one run
function study_about.one_of(spec, size, typed)
  local runs, points, seeds = study_about.count(spec, size or "")
  if runs < 2 then return nil end
  return ("this is one point of %d, with one seed of %d; all %d runs: mneme sweep %s%s"):format(points, seeds, runs, typed, size and " " .. size .. "=1" or "")
end

return study_about
