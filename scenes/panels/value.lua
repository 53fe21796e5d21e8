-- value.lua -- the value estimate (expected return) at each step.
return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, "value", now.value and (("now %+.2f"):format(now.value):gsub("-", "−")))
  local least, most, last = 0, 1, 10
  for _, entry in ipairs(history) do
    local value = entry.value or 0
    least, most, last = math.min(least, value), math.max(most, value), math.max(last, entry.step)
  end
  local margin = (most - least) * 0.08
  least = least < 0 and least - margin or 0
  local place = view:axes(inner, 0, last, least, most + margin, "step", "expected return")
  for i = 2, #history do
    local a, b = history[i - 1], history[i]
    if a.value and b.value then
      local x0, y0 = place(a.step, a.value)
      local x1, y1 = place(b.step, b.value)
      view:line(x0, y0, x1, y1, theme.accent, 2 * u)
    end
  end
  local entry = history[#history]
  if entry and entry.value then
    local x, y = place(entry.step, entry.value)
    view:disc(x, y, 4 * u, theme.text)
  end
end
