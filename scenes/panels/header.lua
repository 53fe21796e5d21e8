-- header.lua -- the top line: agent and environment, their source, and episode, step, reward, return, value.
local function number(value, format) return value and (format:format(value):gsub("-", "−")) or "–" end

return function(view, box, now)
  local theme, u = view.theme, view.unit
  local base = box.y + box.h * 0.5 + 6 * u
  local facts = {
    { "episode", tostring(now.episode or 0) }, { "step", tostring(now.step or 0) },
    { "reward", number(now.reward, "%+.1f") }, { "return", number(now.ret, "%+.1f") },
    now.value and { "value", number(now.value, "%+.2f") } or nil,
  }
  if box.w < 560 * u then facts = { facts[2], facts[4], facts[5] } end      -- the title is worth more
  local x = box.x + box.w
  for i = #facts, 1, -1 do          -- from the right; columns of fixed width, so that numbers stand still
    view:text(facts[i][2], x, base + 8 * u, 17, theme.text, "right")
    view:text(facts[i][1], x, base - 13 * u, 11, theme.dim, "right")
    x = x - 78 * u
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
  view:text(now.title or "", box.x, base - 4 * u, 19, theme.text, "left", room)
  local note = status and status.note or now.source
  if note then view:text(note, box.x, base + 14 * u, 11.5, theme.dim, "left", room) end
end
