-- maze_rig.lua -- mazes of memory_maze as its tests know them: read off an environment's truth, walked by hand.
local SOUTH, EAST = { [0] = -1, 0, 1, 0 }, { [0] = 0, 1, 0, -1 }        -- of headings
local DIRECTIONS = { { 0, 1 }, { 0, -1 }, { 1, 0 }, { -1, 0 } }

-- The maze of one copy: cells[row][col] = 0 wall, 1 corridor, 2 room, a border of walls around; places
-- count from 1 within it.  targets[i] = { row, col }.
local function maze_of(truth, size)
  local m = { size = size, cells = {}, targets = {}, rooms = truth.rooms, rejected = truth.rejected }
  for row = 0, size + 1 do
    m.cells[row] = {}
    for col = 0, size + 1 do
      local inside = row >= 1 and row <= size and col >= 1 and col <= size
      m.cells[row][col] = inside and truth.layout[(row - 1) * size + col] or 0
    end
  end
  for i = 1, #truth.targets / 2 do m.targets[i] = { truth.targets[2 * i] + 1, truth.targets[2 * i - 1] + 1 } end
  m.row, m.col, m.heading, m.prompt = truth.y + 1, truth.x + 1, truth.heading, truth.prompt + 1
  return m
end

-- Steps from a cell to every cell that can be reached, [row * 64 + col].
local function distances(m, row, col)
  local far, queue, next_out = { [row * 64 + col] = 0 }, { row * 64 + col }, 1
  while queue[next_out] do
    local at = queue[next_out]
    next_out = next_out + 1
    local r, c = math.floor(at / 64), at % 64
    for _, d in ipairs(DIRECTIONS) do
      local to = (r + d[1]) * 64 + c + d[2]
      if m.cells[r + d[1]][c + d[2]] > 0 and not far[to] then
        far[to] = far[at] + 1
        queue[#queue + 1] = to
      end
    end
  end
  return far, #queue
end

-- Sums of named figures, with mean and standard deviation.
local function tally()
  local sums, squares, n = {}, {}, {}
  local function add(key, x)
    sums[key], squares[key], n[key] = (sums[key] or 0) + x, (squares[key] or 0) + x * x, (n[key] or 0) + 1
  end
  local function figures(key)
    local mean = sums[key] / n[key]
    return mean, math.sqrt(math.max(0, squares[key] / n[key] - mean * mean)), n[key]
  end
  return add, figures
end

return { maze_of = maze_of, distances = distances, tally = tally, south = SOUTH, east = EAST, directions = DIRECTIONS }
