-- step_heatmap.lua -- a heat map over the steps of an episode, shared by several panels: one row per head (or action, or
-- channel), with names of groups of rows at the left.
local ffi = require "ffi"
local canvas = require "mneme.base.canvas"
local hatch = require "mneme.insight.view.hatch"

local step_heatmap = {}
local LEAST_ROW = 9              -- design pixels of a row that has a name of its own
local MAX_COLUMNS = 512          -- in a longer episode several steps share a column

---Collect the values of an episode's steps for a heat map.
---@param history table[] Entries
---@param rows integer
---@param of fun(entry: table, i: integer, row: integer): number? the value of a step in a row, from 1; nil: it was not measured
---@param steps integer? that the axis has at least: step_heatmap.span
---@return table map { rows, cols, used, values, steps, known = by column, from 0: it was measured }
function step_heatmap.over(history, rows, of, steps)
  steps = math.max(10, history[#history].step + 1, steps or 0)
  local cols = math.min(steps, MAX_COLUMNS)
  local all, used, known = ffi.new("float[?]", rows * cols), 1, {}
  for i, entry in ipairs(history) do
    local col = math.floor(entry.step * cols / steps)
    used = math.max(used, col + 1)
    for row = 1, rows do
      local value = of(entry, i, row)
      if not value then break end
      all[(row - 1) * cols + col] = value
      if row == rows then known[col] = true end
    end
  end
  local values = ffi.new("float[?]", rows * used)
  for row = 0, rows - 1 do ffi.copy(values + row * used, all + row * cols, used * 4) end
  return { rows = rows, cols = cols, used = used, values = values, steps = steps, known = known }
end

---How many steps the axes of a page have: those of the whole episode once its end is known, and of those next to it.
---@param now Frame
---@return integer steps
function step_heatmap.span(now)
  local steps = 10
  for _, frame in ipairs { now, unpack(now.beside or {}) } do
    local whole = frame.episode_history or frame.history
    steps = math.max(steps, whole[#whole].step + 1)
  end
  return steps
end

---Draw a heat map with its names and its axis of steps.
---@param view Canvas
---@param box table { x, y, w, h }
---@param b table of step_heatmap.over
---@param look table { lo, hi: ends of the colours, names: one for each group of rows, row_name = function(row): string, from 1, what = a word
---  before the value, root = true: the values are roots of what is told, now = the displayed step, where later ones are drawn }
---@return table plot the box of the rows; a click below it selects a step
function step_heatmap.draw(view, box, b, look)
  local theme, u, wide, size = view.theme, view.unit, 0, 11
  local groups, names = #look.names, look.names
  local axis = box.h > 32 * u and 20 * u or 0
  if look.row_name and (box.h - axis) / b.rows >= LEAST_ROW * u then          -- each row has room for its name
    groups, names = b.rows, {}
    for r = 1, b.rows do
      local name, before = look.row_name(r), r > 1 and look.row_name(r - 1) or ""
      local group = name:match "^layer %d+, "
      names[r] = group and before:sub(1, #group) == group and name:sub(#group + 1) or name
    end
  end
  for _, name in ipairs(names) do wide = math.max(wide, view:text_width(name, size)) end
  local own = names ~= look.names
  wide = math.min(wide, box.w / (view.edge < 12 and 2 or own and 4 or 3))
  local plot = { x = box.x + wide + 10 * u, y = box.y, w = box.w - wide - 10 * u, h = box.h - axis }
  view:rect(plot.x, plot.y, plot.w, plot.h, theme.grid)
  local part = { x = plot.x, y = plot.y, w = plot.w * b.used / b.cols, h = plot.h }
  view:heat(part, b.rows, b.used, b.values, look.lo, look.hi, canvas.SEQUENTIAL, false)
  local from = 0
  while from < b.used do                           -- what was not measured is hatched
    local upto = from
    while upto < b.used and not b.known[upto] do upto = upto + 1 end
    if upto > from then hatch(view, plot.x + from / b.cols * plot.w, plot.y, (upto - from) / b.cols * plot.w, plot.h) end
    from = upto + 1
  end
  if look.now and look.now < b.steps - 1 then                -- what is to come is pale
    local x = plot.x + (look.now + 1) / b.steps * plot.w
    view:rect(x, plot.y, plot.x + plot.w - x, plot.h, canvas.fade(theme.card, 0.55))
    view:line(x, plot.y, x, plot.y + plot.h, theme.text, u)
  end
  view:tip(plot, { rows = b.rows, cols = b.cols, used = b.used, values = b.values, lo = look.lo, hi = look.hi, root = look.root, words = function(row, col)
    local name = look.row_name and look.row_name(row + 1) or look.names[math.floor(row * groups / b.rows) + 1]
    return ("%s, step %d: %s"):format(name, math.floor((col + 0.5) * b.steps / b.cols), col < b.used and not b.known[col] and "not measured"
      or look.what and look.what .. " " or "")
  end })
  local high = plot.h / groups
  size = math.max(LEAST_ROW, math.min(size, high / u * 0.8))
  for i, name in ipairs(names) do
    local y = plot.y + high * (i - 1)
    if view:text_width(name, size) > wide then name = name:gsub("layer (%d+), head ", "L%1 head ") end
    name = (i - 1) % math.ceil(size * u / high - 0.01) == 0 and name or ""             -- of rows lower than letters some have names
    view:text(name, own and plot.x - 8 * u or box.x, y + high / 2 + 0.36 * size * u, size, theme.dim, own and "right" or "left", wide + 1)
    if i > 1 and (groups < b.rows or own and name:find "^layer") then view:line(plot.x, y, plot.x + plot.w, y, theme.card, 2 * u) end
  end
  if axis == 0 then return plot end
  view:text("step 0", plot.x, plot.y + plot.h + 15 * u, 11, theme.dim)
  view:text(tostring(b.steps - 1), plot.x + plot.w, plot.y + plot.h + 15 * u, 11, theme.dim, "right")
  step_heatmap.steps(view, { x = plot.x, y = plot.y + plot.h, w = plot.w, h = 20 * u }, b.steps)
  return plot
end

---Make an axis of steps clickable: a click selects the step.
---@param view Canvas
---@param box table { x, y, w, h } along which the steps lie
---@param steps integer
function step_heatmap.steps(view, box, steps) view:spot(box, { steps = steps }) end

---Mark the selected step with a line.
---@param view Canvas
---@param box table { x, y, w, h } along which the steps lie
---@param now Frame
---@param steps integer
function step_heatmap.mark(view, box, now, steps)
  local step = now.selection and now.selection.step
  if not step or step >= steps then return end
  local x = box.x + (step + 0.5) / steps * box.w
  view:line(x, box.y, x, box.y + box.h, view.theme.warm, 1.5 * view.unit)
end

return step_heatmap
