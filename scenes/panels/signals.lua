-- signals.lua -- any values over the steps of an episode, as lines.
local mn = require "mneme"
local selection = mn.ui.selection

local colours = { "accent", "warm", "good", "violet", "bad", "dim" }

-- The names of the lines in their colours, from the right; a click on a name selects its row.
local function legend(view, box, now, lines, used)
  local x, u = box.x + box.w - 12 * view.unit, view.unit
  for i = #lines, 1, -1 do
    local w = view:text_width(lines[i].name, 11.5)
    if x - w < box.x + 12 * u + used then return end
    view:text(lines[i].name, x, box.y + 23 * u, 11.5, view.theme[colours[(i - 1) % #colours + 1]], "right")
    if lines[i].row then selection.spot(view, { x = x - w, y = box.y + 12 * u, w = w, h = 15 * u }, now, lines[i].row) end
    x = x - w - 14 * u
  end
end

---options: title, y_name (with its unit), lines = { { name, of = function(entry): number?, thick, row = selected by a click on
---the name }, ... }, level = value of a horizontal line, empty = text where there are no values, least = the y axis begins there
---or below, x_name = "step", x_least = 10: the x axis reaches at least this far
return function(view, box, now, options)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, options.title)
  local least, most, last, known = options.least or math.huge, -math.huge, options.x_least or 10, false
  for _, entry in ipairs(history) do
    for _, line in ipairs(options.lines) do
      local y = line.of(entry)
      if y and y - y == 0 then least, most, known = math.min(least, y), math.max(most, y), true end
    end
    last = math.max(last, entry.step)
  end
  if not known then
    return view:text(options.empty or "nothing to show", inner.x, inner.y + 16 * u, 12, theme.dim, "left", inner.w)
  end
  local level = options.level
  if level then least, most = math.min(least, level), math.max(most, level) end
  legend(view, box, now, options.lines, view:text_width(options.title, 13) + 16 * u)
  local margin = math.max((most - least) * 0.06, 1e-3)
  local place = view:axes(inner, 0, last, least == options.least and least or least - margin, most + margin,
    options.x_name or "step", options.y_name)
  if level then
    local x0, y = place(0, level)
    local x1 = place(last, level)
    view:line(x0, y, x1, y, theme.text, 1.5 * u)
  end
  for i, line in ipairs(options.lines) do
    local x0, y0
    for _, entry in ipairs(history) do
      local y = line.of(entry)
      if y and y - y == 0 then
        local x1, y1 = place(entry.step, y)
        if x0 then view:line(x0, y0, x1, y1, theme[colours[(i - 1) % #colours + 1]], (line.thick or 2) * u) end
        x0, y0 = x1, y1
      end
    end
    if x0 then view:disc(x0, y0, 3 * u, theme[colours[(i - 1) % #colours + 1]]) end
  end
end
