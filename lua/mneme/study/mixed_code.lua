-- mixed_code.lua -- were several runs made by one code?  Files and data of one name with several contents, runs that changed their code on the
-- way, several builds of Mneme, runs that kept no code; the settings that resumes changed, and the steps that their logs lack.
local grid = require "mneme.study.grid"
local run_sources = require "mneme.runs.run_sources"
local starts = require("mneme.runs.folder").starts
local tables = require "mneme.base.tables"

local mixed = {}
local MOST = 3                     -- runs that are named

---@class CodeOfRun
---@field name string
---@field info table its config.json

local function names(list)
  local said = table.concat(list, ", ", 1, math.min(MOST, #list))
  return #list > MOST and ("%s and %d more"):format(said, #list - MOST) or said
end

-- The files of a run by their last names, each with the checksums of its contents.
local function by_name(files)
  local of = {}
  for _, file in ipairs(files) do
    local name = file.path:match "[^/]*$"
    of[name] = (of[name] and of[name] .. "+" or "") .. file.checksum
  end
  return of
end

---The files that several runs were last made by.
---@param runs CodeOfRun[]
---@return table[] rows { name, kind = "code" or "data", versions = { checksum, runs = names }[] }, by name
function mixed.files(runs)
  local rows = {}
  for _, kind in ipairs { "source", "data" } do
    local seen = {}
    for _, r in ipairs(runs) do
      for name, checksum in pairs(by_name(run_sources.latest(r.info)[kind])) do
        seen[name] = seen[name] or {}
        seen[name][checksum] = seen[name][checksum] or {}
        table.insert(seen[name][checksum], r.name)
      end
    end
    for _, name in ipairs(tables.keys(seen)) do
      local row = { name = name, kind = kind == "source" and "code" or "data", versions = {} }
      for _, checksum in ipairs(tables.keys(seen[name])) do row.versions[#row.versions + 1] = { checksum = checksum, runs = seen[name][checksum] } end
      table.sort(row.versions, function(a, b) return #a.runs > #b.runs end)
      rows[#rows + 1] = row
    end
  end
  return rows
end

---In what the codes of several runs differ.
---@param runs CodeOfRun[]
---@return string[] sentences none: they were made by one code, as far as they kept it
function mixed.of(runs)
  local list, changed, builds, without = {}, {}, {}, {}
  for _, file in ipairs(mixed.files(runs)) do
    local parts = {}
    for i, version in ipairs(file.versions) do parts[i] = ("%s (%s)"):format(version.checksum, names(version.runs)) end
    local name = (file.kind == "data" and "the data file " or "") .. file.name
    if parts[2] then list[#list + 1] = ("%s has %d versions: %s"):format(name, #parts, table.concat(parts, ", ")) end
  end
  for _, r in ipairs(runs) do
    local versions = run_sources.versions(r.info)
    for i = 2, #versions do changed[#changed + 1] = ("%s from step %.0f on"):format(r.name, versions[i].from_step) end
    if #versions == 0 then without[#without + 1] = r.name end
    for _, start in ipairs(type(r.info.history) == "table" and r.info.history or {}) do
      local build = type(start) == "table" and start.program_checksum
      if type(build) == "string" then builds[build] = true end
    end
  end
  if #changed > 0 then list[#list + 1] = "runs that changed their code on the way: " .. names(changed) end
  local n = #tables.keys(builds)
  if n > 1 then list[#list + 1] = ("%d builds of Mneme made them"):format(n) end
  if #without > 0 and #without < #runs then
    list[#list + 1] = ("%d of %d runs kept no code, which cannot be compared: %s"):format(#without, #runs, names(without))
  end
  return list
end

---Points whose seeds were to train for different numbers of steps, because some were resumed with steps=N.
---@param runs { run: StudyRun, flat: table }[]
---@return string[] sentences
function mixed.lengths(runs)
  local list = {}
  for _, group in ipairs(grid.groups(runs, function(r) return grid.kind(r.run) end)) do
    local by_steps = {}
    for _, r in ipairs(group.runs) do
      local steps = tonumber(r.flat.steps)
      if steps then
        by_steps[steps] = by_steps[steps] or {}
        table.insert(by_steps[steps], tostring(r.run.seed))
      end
    end
    local parts = {}
    for steps, seeds in pairs(by_steps) do parts[#parts + 1] = { steps, ("%.0f steps of seed %s"):format(steps, table.concat(seeds, ", ")) } end
    table.sort(parts, function(a, b) return a[1] < b[1] end)
    for i, part in ipairs(parts) do parts[i] = part[2] end
    if parts[2] then list[#list + 1] = ("%s: %s"):format(group.name, table.concat(parts, ", ")) end
  end
  return list
end

---What resumes changed of runs, and the steps that their logs lack.
---@param runs CodeOfRun[]
---@return string[] resumed sentences
---@return string[] gaps sentences
function mixed.starts(runs)
  local resumed, lost = {}, {}
  for _, r in ipairs(runs) do
    local _, gaps = starts.found(r.info)
    resumed[#resumed + 1] = starts.changes(r.info) and r.name .. ": " .. starts.changes(r.info) or nil
    for _, text in ipairs(gaps) do lost[#lost + 1] = r.name .. ": " .. text end
  end
  return resumed, lost
end

return mixed
