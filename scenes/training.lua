-- training.lua -- the progress of a run: learning curves and gradient norms, and next to them the current agent, its visits,
-- scores and returns.    mneme view runs/NAME scene=training
local mn = require "mneme"

local function curve(title, name) return { "1*", "curves", { title = title, of = { name } } } end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  layout = { "columns", { "1*", "rows", curve("score", "charts/score"), curve("return", "charts/episodic_return"),
    curve("entropy", "losses/entropy"), { "1*", "gradients" } },
  { "1*", "rows", { "1*", "world" }, { "1*", "columns", { "1*", "visits" }, { "1*", "scores" } }, { "1*", "rewards" } } },
}
