-- where.lua -- where an agent remembers, in any environment: the loss when each part of its memory is erased at each step, measured while
-- the window is idle.  A click on a cell opens the episode with that part erased.
--   mneme view runs/NAME scene=where
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })
  if now.map_apart then                            -- two episodes of one agent: the window draws its map once, below both
    local world, policy = view:split(body, "rows", { "1*", "1*" })
    panels.world(view, world, now)
    return panels.policies(view, policy, now)
  end
  local above, causes = view:split(body, "rows", { "2*", "3*" })
  local world, policy = view:split(above, "columns", { "1*", "1*" })
  panels.world(view, world, now)
  panels.policies(view, policy, now)
  panels.causes(view, causes, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  shared = "causes",
  draw = draw,
}
