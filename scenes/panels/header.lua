-- header.lua -- the top line: agent and environment, their source, and episode, step, reward, return, value.
local mn = require "mneme"

local words = { episode = "how many episodes ended before this one", step = "steps of this episode, from 0", reward = "reward of the last action",
  ["return"] = "sum of the rewards of this episode so far", value = "the agent's estimate of the discounted return from here on" }

local function number(value, places) return value and mn.ui.canvas.number(value, places) or "–" end

return function(view, box, now)
  local theme, u = view.theme, view.unit
  local base = box.y + box.h * 0.5 + 6 * u
  local facts = {
    { "episode", tostring(now.episode or 0) }, { "step", tostring(now.step or 0) },
    { "reward", number(now.reward, 1) }, { "return", number(now.ret, 1) },
    now.value and { "value", number(now.value, 2) } or nil,
  }
  if box.w < 620 * u then facts = { facts[2], facts[4], facts[5] } end      -- the title is worth more
  local x = box.x + box.w
  for i = #facts, 1, -1 do          -- from the right; columns as wide as most numbers, so that these stand still
    local name, text = facts[i][1], facts[i][2]
    view:text(text, x, base + 8 * u, 17, theme.text, "right")
    view:text(name, x, base - 13 * u, 11, theme.dim, "right")
    local wide = math.max(62 * u, view:text_width(text, 17), view:text_width(name, 11))
    view:tip({ x = x - wide, y = box.y, w = wide, h = box.h }, words[name])
    x = x - wide - 16 * u
  end

  local status = now.status
  if status then
    local s = 11 * u
    x = x - 6 * u
    view:text(status.hint, x, base + 8 * u, 11, theme.dim, "right")
    local word = status.playing and status.speed or "paused"
    view:text(word, x, base - 13 * u, 12, status.playing and theme.good or theme.warm, "right")
    local left = x - view:text_width(word, 12) - 18 * u
    if status.playing then
      view:triangle(left, base - 22 * u, s, s, 0, theme.good)
    else
      view:rect(left + 1 * u, base - 22 * u, s * 0.32, s, theme.warm)
      view:rect(left + 7 * u, base - 22 * u, s * 0.32, s, theme.warm)
    end
    x = math.min(left, x - view:text_width(status.hint, 11))
  end

  local room = x - box.x - 24 * u
  view:text(view:first({ now.title or "", now.short_title or now.title or "" }, 19, room), box.x, base - 4 * u, 19, theme.text, "left", room)
  local note = now.source
  if note then view:text(note, box.x, base + 14 * u, 11.5, theme.dim, "left", room) end
end
