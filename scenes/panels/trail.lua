-- trail.lua -- the path of the agent in this episode: position against time in one dimension, a map in two.
return function(view, box, now, options)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, "trail", options and options.note)
  local entry = history[#history]
  if not entry or not entry.x then return view:say(inner, "this environment reports no positions") end
  local plane, way = entry.y ~= nil, {}                -- of steps whose places are known
  for _, e in ipairs(history) do
    if e.x and (e.y or not plane) then way[#way + 1] = { e.x, plane and e.y or e.step } end
  end
  local x1, y1 = options and options.cells or 1, plane and 1 or 10
  for _, p in ipairs(way) do x1, y1 = math.max(x1, p[1]), math.max(y1, p[2]) end
  local place = view:axes(inner, 0, x1, 0, y1, "cell", plane and "row" or "step", true)
  for i = 2, #way do
    local ax, ay = place(unpack(way[i - 1]))
    local bx, by = place(unpack(way[i]))
    view:line(ax, ay, bx, by, theme.warm, 2 * u)
  end
  local x, y = place(unpack(way[#way]))
  view:disc(x, y, 4 * u, theme.text)
end
