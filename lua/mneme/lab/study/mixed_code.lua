-- mixed_code.lua -- were several runs made by one code?  Files and data of one name with several contents, several builds of Mneme; the settings that
-- resumes changed.
local run_sources = require "mneme.runs.run_sources"
local starts = require("mneme.runs.folder").starts
local tables = require "mneme.base.tables"

local mixed = {}
local MOST = 3                     -- runs that are named

---@class CodeOfRun
---@field name string
---@field info table its config.json

local function names(list)
  return table.concat(list, ", ", 1, math.min(MOST, #list)) .. (#list > MOST and (" and %d more"):format(#list - MOST) or "")
end

---The files that several runs were made by, in all their starts.
---@return table[] rows { name, kind = "code" or "data", versions = { checksum, runs = names }[], the most frequent first }, by kind and name
function mixed.files(runs)
  local rows = {}
  for _, kind in ipairs { "source", "data" } do
    local seen = {}                -- name of a file -> checksum -> names of runs
    for _, r in ipairs(runs) do
      for _, version in ipairs(run_sources.versions(r.info)) do
        local contents = {}        -- name -> its checksum; where a run has several of one name, theirs
        for _, file in ipairs(version[kind]) do
          local name = file.path:match "[^/]*$"
          contents[name] = (contents[name] and contents[name] .. "+" or "") .. file.checksum
        end
        for name, checksum in pairs(contents) do
          seen[name] = seen[name] or {}
          seen[name][checksum] = seen[name][checksum] or {}
          local of = seen[name][checksum]
          if of[#of] ~= r.name then of[#of + 1] = r.name end
        end
      end
    end
    for _, name in ipairs(tables.keys(seen)) do
      local versions = {}
      for _, checksum in ipairs(tables.keys(seen[name])) do versions[#versions + 1] = { checksum = checksum, runs = seen[name][checksum] } end
      table.sort(versions, function(x, y) return #x.runs > #y.runs end)
      rows[#rows + 1] = { name = name, kind = kind == "source" and "code" or "data", versions = versions }
    end
  end
  return rows
end

---In what the codes of several runs differ.
---@return string[] sentences none: they were made by one code, as far as they kept it
function mixed.of(runs)
  local list, builds = {}, {}
  for _, file in ipairs(mixed.files(runs)) do
    local parts = {}
    for i, version in ipairs(file.versions) do parts[i] = ("%s (%s)"):format(version.checksum, names(version.runs)) end
    local name = (file.kind == "data" and "the data file " or "") .. file.name
    if parts[2] then list[#list + 1] = ("%s has %d versions: %s"):format(name, #parts, table.concat(parts, ", ")) end
  end
  for _, r in ipairs(runs) do
    for _, start in ipairs(starts.of(r.info)) do if start.program_checksum then builds[start.program_checksum] = true end end
  end
  local n = #tables.keys(builds)
  if n > 1 then list[#list + 1] = ("%d builds of Mneme made them"):format(n) end
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
