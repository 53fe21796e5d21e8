-- scores.lua -- the score of every episode that ended while the viewer was open, and a running mean.
local LATELY = 20

return function(view, box, now)
  local theme, u, n = view.theme, view.unit, now.ended_before
  local mean, scored = 0, false
  for i = 1, n do scored = scored or now.outcomes[i].score ~= nil end
  for i = math.max(1, n - LATELY + 1), n do mean = mean + (now.outcomes[i].score or 0) / math.min(n, LATELY) end
  local note = scored and { ("mean of the last %d: %.2f"):format(math.min(n, LATELY), mean), ("mean %.2f"):format(mean), ("%.2f"):format(mean) } or nil
  local inner = view:card(box, "scores", note)
  if n == 0 then return view:say(inner, "no episode has ended yet") end
  if not scored then return view:say(inner, "the environment declares no score") end
  local place = view:axes(inner, 0, math.max(10, n), 0, 1.05, "episode", "score, 0 … 1")
  local x0, y0, sum = nil, nil, 0
  for i = 1, n do
    local score = now.outcomes[i].score or 0
    sum = sum + score - (i > LATELY and (now.outcomes[i - LATELY].score or 0) or 0)
    local x, y = place(i, score)
    view:disc(x, y, 3 * u, theme.warm)
    local x1, y1 = place(i, sum / math.min(i, LATELY))
    if x0 then view:line(x0, y0, x1, y1, theme.accent, 2 * u) end
    x0, y0 = x1, y1
  end
end
