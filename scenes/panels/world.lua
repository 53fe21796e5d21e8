-- world.lua -- the world as the environment draws it, the way the agent came, and how the episode
-- ended.
local canvas = require "mneme.canvas"

return function(view, box, now, options)
  local theme, u = view.theme, view.unit
  local title, note, outcome = options and options.title or "world", options and options.note, now.outcome
  local solved = outcome and (outcome.score or 0) >= 1
  local verdict = outcome and (solved and "solved" or ("score %.2f"):format(outcome.score or 0))
  local used = view:text_width(title, 13) + 36 * u
  local function room() return box.w - 2 * math.max(used, note and view:text_width(note, 11.5) + 36 * u or 0) - 24 * u end
  if outcome and view:text_width(verdict, 14) > room() then note = nil end
  local inner = view:card(box, title, note)
  view:rect(inner.x, inner.y, inner.w, inner.h, theme.ground)
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
        view:line(x0, y0, x1, y1, canvas.fade(canvas.theme.warm, age), math.max(1, scale * 0.12))
      end
    end
  end

  if outcome then                     -- told in the title's line, where it covers nothing
    local ret = ("  ·  return %+.1f"):format(outcome.ret):gsub("-", "−")
    for _, part in ipairs { ret, ("  ·  %d steps"):format(outcome.length) } do
      if view:text_width(verdict .. part, 14) > room() then break end
      verdict = verdict .. part
    end
    local w, x = view:text_width(verdict, 14) + 24 * u, box.x + box.w / 2
    view:frame(x - w / 2, box.y + 8 * u, w, 24 * u, solved and theme.good or theme.bad, 1.5 * u)
    view:text(verdict, x, box.y + 25 * u, 14, solved and theme.good or theme.bad, "center")
  end
end
