-- strip.lua -- the episodes by their outcome, or of a training its score; what an intervention does over many; the scenes.
local mn = require "mneme"
local readings = mn.measure.readings_of_frame
local panels = mn.scene.panels
local SIZE = 11.5                                -- design pixels of the scenes' names

-- The mark of a failure: by its reason, without colours too; a cross where that is not known.
local function mark(view, why, x, y, side)
  local theme, u = view.theme, view.unit
  local a, b, ink = 0.28 * side, 0.72 * side, theme.card
  if why == "lost" then
    view:frame(x, y, side, side, theme.bad, 1.5 * u)
    return view:line(x + a, y + b, x + b, y + a, theme.bad, 1.5 * u)
  end
  view:rect(x, y, side, side, theme.bad)
  if why == "drawn" then return view:rect(x + side / 2 - 1.5 * u, y + side / 2 - 1.5 * u, 3 * u, 3 * u, ink) end
  if why == "unused" then return view:rect(x + a, y + side / 2 - 0.75 * u, b - a, 1.5 * u, ink) end
  view:line(x + a, y + a, x + b, y + b, ink, 1.5 * u)
  view:line(x + b, y + a, x + a, y + b, ink, 1.5 * u)
end

-- Readings of the memory say whether it has what a failure needed; they are made where one asks.  Returns how many failures each reason has, and why there
-- are no readings.
local function settle(view, now, episodes)
  local unfinished, problem = readings.settle(now, episodes, view.deadline)
  view.unfinished = view.unfinished or unfinished
  local count = {}
  for _, e in ipairs(episodes) do if e.why then count[e.why] = (count[e.why] or 0) + 1 end end
  return count, problem
end

-- What the marks of failures are, as many as have room.  Returns where it ends.
local function legend(view, row, reasons, x, y, high, right)
  local u, size = view.unit, math.min(11, high / view.unit)
  for _, reason in ipairs(reasons) do
    local n, unread = row.why[reason[1]], reason[1] == "memory" and row.unread
    local text = n and view:fit(("%s %d%s"):format(reason[2], n, unread and ": " .. unread or ""), size, unread and right - x - 32 * u or math.huge)
    local wide = n and view:text_width(text, size) + 30 * u
    if n and x + wide < right then
      mark(view, reason[1], x + 12 * u, y + high / 2 - 5 * u, 10 * u)
      view:text(text, x + 26 * u, y + high / 2 + 4 * u, size, view.theme.dim)
      view:tip({ x = x + 10 * u, y = y, w = wide - 10 * u, h = high }, ("%s: %s"):format(reason[2], unread or reason[4]))
      x = x + wide
    end
  end
  return x
end

-- One track's episodes as squares: green, solved, or at least their mean where none is; orange with a mark, failed; hollow, not over.  Returns where it ends.
local function episodes(view, row, x, y, high, most)
  local theme, u, side = view.theme, view.unit, math.min(12 * view.unit, high * 0.72)
  local step, list, at = side + 3 * u, row.episodes, 1
  local fit = math.max(1, math.floor(most / step))
  for i, e in ipairs(list) do if e.shown then at = i end end
  local first = math.max(1, math.min(#list - fit + 1, at - math.floor(fit / 2)))
  for i = first, math.min(#list, first + fit - 1) do
    local e, top = list[i], y + (high - side) / 2
    if e.outcome then
      if e.failed then mark(view, e.why, x, top, side) else view:rect(x, top, side, side, theme.good) end
    else view:frame(x, top, side, side, theme.dim, u) end
    if e.pinned then view:disc(x + side / 2, top - 2.5 * u, 2 * u, theme.warm) end
    if e.shown then view:frame(x - 2 * u, top - 2 * u, side + 4 * u, side + 4 * u, theme.text, 1.5 * u) end
    local box = { x = x - 1.5 * u, y = y, w = step, h = high }
    view:spot(box, { start = e.start })
    view:tip(box, e.text)
    x = x + step
  end
  if row.told ~= "" then
    view:text(row.told, x + 5 * u, y + high / 2 + 4 * u, math.min(11, high / u), theme.dim)
    x = x + 5 * u + view:text_width(row.told, 11)
  end
  return x
end

-- The names of the scenes that have room: first the shown one, which is bright, and the environment's own, then the others from the right.
local function scenes(view, box, bar, from)
  local u, x, y, room, kept = view.unit, box.x + box.w, box.y + box.h / 2 + 4 * view.unit, box.x + box.w - from - 2 * view.unit, {}
  local function keep(i)
    local w = bar.scenes[i] and not kept[i] and view:text_width(bar.scenes[i], SIZE)
    if w and w + 14 * u <= room then kept[i], room = w, room - w - 14 * u end
  end
  for i, name in ipairs(bar.scenes) do if name == bar.scene then keep(i) end end
  for i = #bar.scenes + 1, 1, -1 do keep(bar.scenes[i] and i or 1) end
  for i = #bar.scenes, 1, -1 do
    local name, w = bar.scenes[i], kept[i]
    if w then
      view:text(name, x - w, y, SIZE, name == bar.scene and view.theme.warm or view.theme.dim)
      local place = { x = x - w - 6 * u, y = box.y, w = w + 12 * u, h = box.h }
      view:spot(place, { scene = name })
      view:tip(place, ("scene %s (Tab: the next one): %s"):format(name, mn.scene.about(name)))
      if name == bar.scene then view:rect(x - w, box.y + box.h - 3 * u, w, 2 * u, view.theme.warm) end
      x = x - w - 14 * u
    end
  end
end

return function(view, box, now, bar)
  local theme, u, x = view.theme, view.unit, box.x + 2 * view.unit
  if bar.live then
    local room = math.min(box.w * 0.4, 360 * u)
    panels.curves(view, { x = x, y = box.y, w = room, h = box.h }, { run = bar.run }, { small = true, of = { "charts/score", "charts/episodic_return" } })
    x = x + room
  end
  local rows, left = #bar.strip, x
  for r, row in ipairs(bar.strip) do
    local high = box.h / rows
    local name = rows > 1 and row.name or nil
    if name then view:text(name, left, box.y + (r - 0.5) * high + 4 * u, math.min(11, 0.9 * high / u), theme.dim, "left", 110 * u) end
    row.why, row.unread = settle(view, now, row.episodes)
    local ends = episodes(view, row, left + (name and 116 * u or 0), box.y + (r - 1) * high, high, box.w * 0.36)
    x = math.max(x, legend(view, row, bar.reasons, ends, box.y + (r - 1) * high, high, box.x + box.w * (bar.room or 0.6)))
  end
  if bar.effect then
    local text = view:fit(bar.effect, 13, box.x + box.w - x - 40 * u)
    view:text(text, x + 24 * u, box.y + box.h / 2 + 4.5 * u, 13, theme.warm)
    x = x + 24 * u + view:text_width(text, 13)
  end
  scenes(view, box, bar, x)
end
