-- strip.lua -- the episodes by their outcome, or of a training its score; what an intervention does over many; the scenes.
local mn = require "mneme"
local panels = mn.scene.panels

local SIZE = 11.5                                -- design pixels of the scenes' names

-- One track's episodes as squares: filled green, solved; orange with a cross, failed; hollow, not over.  Returns where it ends.
local function episodes(view, row, x, y, high, most)
  local theme, u, side = view.theme, view.unit, math.min(12 * view.unit, high * 0.72)
  local step, list, at = side + 3 * u, row.episodes, 1
  local fit = math.max(1, math.floor(most / step))
  for i, e in ipairs(list) do if e.shown then at = i end end
  local first = math.max(1, math.min(#list - fit + 1, at - math.floor(fit / 2)))
  for i = first, math.min(#list, first + fit - 1) do
    local e, top = list[i], y + (high - side) / 2
    if e.outcome then
      view:rect(x, top, side, side, e.failed and theme.bad or theme.good)
      if e.failed then
        view:line(x + 0.28 * side, top + 0.28 * side, x + 0.72 * side, top + 0.72 * side, theme.card, 1.5 * u)
        view:line(x + 0.72 * side, top + 0.28 * side, x + 0.28 * side, top + 0.72 * side, theme.card, 1.5 * u)
      end
    else view:frame(x, top, side, side, theme.dim, u) end
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

-- The names of the scenes from the right; the shown one is bright.
local function scenes(view, box, bar, from)
  local u, x, y = view.unit, box.x + box.w, box.y + box.h / 2 + 4 * view.unit
  for i = #bar.scenes, 1, -1 do
    local name = bar.scenes[i]
    local w = view:text_width(name, SIZE)
    if x - w < from + 16 * u then return end
    local shown = name == bar.scene
    view:text(name, x - w, y, SIZE, shown and view.theme.warm or view.theme.dim)
    local place = { x = x - w - 6 * u, y = box.y, w = w + 12 * u, h = box.h }
    view:spot(place, { scene = name })
    view:tip(place, ("scene %s (Tab: the next one): %s"):format(name, mn.scene.about(name)))
    if shown then view:rect(x - w, box.y + box.h - 3 * u, w, 2 * u, view.theme.warm) end
    x = x - w - 14 * u
  end
end

return function(view, box, _, bar)
  local theme, u, x = view.theme, view.unit, box.x + 2 * view.unit
  if bar.live then
    local room = math.min(box.w * 0.4, 360 * u)
    panels.sparkline(view, { x = x, y = box.y, w = room, h = box.h }, { run = bar.run }, { of = { "charts/score", "charts/episodic_return" } })
    x = x + room
  end
  local rows, left = #bar.strip, x
  for r, row in ipairs(bar.strip) do
    local high = box.h / rows
    local name = rows > 1 and row.name or nil
    if name then view:text(name, left, box.y + (r - 0.5) * high + 4 * u, math.min(11, 0.9 * high / u), theme.dim, "left", 110 * u) end
    x = math.max(x, episodes(view, row, left + (name and 116 * u or 0), box.y + (r - 1) * high, high, box.w * 0.36))
  end
  if bar.effect then
    local text = view:fit(bar.effect, 13, box.x + box.w - x - 40 * u)
    view:text(text, x + 24 * u, box.y + box.h / 2 + 4.5 * u, 13, theme.warm)
    x = x + 24 * u + view:text_width(text, 13)
  end
  scenes(view, box, bar, x)
end
