-- world.lua -- the environment, large, with observation, actions and return: for trajectories and for playing by hand.
--   mneme play tmaze, or mneme view FILE.mnt
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local page = view:inset(view.box, 16)
  local header, body = view:split(page, "rows", { 44, "1*" })
  panels.header(view, header, now)
  local left, right = view:split(body, "columns", { "5*", "3*" })
  if now.blind then panels.observation(view, left, now)
  else panels.world(view, left, now) end
  local seen, actions, earned = view:split(right, "rows", { "3*", "3*", "2*" })
  if now.blind then seen, actions, earned = nil, view:split(right, "rows", { "3*", "2*" }) end
  if seen then panels.observation(view, seen, now) end
  panels.actions(view, actions, now)
  panels.rewards(view, earned, now)
end

return mn.scene {
  doc = "any environment: its picture, observation, actions and return",
  env = { "tmaze", corridor = 20 },
  core = { "agalite" },
  draw = draw,
}
