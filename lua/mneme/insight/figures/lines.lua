-- lines.lua -- draws lines on two axes: learning curves with bands and faint seeds, one value against another,
-- performance profiles.
local axes = require "mneme.insight.figures.axes"
local labels = require "mneme.insight.figures.labels"
local figure_style = require "mneme.insight.figures.figure_style"
local format = require "mneme.base.format"
local panels = require "mneme.insight.figures.panels"
local scale = require "mneme.insight.figures.scale"

local lines = {}
local TOO_MANY = 10            -- lines: beyond, nobody can follow one among them, and each has a panel
local MANY_BANDS = 4           -- intervals that contain other lines: beyond, nobody can see which is whose
local MARKED = 12              -- points: up to as many are marked one by one

local function spread_of(list, low, high)
  for _, v in ipairs(list) do low, high = math.min(low, v), math.max(high, v) end
  return low, high
end

-- Are the seeds of a line drawn, one by one?
local function few(line) return #(line.seeds or {}) > 1 and #line.seeds < figure_style.FEW end

---What is to be seen: of intervals as much again as the lines span, because those of two seeds are very wide.
---@param busy boolean? without seeds and intervals
---@return number x0, number x1, number y0, number y1
function lines.ranges(fig, busy)
  local x0, x1, y0, y1 = math.huge, -math.huge, math.huge, -math.huge
  for _, line in ipairs(fig.lines) do
    x0, x1 = spread_of(line.x, x0, x1)
    y0, y1 = spread_of(line.y, y0, y1)
    if not busy then
      for _, seed in ipairs(line.seeds or {}) do y0, y1 = spread_of(seed.y, y0, y1) end
    end
  end
  for _, r in ipairs(fig.references or {}) do y0, y1 = spread_of({ r.y }, y0, y1) end
  if not fig.y.range and not busy then
    local room = fig.y.log and 0 or 0.5 * (y1 - y0)
    local least, most = y0 - room, y1 + room
    for _, line in ipairs(fig.lines) do
      for i = 1, few(line) and 0 or #(line.low or {}) do
        if not fig.y.log or line.low[i] > y0 / 2 then y0 = math.min(y0, math.max(least, line.low[i])) end
        y1 = math.max(y1, fig.y.log and math.min(2 * y1, line.high[i]) or math.min(most, line.high[i]))
      end
    end
  end
  if fig.kind == "curves" and not fig.x.log then x0 = math.min(0, x0) end
  if fig.y.log and y0 < y1 then y0, y1 = y0 / 1.15, y1 * 1.15 end
  x0, x1 = axes.limits(fig.x.range, x0, x1)
  y0, y1 = axes.limits(fig.y.range, y0, y1)
  if fig.x.log and x0 <= 0 then x0, x1 = 1, 10 end
  if fig.y.log and y0 <= 0 then y0, y1 = 1, 10 end
  return x0, x1, y0, y1
end

-- What a line has at a place, between its points.
local function height_of(line, x)
  for i = 2, #line.x do
    if line.x[i - 1] <= x and x <= line.x[i] then
      local part = line.x[i] > line.x[i - 1] and (x - line.x[i - 1]) / (line.x[i] - line.x[i - 1]) or 0
      return line.y[i - 1] + part * (line.y[i] - line.y[i - 1])
    end
  end
end

-- Do more than MANY_BANDS intervals contain other lines?
local function tangled(fig)
  local n = 0
  for _, line in ipairs(fig.lines) do
    local crossed = false
    for _, other in ipairs(line.low and not few(line) and fig.lines or {}) do
      for i = 1, other ~= line and not crossed and #line.x or 0 do
        local y = height_of(other, line.x[i])
        crossed = crossed or y ~= nil and line.low[i] < y and y < line.high[i]
      end
    end
    if crossed then n = n + 1 end
  end
  return n > MANY_BANDS
end

local points_of = panels.points

local function draw_band(paper, line, style, x, y, box, many)
  local points = points_of(line.x, line.high, x, y, y.log and y.low)
  local below = points_of(line.x, line.low, x, y, y.log and y.low)
  for i = #below, 1, -1 do points[#points + 1] = below[i] end
  for _, p in ipairs(points) do p[2] = math.max(box.y - 1, math.min(box.y + box.h + 1, p[2])) end
  paper:path(points, "band " .. style.fill .. many, nil, true)
