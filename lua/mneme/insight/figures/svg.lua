-- svg.lua -- draws a figure as SVG: as part of a page, or as a separate file with its title, note and colours.
local errors = require "mneme.base.errors"
local figure_style = require "mneme.insight.figures.figure_style"
local figure_format = require "mneme.insight.figures.figure_format"
local svg_writer = require "mneme.insight.figures.svg_writer"
local text = require "mneme.insight.figures.text"

local svg = { LEAST = 150, MOST = 4000 }          -- pixels of a width
local NARROW, WIDE = 360, 720          -- pixels
local HAND = 480                       -- of a drawing as wide as a hand, or less

-- Each draws: draw(paper, fig, y0 = where it may begin, narrow = for a page as wide as a hand) -> y below it.
local drawings = { lines = require "mneme.insight.figures.lines", bars = require "mneme.insight.figures.bars", heat = require "mneme.insight.figures.heat" }

-- The description for screen readers.
local function description(fig)
  return (fig.title and fig.title ~= "" and fig.title or fig.kind) .. (fig.note and ". " .. fig.note or "")
end

---Refuse options of a drawing that are none.
---@param o table see svg.draw
---@return table o
function svg.options(o)
  errors.need("figure: options", o, nil, "a table such as { alone = true }")
  errors.members("the options of a figure", o, "id:string narrow:boolean panels:boolean alone:boolean theme:string width:number font:string title:boolean")
  if o.theme and o.theme ~= "light" and o.theme ~= "dark" then errors.raise(("figure: theme is '%s', expected light or dark"):format(o.theme)) end
  if o.width and not (o.width >= svg.LEAST and o.width <= svg.MOST) then
    errors.raise(("figure: width is %s, expected %d to %d pixels"):format(o.width, svg.LEAST, svg.MOST))
  end
  return o
end

---A figure as SVG.
---@param fig table see insight/figures/figure_format.lua
---@param o table? { id = of its own on a page, default "figure"; narrow = for small screens; panels = true | false: one panel a line,
---  default where lines are many; alone = true: a file, with title, note and styles; and then: theme = "light" | "dark": fixed
---  colours; width = pixels of all of it; font = a family of letters; title = false: without title and note }
---@return string
function svg.draw(fig, o)
  o = svg.options(o or {})
  local drawing = drawings[figure_format.check(fig)]
  local margin, told = o.alone and (o.width and 2 or 16) or 0, o.alone and o.title ~= false
  local wide = o.width and o.width - 2 * margin or o.narrow and NARROW or WIDE
  local paper, y, id = svg_writer.new(wide, o.id or "figure"), 0, text.escape(o.id or "figure")
  if told then
    local lines = fig.title and text.wrap(fig.title, paper.width, figure_style.LARGE * figure_style.BOLD) or {}
    y = paper:lines(lines, 0, 16, 20, { size = figure_style.LARGE, weight = "600" }) - 16
  end
  y = drawing.draw(paper, fig, y, wide < HAND, o.panels)
  if told then
    local lines = fig.note and text.wrap(fig.note, paper.width, figure_style.SMALL) or {}
    y = paper:lines(lines, 0, y + 15, 15, { size = figure_style.SMALL, class = "dim" }) - 11
  end
  local width, height = paper.width + 2 * margin, math.ceil(y) + 2 * margin
  local head = (('<svg xmlns="http://www.w3.org/2000/svg" class="mn-figure" id="%s" viewBox="%d %d %d %d" width="%d" height="%d"'):format(
    id, -margin, -margin, width, height, width, height)
    .. (' role="img" aria-labelledby="%s-title">\n<title id="%s-title">%s</title>\n'):format(id, id, text.escape(description(fig))))
  if o.alone then
    head = head .. ("<style>%s</style>\n"):format(figure_style.css(o.theme, o.font))
      .. ('<rect x="%d" y="%d" width="%d" height="%d" class="paper"/>\n'):format(-margin, -margin, width, height)
  end
  return head .. table.concat(paper.out, "\n") .. "\n</svg>\n"
end

return svg
