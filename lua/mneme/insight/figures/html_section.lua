-- html_section.lua -- a figure as a section of an HTML page: title, drawing (a wide one, and one for small screens), note, and links
-- that save it and its numbers.  It loads nothing from the network;
-- without scripts only saving the drawing is unavailable.
local data = require "mneme.insight.figures.data"
local figure_style = require "mneme.insight.figures.figure_style"
local model = require "mneme.insight.figures.model"
local svg = require "mneme.insight.figures.svg"
local text = require "mneme.insight.figures.text"

local section = {}
local escape = text.escape

local style = [[
.mn-part{margin:1.5em 0;max-width:720px;font:14px/1.45 "Helvetica Neue",Arial,"Liberation Sans","DejaVu Sans",sans-serif}
.mn-part>figcaption{font-size:16px;font-weight:600;margin:0 0 .5em}
.mn-part svg{display:block;width:100%;height:auto}
.mn-part .mn-narrow{display:none}
.mn-part p{margin:.5em 0;font-size:13px;opacity:.8;overflow-wrap:anywhere}
.mn-part .mn-save{font-size:13px}
.mn-part .mn-save a{margin-right:1em;color:inherit}
.mn-part svg .row{transition:opacity .12s}
.mn-part svg:has(.row:hover) .row:not(:hover){opacity:.22}
@media (max-width:600px){.mn-part .mn-wide{display:none}.mn-part .mn-narrow{display:block}}
@media print{.mn-part{break-inside:avoid}.mn-part .mn-save{display:none}
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

---A figure as HTML.
---@param fig table see insight/figures/model.lua
---@param id string of letters, digits, - and _, that nothing else on the page has; also the name of files saved from it
---@return string html
function section.html(fig, id)
  model.check(fig)
  local out = {}
  local function add(s, ...) out[#out + 1] = select("#", ...) > 0 and s:format(...) or s end
  add('<figure class="mn-part" id="%s">\n', id)
  if fig.title then add("<figcaption>%s</figcaption>\n", escape(fig.title)) end
  add('<div class="mn-wide">%s</div><div class="mn-narrow">%s</div>\n', svg.draw(fig, { id = id .. "-1" }), svg.draw(fig, { id = id .. "-1n", narrow = true }))
  if fig.note and fig.note ~= "" then add("<p>%s</p>\n", escape(fig.note)) end
  add('<div class="mn-save"><a download="%s.csv" href="', id)
  add(address("text/csv", data.csv(fig)))
  add('">Save as CSV</a><a download="%s.svg" href="#%s" data-drawing>Save as SVG</a></div>\n</figure>\n', id, id)
  return table.concat(out)
end

return section
