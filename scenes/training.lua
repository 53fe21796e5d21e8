-- training.lua -- the progress of a run: learning curves and gradient norms, and next to them the current agent, its visits,
-- scores and returns.    mneme view runs/NAME scene=training
local mn = require "mneme"

local function draw(view, now)
  mn.scene.lay(view, mn.scene.body(view, now), now, { "columns",
    { "1*", "rows", { "1*", "curves", { title = "score", of = { "charts/score" } } },
      { "1*", "curves", { title = "return", of = { "charts/episodic_return" } } },
      { "1*", "curves", { title = "entropy", of = { "losses/entropy" } } }, { "1*", "gradients" } },
    { "1*", "rows", { "1*", "world" }, { "1*", "columns", { "1*", "visits" }, { "1*", "scores" } }, { "1*", "rewards" } } })
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
