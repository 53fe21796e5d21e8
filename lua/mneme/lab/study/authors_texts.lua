-- authors_texts.lua -- the authors' texts in a report: a study's `report` table.  Each is a text, with blank lines between
-- paragraphs, or a list of texts; the report marks those that are missing.
--   report = { scope = "...", easy = { "...", "..." }, hyperparameters = { "lr, gamma: paper, table 3", ... } }
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local prose = {}

---The heading of each text in a report.
prose.headings = { introduction = "Introduction", scope = "Scope", model = "Model", objective = "Objective function", data = "Data",
  hyperparameters = "Hyperparameters", implementation = "Implementation", setup = "Set-up", published_values = "Published and measured values",
  beyond = "Beyond the original", discussion = "What the evidence is worth", easy = "What was easy", hard = "What was hard",
  recommendations = "Recommendations", authors = "Communication with the authors", code = "Code" }

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
    if not prose.headings[key] then errors.unknown("key of a report:", tostring(key), tables.keys(prose.headings)) end
    check_text(key, value)
  end
end

return prose
