-- step_heatmap.lua -- a heat map over the steps of an episode, a row for each of some things, named at the left in groups
-- of equal size: what several panels draw.
local ffi = require "ffi"
local canvas = require "mneme.base.canvas"

local bands = {}
local MOST = 512                 -- columns: of a longer episode several steps share one

---Numbers over the steps of an episode, ready to be drawn.
---@param history table[] Entries
---@param rows integer
---@param of fun(entry: table, i: integer, row: integer): number? a number of a step, rows from 1; nil: the step's are not
---  known, and the last ones stay
---@return table { rows, cols, used, values, steps }
function bands.over(history, rows, of)
  local steps = math.max(10, history[#history].step + 1)
  local cols = math.min(steps, MOST)
  local all, used = ffi.new("float[?]", rows * cols), 0
  for i, entry in ipairs(history) do
    local upto = math.floor(entry.step * cols / steps)
    for row = 1, rows do
      local number = of(entry, i, row)
      if not number then break end
      for col = math.min(used, upto), upto do all[(row - 1) * cols + col] = number end
      if row == rows then used = upto + 1 end
    end
  end
  used = math.max(used, 1)
  local values = ffi.new("float[?]", rows * used)
  for row = 0, rows - 1 do ffi.copy(values + row * used, all + row * cols, used * 4) end
  return { rows = rows, cols = cols, used = used, values = values, steps = steps }
end

---@param view table
---@param box table
---@param b table of bands.over
---@param look table { lo, hi: ends of the colours, names: one for each group of rows }
---@return table plot the box of all rows; a click below it chooses a step
function bands.draw(view, box, b, look)
  local theme, u, wide, size = view.theme, view.unit, 0, 11
  local groups = #look.names
  for _, name in ipairs(look.names) do wide = math.max(wide, view:text_width(name, size)) end
  wide = math.min(wide, box.w / 3)
  local plot = { x = box.x + wide + 10 * u, y = box.y, w = box.w - wide - 10 * u, h = box.h - 20 * u }
  view:rect(plot.x, plot.y, plot.w, plot.h, theme.grid)
  local part = { x = plot.x, y = plot.y, w = plot.w * b.used / b.cols, h = plot.h }
  view:heat(part, b.rows, b.used, b.values, look.lo, look.hi, canvas.SEQUENTIAL)
  local high = plot.h / groups
  size = math.min(size, high / u * 0.8)
  for i, name in ipairs(look.names) do
    local y = plot.y + high * (i - 1)
    view:text(name, box.x, y + high / 2 + 0.36 * size * u, size, theme.dim, "left", wide + 1)
    if i > 1 and groups < b.rows then view:line(plot.x, y, plot.x + plot.w, y, theme.card, 2 * u) end
  end
  view:text("step 0", plot.x, plot.y + plot.h + 15 * u, 11, theme.dim)
  view:text(tostring(b.steps - 1), plot.x + plot.w, plot.y + plot.h + 15 * u, 11, theme.dim, "right")
  bands.steps(view, { x = plot.x, y = plot.y + plot.h, w = plot.w, h = 20 * u }, b.steps)
  return plot
end

---Let a click on a box choose one of the steps that lie along it.
function bands.steps(view, box, steps) view:spot(box, { steps = steps }) end

---Mark the step that was chosen with a line through a box in which so many lie.
function bands.mark(view, box, now, steps)
  local step = now.focus and now.focus.step
  if not step or step >= steps then return end
  local x = box.x + (step + 0.5) / steps * box.w
  view:line(x, box.y, x, box.y + box.h, view.theme.warm, 1.5 * view.unit)
end

return bands
