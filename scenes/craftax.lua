-- craftax.lua -- Craftax: what the agent sees, the map of its floor, what it owns, the achievements as a wall that lights up, policy,
-- value, memory and gates.    mneme view craftax
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local header, body = view:split(view:inset(view.box, view.edge + 4), "rows", { 44, "1*" })
  panels.header(view, header, now)
  local world, mind = view:split(body, "columns", view.edge < 12 and { "5*", "3*" } or { "21*", "10*" })          -- names of actions
  local earned = now.truth.achieved
  panels.world(view, world, now, { title = "world", note = earned and ("floor %d, %d of 67 achievements"):format(now.truth.floor, earned) })
  mn.scene.lay(view, mind, now, { "rows", { "7*", "policy" }, { "2*", "value" }, { "2*", "memory" } })
end

return mn.scene {
  env = { "craftax" },
  draw = draw,
}
