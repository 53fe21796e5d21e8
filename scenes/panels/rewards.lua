-- rewards.lua -- the return so far in this episode, step by step.
return function(view, box, now)
  local theme, u, history = view.theme, view.unit, now.history
  local inner = view:card(box, "return", (("now %+.2f"):format(now.ret or 0):gsub("-", "−")))
  local sums, sum, least, most, last = {}, 0, 0, 1, 10
  for i, entry in ipairs(history) do
    sum = sum + (entry.reward or 0)
    sums[i], least, most, last = sum, math.min(least, sum), math.max(most, sum), math.max(last, entry.step)
  end
  if now.outcome then                    -- what the last action brought
    sums[#sums + 1], last = now.ret, math.max(last, now.step + 1)
    least, most = math.min(least, now.ret), math.max(most, now.ret)
  end
  local margin = (most - least) * 0.08
  local place = view:axes(inner, 0, last, least < 0 and least - margin or 0, most + margin, "step", "sum of rewards")
  local function at(i) return place(history[i] and history[i].step or now.step + 1, sums[i]) end
  for i = 2, #sums do
    local x0, y0 = at(i - 1)
    local x1, y1 = at(i)
    view:line(x0, y0, x1, y1, theme.good, 2 * u)
  end
  if #sums > 0 then
    local x, y = at(#sums)
    view:disc(x, y, 4 * u, theme.text)
  end
end
