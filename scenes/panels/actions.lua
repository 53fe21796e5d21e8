-- actions.lua -- the actions and the one taken last; where a person plays, the key of each, and a click takes it.
return function(view, box, now)
  local theme, u = view.theme, view.unit
  local inner = view:card(box, "actions", now.hint)
  local hand = now.hand
  if not hand and now.space and now.space.kind ~= "discrete" then          -- of several numbers: each with what was done last
    local names, high = now.space.names, math.min(inner.h / #now.space.names, 30 * u)
    for k, name in ipairs(names) do
      local base = inner.y + (k - 1) * high + high / 2 + 5 * u
      view:text(name, inner.x + 14 * u, base, 13, theme.dim, "left", inner.w * 0.6)
      view:text(now.did and ("%.4g"):format(now.did[k]):gsub("-", "−") or "", inner.x + inner.w, base, 13, theme.text, "right")
    end
    return
  end
  local names = hand and hand.names or now.actions
  local n = #names
  local columns = math.max(1, math.min(math.ceil(n / math.max(1, math.floor(inner.h / ((n > 24 and 16 or 20) * u)))), 8))
  local rows = math.ceil(n / columns)
  local wide, high = inner.w / columns, math.min(inner.h / rows, 30 * u)
  local size = math.min(13, high / u * 0.7)
  local named = false                          -- actions named 0, 1, 2 ... with those keys need no separate name
  for i = 1, n do named = named or not now.keys or now.keys[i] ~= names[i] end
  local key_room = now.keys and named and 46 * u or 0
  for i = 1, n do
    local x = inner.x + math.floor((i - 1) / rows) * wide
    local top = inner.y + (i - 1) % rows * high
    local base = top + high / 2 + size * u * 0.36
    local part = hand and hand.parts and hand.parts[i]
    local chosen = part and hand.numbers[part.number] == part.value or not part and now.action == i - 1
    if now.keys then view:spot({ x = x, y = top, w = wide, h = high }, { action = i - 1 }) end
    if chosen then view:triangle(x, base - size * u * 0.36 - 4 * u, 8 * u, 8 * u, 0, theme.warm) end
    if key_room > 0 then view:text(now.keys[i], x + 14 * u, base, size, theme.accent, "left", key_room - 4 * u) end
    view:text(names[i], x + 14 * u + key_room, base, size, chosen and theme.text or theme.dim, "left",
      wide - 14 * u - key_room)
  end
end
