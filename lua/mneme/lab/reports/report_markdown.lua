-- report_markdown.lua -- reads the texts of a report from Markdown: experiments/X.md next to experiments/X.lua.  The script stays
-- short, and the prose can be read as a page of its own.
-- A study of another experiment inherits that one's texts, if it lies in the same folder; else only what
-- is true of any study of it: data and sources of settings.
--   ## Scope, ## What was hard ...     the headings of the report, or the keys of its table: texts, or lists of lines "- "
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local authors_texts = require "mneme.lab.study.authors_texts"

local written = {}

-- What a heading means: heading or key, in small letters -> key.
local meanings = {}
for key, heading in pairs(authors_texts.headings) do meanings[key], meanings[heading:lower()] = key, key end

-- Lines that begin with "- ", with what is indented below each, as a list.
local function items(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    local item = line:match "^%- (.*)"
    if item then list[#list + 1] = item
    elseif line:find "%S" then list[#list] = list[#list] .. " " .. line:match "^%s*(.*)" end
  end
  return list
end

---Read the texts of a Markdown file.
---@param path string for messages
---@return table report as mn.study takes it
function written.read(text, path)
  local report, key, lines = {}, nil, {}
  local function close()
    local part = table.concat(lines, "\n"):gsub("^%s*\n", ""):gsub("%s+$", "")
    if key and part ~= "" then report[key] = part:find "^%- " and items(part) or part end
    lines = {}
  end
  local n = 0
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    n = n + 1
    local heading = line:match "^##%s+(.-)%s*$"
    if heading then
      close()
      key = meanings[heading:lower()]
      if not key then errors.unknown(("%s:%d: heading of a report:"):format(path, n), heading, tables.keys(meanings)) end
      if report[key] then errors.fail(("%s:%d: '%s' is written twice"):format(path, n, heading)) end
    else lines[#lines + 1] = line end
  end
  close()
  return report
end

---The texts of a study: from its script, the .md file next to it, and the experiment that it uses; the first that has a text
---says it.
---@param texts { path: string, text: string, own: boolean, elsewhere: boolean }[] of the .md files, see lab/study/declaration_file.lua
function written.of(spec, texts)
  local report = tables.merged(spec.report)
  for _, beside in ipairs(texts) do
    for key, value in pairs(written.read(beside.text, beside.path)) do
      if report[key] == nil and (not beside.elsewhere or key == "data" or key == "hyperparameters") then report[key] = value end
    end
  end
  authors_texts.check(report)
  return report
end

return written
