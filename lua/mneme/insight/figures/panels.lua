-- panels.lua -- small multiples: where lines are many, a panel for each, on the same axes, with the others behind it in grey.
local axes = require "mneme.insight.figures.axes"
local labels = require "mneme.insight.figures.labels"
local figure_style = require "mneme.insight.figures.figure_style"
local format = require "mneme.base.format"
local scale = require "mneme.insight.figures.scale"
local tables = require "mneme.base.tables"
local text = require "mneme.insight.figures.text"

local panels = {}
local SIZE, LETTERS, BOLD = figure_style.SMALL, 13, figure_style.BOLD * figure_style.SMALL
local LEAST, GAP, DISC = 104, 12, 4                     -- pixels: a panel's width, between panels, half of a mark
local heights = { 140, 96 }                             -- of a panel, by the number of rows; of more rows:
local LOW = 66

-- Panels by what their lines end at, the largest first: neighbours are alike.
local function ordered(lines)
  local list = tables.map(lines, function(line, i) return { line = line, order = i, last = line.y[#line.y] } end)
  table.sort(list, function(a, b) return a.last ~= b.last and a.last > b.last or a.last == b.last and a.order < b.order end)
  return list
end

-- The ends of an axis alone have room for their numbers: round ones, or its outermost ticks.
local function ends(s, unit, round)
  local low, high = not round and s.ticks[1] or s.low, not round and s.ticks[#s.ticks] or s.high
  return low == high and { { low, format.short(low, unit) } } or { { low, format.short(low, unit) }, { high, format.short(high, unit) } }
end

---The places of a line's points; low: what lies below stands at it.
function panels.points(xs, ys, x, y, low)
  return tables.map(xs, function(v, i) return { x.at(v), y.at(low and math.max(low, ys[i]) or ys[i]) } end)
end

local function moved(points, dx, dy) return tables.map(points, function(p) return { p[1] + dx, p[2] + dy } end) end

---Draw the lines of a figure, a panel each.
---@param range number[] x0, x1, y0, y1: what is to be seen
---@param styles table[] of figure_style.lua's of_items, for each line
---@param spread function of lines.lua: draws a band, or seeds
function panels.draw(paper, fig, y0, range, styles, spread)
  local list, top = ordered(fig.lines), axes.name_above(paper, fig.y.label, 0, y0, paper.width)
  local y = scale.new(fig.y, range[3], range[4], LOW, 0, { wanted = 6, nice = not fig.y.range })
  local marks = ends(y, fig.y.unit, not fig.y.log and not fig.y.range)
  local left = math.ceil(math.max(axes.widest { marks[1][2], marks[#marks][2] }, 8)) + 8
  local columns = math.max(1, math.min(#list, math.floor((paper.width - left - DISC + GAP) / (LEAST + GAP))))
  local width = (paper.width - left - DISC - GAP * (columns - 1)) / columns
  local high = heights[math.ceil(#list / columns)] or LOW
  y = scale.new(fig.y, range[3], range[4], high, 0, { wanted = 6, nice = not fig.y.range })
  local x = scale.new(fig.x, range[1], range[2], 0, width, { wanted = 2 })
  local below = ends(x, fig.x.unit)
  if #below == 2 and text.width(below[1][2], SIZE) + text.width(below[2][2], SIZE) + 8 > width then below = { below[2] } end
  local ghosts, all = {}, text.escape(paper.id) .. "-all"
  paper:add('<defs><g id="%s">', all)                            -- once, and shown again in each panel
  for i, item in ipairs(list) do
    ghosts[i] = panels.points(item.line.x, item.line.y, x, y)
    paper:path(ghosts[i], "mn-other")
  end
  paper:add "</g></defs>"
  for first = 1, #list, columns do
    local names, deepest = {}, 1
    for i = first, math.min(#list, first + columns - 1) do
      names[i] = text.wrap(list[i].line.name, width, BOLD)
      deepest = math.max(deepest, #names[i])
    end
    local box_y = top + deepest * LETTERS + 5
    for i = first, math.min(#list, first + columns - 1) do
      local box_x = left + (i - first) * (width + GAP)
      paper:lines(names[i], box_x, box_y - 6 - (#names[i] - 1) * LETTERS, LETTERS, { size = SIZE, weight = "600" })
      for _, mark in ipairs(marks) do
        local at = box_y + y.at(mark[1])
        paper:line(box_x, at, box_x + width, at, "grid")
        if i == first then paper:text(mark[2], box_x - 6, at + 4, { size = SIZE, anchor = "end", class = "dim" }) end
      end
      paper:line(box_x, box_y + high, box_x + width, box_y + high, "axis")
      for _, r in ipairs(fig.references or {}) do
        local at = box_y + y.at(r.y)
        paper:line(box_x, at, box_x + width, at, "reference")
      end
      paper:add('<use href="#%s" x="%.1f" y="%.1f"/>', all, box_x, box_y)
      paper:group(("%s: %s"):format(list[i].line.name, format.short(list[i].last, fig.y.unit)), "row")
      local mine, style = moved(ghosts[i], box_x, box_y), styles[list[i].order]
      local function at_x(v) return box_x + x.at(v) end
      local function at_y(v) return box_y + math.max(0, math.min(high, y.at(v))) end
      spread(paper, fig, list[i].line, style, { at = at_x }, { at = at_y, low = y.low, log = y.log }, { y = box_y, h = high }, "")
      if #mine > 1 then paper:path(mine, "line " .. style.color) end
      paper:mark("disc", mine[#mine][1], mine[#mine][2], style.fill)
      paper:close()
      if i + columns > #list then                        -- the last of its column
        for k, mark in ipairs(below) do
          local at, half = box_x + x.at(mark[1]), text.width(mark[2], SIZE) / 2
          at = k == 1 and #below == 2 and math.max(at, box_x + half) or math.min(at, box_x + width - half)
          paper:line(box_x + x.at(mark[1]), box_y + high, box_x + x.at(mark[1]), box_y + high + 3, "axis")
          paper:text(mark[2], at, box_y + high + 15, { size = SIZE, anchor = "middle", class = "dim" })
        end
      end
    end
    top = box_y + high + (first + 2 * columns > #list and 22 or 10)
  end
  top = axes.name_below(paper, fig.x.label, left + (paper.width - left) / 2, top + 9, paper.width - left) - 9
  local items = tables.map(fig.references or {}, function(r) return { name = ("%s %s"):format(r.name, format.short(r.y, fig.y.unit)) } end)
  if #items == 0 then return top + 4 end
  return labels.legend(paper, items, left, top + 2, paper.width - left)
end

return panels
