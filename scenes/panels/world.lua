-- world.lua -- the world as the environment draws it, the way the agent came, and how the episode
-- ended.
local canvas = require "mneme.canvas"

return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local inner = view:card(box, options and options.title or "world", options and options.note)
  local place = view:append(now.canvas, inner)

  -- where the environment tells places in the units of its picture: the trail, fading with age
  if options and options.place then
    local n = #now.history
    for i = 2, n do
      local ax, ay = options.place(now.history[i - 1])
      local bx, by = options.place(now.history[i])
      if ax and bx then
        local x0, y0, scale = place(ax, ay)
        local x1, y1 = place(bx, by)
        local age = math.max(0.15, 1 - (n - i) / 60)
        view:line(x0, y0, x1, y1, canvas.fade(theme.warm, age), math.max(1, scale * 0.12))
      end
    end
  end

  local outcome = now.outcome         -- told in the title's line, where it covers nothing
  if outcome then
    local solved = (outcome.score or 0) >= 1
    local text = solved and "solved" or ("score %.2f"):format(outcome.score or 0)
    local note = options and options.note and view:text_width(options.note, 11.5) or 0
    local room = inner.w - 2 * math.max(note, view:text_width("corridor", 13)) - 64 * u
    local ret = ("  ·  return %+.1f"):format(outcome.ret):gsub("-", "−")
    for _, part in ipairs { ret, ("  ·  %d steps"):format(outcome.length) } do
      if view:text_width(text .. part, 14) > room then break end
      text = text .. part
    end
    local w, x = view:text_width(text, 14) + 24 * u, inner.x + inner.w / 2
    view:frame(x - w / 2, box.y + 8 * u, w, 24 * u, solved and theme.good or theme.bad, 1.5 * u)
    view:text(text, x, box.y + 25 * u, 14, solved and theme.good or theme.bad, "center")
  end
end
