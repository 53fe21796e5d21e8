-- mystery_path.lua -- the board with the path that only the viewer sees, and the agent's policy, value and memory: where did it
-- fall, and does it step there again?    mneme view mystery_path, or mneme view runs/NAME
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now)

  local left, right = view:split(body, "columns", { "4*", "5*" })
  local world, seen = view:split(left, "rows", { "5*", "2*" })
  local fails, to_go = now.truth.fails, now.truth.distance              -- the endless one has no cells to go
  local reads = to_go and now.run and "; frames: the path as the memory has it" or ""
  panels.world(view, world, now, {
    title = "board",
    note = fails and ("%d %s, %d cells %s%s"):format(fails, fails == 1 and "fall" or "falls", to_go or now.truth.tiles, to_go and "to go" or "reached", reads),
    believed = to_go and "path", cells = function(k) return (k - 1) % 7 + 0.5, math.floor((k - 1) / 7) + 0.5 end,
    mark = function(class) return class == 1 or nil end,
  })
  panels.observation(view, seen, now)
  local memory = #now.gates == 0 and { "3*", "memory" } or { "3*", "rows", { "5*", "memory" }, { "3*", "gates" } }
  mn.scene.lay(view, right, now, { "rows", { "2*", "columns", { "1*", "policy" }, { "1*", "value" } }, memory })
end

return mn.scene {
  env = { "mystery_path", level = "easy" },
  draw = draw,
}
