-- controls.lua -- the bar at the bottom of the window: the episodes by their outcome, the scenes, a timeline of the episode, and a button
-- for each key that applies.  Every part is a spot, so a click does what the key does.
local mn = require "mneme"
local keyboard = mn.ui.keyboard
local panels = mn.scene.panels

local STRIP, SCRUB, BUTTONS = 24, 20, 32         -- design pixels of the rows
local SIZE = 11.5

local function buttons_of(bar)
  local list = {}
  local function add(key, text, on, off) list[#list + 1] = { key = not off and key or nil, text = text, on = on, box = key ~= nil } end
  if bar.live then add("n", "next env") else
    add(keyboard.HOME, "|◀")
    add(keyboard.LEFT, "◀")
  end
  add(" ", bar.playing and "pause" or "play", not bar.playing)
  if not bar.live then
    add(keyboard.RIGHT, "▶")
    add(keyboard.PAGE_DOWN, "next")
    add("f", "next failure")
    add("-", "−")
    add(nil, bar.speed)
    add("+", "+")
  end
  add("l", bar.selection.layer and "layer " .. bar.selection.layer or "all layers", bar.selection.layer)
  add("j", bar.selection.head and "head " .. bar.selection.head or "all heads", bar.selection.head)
  if bar.checkpoint and not bar.pair then
    add("[", "‹")
    add(nil, ("%.0fk steps"):format(bar.checkpoint / 1000))
    add("]", "›")
  end
  if not bar.live then add("k", bar.taken and "hand back" or "take over", bar.taken) end
  if bar.can_change then add("i", "intervene", bar.pair, not bar.changeable) end
  if bar.can_change and not bar.pair then add("b", "contrast") end
  if bar.pair then add("c", "close") end
  if bar.zoom > 1 then add("0", ("%.1fx"):format(bar.zoom), true) end
  add("v", bar.movie and "stop video" or "video", bar.movie)
  add("s", "screenshot")
  if bar.can_change then add("w", "save .mnt") end
  add("t", bar.theme == "light" and "dark" or "light")
  add("h", "help")
  return list
end

local function width_of(view, b) return math.max(26 * view.unit, view:text_width(b.text, SIZE) + (b.box and 13 or 6) * view.unit) end

-- The buttons in rows that fit.
local function rows_of(view, bar, wide)
  local rows, x = { {} }, 0
  for _, b in ipairs(buttons_of(bar)) do
    local w = width_of(view, b)
    if x + w > wide and x > 0 then rows[#rows + 1], x = {}, 0 end
    table.insert(rows[#rows], b)
    b.x, b.w, x = x, w, x + w + 5 * view.unit
  end
  return rows
end

-- The timeline of the episode, with marks at its interventions.
local function scrub(view, box, bar)
  local theme, u = view.theme, view.unit
  local y, r = box.y + box.h / 2, 6 * u
  local text = bar.live and ("episode %d, step %d of those shown"):format(bar.episode, bar.at - bar.from)
    or ("episode %d, %d of %d%s"):format(bar.episode, bar.at - bar.from, bar.to - bar.from, bar.over and "" or " so far")
  local said = bar.said and view:fit(bar.said, 11, box.w * 0.5) or ""
  local wide = view:text_width(text, 11) + 14 * u
  if said ~= "" then
    view:text(said, box.x + box.w - wide, y + 4 * u, 11, theme.warm, "right")
    wide = wide + view:text_width(said, 11) + 14 * u
  end
  local line = { x = box.x + r, w = math.max(1, box.w - wide - 2 * r) }
  local function place(at) return line.x + (at - bar.from) / math.max(1, bar.to - bar.from) * line.w end
  view:line(line.x, y, line.x + line.w, y, theme.line, 4 * u)
  view:line(line.x, y, place(bar.at), y, theme.accent, 4 * u)
  for _, at in ipairs(bar.marks) do view:rect(place(at) - u, y - r, 2 * u, 2 * r, theme.warm) end
  view:disc(place(bar.at), y, r, theme.text)
  view:text(text, box.x + box.w, y + 4 * u, 11, theme.dim, "right")
  view:spot({ x = box.x, y = box.y, w = line.w + 2 * r, h = box.h }, { scrub = { x = line.x, w = line.w, from = bar.from, to = bar.to } })
end

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

-- The first row: episodes, or of a training its score; what an intervention does; scenes.
local function strip(view, box, bar)
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

---The bar in its box; without one, how many design pixels it needs.
return function(view, box, bar)
  local theme, u = view.theme, view.unit
  local rows = rows_of(view, bar, (box and box.w or view.box.w) - 32 * u)
  local above = STRIP + math.max(0, #bar.strip - 2) * 11
  if not box then return above + SCRUB + #rows * BUTTONS + 8 end
  view:rect(box.x, box.y, box.w, box.h, theme.card)
  local inner = { x = box.x + 16 * u, y = box.y + 3 * u, w = box.w - 32 * u, h = box.h - 6 * u }
  strip(view, { x = inner.x, y = inner.y, w = inner.w, h = above * u }, bar)
  scrub(view, { x = inner.x, y = inner.y + above * u, w = inner.w, h = SCRUB * u }, bar)
  for r, row in ipairs(rows) do
    local y, h = inner.y + (above + SCRUB + (r - 1) * BUTTONS + 2) * u, (BUTTONS - 5) * u
    for _, b in ipairs(row) do
      local x = inner.x + b.x
      if b.box then view:rect(x, y, b.w, h, theme.grid) end
      if b.key then view:spot({ x = x, y = y, w = b.w, h = h }, { key = type(b.key) == "string" and b.key:byte() or b.key }) end
      view:text(b.text, x + b.w / 2, y + h / 2 + 4.3 * u, SIZE, b.on and theme.warm or b.key and theme.text or theme.dim, "center")
    end
  end
end
