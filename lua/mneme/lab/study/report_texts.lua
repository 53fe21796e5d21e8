-- report_texts.lua -- the authors' texts in a report: a study's `report` table.  Each is a text, with blank lines between
-- paragraphs, or a list of texts; the report marks those that are missing.
--   report = { scope = "...", easy = { "...", "..." }, hyperparameters = { { "lr", source = "paper" } }, ... }
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local declaration = require "mneme.lab.study.declaration"

local prose = {}

---Texts, in the order in which a report has them.
prose.texts = { "introduction", "scope", "model", "objective", "data", "implementation", "setup", "published_values", "beyond", "discussion", "easy", "hard",
  "recommendations", "authors", "code" }

local known = { hyperparameters = true }
for _, name in ipairs(prose.texts) do known[name] = true end
local source_keys = { [1] = "string", value = true, source = "string" }

local function check_text(name, value)
  if type(value) == "string" then return end
  if type(value) ~= "table" or #value == 0 then
    errors.raise(("study: report.%s is a %s, expected a text or a list of texts"):format(name, type(value)))
  end
  for key, item in pairs(value) do
    if type(key) ~= "number" or type(item) ~= "string" then
      errors.raise(("study: report.%s has %s = a %s, expected texts alone"):format(name, tostring(key), type(item)))
    end
  end
end

---Refuse what is no report table.
function prose.check(report)
  for key, value in pairs(report) do
    if not known[key] then errors.unknown("key of a report:", tostring(key), tables.keys(known)) end
    if key ~= "hyperparameters" then check_text(key, value) end
  end
  errors.need("study: report.hyperparameters", report.hyperparameters or {}, nil, '{ { "lr", source = "paper" }, ... }')
  for i, entry in ipairs(report.hyperparameters or {}) do
    local what = ("hyperparameter %d"):format(i)
    errors.need("study: report: " .. what, entry, 1, '{ "lr", source = "paper, table 3" }')
    declaration(entry, source_keys, what)
  end
end

-- How exactly an entry names a setting: 0 not, 1 by "all"; "lr, gamma" names several, "core" all options of it.
local function exactness(entry, key)
  local best = 0
  for name in entry[1]:gmatch "[%w_.]+" do
    best = math.max(best, name == "all" and 1 or (name == key or key:sub(1, #name + 1) == name .. ".") and 1 + #name or 0)
  end
  return best
end

-- "released code; quick=1: ours" as two sources.
local function by_size(source)
  local full, quick = source:match "^(.-)%s*[;(]?%s*quick=1:%s*(.-)%)?$"
  if not full then return source, nil end
  return full ~= "" and full or nil, quick
end

---The source of a value of a setting, as the authors wrote it: of the entries that speak of this value the most exact, of equals the
---first.  An entry speaks of the values that its own script gives to a setting.
---@param key string dotted
---@param reference fun(entry: table, quick: boolean): table|nil the settings of that entry's script, flat, at its full size or with quick=1
---@return string? source
---@return boolean named an entry names the setting, whatever its value
function prose.source(report, key, value, reference)
  local best, source, named = 0, nil, false
  for _, entry in ipairs(report.hyperparameters or {}) do
    local exact = exactness(entry, key)
    if exact > 0 and entry.source then
      named = true
      local full, quick = by_size(entry.source)
      local said
      for _, of in ipairs { { full, false }, { quick, true } } do
        local there = of[1] and not said and reference(entry, of[2])
        if there and there[key] == value then said = of[1] end
      end
      if said and exact > best then best, source = exact, said end
    end
  end
  return source, named
end

---The settings that an entry names.
function prose.names(entry)
  local names = {}
  for name in entry[1]:gmatch "[%w_.]+" do names[#names + 1] = name end
  return names
end

return prose
