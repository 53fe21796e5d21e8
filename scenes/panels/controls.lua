-- controls.lua -- the bar at the bottom of the window: episodes and scenes, a timeline of the episode, and a button for each key that
-- applies.  Every part is a spot, so a click does what the key does.
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
    add(nil, (bar.follows and "newest: %.0fk" or "%.0fk steps"):format(bar.checkpoint / 1000))
    add("]", "›")
  end
  if bar.can_change then add("i", "intervene", bar.pair, not bar.changeable) end
  if bar.can_change and not bar.pair then add("b", "contrast") end
  if bar.pair then add("c", "close") end
  add("v", bar.movie and "stop video" or "video", bar.movie)
  add("s", "screenshot")
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

---The bar in its box; without one, how many design pixels it needs.
return function(view, box, now, bar)
  local theme, u = view.theme, view.unit
  local rows = rows_of(view, bar, (box and box.w or view.box.w) - 32 * u)
  local above = STRIP + math.max(0, #bar.strip - 2) * 11
  if not box then return above + SCRUB + #rows * BUTTONS + 8 end
  view:rect(box.x, box.y, box.w, box.h, theme.card)
  local inner = { x = box.x + 16 * u, y = box.y + 3 * u, w = box.w - 32 * u, h = box.h - 6 * u }
  panels.strip(view, { x = inner.x, y = inner.y, w = inner.w, h = above * u }, now, bar)
  panels.scrub(view, { x = inner.x, y = inner.y + above * u, w = inner.w, h = SCRUB * u }, nil, bar)
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
