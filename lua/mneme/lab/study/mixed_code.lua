-- mixed_code.lua -- were several runs made by one code?  Files and data of one name with several contents, runs that changed their code on the
-- way, several builds of Mneme, runs that kept no code; the settings that resumes changed.
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

---The files that several runs were last made by.
---@return table[] rows { name, kind = "code" or "data", versions = { checksum, runs = names }[], the most frequent first }, by kind and name
function mixed.files(runs)
  local rows = {}
  for _, kind in ipairs { "source", "data" } do
    local seen = {}                -- name of a file -> checksums of its contents in a run -> names of runs
    for _, r in ipairs(runs) do
      local of = {}
      for _, file in ipairs(run_sources.latest(r.info)[kind]) do
        local name = file.path:match "[^/]*$"
        of[name] = (of[name] and of[name] .. "+" or "") .. file.checksum
      end
      for name, checksum in pairs(of) do
        seen[name] = seen[name] or {}
        seen[name][checksum] = seen[name][checksum] or { checksum = checksum, runs = {} }
        table.insert(seen[name][checksum].runs, r.name)
      end
    end
    for _, name in ipairs(tables.keys(seen)) do
      local versions = {}
      for _, checksum in ipairs(tables.keys(seen[name])) do versions[#versions + 1] = seen[name][checksum] end
      table.sort(versions, function(x, y) return #x.runs > #y.runs end)
      rows[#rows + 1] = { name = name, kind = kind == "source" and "code" or "data", versions = versions }
    end
  end
  return rows
end

---In what the codes of several runs differ.
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
    for _, start in ipairs(starts.of(r.info)) do builds[start.program_checksum or false] = true end
  end
  builds[false] = nil
  if #changed > 0 then list[#list + 1] = "runs that changed their code on the way: " .. names(changed) end
  local n = #tables.keys(builds)
  if n > 1 then list[#list + 1] = ("%d builds of Mneme made them"):format(n) end
  if #without > 0 and #without < #runs then list[#list + 1] = "runs that kept no code, which cannot be compared: " .. names(without) end
  return list
end

---What resumes changed of runs.
---@return string[] sentences
function mixed.starts(runs)
  local resumed = {}
  for _, r in ipairs(runs) do
    local changes = starts.changes(r.info)
    resumed[#resumed + 1] = changes and r.name .. ": " .. changes
  end
  return resumed
end

return mixed
