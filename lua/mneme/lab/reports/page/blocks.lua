-- blocks.lua -- a page as a list of blocks, and the one walk over it that writes them: html.lua and markdown.lua hold only how each kind of block and
-- of text within a line looks as HTML and as Markdown.
--   { kind = "heading", level = 2 | 3, id, text }      { kind = "paragraphs", text = text or list of texts, class }
--   { kind = "table", head, rows, caption }            fields: a text, or { text, class, href, id, bold }
--   { kind = "fold", summary, blocks }                 { kind = "code", summary, text }
--   { kind = "figure", fig, id }                       { kind = "cards", cards }: see lab/reports/report_front.lua
-- Texts have Markdown's `code`, **bold**, [links](https://...) and indented blocks, and LaTeX's $equations$, on a line of their own between $$.
local tables = require "mneme.base.tables"

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
  for i = 1, select("#", ...) do walk((select(i, ...))) end
  table.sort(list, function(a, b) if #a ~= #b then return #a > #b end return a < b end)
  page.names = list
end

---@return table page { title, blocks }
function page.new(title) return setmetatable({ title = title, blocks = {} }, Page) end

function Page:add(block) self.blocks[#self.blocks + 1] = block end

---A heading that can be linked to.
---@param level integer 2 or 3
---@param id string of letters, digits, - and _; nothing else on the page has it
---@param short string? in the contents
function Page:heading(level, id, text, short) self:add { kind = "heading", level = level, id = id, text = text, short = short } end

---Paragraphs: a text in which blank lines separate them, or a list of texts.
---@param s string|string[]
---@param class string? "dim", "warning", "question", "lead"
function Page:paragraphs(s, class) self:add { kind = "paragraphs", text = s, class = class } end

---@param head string[] what the columns are; none: a table without a head
---@param rows table[] of fields: a text, or { text, class = text, href = address, id = of the field, bold = true }
---@param caption string?
function Page:table(head, rows, caption) self:add { kind = "table", head = head, rows = rows, caption = caption } end

---What `fill` puts into the page, folded away.
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

---@param fig table as insight/figures/figure_format.lua has it
function Page:figure(fig, id) self:add { kind = "figure", fig = fig, id = id } end

-- ---- writing ----

local ADDRESS = "https?://[%w%-._~:/?#%[%]@!$'*+,;=%%()&]+"

---A text with what Markdown has within a line: `code`, in which all else stays as it is, $equations$, **bold**, [text](address), and addresses by
---themselves.  What is finished stands aside meanwhile, for no pattern to find; in its place stands what text cannot hold.
---@param w table a writer's { text = fun(s), name, typed = of `code`, equation(s, on a line of its own), bold = { before, after },
---  link(address, inner, bare) }
function page.inline(w, s)
  local kept = {}
  local function keep(finished)
    kept[#kept + 1] = finished
    return ("\1%d\2"):format(#kept)
  end
  local function text(part) return (part:gsub("[^\1\2]+", w.text)) end
  local function link(inner, address) return keep(w.link(address, text(inner))) end
  s = s:gsub("[\1\2]", "")
  for _, name in ipairs(page.names) do                -- not by a pattern: names hold any sign
    local out, at = {}, 1
    local from, to = s:find(name, 1, true)
    while from do
      out[#out + 1], out[#out + 2], at = s:sub(at, from - 1), keep((w.name or w.text)(name)), to + 1
      from, to = s:find(name, at, true)
    end
    s = table.concat(out) .. s:sub(at)
  end
  s = s:gsub("`([^`\n]+)`", function(code) return keep(w.typed(code)) end)
  s = s:gsub("%$([^%s$][^$\n]*)%$", function(equation)
    return not equation:find "%s$" and keep(w.equation(equation)) or nil
  end)
  s = s:gsub("%f[^%s%z]([(%[]*)%*%*(%S[^*]-)%*%*()", function(before, bold, after)
    return not bold:find "%s$" and not s:find("^%w", after) and before .. keep(w.bold[1]) .. bold .. keep(w.bold[2])
  end)
  s = s:gsub("%[([^%[%]]+)%]%((https?://[^%s()]+)%)", link):gsub("%[([^%[%]]+)%]%((#[%w_-]+)%)", link)
  s = s:gsub(ADDRESS, function(all)
    local address = all:gsub("[.,;:!?)'*]*$", "")
    return keep(w.link(address, w.text(address), true)) .. all:sub(#address + 1)
  end)
  s = text(s)
  for _ = 1, 3 do s = s:gsub("\1(%d+)\2", function(i) return kept[tonumber(i)] end) end            -- code within bold within a link
  return s
end

-- A paragraph whose lines are all indented is shown as it is, without the indentation; nil: an ordinary one.
local function verbatim(part)
  for line in part:gmatch "[^\n]+" do if not line:find "^    " then return nil end end
  return (("\n" .. part):gsub("\n    ", "\n"):sub(2))
end

-- Kinds that a writer need not have: what they are as other kinds.
local usual = {}

function usual.cards(b, w)
  return w.list(tables.map(b.cards, function(c)
    local estimate = c.interval and ("%s (%s)"):format(c.estimate, c.interval) or c.estimate
    return page.inline(w, ("**%s** ([%s](#%s)): "):format(c.word, c.name:gsub("[%[%]]", ""), c.target) .. ("%s %s (%s)"):format(c.text, estimate, c.about))
  end))
end

function usual.paragraphs(b, w)
  local out = {}
  if type(b.text) == "table" then return w.list(tables.map(b.text, function(item) return page.inline(w, item) end)) end
  for part in (b.text .. "\n\n"):gmatch "(.-)\n%s*\n" do
    local equation, plain = part:match "^%s*%$%$(.-)%$%$%s*$", verbatim(part)
    equation = equation and w.equation(equation, true)
    if part:find "%S" then out[#out + 1] = plain and w.verbatim(plain) or equation or w.paragraph(page.inline(w, part), b.class) end
  end
  return table.concat(out)
end

function usual.fold(b, w, path) return w.folded(b.summary, page.write(w, b.blocks, path)) end

---The text of blocks.
---@param w table a writer: how texts within a line look (see page.inline), list(items), paragraph(text, class), verbatim(s), folded(summary, inner),
---  and heading, table, code and figure, each of a block; others where they are no usual ones
---@param list table[] blocks
---@param path fun(block: table): string? where the file of a figure is
function page.write(w, list, path)
  return table.concat(tables.map(list, function(b) return (w[b.kind] or usual[b.kind])(b, w, path) end))
end

return page
