-- blocks.lua -- a page as a list of blocks, which html.lua writes as HTML and text.lua as Markdown or LaTeX.
--   { kind = "heading", level = 2 | 3, id, text }      { kind = "paragraphs", text = text or list of texts, class }
--   { kind = "table", head, rows, caption }            fields: a text, or { text, class, href, id, bold }
--   { kind = "fold", summary, blocks }                 { kind = "code", summary, text }
--   { kind = "episode", html, command: what writes it as a file }
--   { kind = "figure", fig, id }                       { kind = "cards", cards }: see lab/reports/report_front.lua
-- Texts have Markdown's `code`, **bold**, [links](https://...) and indented blocks, and LaTeX's $equations$, on a line of their own between $$.
local Page = {}
Page.__index = Page
local page = {}

page.names = {}                -- what page.note_names found

---Notes labels, names and settings of runs that hold what is markup in prose: in a page they are text.
---@param ... any texts, or tables of them; keys, too
function page.note_names(...)
  local seen, list = {}, {}
  local function walk(v)
    if type(v) ~= "table" and type(v) ~= "string" or seen[v] then return end
    seen[v] = true
    if type(v) == "table" then for key, value in pairs(v) do walk(key) walk(value) end
    elseif (v:find "[$`\\\n]" or v:find("**", 1, true) or v:find("](", 1, true) or v:find("://", 1, true)) then
      list[#list + 1] = v
    end
  end
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if v ~= nil then walk(v) end
  end
  table.sort(list, function(a, b) if #a ~= #b then return #a > #b end return a < b end)
  page.names = list
end

---A text in which `keep` has taken the names of page.note_names.
---@param s string
---@param keep fun(name: string): string
---@return string
function page.without_names(s, keep)
  for _, name in ipairs(page.names) do
    local out, at = {}, 1
    while true do
      local from, to = s:find(name, at, true)
      if not from then break end
      out[#out + 1], out[#out + 2], at = s:sub(at, from - 1), keep(name), to + 1
    end
    if at > 1 then s = table.concat(out) .. s:sub(at) end
  end
  return s
end

---@param title string
---@return table page { title, blocks }
function page.new(title) return setmetatable({ title = title, blocks = {} }, Page) end

function Page:add(block) self.blocks[#self.blocks + 1] = block end

---A heading that can be linked to.
---@param level integer 2 or 3
---@param id string of letters, digits, - and _; nothing else on the page has it
---@param text string
---@param short string? in the contents
function Page:heading(level, id, text, short) self:add { kind = "heading", level = level, id = id, text = text, short = short } end

---Paragraphs: a text in which blank lines separate them, or a list of texts.
---@param s string|string[]
---@param class string? "dim", "warning", "question"
function Page:paragraphs(s, class) self:add { kind = "paragraphs", text = s, class = class } end

---@param head string[] what the columns are; none: a table without a head
---@param rows table[] of fields: a text, or { text, class = text, href = address, id = of the field, bold = true }
---@param caption string?
function Page:table(head, rows, caption) self:add { kind = "table", head = head, rows = rows, caption = caption } end

---What `fill` puts into the page, folded away.
---@param summary string
---@param fill fun()
function Page:fold(summary, fill)
  local outside = self.blocks
  self.blocks = {}
  fill()
  local inside = self.blocks
  self.blocks = outside
  if #inside > 0 then self:add { kind = "fold", summary = summary, blocks = inside } end
end

---Text as it is, folded away.
function Page:folded(summary, s) self:add { kind = "code", summary = summary, text = s } end

---@param fig table as insight/figures/model.lua has it
---@param id string
function Page:figure(fig, id) self:add { kind = "figure", fig = fig, id = id } end

---A paragraph whose lines are all indented is shown as it is.
---@param part string of page.paragraphs
---@return string? text without the indentation; nil: an ordinary paragraph
function page.verbatim(part)
  for line in part:gmatch "[^\n]+" do if not line:find "^    " then return nil end end
  return (("\n" .. part):gsub("\n    ", "\n"):sub(2))
end

---The paragraphs of a text, which blank lines separate.
---@param s string
---@return fun(): string?
function page.paragraphs(s)
  local next_part = (s .. "\n\n"):gmatch "(.-)\n%s*\n"
  return function()
    for part in next_part do if part:find "%S" then return part end end
  end
end

return page
