-- training.lua -- the progress of a run: learning curves and gradient norms, and next to them the current agent, its visits,
-- scores and returns.    mneme view runs/NAME scene=training
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now)
  local curves, agent = view:split(body, "columns", { "1*", "1*" })
  local score, ret, loss, gradients = view:split(curves, "rows", { "1*", "1*", "1*", "1*" })
  panels.curves(view, score, now, { title = "score", of = { "charts/score" } })
  panels.curves(view, ret, now, { title = "return", of = { "charts/episodic_return" } })
  panels.curves(view, loss, now, { title = "entropy", of = { "losses/entropy" } })
  panels.gradients(view, gradients, now)

  local world, middle, rewards = view:split(agent, "rows", { "1*", "1*", "1*" })
  panels.world(view, world, now)
  local visits, scores = view:split(middle, "columns", { "1*", "1*" })
  panels.visits(view, visits, now)
  panels.scores(view, scores, now)
  panels.rewards(view, rewards, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
