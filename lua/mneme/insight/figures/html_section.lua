-- html_section.lua -- a figure as a section of an HTML page: title, drawing (a wide one, and one for small screens), a switch
-- if it has several x axes, note, a table of values, and links that save it.  It loads nothing from the network;
-- without scripts only saving the drawing is unavailable.
local data = require "mneme.insight.figures.data"
local figure_style = require "mneme.insight.figures.style"
local model = require "mneme.insight.figures.model"
local svg = require "mneme.insight.figures.svg"
local text = require "mneme.insight.figures.text"

local section = {}
local escape = text.escape

local style = [[
.mn-part{margin:1.5em 0;max-width:720px;font:14px/1.45 "Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif}
.mn-part>figcaption{font-size:16px;font-weight:600;margin:0 0 .5em}
.mn-part svg{display:block;width:100%;height:auto}
.mn-part .mn-narrow,.mn-part .mn-view{display:none}
.mn-part>input{position:absolute;opacity:0;pointer-events:none}
.mn-part>label{display:inline-block;padding:.15em .8em;margin:0 .3em .6em 0;border:1px solid #8b9199;border-radius:1em;cursor:pointer}
.mn-part>input:checked+label{background:#0072b2;border-color:#0072b2;color:#fff}
.mn-part>input:focus-visible+label{outline:2px solid #d55e00;outline-offset:2px}
.mn-part>input:nth-of-type(1):checked~.mn-view1,.mn-part>input:nth-of-type(2):checked~.mn-view2,
.mn-part>input:nth-of-type(3):checked~.mn-view3,.mn-part>.mn-only{display:block}
.mn-part p{margin:.5em 0;font-size:13px;opacity:.8;overflow-wrap:anywhere}
.mn-part summary{cursor:pointer;font-size:13px}
.mn-part .mn-table{overflow-x:auto}
.mn-part table{border-collapse:collapse;font-size:12px;margin:.5em 0;font-variant-numeric:tabular-nums}
.mn-part caption{text-align:left;padding:.3em 0;opacity:.8}
.mn-part th,.mn-part td{padding:.2em .7em;text-align:right;border-top:1px solid #8b919955;white-space:nowrap}
.mn-part caption span{position:sticky;left:0;display:inline-block;max-width:min(85vw,680px)}
.mn-part th:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:8em;max-width:16em}
.mn-part .mn-save{font-size:13px}
.mn-part .mn-save a{margin-right:1em;color:inherit}
.mn-part svg .row{transition:opacity .12s}
.mn-part svg:has(.row:hover) .row:not(:hover){opacity:.22}
@media (max-width:600px){.mn-part .mn-wide{display:none}.mn-part .mn-narrow{display:block}}
@media print{.mn-part{break-inside:avoid}.mn-part>label,.mn-part .mn-save,.mn-part details:not([open]){display:none}
.mn-part .mn-wide{display:block}.mn-part .mn-narrow{display:none}}
]]

-- Saving the drawing that is seen, with its colours, as a file.
local script = [[
document.addEventListener("click",function(e){var a=e.target.closest?e.target.closest("a[data-drawing]"):null;if(!a)return;
var part=a.closest(".mn-part"),all=part.querySelectorAll("svg.mn-figure"),seen=null;
for(var i=0;i<all.length;i++)if(all[i].getBoundingClientRect().width>0){seen=all[i];break}
if(!seen)return e.preventDefault();var copy=seen.cloneNode(true),css=document.createElementNS("http://www.w3.org/2000/svg","style");
css.textContent=document.getElementById("mn-figure-colors").textContent;copy.insertBefore(css,copy.firstChild);
a.href=URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)],{type:"image/svg+xml"}))});
]]

---What the head of a page needs, once, for all its figures.
---@return string html
function section.head()
  return ('<style id="mn-figure-colors">%s</style>\n<style>%s</style>\n<script>%s</script>\n'):format(figure_style.css(), style, script)
end

-- Text as the address of a file that holds it.
local function address(kind, s)
  return ("data:%s;charset=utf-8,"):format(kind) .. s:gsub("[^%w,.%-_ ]", function(c) return ("%%%02X"):format(c:byte()) end):gsub(" ", "%%20")
end

local function numbers_of(fig)
  local head, rows, caption = data.table(fig)
  local out = { ('<div class="mn-table"><table><caption><span>%s</span></caption><thead><tr>'):format(escape(caption)) }
  for _, name in ipairs(head) do out[#out + 1] = ('<th scope="col">%s</th>'):format(escape(name)) end
  out[#out + 1] = "</tr></thead><tbody>\n"
  for _, row in ipairs(rows) do
    out[#out + 1] = ('<tr><th scope="row">%s</th>'):format(escape(row[1]))
    for i = 2, #row do out[#out + 1] = ("<td>%s</td>"):format(escape(row[i])) end
    out[#out + 1] = "</tr>\n"
  end
  out[#out + 1] = "</tbody></table></div>\n"
  return table.concat(out)
end

local function view_of(fig, id, k, only)
  return ('<div class="mn-view%s mn-view%d"><div class="mn-wide">%s</div><div class="mn-narrow">%s</div></div>\n'):format(only and " mn-only" or "",
    k, svg.draw(fig, { id = ("%s-%d"):format(id, k) }), svg.draw(fig, { id = ("%s-%dn"):format(id, k), narrow = true }))
end

---A figure as HTML.
---@param fig table see insight/figures/model.lua
---@param id string of letters, digits, - and _, that nothing else on the page has; also the name of files saved from it
---@return string html
function section.html(fig, id)
  model.check(fig)
  local views, out = model.views(fig), {}
  local function add(s, ...) out[#out + 1] = select("#", ...) > 0 and s:format(...) or s end
  add('<figure class="mn-part" id="%s">\n', id)
  if fig.title then add("<figcaption>%s</figcaption>\n", escape(fig.title)) end
  for k, view in ipairs(#views > 1 and views or {}) do
    add('<input type="radio" name="%s-x" id="%s-x%d"%s><label for="%s-x%d">%s%s</label>\n', id, id, k, k == 1 and " checked" or "", id, k,
      k == 1 and "against " or "", escape(view.x.label or ("x %d"):format(k)))
  end
  for k, view in ipairs(views) do add(view_of(view, id, k, #views == 1)) end
  local notes = { fig.note ~= "" and fig.note or nil }
  for _, other in ipairs(fig.other_x or {}) do notes[#notes + 1] = other.note end
  if notes[1] then add("<p>%s</p>\n", escape(table.concat(notes, " "))) end
  add "<details><summary>Numbers</summary>\n"
  for _, view in ipairs(views) do add(numbers_of(view)) end
  add "</details>\n"
  add('<div class="mn-save"><a download="%s.csv" href="', id)
  add(address("text/csv", data.csv(fig)))
  add('">Save as CSV</a><a download="%s.svg" href="#%s" data-drawing>Save as SVG</a></div>\n</figure>\n', id, id)
  return table.concat(out)
end

return section
