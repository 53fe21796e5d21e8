-- braille.lua -- lines as Braille characters, of 2 x 4 dots each, for a terminal.
local bit = require "bit"

local braille = {}

-- A dot's bit in a character, by column and row.
local DOT = { [0] = { [0] = 1, 2, 4, 64 }, { [0] = 8, 16, 32, 128 } }

local function character(bits)
  local code = 0x2800 + bits
  return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

---A line through points, as rows of characters from top to bottom.
---@param points { [1]: number, [2]: number }[] shares 0 .. 1 of the width and the height; false: the line breaks off
---@param width integer characters
---@return string[] rows
function braille.line(points, width, height)
  local grid, from_x, from_y = {}, nil, nil
  local function dot(px, py)
    local at = math.floor(py / 4) * width + math.floor(px / 2)
    grid[at] = bit.bor(grid[at] or 0, DOT[px % 2][py % 4])
  end
  for _, point in ipairs(points) do
    if point then
      local to_x, to_y = point[1] * (2 * width - 1), (1 - point[2]) * (4 * height - 1)
      from_x, from_y = from_x or to_x, from_y or to_y
      local steps = math.max(1, math.ceil(math.max(math.abs(to_x - from_x), math.abs(to_y - from_y))))
      for s = 0, steps do
        dot(math.floor(from_x + (to_x - from_x) * s / steps + 0.5), math.floor(from_y + (to_y - from_y) * s / steps + 0.5))
      end
      from_x, from_y = to_x, to_y
    else from_x, from_y = nil, nil end
  end
  local rows = {}
  for row = 0, height - 1 do
    local letters = {}
    for column = 0, width - 1 do letters[column + 1] = character(grid[row * width + column] or 0) end
    rows[row + 1] = table.concat(letters)
  end
  return rows
end

return braille
