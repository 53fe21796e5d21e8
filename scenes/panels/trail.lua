-- trail.lua -- the way the agent took in this episode: its place against time where places lie on a
-- line, as a map where they lie in a plane.  A slow, doubting agent leaves a crooked trail.
return function(view, box, now, options)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, "trail", options and options.note)
  local entry = history[#history]
  if not entry or not entry.x then
    return view:text("this environment names no places", inner.x, inner.y + 16 * u, 12, theme.dim)
  end
  local plane = entry.y ~= nil
  local x1, y1 = options and options.cells or 1, plane and 1 or 10
  for _, e in ipairs(history) do
    x1 = math.max(x1, e.x)
    y1 = math.max(y1, plane and e.y or e.step)
  end
  local place = view:axes(inner, 0, x1, 0, y1, "cell", plane and "row" or "step", true)
  for i = 2, #history do
    local a, b = history[i - 1], history[i]
    local ax, ay = place(a.x, plane and a.y or a.step)
    local bx, by = place(b.x, plane and b.y or b.step)
    view:line(ax, ay, bx, by, theme.warm, 2 * u)
  end
  local x, y = place(entry.x, plane and entry.y or entry.step)
  view:disc(x, y, 4 * u, theme.text)
end
