-- policy.lua -- the probability of each action now; a triangle marks the action taken.
return function(view, box, now)
  local theme, u = view.theme, view.unit
  local inner = view:card(box, "policy", { "probability of each action", "probability" })
  local n = math.min(#now.policy, 12)
  if n == 0 then return view:text("no policy", inner.x, inner.y + 16 * u, 12, theme.dim) end
  local row = math.min(inner.h / n, 44 * u)
  local top = inner.y + (inner.h - row * n) / 2
  local size = math.min(13, row / u * 0.62)
  local wide, names = 0, {}
  for i = 1, n do                                        -- with its key where a person plays
    names[i] = now.keys and now.keys[i] ~= "" and now.keys[i] .. "  " .. now.actions[i] or now.actions[i]
    wide = math.max(wide, view:text_width(names[i], size))
  end
  wide = math.min(wide, inner.w * 0.35)
  local left, percent = inner.x + 16 * u + wide + 10 * u, view:text_width("100 %", size) + 10 * u
  local length = inner.x + inner.w - percent - left
  for i = 1, n do
    local y, p, chosen = top + (i - 1) * row, now.policy[i], now.action == i - 1
    local base, bar = y + row / 2 + size * u * 0.36, math.min(row * 0.56, 20 * u)
    local color, ink = chosen and theme.warm or theme.accent, chosen and theme.text or theme.dim
    if chosen then view:triangle(inner.x, y + row / 2 - 5 * u, 9 * u, 10 * u, 0, theme.warm) end
    view:text(names[i], inner.x + 16 * u, base, size, ink, "left", wide + 1)
    if now.keys then view:spot({ x = inner.x, y = y, w = inner.w, h = row }, { action = i - 1 }) end
    view:rect(left, y + (row - bar) / 2, length, bar, theme.grid)
    view:rect(left, y + (row - bar) / 2, length * math.max(0, math.min(1, p)), bar, color)
    view:text(("%.0f %%"):format(p * 100), inner.x + inner.w, base, size, ink, "right")
  end
end
