-- html.lua -- writes a page as self-contained HTML: a rail of contents beside it, tables that scroll separately, light and dark themes,
-- and print.  All text is escaped here.
local blocks = require "mneme.lab.reports.page.blocks"
local figure_style = require "mneme.insight.figures.figure_style"
local html_section = require "mneme.insight.figures.html_section"
local svg = require "mneme.insight.figures.svg"
local text = require "mneme.insight.figures.text"

local html = {}
local escape = text.escape
local CARD = 216               -- pixels of a card's drawing

local style = [[
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.55 "Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif}
.sheet{max-width:49rem;margin:0 auto;padding:1.5rem 1rem 4rem}
main,header{min-width:0}
h1{font-size:1.75rem;line-height:1.2;margin:.3rem 0 .6rem;text-wrap:balance}
h2{font-size:1.3rem;margin:2.4rem 0 .5rem;padding-top:.6rem;border-top:2px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
h1,h2,h3,p,li{overflow-wrap:anywhere}
a{color:var(--link)}
h2>a,h3>a{color:inherit;text-decoration:none}
h2>a:hover::after,h3>a:hover::after{content:" #";color:var(--faint)}
nav{font-size:.9rem}
nav summary{font-weight:600;padding:.3rem 0}
nav ul{list-style:none;margin:.2rem 0;padding-left:0}
nav ul ul{padding-left:.9rem}
nav li{margin:.22rem 0;line-height:1.3}
nav a{color:var(--faint);text-decoration:none}
nav a:hover{color:var(--link);text-decoration:underline}
:is(p,td,th,li,span,div,small).dim{color:var(--faint);font-size:.92rem}
.warning{border-left:.3rem solid var(--no);padding:.4rem .8rem;background:var(--box);font-size:.92rem}
.question{font-size:1.2rem;line-height:1.4;margin:.4rem 0 1rem;text-wrap:pretty}
.lead{font-weight:600}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr));gap:.8rem;margin:1rem 0 1.4rem}
.card{display:flex;flex-direction:column;border:1px solid var(--rule);border-top:.25rem solid var(--open);border-radius:.35rem;padding:.7rem .8rem .6rem;
min-width:0;color:inherit;text-decoration:none}
.card.holds{border-top-color:var(--yes)}.card.fails{border-top-color:var(--no)}
.card .word{display:flex;justify-content:space-between;gap:.6rem;font-size:.85rem;font-weight:700}
.card .word span+span{color:var(--faint);font-weight:400;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.card p{margin:.35rem 0 .5rem;font-size:.95rem;line-height:1.38;color:var(--text)}
.card .estimate{font-size:1.02rem;font-weight:600;font-variant-numeric:tabular-nums;margin:auto 0 0;padding-top:.2rem;color:var(--text)}
.card .estimate.none{font-weight:400;font-size:.9rem;color:var(--faint)}
.card .interval{font-size:.92rem;font-variant-numeric:tabular-nums;color:var(--text)}
.card .about{font-size:.82rem;color:var(--faint);line-height:1.35;margin:.1rem 0 .5rem}
.card svg{display:block;max-width:100%;height:auto}
.card:hover{border-color:var(--link)}
.sheet .mn-part{max-width:none;margin:1.2em 0}
.scroll{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
.scroll th,.scroll td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-top:1px solid var(--rule)}
.scroll thead th{border-top:0;font-weight:600;min-width:4.5rem;overflow-wrap:normal;vertical-align:bottom}
.scroll tbody th{font-weight:400;min-width:6rem}
.number{white-space:nowrap}
.wide{min-width:13rem}
.verdict{font-weight:700;white-space:nowrap}
.verdict.holds,.card.holds .word span:first-child{color:var(--yes)}
.verdict.fails,.card.fails .word span:first-child{color:var(--no)}
.verdict.undecided,.card.undecided .word span:first-child{color:var(--open)}
pre{font:.8rem/1.45 "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre-wrap;overflow-wrap:anywhere;
background:var(--box);padding:.7rem;border-radius:.4rem}
code{font:.88em "DejaVu Sans Mono",Menlo,Consolas,monospace}
summary{cursor:pointer}
main details{margin:.8rem 0}
@media (min-width:1100px){.sheet{display:grid;grid-template-columns:14rem minmax(0,47rem);gap:0 3.5rem;max-width:66.5rem}
nav{position:sticky;top:1rem;align-self:start;max-height:calc(100vh - 2rem);overflow-y:auto;padding:.4rem 0;grid-column:1;grid-row:1/span 2}
header,main{grid-column:2}nav summary{display:none}}
@media (max-width:1099px){nav{border:1px solid var(--rule);border-radius:.4rem;padding:.1rem .9rem;margin:1rem 0}}
@media (max-width:600px){h1{font-size:1.45rem}.question{font-size:1.1rem}.cards{grid-template-columns:1fr}}
@media print{.sheet{display:block;max-width:none;padding:0}nav{display:none}h2,h3{break-after:avoid}tr,.card{break-inside:avoid}
.scroll{overflow:visible}body{font-size:11pt}}
]]

-- The contents are open beside the page and closed above it, where they would hide it; on paper nothing is folded.
local script = [[
if(!matchMedia("(min-width:1100px)").matches)document.querySelector("nav details").removeAttribute("open");
var folded=[];addEventListener("beforeprint",function(){folded=[].slice.call(document.querySelectorAll("main details:not([open])"));
folded.forEach(function(d){d.open=true})});addEventListener("afterprint",function(){folded.forEach(function(d){d.open=false})});
]]

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
    "}}\n", style, "</style>\n", html_section.head(), '</head>\n<body>\n<div class="sheet">\n<header>\n<h1>', escape(page.title), "</h1>\n",
    blocks.write(writer, opening.blocks), "</header>\n", contents_of(page.blocks, contents), "<main>\n",
    blocks.write(writer, page.blocks), "</main>\n</div>\n<script>", script, "</script>\n</body>\n</html>\n" }
end

return html
