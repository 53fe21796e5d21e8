-- mind.lua -- how a memory works, in any environment: what each part of it contributes to what the agent does, before each step, what is read of each past
-- step, state norms and gates.  Click a head or a step to see it alone.  A page lower than 340 design pixels has no room for the observation and norms.
--   mneme view runs/NAME scene=mind
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })
  local left, right = view:split(body, "columns", { "2*", "5*" })
  local low = body.h < 340 * view.unit
  local world, seen, policy, norms = view:split(left, "rows", low and { "1*", 0, "1*" } or { "4*", "2*", "3*", "4*" })
  panels.world(view, world, now)
  if not low then panels.observation(view, seen, now, { credit = true }) end
  panels.policies(view, policy, now)
  if not low then panels.norms(view, norms, now) end

  local contribution, attention, below = view:split(right, "rows", { "4*", "3*", "3*" })
  panels.contribution(view, contribution, now)
  panels.attention(view, attention, now)
  panels.gates(view, below, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
