-- controls.lua -- the bar at the bottom of the window: a timeline of the episode, and a button for each key that applies.  Every
-- part is a spot, so a click does what the key does.
local mn = require "mneme"
local keyboard = mn.ui.keyboard

local function buttons_of(bar)
  local list = {}
  local function add(key, text, on) list[#list + 1] = { key = key, text = text, on = on } end
  if bar.live then add("n", "next env") else
    add(keyboard.HOME, "|◀")
    add(keyboard.LEFT, "◀")
  end
  add(" ", bar.playing and "pause" or "play", not bar.playing)
  if not bar.live then
    add(keyboard.RIGHT, "▶")
    add(keyboard.PAGE_DOWN, "next")
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
  if bar.can_change then add("i", "intervene", bar.pair) end
  if bar.pair then add("c", "close") end
  if bar.zoom > 1 then add("0", ("%.1fx"):format(bar.zoom), true) end
  add("v", bar.movie and "stop video" or "video", bar.movie)
  add("s", "screenshot")
  if bar.can_change then add("w", "save .mnt") end
  add("t", bar.theme == "light" and "dark" or "light")
  add("h", "help")
  return list
end

-- The timeline of the episode, with marks at its interventions.
local function scrub(view, box, bar)
  local theme, u = view.theme, view.unit
  local y, r = box.y + box.h / 2, 6 * u
  local text = ("episode %d, %d of %d%s"):format(bar.episode, bar.at - bar.from, bar.to - bar.from, bar.over and "" or " so far")
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

return function(view, box, bar)
  local theme, u = view.theme, view.unit
  view:rect(box.x, box.y, box.w, box.h, theme.card)
  local inner = { x = box.x + 16 * u, y = box.y + 3 * u, w = box.w - 32 * u, h = box.h - 8 * u }
  local upper, lower = view:split(inner, "rows", { "2*", "3*" }, 2)
  scrub(view, upper, bar)
  local x, size = lower.x, 12
  for _, b in ipairs(buttons_of(bar)) do
    local w = math.max(26 * u, view:text_width(b.text, size) + (b.key and 16 or 8) * u)
    if x + w > lower.x + lower.w then break end
    if b.key then
      view:rect(x, lower.y, w, lower.h, theme.grid)
      view:spot({ x = x, y = lower.y, w = w, h = lower.h }, { key = type(b.key) == "string" and b.key:byte() or b.key })
    end
    view:text(b.text, x + w / 2, lower.y + lower.h / 2 + 4.3 * u, size, b.on and theme.warm or b.key and theme.text or theme.dim, "center")
    x = x + w + 5 * u
  end
end
