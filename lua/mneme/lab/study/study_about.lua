-- study_about.lua -- what a study is before it runs: its axes, how many runs they make, its claims, and how much time its runs take.
-- The time is that of its stored runs (docs/results), if there are any.
local files = require "mneme.base.files"
local format = require "mneme.base.format"
local registry = require "mneme.base.registry"
local seed_list = require "mneme.runs.seed_list"
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
  local seeds = #seed_list("study", tostring(spec.seeds[size] or spec.seeds[1] or 1))
  return points * seeds, points, seeds
end

-- Steps of a run of that size; nil: the study does not say.
local function steps_of(settings, size) return tonumber((settings[size] or {}).steps or settings.steps) end

-- The processor time of runs from those that are stored of that size; nil: none are.
local function stored_time(name, size, runs)
  local file = ("docs/results/%s%s.jsonl"):format(name, size ~= "" and "_" .. size or "")
  local path = registry.root .. file
  if not files.is_file(path) then return nil end
  local n, seconds, processor = 0, 0, nil
  for line in files.read(path):gmatch "[^\n]+" do
    local spent = tonumber(line:match '"cpu_s": ?([%d.e+-]+)')
    if spent then n, seconds, processor = n + 1, seconds + spent, processor or line:match '"processor": ?"([^"]*)"' end
  end
  if n == 0 then return nil end
  return seconds / n * runs, ("as %d stored runs took%s (%s)"):format(n, processor and " on an " .. processor or "", file)
end

---The processor time of a study's runs, from those that are stored with the program: of this size, else of another by their steps; nil: none are.
---@param runs integer how many there are now
---@return number? seconds
---@return string? basis
function study_about.time(spec, name, size, runs)
  local seconds, basis = stored_time(name, size, runs)
  if seconds then return seconds, basis end
  for _, other in ipairs { "quick", "full", "" } do
    local steps, theirs = steps_of(spec.settings or {}, size), steps_of(spec.settings or {}, other)
    seconds, basis = stored_time(name, other, runs)
    if seconds and steps and theirs then
      return seconds * steps / theirs, ("%s, of %s steps in place of %s"):format(basis, format.short(theirs), format.short(steps))
    end
  end
end

local function time_text(spec, name, size, runs)
  local seconds, basis = study_about.time(spec, name, size, runs)
  if not seconds then return nil end
  return ("about %s of processor time"):format(format.short(seconds, "s")), basis
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
    local time, basis = time_text(spec, name, size, runs)
    local long = time and time .. ", " .. basis or "no stored times: mneme sweep measures a few runs and says how long, before it starts"
    rows[#rows + 1] = { "runs" .. (size ~= "" and ", " .. size .. "=1" or ""), ("%d: %d point%s x %d seed%s; %s"):format(runs, points,
      points == 1 and "" or "s", seeds, seeds == 1 and "" or "s", long) }
  end
  for i, claim in ipairs(spec.claims or {}) do
    rows[#rows + 1] = { ("claim %d"):format(i), claim.text .. (claim.source and (" (%s)"):format(claim.source) or "") }
  end
  for _, size in ipairs(spec.tune and sizes_of(spec) or {}) do
    local options, ranges = require("mneme.lab.study.tuning").declared(spec.tune, size ~= "" and size or nil)
    rows[#rows + 1] = { "tuning" .. (size ~= "" and ", " .. size .. "=1" or ""), ("%s: %s trials x steps for each memory, before these runs"):format(
      table.concat(tables.keys(ranges), ", "), tostring(options.budget)) }
  end
  rows[#rows + 1] = { "all runs", ("mneme sweep %s quick=1, then mneme report runs/%s"):format(typed, name) }
  return rows
end

---What `mneme run STUDY` says before it runs one point.
---@param typed string what the command line names it
---@return string? line nil: there is only one run
function study_about.one_of(spec, name, size, typed)
  local runs, points, seeds = study_about.count(spec, size or "")
  if runs < 2 then return nil end
  local time = time_text(spec, name, size or "", runs)
  return ("this is one point of %d, with one seed of %d; all %d runs%s: mneme sweep %s%s"):format(points, seeds, runs,
    time and ", " .. time or "", typed, size and " " .. size .. "=1" or "")
end

return study_about
