-- policies.lua -- the policy over time: the probability of each action at each step; of numbers their means.
local mn = require "mneme"
local canvas, step_heatmap = mn.ui.canvas, mn.ui.step_heatmap

return function(view, box, now)
  if now.space and now.space.kind == "box" and #now.policy > 0 then
    local lines = {}
    for k = 1, now.space.size do lines[k] = { name = now.space.names[k], of = function(entry) return entry.policy and entry.policy[k] end } end
    return mn.scene.panels.signals(view, box, now, { title = "policy over time", y_name = "mean of each number", lines = lines })
  end
  local inner = view:card(box, "policy over time", { "probability 0 … 1", "0 … 1" }, canvas.SEQUENTIAL)
  if #now.policy == 0 then return view:say(inner, "no policy") end
  local over = step_heatmap.over(now.episode_history or now.history, #now.policy, function(entry, _, row) return entry.policy and entry.policy[row] end,
    step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = 1, names = now.actions, what = "probability", now = now.episode_history and now.step })
  view:spot(plot, { visit = over.steps, cells = true })
end
