-- training.lua -- how far a run has come: its learning curves and gradients, and beside them the agent as it is now,
-- where it goes and what it scores.    mneme view runs/NAME scene=training
local scene = require "mneme.view.scene"
local panel = scene.panels

local function draw(view, now)
  local page = view:inset(view.box, 16)
  local header, body = view:split(page, "rows", { 44, "1*" })
  panel.header(view, header, now)
  local curves, agent = view:split(body, "columns", { "1*", "1*" })
  local score, ret, loss, gradients = view:split(curves, "rows", { "1*", "1*", "1*", "1*" })
  panel.curves(view, score, now, { title = "score", of = { "charts/score" } })
  panel.curves(view, ret, now, { title = "return", of = { "charts/episodic_return" } })
  panel.curves(view, loss, now, { title = "entropy", of = { "losses/entropy" } })
  panel.gradients(view, gradients, now)

  local world, middle, rewards = view:split(agent, "rows", { "1*", "1*", "1*" })
  panel.world(view, world, now)
  local visits, scores = view:split(middle, "columns", { "1*", "1*" })
  panel.visits(view, visits, now)
  panel.scores(view, scores, now)
  panel.rewards(view, rewards, now)
end

return scene.new {
  doc = "how far a run has come: learning curves, gradients, where the agent goes, its scores and rewards",
  task = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
