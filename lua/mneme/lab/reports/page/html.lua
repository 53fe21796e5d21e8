-- html.lua -- writes a page as self-contained HTML: a rail of contents beside it, tables that scroll separately, light and dark themes,
-- and print (page.css; page.js: contents are open beside the page, on paper nothing is folded).  All text is escaped here.
local blocks = require "mneme.lab.reports.page.blocks"
local figure_style = require "mneme.insight.figures.figure_style"
local html_section = require "mneme.insight.figures.html_section"
local registry = require "mneme.base.registry"
local svg = require "mneme.insight.figures.svg"
local text = require "mneme.insight.figures.text"

local html = {}
local escape = text.escape
local CARD = 216               -- pixels of a card's drawing

-- The page's colours, from those of its figures.
local function colors(theme)
  local function c(name) return figure_style.color(name, theme) end
  return ("--page:%s;--text:%s;--faint:%s;--rule:%s;--box:%s;--link:%s;--yes:%s;--no:%s;--open:%s"):format(c "paper", c "ink", c "dim", c "grid",
    c "blank", c "c1", c "c3", c "c2", c "dim")
end

-- ---- how each kind looks ----

local writer = { text = escape, bold = { "<b>", "</b>" } }

-- Equations stay as they are written: browsers know no LaTeX.
function writer.equation(s, block) return block and ("<p><code>%s</code></p>\n"):format(escape(s)) or "<code>" .. escape(s) .. "</code>" end
function writer.typed(s) return "<code>" .. escape(s) .. "</code>" end
function writer.link(address, inner) return ('<a href="%s">%s</a>'):format(escape(address), inner) end
function writer.list(items) return "<ul>\n<li>" .. table.concat(items, "</li>\n<li>") .. "</li>\n</ul>\n" end
function writer.paragraph(s, class) return ("<p%s>%s</p>\n"):format(class and (' class="%s"'):format(class) or "", s) end
function writer.verbatim(s) return ("<pre>%s</pre>\n"):format(escape(s)) end
function writer.folded(summary, inner) return ("<details><summary>%s</summary>\n%s</details>\n"):format(escape(summary), inner) end
function writer.code(b) return ("<details><summary>%s</summary><pre>%s</pre></details>\n"):format(escape(b.summary), escape(b.text)) end
function writer.figure(b) return html_section.html(b.fig, b.id) end
function writer.heading(b) return ('<h%d id="%s"><a href="#%s">%s</a></h%d>\n'):format(b.level, b.id, b.id, escape(b.text), b.level) end

-- A field of a table: a text, or { text, class, href, id, bold }.
local function field(tag, v)
  if type(v) ~= "table" then v = { v } end
  local inner = escape(v[1])
  if v.bold then inner = ("<b>%s</b>"):format(inner) end
  if v.href then inner = ('<a href="%s">%s</a>'):format(escape(v.href), inner) end
  if v.id then inner = ('<span id="%s">%s</span>'):format(v.id, inner) end
  return ("<%s%s>%s</%s>"):format(tag, v.class and (' class="%s"'):format(v.class) or "", inner, tag:match "^%a+")
end

function writer.table(b)
  local out = { b.caption and ('<p class="dim">%s</p>\n'):format(blocks.inline(writer, b.caption)) or "", '<div class="scroll"><table>' }
  local function add(row, first, other)
    out[#out + 1] = "<tr>"
    for i, v in ipairs(row) do out[#out + 1] = field(i == 1 and first or other, v) end
    out[#out + 1] = "</tr>"
  end
  if #b.head > 0 then
    out[#out + 1] = "<thead>"
    add(b.head, 'th scope="col"', 'th scope="col"')
    out[#out + 1] = "</thead>"
  end
  out[#out + 1] = "<tbody>\n"
  for _, row in ipairs(b.rows) do
    add(row, 'th scope="row"', "td")
    out[#out + 1] = "\n"
  end
  return table.concat(out) .. "</tbody></table></div>\n"
end

function writer.cards(b)
  local out = { '<div class="cards">\n' }
  for i, c in ipairs(b.cards) do
    out[#out + 1] = ('<a class="card %s" href="#%s"><span class="word"><span>%s</span><span>%s</span></span><p>%s</p>'):format(c.verdict, c.target,
      escape(c.word), escape(c.name), escape(c.text))
    out[#out + 1] = ('<span class="estimate%s">%s</span>'):format(c.empty and " none" or "", escape(c.estimate))
    if c.interval then out[#out + 1] = ('<span class="interval">%s</span>'):format(escape(c.interval)) end
    out[#out + 1] = ('<span class="about">%s</span>'):format(escape(c.about))
    if c.fig then out[#out + 1] = svg.draw(c.fig, { id = "card-" .. i, width = CARD }) end
    out[#out + 1] = "</a>\n"
  end
  return table.concat(out) .. "</div>\n"
end

-- ---- the whole ----

local function contents_of(list, title)
  local out, level, first = { ('<nav aria-label="%s"><details open><summary>%s</summary><ul>\n'):format(escape(title), escape(title)) }, 2, true
  for _, b in ipairs(list) do
    if b.kind == "heading" then
      if b.level > level then out[#out + 1] = "<ul>"
      elseif not first then out[#out + 1] = b.level < level and "</li></ul></li>\n" or "</li>\n" end
      out[#out + 1] = ('<li><a href="#%s">%s</a>'):format(b.id, escape(b.short or b.text))
      level, first = b.level, false
    end
  end
  out[#out + 1] = (level == 3 and "</li></ul>" or "") .. (first and "" or "</li>") .. "</ul></details></nav>\n"
  return table.concat(out)
end

---The whole page.
---@param opening table likewise: what a reader sees first, above the contents where there is no room beside them
---@param contents string the heading of the table of contents
function html.write(page, opening, contents)
  return table.concat { '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n<title>',
    escape(page.title), "</title>\n<style>:root{", colors "light", "}\n@media screen and (prefers-color-scheme:dark){:root{", colors "dark",
    "}}\n", registry.text "lab/reports/page/page.css", "</style>\n", html_section.head(),
    '</head>\n<body>\n<div class="sheet">\n<header>\n<h1>', escape(page.title), "</h1>\n",
    blocks.write(writer, opening.blocks), "</header>\n", contents_of(page.blocks, contents), "<main>\n",
    blocks.write(writer, page.blocks), "</main>\n</div>\n<script>", registry.text "lab/reports/page/page.js", "</script>\n</body>\n</html>\n" }
end

return html
