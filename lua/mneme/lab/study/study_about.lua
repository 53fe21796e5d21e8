-- study_about.lua -- what a study is before it runs: its axes, how many runs they make, and its claims.
local parse_seeds = require "mneme.runs.parse_seeds"
local tables = require "mneme.base.tables"
local grid = require "mneme.lab.study.grid"

local study_about = {}

-- The sizes that a study has: "" and those that its axes, settings or seeds name.
local function sizes_of(spec)
  local list = { "" }
  for _, size in ipairs { "quick", "full" } do
    local has = (spec.settings or {})[size] ~= nil or spec.seeds[size] ~= nil
    for _, axis in pairs(spec.axes) do has = has or axis[size] ~= nil end
    if has then list[#list + 1] = size end
  end
  return list
end

---How many points, seeds and runs a study has.
function study_about.count(spec, size)
  local points = 1
  for name, axis in pairs(spec.axes) do points = points * #grid.list(name, axis, size ~= "" and size or nil) end
  local seeds = #parse_seeds("study", tostring(spec.seeds[size] or spec.seeds[1] or 1))
  return points * seeds, points, seeds
end

---What --help of a study says besides its settings, as rows { title, text }.
---@param typed string what the command line names it: that name, or a path
function study_about.rows(spec, name, typed)
  local rows = { { "question", spec.question or spec.title } }
  for _, axis in ipairs(tables.keys(spec.axes)) do
    local texts = {}
    for _, size in ipairs { "", "quick", "full" } do
      if size == "" or spec.axes[axis][size] then
        local labels = {}
        for i, value in ipairs(grid.list(axis, spec.axes[axis], size ~= "" and size or nil)) do labels[i] = value.label end
        texts[#texts + 1] = (size ~= "" and size .. "=1: " or "") .. table.concat(labels, ", ")
      end
    end
    rows[#rows + 1] = { "axis " .. axis, table.concat(texts, "; ") }
  end
  for _, size in ipairs(sizes_of(spec)) do
    local runs, points, seeds = study_about.count(spec, size)
    rows[#rows + 1] = { "runs" .. (size ~= "" and ", " .. size .. "=1" or ""), ("%d: %d point%s x %d seed%s"):format(runs, points,
      points == 1 and "" or "s", seeds, seeds == 1 and "" or "s") }
  end
  for i, claim in ipairs(spec.claims or {}) do
    rows[#rows + 1] = { ("claim %d"):format(i), claim.text .. (claim.source and (" (%s)"):format(claim.source) or "") }
  end
  for _, size in ipairs(spec.tune and sizes_of(spec) or {}) do
    local options, ranges = require("mneme.lab.study.tuning").declared(spec.tune, size ~= "" and size or nil)
    rows[#rows + 1] = { "tuning" .. (size ~= "" and ", " .. size .. "=1" or ""), ("%s: %s trials x steps for each memory, before these runs"):format(
      table.concat(tables.keys(ranges), ", "), tostring(options.budget)) }
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
