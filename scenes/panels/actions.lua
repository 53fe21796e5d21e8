-- actions.lua -- what can be done, the key for each where a person plays, and what was done last.
return function(view, box, now)
  local theme, u = view.theme, view.unit
  local inner = view:card(box, "actions", now.hint)
  local n = #now.actions
  local columns = math.max(1, math.min(math.ceil(n / math.max(1, math.floor(inner.h / (20 * u)))), 8))
  local rows = math.ceil(n / columns)
  local wide, high = inner.w / columns, math.min(inner.h / rows, 30 * u)
  local size = math.min(13, high / u * 0.7)
  local key_room = now.keys and 46 * u or 0
  for i = 1, n do
    local x = inner.x + math.floor((i - 1) / rows) * wide
    local base = inner.y + ((i - 1) % rows + 0.5) * high + size * u * 0.36
    local chosen = now.action == i - 1
    if chosen then view:triangle(x, base - size * u * 0.36 - 4 * u, 8 * u, 8 * u, 0, theme.warm) end
    if now.keys and now.keys[i] then view:text(now.keys[i], x + 14 * u, base, size, theme.accent, "left", key_room - 4 * u) end
    view:text(now.actions[i], x + 14 * u + key_room, base, size, chosen and theme.text or theme.dim, "left",
      wide - 18 * u - key_room)
  end
end
