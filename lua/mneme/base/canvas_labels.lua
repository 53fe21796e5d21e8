-- canvas_labels.lua -- what keeps the texts of a page readable: none smaller than LEAST, none over another, none beyond the page or the card
-- that it begins in.  What does not fit is left out.  And the numbers of axes.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"

local C, RECT, TEXT = engine.C, 0, 5             -- engine/canvas.h
local labels = { LEAST = 9 }                     -- pixels of the letters

---Forget the texts of the page before.
function labels.clear(view) view.n_labels, view.cards = 0, {} end

---The least height of letters on the page.
---@return number pixels
function labels.least(view) return labels.LEAST * (view.scale or 1) end

---The height of letters on the page: a little small ones grow, tiny ones are left out.
---@param size number in design pixels
---@return number? pixels
function labels.height(view, size)
  local high, least = size * view.unit, labels.least(view)
  return high >= least and high or high >= 0.7 * least and least or nil
end

-- Note the place of a text, unless it lies over another one.
local function place(view, x, y, wide, high)
  view.labels = view.labels or {}
  local top, bottom = y - 0.75 * high, y + 0.05 * high
  for i = 1, view.n_labels do
    local b = view.labels[i]
    if x < b[3] and b[1] < x + wide and top < b[4] and b[2] < bottom then return false end
  end
  view.n_labels = view.n_labels + 1
  local box = view.labels[view.n_labels] or {}
  box[1], box[2], box[3], box[4] = x, top, x + wide, bottom
  view.labels[view.n_labels] = box
  return true
end

---The right end of the card that a point lies in, or of the page.
---@return number left
---@return number right
---@return number bottom
function labels.room(view, x, y)
  for i = #view.cards, 1, -1 do
    local b = view.cards[i]
    if x >= b.x and x < b.x + b.w and y >= b.y and y <= b.y + b.h + 1 then return b.x, b.x + b.w, b.y + b.h end
  end
  return 0, view.width, view.height
end

---May a text be drawn, from x on, on the baseline y: it lies over no other and within its card and the page?
function labels.fits(view, x, y, wide, high)
  local left, right, bottom = labels.room(view, x, y - 0.3 * high)
  if x < left - 0.01 or x + wide > right + 0.01 or y - 0.75 * high < -0.01 or y + 0.05 * high > bottom + 0.01 then return false end
  return place(view, x, y, wide, high)
end

---A filled box hides what lies under it; one that lies over cards, such as a tip, is a card of its own.
function labels.cover(view, x, y, w, h)
  local over, inside = false, false
  for _, b in ipairs(view.cards) do
    local meets = x < b.x + b.w and b.x < x + w and y < b.y + b.h and b.y < y + h
    over = over or meets
    inside = inside or meets and x >= b.x and y >= b.y and x + w <= b.x + b.w + 1 and y + h <= b.y + b.h + 1
  end
  if over and not inside then view.cards[#view.cards + 1] = { x = x, y = y, w = w, h = h } end
  local n, list = 0, view.labels or {}
  for i = 1, view.n_labels do
    local b = list[i]
    if x >= b[3] or b[1] >= x + w or y >= b[4] or b[2] >= y + h then
      n = n + 1
      list[i], list[n] = list[n], b
    end
  end
  view.n_labels = n
end

---The texts of a drawing that was appended are there, too.
---@param from integer the first shape of it
function labels.appended(view, from)
  local list = C.mn_canvas_shapes(view.shapes)
  for i = view.raster and from or 1 / 0, C.mn_canvas_count(view.shapes) - 1 do
    local s = list[i]
    if s.kind == TEXT then
      local text = ffi.string(C.mn_canvas_string(view.shapes, s.text))
      place(view, s.x, s.y, view.raster:text_width(text, s.h), s.h)
    end
  end
end

---The letters of a drawing that lies on the page, and the boxes that they stand in: what is written on a card.
---@param drawing ffi.cdata* mn_canvas *
---@param on_page function of Canvas.append
---@return table[] letters { word, x, y, w, h, box = { x, y, w, h } or nil }
function labels.letters(drawing, on_page)
  if type(drawing) ~= "cdata" or drawing == nil then errors.raise(("letters: the drawing is %s, expected a canvas"):format(type(drawing))) end
  local list, boxes, shapes = {}, {}, C.mn_canvas_shapes(drawing)
  for i = 0, C.mn_canvas_count(drawing) - 1 do
    local s = shapes[i]
    if s.kind == RECT then boxes[#boxes + 1] = s
    elseif s.kind == TEXT then
      local word = ffi.string(C.mn_canvas_string(drawing, s.text))
      local wide, around = 0.62 * s.h * #word, nil
      for k = #boxes, math.max(1, #boxes - 4), -1 do                     -- the smallest of those drawn just before
        local b = boxes[k]
        local inside = s.x >= b.x and s.x + 0.5 * wide <= b.x + b.w and s.y <= b.y + b.h and s.y - 0.5 * s.h >= b.y
        if inside and (not around or b.w * b.h < around.w * around.h) then around = b end
      end
      local x0, y0, scale = on_page(s.x, s.y - 0.85 * s.h)
      local letter = { word = word, x = x0, y = y0, w = wide * scale, h = s.h * scale }
      if around then
        local x, y = on_page(around.x, around.y)
        letter.box = { x = x, y = y, w = around.w * scale, h = around.h * scale }
      end
      list[#list + 1] = letter
    end
  end
  return list
end

---A step of 1, 2 or 5 times a power of ten, so that about `n` fit into the range.
function labels.nice_step(range, n)
  local raw = range / n
  local power = 10 ^ math.floor(math.log10(raw))
  for _, factor in ipairs { 1, 2, 5 } do
    if factor * power >= raw then return factor * power end
  end
  return 10 * power
end

---A range in which steps can be told apart, around one that is narrower than its numbers have digits for.
function labels.widened(lo, hi)
  local size = math.max(math.abs(lo), math.abs(hi))
  if hi - lo > math.max(1e-9 * size, 1e-90) then return lo, hi end
  local room = math.max(1e-6 * size, 1e-3)
  return lo - room, hi + room
end

---The number at a tick of an axis from lo to hi.
function labels.tick_text(value, step, lo, hi)
  if math.abs(value) < step / 1e6 then value = 0 end
  return (format.row({ value }, step, nil, math.max(math.abs(lo), math.abs(hi)))[1]:gsub("%-", "−"))
end

---How much an axis goes beyond its values on either side: a little of their range, or of their size where all are equal.
---@param least number
---@param most number
---@return number
function labels.margin(least, most)
  local size = math.max(math.abs(least), math.abs(most))
  return most - least > 1e-6 * size and 0.06 * (most - least) or size > 0 and 0.02 * size or 1e-3
end

---The text at the pointer on a cell of a grid, counted from 0: see Canvas:tip.
function labels.of_cell(grid, row, col, number)
  local words, used = grid.words(row, col), grid.used or grid.cols
  if not words or not words:find " $" then return words end
  local value = col < used and tonumber(grid.values[row * used + col])
  return words .. (value and number(grid.root and value * value or value) or "not there yet")
end

return labels
