-- doc_pages.lua -- `mneme help` on the pages of docs/: a page by its name, and the sections that answer a question.
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local meanings = require "mneme.base.meanings"
local registry = require "mneme.base.registry"

local doc_pages = {}

-- Words with which a question begins, and those that any question has.
local begins, common = {}, {}
for word in ("how what why which when who can could do does did is are should i my there"):gmatch "%a+" do begins[word], common[word] = true, true end
for word in ("a an the to of on in for and or not no with from it its me you your own where get have has want mneme use using be"):gmatch "%a+" do
  common[word] = true
end

---Does a question begin with this word?
---@param word string
---@return boolean
function doc_pages.asks(word) return begins[word:lower()] == true end

-- The words of a text that say what it is about, without their endings: { "resum", "run" }.
local function stems(text)
  local list = {}
  for word in text:lower():gmatch "%a[%w]+" do
    if not common[word] then list[#list + 1] = #word > 4 and word:gsub("ing$", ""):gsub("e?[sd]$", ""):gsub("e$", "") or word end
  end
  return list
end

local function folder() return registry.root:gsub("/lua/mneme/%.%./%.%./", "/") .. "docs" end
local function names() return files.is_folder(folder()) and files.list(folder()) or {} end
local function elsewhere(name) return files.is_folder "docs" and "" or "\n" .. folder() .. "/" .. name .. "\n" end

---A page by its file or its title: where it is, and how it begins; of "docs", all pages; nil: there is none.
---@param topic string
---@return string?
function doc_pages.text(topic)
  local rows, wanted = {}, topic:lower():gsub("^docs/", ""):gsub("%.md$", "")
  for _, name in ipairs(names()) do
    local text = name:find "%.md$" and files.read(folder() .. "/" .. name) or ""
    local title, rest = text:match "^# ([^\n]*)\n+(.*)$"
    local first = (rest or ""):gsub("^```.-\n```\n+", ""):gsub("^#[^\n]*\n+", ""):gsub("\n\n.*", ""):gsub("\n```.*", "")      -- the first paragraph
    if title then rows[#rows + 1] = { "docs/" .. name, title } end
    if title and (name == wanted .. ".md" or title:lower() == wanted) then return ("docs/%s: %s\n\n%s\n%s"):format(name, title, first, elsewhere(name)) end
  end
  if wanted == "docs" and rows[1] then return "pages of the documentation (mneme help NAME: where it is)\n" .. layout.columns(rows) end
end

---What its words mean, and the three sections of the pages that have most of them, in their titles first; nil: none has any.
---@param question string "how do I resume a run"
---@return string?
function doc_pages.about(question)
  local sections, found, lines, asked = {}, {}, {}, stems(question)
  for _, name in ipairs(names()) do
    local title = name
    for line in (name:find "%.md$" and files.read(folder() .. "/" .. name) or ""):gmatch "[^\n]+" do
      local heading = line:match "^##? (.*)"
      title = line:match "^# (.*)" or title
      if heading then sections[#sections + 1] = { name = name, title = heading, about = stems(title .. " " .. heading),
        body = {}, score = 0, at = #sections } end
      for _, word in ipairs(sections[1] and stems(line) or {}) do sections[#sections].body[word] = true end
    end
  end
  for _, word in ipairs(asked) do
    local having = 0
    for _, section in ipairs(sections) do having = having + (section.body[word] and 1 or 0) end
    for _, section in ipairs(having > 0 and sections or {}) do
      local titled = (" " .. table.concat(section.about, " ") .. " "):find(" " .. word .. " ", 1, true)
      local weight = section.name:find(word, 1, true) and 5 or titled and 4 or section.body[word] and 1 or 0
      section.score = section.score + weight * math.log(1 + #sections / having)
    end
  end
  for _, section in ipairs(sections) do if section.score > 0 then found[#found + 1] = section end end
  table.sort(found, function(a, b) if a.score ~= b.score then return a.score > b.score end return a.at < b.at end)
  for word in question:gmatch "[%w_-]+" do lines[#lines + 1] = not common[word:lower()] and meanings.of_field("topic", word) or nil end
  if not found[1] then return lines[1] and table.concat(lines, "\n") .. "\n" end
  local rows = {}
  for i = 1, math.min(3, #found) do
    if found[i].score * 2 > found[1].score then rows[i] = { "docs/" .. found[i].name, found[i].title } end
  end
  return (lines[1] and table.concat(lines, "\n") .. "\n\n" or "") .. "sections of the documentation that speak of it, the nearest first\n"
    .. layout.columns(rows) .. elsewhere(found[1].name)
end

return doc_pages