end

---What surrounds a line: its band; or its seeds, where they are few, as thin lines; of lines with few points, between which nothing was
---measured, as circles.
function lines.spread(paper, fig, line, style, x, y, box, many)
  if line.low and not few(line) then return draw_band(paper, line, style, x, y, box, many) end
  for _, seed in ipairs(few(line) and line.seeds or {}) do
    local points = points_of(seed.x, seed.y, x, y)
    if fig.kind == "curves" or #line.x > MARKED then paper:path(points, "seed " .. style.color .. many)
    else
      for _, p in ipairs(points) do paper:add('<circle cx="%.1f" cy="%.1f" r="2.6" class="seen %s"/>', p[1], p[2], style.color) end
    end
  end
end

-- Marks at every point where there are few, except the corners of profiles, else at some that other lines do not have.
local function draw_marks(paper, fig, points, style, k)
  local class = style.fill
  if #points <= MARKED and fig.kind ~= "profile" then
    for _, p in ipairs(points) do paper:mark(style.marker, p[1], p[2], class) end
  elseif style.marked then
    local every = #points / 5
    for i = 0, 4 do
      local p = points[math.max(1, math.min(#points, math.floor((i + 0.2 + 0.6 * (k % 5) / 5) * every) + 1))]
      paper:mark(style.marker, p[1], p[2], class)
    end
  end
end

local function items_of(fig, styles)
  local items = {}
  for k, line in ipairs(fig.lines) do items[k] = { name = line.name, style = styles[k] } end
  for _, r in ipairs(fig.references or {}) do items[#items + 1] = { name = r.name, reference = r } end
  return items
end

---Draw it.
---@param split boolean? a panel for each line; nil: where they are many
function lines.draw(paper, fig, y0, narrow, split)
  local styles, busy = figure_style.of_items(fig.lines), #fig.lines > TOO_MANY
  if split == nil then split = busy or tangled(fig) end
  local low_x, high_x, low_y, high_y = lines.ranges(fig, busy and not split)
  if #fig.lines > 1 and split then return panels.draw(paper, fig, y0, { low_x, high_x, low_y, high_y }, styles, lines.spread) end
  local items = items_of(fig, styles)
  local right, needed = labels.room(items, paper.width)
  local height = math.max(narrow and 210 or 290, needed)
  local top = axes.name_above(paper, fig.y.label, 0, y0, paper.width)
  local y = scale.new(fig.y, low_y, high_y, top + height, top, { wanted = math.floor(height / 50), nice = not fig.y.range })
  local box = { x = math.ceil(axes.widest(y.labels)) + 10, y = top, h = height }
  box.w = paper.width - box.x - (right or 10)
  local x = axes.across(fig.x, low_x, high_x, box.x, box.x + box.w)
  axes.draw_y(paper, y, box)
  local bottom = axes.draw_x(paper, x, box, fig.x.label)
  paper:clip(box.x - 4, box.y - 4, box.w + 8, box.h + 8)
  local many = #fig.lines > 3 and " many" or ""
  if not busy then
    for k, line in ipairs(fig.lines) do
      lines.spread(paper, fig, line, items[k].style, x, y, box, many)
    end
  end
  for _, item in ipairs(items) do
    if item.reference then
      item.x, item.y = box.x + box.w, y.at(item.reference.y)
      paper:line(box.x, item.y, item.x, item.y, "reference")
    end
  end
  for k, line in ipairs(fig.lines) do
    local points, style = points_of(line.x, line.y, x, y), items[k].style
    paper:group(("%s: %s"):format(line.name, format.short(line.y[#line.y], fig.y.unit)), "row")
    if #points > 1 then paper:path(points, "line " .. style.color, style.dash) end
    draw_marks(paper, fig, points, style, k)
    paper:close()
    items[k].x, items[k].y = points[#points][1], points[#points][2]
  end
  paper:close()
  if right then
    labels.ends(paper, items, box)
    return bottom
  end
  return labels.legend(paper, items, 0, bottom + 4, paper.width)
end

return lines
