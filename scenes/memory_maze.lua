-- memory_maze.lua -- the maze from above with the agent's path, its observation, what it has explored, policy, value and
-- attention: does it go straight to a target that it saw long ago?    mneme view memory_maze
local mn = require "mneme"
local panels = mn.scene.panels

local targets = { 0xC52C23FF, 0x73C566FF, 0x2DA2FBFF, 0x6C7AE7FF, 0xFFE044FF, 0xFF947CFF }
local function palette(code)                     -- codes of engine/envs/memory_maze.h
  if code <= 3 then return code == 1 and 0x6B7A90FF or code == 2 and 0x22333FFF or code == 3 and 0x3A5465FF end
  return targets[code - 3], ("ABCDEF"):sub(code - 3, code - 3)              -- colours alone are not for every eye
end

-- The side of the field of view, from the size of the observation, where it is a grid; and the side of the maze.
local function sides(now)
  local n, cells = now.observation and #now.observation.shape == 1 and now.observation.shape[1], now.truth.layout
  local view = n and math.sqrt(n - 1) or nil
  if view and cells and view % 1 ~= 0 then view = math.sqrt(n - 1 - #cells) end         -- with a map
  return cells and view and view % 2 == 1 and view or nil, cells and math.sqrt(#cells)
end

-- The maze cell of the k-th observed cell: far to near, left to right of the heading.
local function cell_of(side)
  return function(truth, k)
    local ahead, right = side - 1 - math.floor(k / side), k % side - (side - 1) / 2
    local x, y, h = math.floor(truth.x + 0.5), math.floor(truth.y + 0.5), math.floor(truth.heading + 0.5) % 4
    local south, east = h == 2 and 1 or h == 0 and -1 or 0, h == 1 and 1 or h == 3 and -1 or 0
    return x + ahead * east - right * south, y + ahead * south + right * east
  end
end

local function draw(view, now)
  local header, upper, lower = view:split(view:inset(view.box, view.edge + 4), "rows", { 44, "5*", "3*" })
  panels.header(view, header, now)
  local side, size = sides(now)
  local world, observed, explored = view:split(upper, "columns", side and { "1*", "1*", "1*" } or { "2*", "1*" })
  local cue = now.truth.colors and now.truth.colors[now.truth.prompt + 1]
  panels.world(view, world, now, { title = "maze", note = now.run and "frames: where the memory says the targets are" or nil, believed = "targets",
    colour = function(k) return palette((now.truth.colors[k] or 0) + 4) end,
    place = function(entry) return entry.x and entry.y and entry.x + 0.5, entry.y and entry.y + 0.5 end })
  if side then
    panels.cells(view, observed, now, { view = side, palette = palette, agent = { (side - 1) / 2, side - 1 },
      turned = true, frame = cue and targets[cue + 1],
      note = { cue and ("heading up; seeks %s"):format(select(2, palette(cue + 4))) or "heading up", "heading up" } })
    panels.explored(view, explored, now, { view = side, palette = palette, width = size, height = size, margin = 1,
      place = cell_of(side) })
  else panels.observation(view, observed, now) end

  local memory = mn.inspect.implicit_attention.problem(now) and "memory" or "attention"
  mn.scene.lay(view, lower, now, { "columns", { "3*", "policies" }, { "3*", "value" }, { "4*", memory } })
end

return mn.scene {
  env = { "memory_maze", size = 9 },
  draw = draw,
}
