-- policy.lua -- the probability of each action now; a triangle marks the action taken.  Many actions stand in columns; each name is on its bar where it has
-- no room beside it; where not all names can be read, the likeliest are shown.
local FEW, LOW, SMALL = 12, 12, 9            -- more have columns; design pixels of a row, and of letters, at least

-- A name, its bar and its share from x to x + wide; the bar begins where `left` is, or under the name.
local function row(view, now, i, at, left)
  local theme, u, p, chosen = view.theme, view.unit, now.policy[i], now.action == i - 1
  local base, bar = at.y + at.high / 2 + at.size * u * 0.36, left and math.min(at.high * 0.56, 20 * u) or at.high * 0.86
  local from, ink = left or at.x + 12 * u, chosen and theme.text or theme.dim
  local length, top = at.x + at.wide - (left and at.percent or 0) - from, at.y + (at.high - bar) / 2
  if chosen then view:triangle(at.x, at.y + at.high / 2 - 5 * u, 9 * u, 10 * u, 0, theme.warm) end
  view:rect(from, top, length, bar, theme.grid)
  view:rect(from, top, length * math.max(0, math.min(1, p)), bar, at.fade(chosen and theme.warm or theme.accent, left and 1 or 0.55))
  view:text(at.names[i], at.x + 16 * u, base, at.size, (left or p < 0.02) and ink or theme.text, "left", at.room)
  view:text(("%.0f %%"):format(p * 100), at.x + at.wide - (left and 0 or 4 * u), base, at.size, ink, "right")
  if now.keys then view:spot({ x = at.x, y = at.y, w = at.wide, h = at.high }, { action = i - 1 }) end
end

-- Where a number of a box goes: its mean in the bounds, the deviation as a lighter stretch, a triangle where it was drawn.
local function stretch(view, now, k, x, y, wide, high)
  local theme, u, s = view.theme, view.unit, now.space
  local mean, deviation, drawn = now.policy[k], now.policy[s.size + k], now.did and now.did[k]
  local low = s.low[k] > -math.huge and s.low[k] or mean - 3 * deviation
  local top = s.high[k] < math.huge and s.high[k] or mean + 3 * deviation
  local bar, from = math.min(high * 0.4, 16 * u), x + wide * 0.3
  local length = x + wide - from
  local function place(value) return from + length * math.max(0, math.min(1, (value - low) / (top - low))) end
  local line = y + high / 2
  view:text(s.names[k], x, line + 5 * u, view:text_width(s.names[k], 13) <= wide * 0.28 and 13 or 11, theme.text, "left", wide * 0.29)
  view:rect(from, line - bar / 2, length, bar, theme.grid)
  local left, right = place(mean - deviation), place(mean + deviation)
  view:rect(left, line - bar / 2, math.max(right - left, u), bar, require("mneme").ui.canvas.fade(theme.accent, 0.5))
  view:rect(place(mean) - u, line - bar / 2, 2 * u, bar, theme.accent)
  for i, part in ipairs(now.hand and now.hand.parts or {}) do         -- where a person acts: the keys that set it, which can be clicked
    if part.number == k then
      local at = place(part.value)
      view:text(now.keys[i], at, line + 5 * u, 12, theme.text, at < from + 8 * u and "left" or at > from + length - 8 * u and "right" or "center")
      view:spot({ x = at - 10 * u, y = line - bar, w = 20 * u, h = 2 * bar }, { action = i - 1 })
    end
  end
  if drawn then view:triangle(place(drawn) - 4 * u, line - bar / 2 - 9 * u, 8 * u, 8 * u, math.pi / 2, theme.warm) end
  local said = ("%.2g ± %.2g"):format(mean, deviation):gsub("-", "−")
  local more = drawn and ("   drawn %.2g"):format(drawn):gsub("-", "−") or ""
  view:text(view:text_width(said .. more, 11) <= length and said .. more or said, x + wide, line + bar / 2 + 13 * u, 11, theme.dim, "right", length)
end

-- The numbers of n actions, the one taken and the likeliest, in their order.
local function likeliest(now, n)
  local order = {}
  for i in ipairs(now.policy) do order[i] = i end
  local function weight(i) return now.action == i - 1 and 2 or now.policy[i] >= 0 and now.policy[i] or 0 end
  table.sort(order, function(a, b) return weight(a) > weight(b) or weight(a) == weight(b) and a < b end)
  for i = #order, n + 1, -1 do order[i] = nil end
  table.sort(order)
  return order
end

return function(view, box, now)
  local u, n = view.unit, #now.policy
  if now.space and now.space.kind == "box" then
    local inner = view:card(box, "policy", { "mean and deviation of each number of the action", "mean, deviation" })
    if n ~= 2 * now.space.size then return view:say(inner, "no policy") end
    local high = math.min(inner.h / now.space.size, 60 * u)
    for k = 1, now.space.size do stretch(view, now, k, inner.x, inner.y + (k - 1) * high, inner.w, high) end
    return
  end
  local room = view:inset(box, view.edge)
  room.h = room.h - (12 + view.edge) * u                               -- below the title
  local names, low, gap = {}, math.max(1, math.floor(room.h / (LOW * u))), 10 * u
  for i = 1, n do                                        -- with its key where a person plays
    names[i] = now.keys and now.keys[i] ~= "" and now.keys[i] .. "  " .. now.actions[i] or now.actions[i]
  end
  local function widest(size)
    local most = 0
    for i = 1, n do most = math.max(most, view:text_width(names[i], size)) end
    return most
  end
  local most = math.max(1, math.floor((room.w + gap) / (widest(SMALL) + view:text_width("99 %", SMALL) + 22 * u + gap)))
  local columns = n <= math.min(FEW, low) and 1 or math.max(2, math.min(math.ceil(n / low), 8))
  if columns > most and not now.keys then columns = most end
  local list = likeliest(now, now.keys and n or low * columns)
  local inner = view:card(box, "policy", #list < n and { ("the likeliest of %d"):format(n), ("%d of %d"):format(#list, n) }
    or { "probability of each action", "probability" })
  if n == 0 then return view:say(inner, "no policy") end
  local rows = math.ceil(#list / columns)
  local at = { high = math.min(inner.h / rows, 44 * u), wide = (inner.w + gap) / columns - gap, names = names, fade = require("mneme").ui.canvas.fade }
  at.size = math.max(SMALL, math.min(13, at.high / u * 0.62))
  at.percent = view:text_width("100 %", at.size) + 10 * u
  local longest = widest(at.size)
  local beside = columns == 1 and longest <= inner.w - at.percent - 55 * u
  at.room = beside and longest + 1 or at.wide - 20 * u - at.percent
  if not beside and longest > at.room then                -- as large as the longest name allows, where that can be read
    at.size = math.max(SMALL, at.size * at.room / longest)
    at.percent = view:text_width("99 %", at.size) + 6 * u
    at.room = at.wide - 16 * u - at.percent
  end
  local left, top = beside and inner.x + 16 * u + at.room + 9 * u or nil, inner.y + (inner.h - at.high * rows) / 2
  for k, i in ipairs(list) do
    local column = math.floor((k - 1) / rows)
    at.x, at.y = inner.x + column * (at.wide + gap), top + (k - 1 - column * rows) * at.high
    row(view, now, i, at, left)
  end
end
