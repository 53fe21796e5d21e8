-- rewards.lua -- what has been earned so far in this episode, step by step.
return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, "return", (("now %+.2f"):format(now.ret or 0):gsub("-", "−")))
  local sums, sum, least, most, last = {}, 0, 0, 1, 10
  for i, entry in ipairs(history) do
    sum = sum + (entry.reward or 0)
    sums[i], least, most, last = sum, math.min(least, sum), math.max(most, sum), math.max(last, entry.step)
  end
  local margin = (most - least) * 0.08
  local place = view:axes(inner, 0, last, least < 0 and least - margin or 0, most + margin, "step", "sum of rewards")
  for i = 2, #history do
    local x0, y0 = place(history[i - 1].step, sums[i - 1])
    local x1, y1 = place(history[i].step, sums[i])
    view:line(x0, y0, x1, y1, theme.good, 2 * u)
  end
  if #history > 0 then
    local x, y = place(history[#history].step, sums[#history])
    view:disc(x, y, 4 * u, theme.text)
  end
end
