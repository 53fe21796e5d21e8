-- labels.lua -- names of lines: at the end of each line, moved so that none covers another; or in a legend below, if
-- there are too many names or they are too long.
local SIZE = require("mneme.insight.figures.figure_style").SMALL
local text = require "mneme.insight.figures.text"

local labels = {}
local ROW, SWATCH, LEAD = 14, 26, 16
local MOST = 12                -- names at line ends: with more, a reader loses which name belongs to which line

local function widest_of(items)
  local widest = 0
  for _, item in ipairs(items) do widest = math.max(widest, text.width(item.name, SIZE)) end
  return widest
end

---Do the names fit at the ends of the lines?
---@return number? room to the right that they need; nil: they do not fit
---@return number height that they need
function labels.room(items, width)
  local widest = widest_of(items)
  if widest > 0.3 * width or #items > MOST then return nil, 0 end
  return widest + LEAD + 6, #items * ROW
end

-- Heights moved apart: each at least ROW below the one before, all between top and bottom.
local function spread(items, top, bottom)
  table.sort(items, function(a, b) return a.y ~= b.y and a.y < b.y or a.y == b.y and a.order < b.order end)
  for i, item in ipairs(items) do item.at = math.max(item.y, i > 1 and items[i - 1].at + ROW or top) end
  for i = #items, 1, -1 do items[i].at = math.min(items[i].at, i < #items and items[i + 1].at - ROW or bottom) end
end

local function class_of(style) return style and style.color or "reference" end

---Names at the right edge of the box, each led to from where its line ends; dotted where that is within the box, for there
---a line is data.
---@param items table[] { name, style or nil: a reference, x, y }
---@param box table { x, y, w, h }
function labels.ends(paper, items, box)
  local list = {}
  for i, item in ipairs(items) do
    list[i] = { name = item.name, style = item.style, x = item.x, y = math.max(box.y, math.min(box.y + box.h, item.y)), order = i }
  end
  spread(list, box.y + ROW / 2 - 2, math.max(box.y + box.h, box.y + ROW * #list - ROW / 2))
  local right = box.x + box.w
  for _, item in ipairs(list) do
    local class, from = "lead " .. class_of(item.style), item.x + 1
    if from < right - ROW then
      paper:path({ { from + 3, item.y }, { right, item.y } }, class, "1 5")
      from = right
    end
    paper:path({ { from, item.y }, { right + 3, item.y }, { right + LEAD - 3, item.at } }, class)
    paper:text(item.name, right + LEAD, item.at + 4, { size = SIZE, class = not item.style and "dim" or nil })
  end
end

---Names below: in columns, long ones on several lines.
function labels.legend(paper, items, x, y, width)
  local columns = math.min(#items, math.max(1, math.floor((width + 14) / (widest_of(items) + SWATCH + 6 + 14))))
  local each = (width - 14 * (columns - 1)) / columns
  local rows = math.ceil(#items / columns)
  local at = y
  for r = 1, rows do
    local deepest = 1
    for c = 1, columns do
      local item = items[(c - 1) * rows + r]
      if item then
        local left, style = x + (c - 1) * (each + 14), item.style
        if style then
          paper:path({ { left, at + 7 }, { left + SWATCH - 4, at + 7 } }, "line " .. style.color, style.dash)
          if style.marked then paper:mark(style.marker, left + (SWATCH - 4) / 2, at + 7, style.fill) end
        else paper:line(left, at + 7, left + SWATCH - 4, at + 7, "reference") end
        local lines = text.wrap(item.name, each - SWATCH - 2, SIZE)
        paper:lines(lines, left + SWATCH, at + 11, ROW, { size = SIZE, class = not style and "dim" or nil })
        deepest = math.max(deepest, #lines)
      end
    end
    at = at + deepest * ROW + 2
  end
  return at
end

return labels
