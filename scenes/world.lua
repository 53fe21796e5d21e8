-- world.lua -- the environment, large, with observation, actions and return: for playing by hand.
--   mneme play tmaze
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local page = view:inset(view.box, view.edge + 4)
  local header, rules, body = view:split(page, "rows", { 44, now.rules and 34 or 0, "1*" }, now.rules and 12 or 6)
  panels.header(view, header, now)
  if now.rules then view:paragraph(now.rules, rules.x, rules.y + 10 * view.unit, 13, view.theme.text, rules.w) end
  local left, right = view:split(body, "columns", { "5*", "3*" })
  if now.blind then panels.observation(view, left, now)
  else
    panels.world(view, left, now, now.rules and { title = now.cheats and "the true state" or "what the agent sees",
      note = now.cheats and "Tab: back to what the agent sees" or nil })
  end
  if now.card then panels.score_card(view, left, now) end
  local seen, actions, earned = view:split(right, "rows", #now.actions > 24 and { "1*", "5*", "1*" } or { "3*", "3*", "2*" })
  if now.blind then seen, actions, earned = nil, view:split(right, "rows", { "3*", "2*" }) end
  if seen then panels.observation(view, seen, now) end
  panels.actions(view, actions, now)
  panels.rewards(view, earned, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
