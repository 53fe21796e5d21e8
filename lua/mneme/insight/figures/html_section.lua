-- html_section.lua -- a figure as a section of an HTML page: title, drawing (a wide one, and one for small screens), note, and links
-- that save it and its numbers.  It loads nothing from the network;
-- without scripts only saving the drawing is unavailable.
local figure_csv = require "mneme.insight.figures.figure_csv"
local figure_style = require "mneme.insight.figures.figure_style"
local figure_format = require "mneme.insight.figures.figure_format"
local registry = require "mneme.base.registry"
local svg = require "mneme.insight.figures.svg"
local text = require "mneme.insight.figures.text"

local section = {}
local escape = text.escape

---What the head of a page needs, once, for all its figures.
---@return string html
function section.head()
  return ('<style id="mn-figure-colors">%s</style>\n<style>%s</style>\n<script>%s</script>\n'):format(figure_style.css(),
    registry.text "insight/figures/section.css", registry.text "insight/figures/section.js")
end

-- Text as the address of a file that holds it.
local function address(kind, s)
  return ("data:%s;charset=utf-8,"):format(kind) .. s:gsub("[^%w,.%-_ ]", function(c) return ("%%%02X"):format(c:byte()) end):gsub(" ", "%%20")
end

---A figure as HTML.
---@param fig table see insight/figures/figure_format.lua
---@param id string of letters, digits, - and _, that nothing else on the page has; also the name of files saved from it
---@return string html
function section.html(fig, id)
  figure_format.check(fig)
  local out = {}
  local function add(s, ...) out[#out + 1] = select("#", ...) > 0 and s:format(...) or s end
  add('<figure class="mn-part" id="%s">\n', id)
  if fig.title then add("<figcaption>%s</figcaption>\n", escape(fig.title)) end
  add('<div class="mn-wide">%s</div><div class="mn-narrow">%s</div>\n', svg.draw(fig, { id = id .. "-1" }), svg.draw(fig, { id = id .. "-1n", narrow = true }))
  if fig.note and fig.note ~= "" then add("<p>%s</p>\n", escape(fig.note)) end
  add('<div class="mn-save"><a download="%s.csv" href="', id)
  add(address("text/csv", figure_csv.csv(fig)))
  add('">Save as CSV</a><a download="%s.svg" href="#%s" data-drawing>Save as SVG</a></div>\n</figure>\n', id, id)
  return table.concat(out)
end

return section
