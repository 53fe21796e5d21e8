-- axes.lua -- draws axes: lines, tick labels and names.
local SIZE = require("mneme.insight.figures.figure_style").SMALL
local scale = require "mneme.insight.figures.scale"
local text = require "mneme.insight.figures.text"

local axes = {}

---A scale from left to right with as many ticks as there is room for.
function axes.across(axis, low, high, left, right)
  return scale.new(axis, low, high, left, right, { wanted = math.max(2, math.floor((right - left) / 70)),
    fits = function(ticks, labels, at)
      local last = -math.huge
      for i, v in ipairs(ticks) do
        local half = text.width(labels[i], SIZE) / 2
        if at(v) - half < last then return false end
        last = at(v) + half + 8
      end
      return true
    end })
end

---The least and the largest of an axis, from what is to be seen: a wished range, widened where that is not enough.
---@param range { [1]: number, [2]: number }?
function axes.limits(range, low, high)
  if not (low <= high) then low, high = 0, 1 end          -- nothing there
  if range then return math.min(range[1], low), math.max(range[2], high) end
  return low, high
end

---How far the numbers of a scale reach.
function axes.widest(labels)
  local widest = 0
  for _, label in ipairs(labels) do widest = math.max(widest, text.width(label, SIZE)) end
  return widest
end

---The name of the vertical axis, above it: it can be read without turning one's head.
function axes.name_above(paper, label, x, y, width)
  if not label or label == "" then return y + 6 end
  return paper:lines(text.wrap(label, width, SIZE), x, y + 11, 14, { size = SIZE, class = "dim" }) - 5
end

---The name of the horizontal axis, in the middle below it.
---@return number y of the baseline that would follow
function axes.name_below(paper, label, x, y, width)
  local lines = label and label ~= "" and text.wrap(label, width, SIZE) or {}
  return paper:lines(lines, x, y, 13, { size = SIZE, anchor = "middle", class = "dim" })
end

---The name of a row at the left of it, broken where it is wider than `room`.
---@param middle number y of the middle of the row
function axes.name_beside(paper, lines, x, middle, o)
  paper:lines(lines, x, middle + 4 + (1 - (#lines + 1) / 2) * 13, 13, o)
end

---Horizontal lines with their numbers on the left.
function axes.draw_y(paper, s, box)
  for i, v in ipairs(s.ticks) do
    local y = s.at(v)
    paper:line(box.x, y, box.x + box.w, y, "grid")
    paper:text(s.labels[i], box.x - 7, y + 4, { size = SIZE, anchor = "end", class = "dim" })
  end
end

---Ticks below with their numbers, and the name of the axis.
---@param spans { [1]: number, [2]: number }[]? from where to where lines go across the drawing, instead of ticks
function axes.draw_x(paper, s, box, label, spans)
  local y = box.y + box.h
  for i, v in ipairs(s.ticks) do
    local x, half = s.at(v), text.width(s.labels[i], SIZE) / 2
    for _, span in ipairs(spans or {}) do paper:line(x, span[1], x, span[2], "grid") end
    if not spans then paper:line(x, y, x, y + 4, "axis") end
    paper:text(s.labels[i], math.max(half, math.min(paper.width - half, x)), y + 17, { size = SIZE, anchor = "middle", class = "dim" })
  end
  if not spans then paper:line(box.x, y, box.x + box.w, y, "axis") end
  return axes.name_below(paper, label, box.x + box.w / 2, y + 33, box.w) - 7
end

return axes
