-- policies.lua -- the policy over time: the probability of each action at each step.
local mn = require "mneme"
local canvas, step_heatmap = mn.ui.canvas, mn.ui.step_heatmap

return function(view, box, now)
  local inner = view:card(box, "policy over time", { "probability 0 … 1", "0 … 1" }, canvas.SEQUENTIAL)
  if #now.policy == 0 then return view:say(inner, "no policy") end
  if now.space and now.space.kind == "box" then return view:say(inner, "continuous: see policy") end
  local over = step_heatmap.over(now.episode_history or now.history, #now.policy, function(entry, _, row) return entry.policy and entry.policy[row] end,
    step_heatmap.span(now))
  local plot = step_heatmap.draw(view, inner, over, { lo = 0, hi = 1, names = now.actions, what = "probability", now = now.episode_history and now.step })
  view:spot(plot, { visit = over.steps, cells = true })
end
