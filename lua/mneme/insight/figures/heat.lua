-- heat.lua -- draws a heat map: a colour for each cell, its value if there is room, half of its interval's width below it, and the colour scale.
local axes = require "mneme.insight.figures.axes"
local figure_style = require "mneme.insight.figures.figure_style"
local format = require "mneme.base.format"
local text = require "mneme.insight.figures.text"

local heat = {}
local LETTERS, SIZE = 13, figure_style.SMALL
local ROW, GAP, STRIPES = 22, 1, 48

-- The least and the largest; of values of both signs or below 0, equally far from 0, whose shades are another colour on each side.
local function range_of(fig)
  local low, high = math.huge, -math.huge
  for r, row in ipairs(fig.cells) do
    for c = 1, #fig.x.categories do
      if row[c] and not (fig.faint and fig.faint[r][c]) then low, high = math.min(low, row[c]), math.max(high, row[c]) end
    end
  end
  if not fig.value.range and not fig.value.log and low <= high then low, high = math.min(0, low), math.max(0, high) end     -- else noise fills the scale
  low, high = axes.limits(fig.value.range, low, high)
  if low == high then high = low + 1 end
  local signed = not fig.value.log and -low > 0.1 * high         -- less is noise about 0
  if signed then low, high = math.min(low, -high), math.max(-low, high) end
  return low, high, signed
end

-- Numbers in the cells; nil where they do not fit.
local function cell_texts(fig, width)
  local values, texts, n = {}, {}, 0
  for _, row in ipairs(fig.cells) do
    for c = 1, #fig.x.categories do values[#values + 1] = row[c] or nil end
  end
  local shown = format.alike(values, fig.value.unit)
  if axes.widest(shown) > width - 4 then return nil end
  local halves, fits = {}, true
  for r, row in ipairs(fig.cells) do
    texts[r], halves[r] = {}, {}
    for c = 1, #fig.x.categories do
      if row[c] then n, texts[r][c] = n + 1, (shown[n + 1]:gsub("^%-(0%.?0*)$", "%1")) end
      local low = fig.low and fig.low[r][c]
      if low then
        local half, plain = (fig.high[r][c] - low) / 2, shown[n]:match "^%-?%d+%.?(%d*)$"          -- as many digits as the value
        halves[r][c] = "±" .. (plain and ("%%.%df"):format(#plain):format(half) or format.short(half, fig.value.unit))
        fits = fits and text.width(halves[r][c], SIZE) <= width - 4
      end
    end
  end
  return texts, fig.low and fits and halves
end

-- Names of columns: each where all have room, else broken between their parts, in smaller letters where a part is too wide, else only some of them.
local function draw_columns(paper, names, left, width, y)
  local widest, numeric = axes.widest(names), true
  for _, name in ipairs(names) do numeric = numeric and tonumber(name) ~= nil end
  local broken = widest > width - 6 and not numeric and width >= 40
  local every = broken and 1 or math.max(1, math.ceil((widest + 6) / width))
  local size = broken and text.size_for(names, width - 6, SIZE) or SIZE
  local deepest, last = 1, -math.huge
  for c = 1, #names, every do
    local lines = text.wrap(names[c], broken and width - 6 or paper.width, size)
    local half = axes.widest(lines) / 2 * size / SIZE
    local x = math.max(half, math.min(paper.width - half, left + (c - 0.5) * width))
    if x - half > last + 3 then
      deepest, last = math.max(deepest, #lines), x + half
      paper:lines(lines, x, y + 2 + LETTERS, LETTERS, { size = size, anchor = "middle", class = "dim" })
    end
  end
  return y + 6 + deepest * LETTERS
end

-- The shades from the least to the largest, with numbers.
local function draw_key(paper, fig, low, high, signed, y)
  y = paper:lines(text.wrap(fig.value.label or "", paper.width, SIZE), 0, y + LETTERS, LETTERS, { size = SIZE, class = "dim" }) - LETTERS
  local width = math.min(paper.width, 260)
  local s = axes.across(fig.value, low, high, 12, width - 12)
  for i = 0, STRIPES - 1 do
    paper:rect(12 + i * (width - 24) / STRIPES, y + 6, (width - 24) / STRIPES + 0.5, 10, nil, { fill = (figure_style.shade((i + 0.5) / STRIPES, signed)) })
  end
  return axes.draw_x(paper, s, { x = 12, y = y + 6, w = width - 24, h = 10 })
end

---Draw it.
function heat.draw(paper, fig, y0, narrow)
  local columns = fig.x.categories
  local room = math.min(axes.widest(fig.y.categories), (narrow and 0.35 or 0.4) * paper.width)
  local left = math.ceil(room) + 8
  local _, part = text.size_for(columns, 90, SIZE)
  local width = math.min(math.max(90, part + 6), (paper.width - left) / #columns)
  local size = text.size_for(fig.y.categories, room, SIZE)
  local low, high, signed = range_of(fig)
  local texts, halves = cell_texts(fig, width - GAP)
  local y = axes.name_above(paper, fig.y.label, 0, y0, paper.width)
  for r, name in ipairs(fig.y.categories) do
    local lines = text.wrap(name, room, size)
    local height = math.max(halves and ROW + LETTERS or ROW, #lines * LETTERS + 5)
    axes.name_beside(paper, lines, left - 6, y + height / 2, { size = size, anchor = "end" })
    for c = 1, #columns do
      local v, x = fig.cells[r][c], left + (c - 1) * width
      local from, to = fig.low and fig.low[r][c], fig.high and fig.high[r][c]
      local title = ("%s, %s: %s"):format(name, columns[c], v and text.interval(v, from, to, fig.value.unit) or "–")
      if v and fig.faint and fig.faint[r][c] then paper:rect(x, y, width - GAP, height - GAP, "blank", { title = title })
      elseif v then
        local share = fig.value.log and math.log(v / low) / math.log(high / low) or (v - low) / (high - low)
        local color, ink = figure_style.shade(share, signed)
        local thin = fig.thin and fig.thin[r][c]                   -- a third of the height, in the middle
        if thin then paper:rect(x, y, width - GAP, height - GAP, "blank", { title = title }) end
        paper:rect(x, thin and y + height / 3 or y, width - GAP, thin and height / 3 or height - GAP, nil, { fill = color, title = title })
        for k, line in ipairs(texts and not thin and { texts[r][c], halves and halves[r][c] or nil } or {}) do
          local at = halves and halves[r][c] and (k - 1.5) * LETTERS or 0
          paper:text(line, x + (width - GAP) / 2, y + height / 2 + 4 + at, { size = SIZE, anchor = "middle", fill = ink })
        end
      else
        paper:rect(x, y, width - GAP, height - GAP, "blank", { title = title })
        if width > 12 then paper:text("–", x + (width - GAP) / 2, y + height / 2 + 4, { size = SIZE, anchor = "middle", class = "dim" }) end
      end
    end
    y = y + height
  end
  y = draw_columns(paper, columns, left, width, y)
  for _, line in ipairs(fig.x.label and text.wrap(fig.x.label, paper.width - left, SIZE) or {}) do
    paper:text(line, left + math.max(text.width(line, SIZE), width * #columns) / 2, y + 8, { size = SIZE, anchor = "middle", class = "dim" })
    y = y + LETTERS
  end
  return draw_key(paper, fig, low, high, signed, y + 4)
end

return heat
