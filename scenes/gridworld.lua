-- gridworld.lua -- a maze of your own: the maze, the observation, what was explored, visits over many episodes, policy and value.
--   mneme view gridworld, or mneme view runs/NAME
local mn = require "mneme"
local panels = mn.scene.panels

local keys = { 0xE69F00FF, 0x56B4E9FF, 0xCC79A7FF, 0xF0E442FF }
local function palette(code)                     -- codes of engine/worlds/gridmap.h
  if code == 0 then return nil elseif code == 1 then return 0x6B7A90FF elseif code == 2 then return 0x2C3645FF end
  if code == 3 then return 0x009E73FF, "G" elseif code == 4 then return 0x9A4A12FF, "!" end
  if code == 5 then return 0x6B6A3CFF, "?" elseif code < 10 then return keys[code - 5], ("abcd"):sub(code - 5, code - 5) end
  if code < 14 then return keys[code - 9], ("ABCD"):sub(code - 9, code - 9) end
  return code < 20 and 0x2F5D8CFF or 0xA89F1AFF, tostring((code - 14) % 6 + 1)
end

local function draw(view, now)
  local body = mn.scene.body(view, now)
  local upper, lower = view:split(body, "rows", { "5*", "3*" })

  local seen, truth = now.observation, now.truth
  local root = truth.width and seen and math.sqrt(seen.shape[1] - 4)
  local side = root and root % 2 == 1 and root or nil
  local half = side and (side - 1) / 2
  local world, observed, explored = view:split(upper, "columns", { "4*", "3*", "3*" })
  panels.world(view, world, now, {
    note = truth.right and truth.right > 0 and ("right choice: %d"):format(truth.right) or nil,
    place = function(entry) return entry.x and entry.y and entry.x + 0.5, entry.y and entry.y + 0.5 end })
  panels.cells(view, observed, now, { view = side, palette = palette, agent = { half, half } })
  panels.explored(view, explored, now, { view = side, palette = palette, width = truth.width, height = truth.height,
    place = function(at, k) return at.x + k % side - half, at.y + math.floor(k / side) - half end })

  mn.scene.lay(view, lower, now, { "columns", { "1*", "policies" }, { "1*", "value" }, { "1*", "visits" }, { "1*", "scores" } })
end

return mn.scene {
  env = { "gridworld" },
  draw = draw,
}
