-- signals.lua -- any values over the steps of an episode, as lines.  What is to come is pale, where it is known; a click goes to a step.
local bit = require "bit"
local mn = require "mneme"
local canvas, selection = mn.ui.canvas, mn.ui.selection
local MOST = 512                   -- places along a curve that the pointer tells apart
local colours = { "accent", "warm", "good", "violet", "bad", "dim" }

local function even(colour) return bit.band(colour, 0xFEFEFEFE) % 2 ^ 32 end
-- The colour of a line: from the seventh on half way to the text's.
local function colour_of(view, i)
  local colour = view.theme[colours[(i - 1) % #colours + 1]]
  return (i - 1) % (2 * #colours) < #colours and colour or (even(colour) + even(view.theme.text)) / 2
end

-- The names of the lines in their colours, from the right; a click on a name selects its row.
local function legend(view, box, now, lines, used)
  local u, edge = view.unit, view.edge * view.unit
  local x = box.x + box.w - edge
  for i = #lines, 1, -1 do
    local w = view:text_width(lines[i].name, 11.5)
    if x - w < box.x + edge + used then return end
    view:text(lines[i].name, x, box.y + edge + 11 * u, 11.5, colour_of(view, i), "right")
    if lines[i].row then selection.spot(view, { x = x - w, y = box.y + edge, w = w, h = 15 * u }, now, lines[i].row) end
    x = x - w - 14 * u
  end
end

-- The steps to draw, of this episode and of those beside it.
local function histories_of(now)
  local list = { now.episode_history or now.history }
  for _, frame in ipairs(now.beside or {}) do list[#list + 1] = frame.episode_history or frame.history end
  return list
end

-- What holds all values: least, most, the last step, whether there is any.
local function range(now, options)
  local least, most, last, known = options.least or math.huge, -math.huge, options.x_least or 10, false
  for _, history in ipairs(histories_of(now)) do
    for _, entry in ipairs(history) do
      for _, line in ipairs(options.lines) do
        local y = line.of(entry)
        if y and y - y == 0 then least, most, known = math.min(least, y), math.max(most, y), true end
      end
      last = math.max(last, entry.step)
    end
  end
  if options.level then least, most = math.min(least, options.level), math.max(most, options.level) end
  local span = known and math.min(options.span or 0, 4 * math.max(math.abs(least), math.abs(most))) or 0         -- nothing is so small that it is none
  local room = math.max(0, span - (most - least))
  if least == options.least then return least, most + room, last, known end
  return least - room / 2, most + room / 2, last, known
end

-- The values at the step that the pointer is nearest to.
local function tip(view, plot, history, x0, last, options)
  local cols = math.max(1, math.min(MOST, last - x0 + 1))
  view:tip(plot, { rows = 1, cols = cols, words = function(_, col)
    local wish, best = x0 + (col + 0.5) / cols * (last - x0), nil
    for _, entry in ipairs(history) do
      if not best or math.abs(entry.step - wish) < math.abs(best.step - wish) then best = entry end
    end
    local words = {}
    for _, line in ipairs(best and options.lines or {}) do
      local y = line.of(best)
      if y then words[#words + 1] = line.name .. " " .. canvas.number(y) end
    end
    return #words > 0 and ("%s %s: %s"):format(options.x_name or "step", canvas.number(best.step), table.concat(words, ", ")) or nil
  end })
end

---options: title, note, y_name (with its unit), lines = { { name, of = function(entry): number?, thick, row = selected by a click on
---the name }, ... }, level = value of a horizontal line, empty = text where there are no values,
---least = the y axis begins there or below, span = it is at least as long as that, x_name = "step", x_least = 10: the x axis reaches at least this far
return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local inner = view:card(box, options.title, options.note)
  local least, most, last, known = range(now, options)
  if not known then return view:say(inner, options.empty or "nothing to show") end
  if #options.lines > 1 then legend(view, box, now, options.lines, view:text_width(options.title, 13) + 16 * u) end
  local margin, history = canvas.margin(least, most), now.episode_history or now.history
  local place = view:axes(inner, 0, last, least == options.least and least or least - margin, most + margin,
    options.x_name or "step", options.y_name)
  if options.level then
    local x0, y = place(0, options.level)
    local x1 = place(last, options.level)
    view:line(x0, y, x1, y, theme.text, 1.5 * u)
  end
  local here = now.step and now.episode_history and now.step or math.huge
  for i, line in ipairs(options.lines) do
    local colour = colour_of(view, i)
    local x0, y0, x2, y2
    for _, entry in ipairs(history) do
      local y = line.of(entry)
      if y and y - y == 0 then
        local x1, y1 = place(entry.step, y)
        local ahead = entry.step > here
        if x0 then view:line(x0, y0, x1, y1, ahead and canvas.fade(colour, 0.3) or colour, (line.thick or 2) * u) end
        if not ahead then x2, y2 = x1, y1 end
        x0, y0 = x1, y1
      end
    end
    if x2 then view:disc(x2, y2, 3 * u, colour) end
  end
  local left, top = place(0, most + margin)
  local right, bottom = place(last, least == options.least and least or least - margin)
  local plot = { x = left, y = top, w = math.max(1, right - left), h = math.max(1, bottom - top) }
  tip(view, plot, history, 0, last, options)
  if not options.x_name and now.step then view:spot(plot, { visit = last }) end
end
