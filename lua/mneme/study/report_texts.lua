-- report_texts.lua -- the authors' texts in a report: a study's `report` table.  Each is a text, with blank lines between
-- paragraphs, or a list of texts; the report marks those that are missing.
--   report = { scope = "...", easy = { "...", "..." }, hyperparameters = { { "lr", source = "paper" } }, ... }
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local only = require "mneme.study.declaration"

local prose = {}

---Texts, in the order in which a report has them.
prose.texts = { "introduction", "scope", "model", "objective", "data", "implementation", "setup", "beyond", "discussion", "easy", "hard", "recommendations",
  "authors", "code" }

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
---@param report table
function prose.check(report)
  for key, value in pairs(report) do
    if not known[key] then errors.unknown("key of a report:", tostring(key), tables.keys(known)) end
    if key ~= "hyperparameters" then check_text(key, value) end
  end
  errors.need("study: report.hyperparameters", report.hyperparameters or {}, nil, '{ { "lr", source = "paper" }, ... }')
  for i, entry in ipairs(report.hyperparameters or {}) do
    local what = ("hyperparameter %d"):format(i)
    errors.need("study: report: " .. what, entry, 1, '{ "lr", source = "paper, table 3" }')
    only(entry, source_keys, what)
  end
end

---The source of a setting, as the authors wrote it.  "lr, gamma" names several, "core" all options of it, "all" all; who
---names it most exactly says it, of equals the first.
---@param report table
---@param key string dotted
---@return string? source
function prose.source(report, key)
  local best, source = 0, nil
  for _, entry in ipairs(report.hyperparameters or {}) do
    for name in entry[1]:gmatch "[%w_.]+" do
      local exact = name == "all" and 1 or (name == key or key:sub(1, #name + 1) == name .. ".") and 1 + #name or 0
      if exact > best then best, source = exact, entry.source end
    end
  end
  return source
end

return prose
