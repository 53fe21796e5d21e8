-- html_page.lua -- writes a self-contained HTML page: headings with a table of contents, tables that scroll separately, light
-- and dark themes, and print.  All text is escaped here.
local look = require "mneme.figures.style"
local section = require "mneme.figures.html_section"
local text = require "mneme.figures.text"

local Page = {}
Page.__index = Page
local escape = text.escape
local page = { escape = escape }

local style = [[
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.55 "Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif}
main{max-width:52rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem}
h2{font-size:1.3rem;margin:2.5rem 0 .5rem;padding-top:.5rem;border-top:2px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
h1,h2,h3,p,li{overflow-wrap:anywhere}
a{color:var(--link)}
h2>a,h3>a{color:inherit;text-decoration:none}
h2>a:hover::after,h3>a:hover::after{content:" #";color:var(--faint)}
nav{font-size:.92rem;border:1px solid var(--rule);border-radius:.4rem;padding:.5rem 1rem;margin:1.5rem 0}
nav ul{margin:.2rem 0;padding-left:1.2rem}
:is(p,td,th,li,span,div,small).dim{color:var(--faint);font-size:.92rem}
.warning{border-left:.3rem solid var(--no);padding:.4rem .8rem;background:var(--box)}
.question{font-size:1.1rem}
.scroll{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
.scroll th,.scroll td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-top:1px solid var(--rule)}
.scroll thead th{border-top:0;font-weight:600;min-width:4.5rem;overflow-wrap:normal;vertical-align:bottom}
.scroll tbody th{font-weight:400;min-width:6rem}
.number{white-space:nowrap}
.wide{min-width:13rem}
.verdict{font-weight:700;white-space:nowrap}
.holds{color:var(--yes)}.fails{color:var(--no)}.undecided{color:var(--open)}
pre{font:.8rem/1.45 "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere;
background:var(--box);padding:.7rem;border-radius:.4rem}
code{font:.88em "DejaVu Sans Mono",Menlo,Consolas,monospace}
summary{cursor:pointer}
@media print{main{max-width:none;padding:0}h2,h3{break-after:avoid}tr{break-inside:avoid}.scroll{overflow:visible}
nav{break-after:page}body{font-size:11pt}}
]]

-- The page's colours, from those of its figures.
local function colors(theme)
  local function c(name) return look.color(name, theme) end
  return ("--page:%s;--text:%s;--faint:%s;--rule:%s;--box:%s;--link:%s;--yes:%s;--no:%s;--open:%s"):format(c "paper", c "ink", c "dim", c "grid",
    c "blank", c "c1", c "c3", c "c2", c "dim")
end

---@param title string
---@return table page
function page.new(title)
  return setmetatable({ title = title, out = {}, contents = {} }, Page)
end

---Put in HTML as it is.
function Page:add(html) self.out[#self.out + 1] = html end

---A heading that can be linked to.
---@param level integer 2 or 3
---@param id string of letters, digits and _; nothing else on the page has it
---@param heading string
function Page:heading(level, id, heading)
  self.contents[#self.contents + 1] = { level = level, id = id, heading = heading }
  self:add(('<h%d id="%s"><a href="#%s">%s</a></h%d>\n'):format(level, id, id, escape(heading), level))
end

-- Escaped text with what Markdown has within a line: `code`, in which all else stays as it is, **bold**, [text](address),
-- and addresses by themselves.
local AROUND = { "&lt;", "&gt;", "&quot;", "&#39;" }           -- an address, no part of it
local ADDRESS = "https?://[%w%-._~:/?#%[%]@!$'*+,;=%%()&]+"
local function linked(s)
  local kept = {}
  local function keep(html)                          -- finished: in its place stands what text cannot hold
    kept[#kept + 1] = html
    return ("\1%d\2"):format(#kept)
  end
  local function link(address, name) return keep(('<a href="%s">%s</a>'):format(address, name)) end
  s = escape(s):gsub("[\1\2]", ""):gsub("`([^`\n]+)`", function(code) return keep("<code>" .. code .. "</code>") end)
  s = s:gsub("%f[^%s%z]([(%[]*)%*%*(%S[^*]-)%*%*()", function(before, bold, after)
    return not bold:find "%s$" and not s:find("^%w", after) and before .. "<b>" .. bold .. "</b>"
  end)
  s = s:gsub("%[([^%[%]]+)%]%((https?://[^%s()]+)%)", function(name, address) return link(address, name) end)
  s = s:gsub(ADDRESS, function(all)
    local stop = #all + 1
    for _, mark in ipairs(AROUND) do stop = math.min(stop, all:find(mark, 1, true) or stop) end
    local address = all:sub(1, stop - 1):gsub("[.,;:!?)'*]*$", "")
    return link(address, address) .. all:sub(#address + 1)
  end)
  for _ = 1, 2 do s = s:gsub("\1(%d+)\2", function(i) return kept[tonumber(i)] end) end       -- code within a link's text
  return s
end

---Paragraphs: a text in which blank lines part them, or a list of texts.
---@param s string|string[]
---@param class string?
function Page:paragraphs(s, class)
  if type(s) == "table" then
    self:add "<ul>\n"
    for _, item in ipairs(s) do self:add(("<li>%s</li>\n"):format(linked(item))) end
    return self:add "</ul>\n"
  end
  for part in (s .. "\n\n"):gmatch "(.-)\n%s*\n" do
    if part:find "%S" then self:add(("<p%s>%s</p>\n"):format(class and (' class="%s"'):format(class) or "", linked(part))) end
  end
end

-- A field of a table: text, or { text or html, class = , html = true, href = }.
local function field(tag, v)
  if type(v) ~= "table" then v = { v } end
  local inner = v.html and v[1] or escape(v[1])
  if v.href then inner = ('<a href="%s">%s</a>'):format(escape(v.href), inner) end
  return ("<%s%s>%s</%s>"):format(tag, v.class and (' class="%s"'):format(v.class) or "", inner, tag:match "^%a+")
end

---@param head string[] what the columns are; none: a table without a head
---@param rows table[] of fields: a text, or { text, class = text, html = it is HTML, href = address }
---@param caption string?
function Page:table(head, rows, caption)
  if caption then self:paragraphs(caption, "dim") end
  self:add '<div class="scroll"><table>'
  if #head > 0 then
    self:add "<thead><tr>"
    for _, name in ipairs(head) do self:add(field('th scope="col"', name)) end
    self:add "</tr></thead>"
  end
  self:add "<tbody>\n"
  for _, row in ipairs(rows) do
    self:add "<tr>"
    for i, v in ipairs(row) do self:add(field(i == 1 and 'th scope="row"' or "td", v)) end
    self:add "</tr>\n"
  end
  self:add "</tbody></table></div>\n"
end

---What `fill` puts into the page, folded away.
---@param summary string
---@param fill fun()
function Page:fold(summary, fill)
  self:add(("<details><summary>%s</summary>\n"):format(escape(summary)))
  fill()
  self:add "</details>\n"
end

---Text as it is, folded away.
function Page:folded(summary, s)
  self:add(("<details><summary>%s</summary><pre>%s</pre></details>\n"):format(escape(summary), escape(s)))
end

local function contents_of(self, heading)
  local out, level = { ('<nav aria-label="%s"><ul>\n'):format(escape(heading)) }, 2
  for i, c in ipairs(self.contents) do
    if c.level > level then out[#out + 1] = "<ul>"
    elseif i > 1 then out[#out + 1] = c.level < level and "</li></ul></li>\n" or "</li>\n" end
    out[#out + 1] = ('<li><a href="#%s">%s</a>'):format(c.id, escape(c.heading))
    level = c.level
  end
  out[#out + 1] = level == 3 and "</li></ul></li></ul></nav>\n" or "</li></ul></nav>\n"
  return table.concat(out)
end

---The whole page.
---@param opening string HTML between title and contents
---@param contents string the heading of the table of contents
---@return string html
function Page:html(opening, contents)
  return table.concat { '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n<title>',
    escape(self.title), "</title>\n<style>:root{", colors "light", "}\n@media (prefers-color-scheme:dark){:root{", colors "dark",
    "}}\n@media print{:root{", colors "light", "}}\n", style, "</style>\n", section.head(), "</head>\n<body>\n<main>\n<h1>", escape(self.title),
    "</h1>\n", opening, contents_of(self, contents), table.concat(self.out), "</main>\n</body>\n</html>\n" }
end

return page
