-- test_raycast.lua -- the pictures of memory_maze against a second painter, which follows every pixel's ray
-- through three dimensions: no level camera, no rays of columns, every wall a box.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local SIDE, BORDER = 64, 2
local EYE, WALL, BALL, PITCH, FIELD = 0.45, 0.75, 0.3, math.rad(5.7), math.rad(80)
local walls = { [0] = { 32, 116, 177 }, { 169, 65, 103 }, { 166, 197, 156 }, { 85, 120, 75 }, { 68, 80, 176 },
  { 213, 123, 104 }, { 143, 32, 26 }, { 196, 169, 38 } }
local targets = { [0] = { 170, 38, 30 }, { 99, 170, 88 }, { 39, 140, 217 }, { 93, 105, 199 }, { 220, 193, 59 },
  { 220, 128, 107 } }          -- of 220
local corridor, room, sky = { 54, 89, 109 }, { 111, 148, 170 }, { 102, 153, 204 }

local function scaled(color, by) return color[1] * by, color[2] * by, color[3] * by end
local function fade(depth) return 8 / (8 + depth) end

-- The world of an environment, as boxes and hemispheres in cells; the border included.
local function world_of(truth, size)
  local world, width = { boxes = {}, balls = {}, floor = {} }, size + 2
  local function third(k) return (k >= math.floor(width / 3) and 1 or 0) + (k >= math.floor(2 * width / 3) and 1 or 0) end
  for row = 0, width - 1 do
    for col = 0, width - 1 do
      local inside = row > 0 and row <= size and col > 0 and col <= size
      local is = inside and truth.layout[(row - 1) * size + col] or 0
      world.floor[row * width + col] = is == 2 and room or corridor
      if is == 0 then
        world.boxes[#world.boxes + 1] = { x = col, y = row, color = walls[truth.walls[3 * third(row) + third(col) + 1]] }
      end
    end
  end
  for i = 1, #truth.colors do
    local r, g, b = scaled(targets[truth.colors[i]], 255 / 220)
    world.balls[i] = { x = truth.targets[2 * i - 1] + 1.5, y = truth.targets[2 * i] + 1.5, color = { r, g, b } }
  end
  world.width = width
  return world
end

-- Where a ray enters a box that stands on the floor; nil if it does not.  Also: through a side that faces along x?
local function enter(box, x, y, dx, dy)
  local ax, bx = (box.x - x) / dx, (box.x + 1 - x) / dx
  local ay, by = (box.y - y) / dy, (box.y + 1 - y) / dy
  local near_x, near_y = math.min(ax, bx), math.min(ay, by)
  local near, far = math.max(near_x, near_y), math.min(math.max(ax, bx), math.max(ay, by))
  if near < far and near > 0 then return near, near_x > near_y end
end

-- The colour that a ray from the eye meets.  dx, dy, dz: its direction; `ahead`: how fast it goes forward.
local function seen(world, x, y, dx, dy, dz, ahead)
  local nearest, r, g, b = math.huge, nil, nil, nil
  for _, box in ipairs(world.boxes) do
    local at, along_x = enter(box, x, y, dx, dy)
    if at and at < nearest and EYE + at * dz < WALL then
      nearest = at
      r, g, b = scaled(box.color, fade(at * ahead) * (along_x and 1 or 13 / 16))
    end
  end
  if dz < 0 and -EYE / dz < nearest then
    nearest = -EYE / dz
    local cell = math.floor(y + nearest * dy) * world.width + math.floor(x + nearest * dx)
    r, g, b = scaled(world.floor[cell], fade(nearest * ahead))
  end
  for _, ball in ipairs(world.balls) do
    local cx, cy, cz = ball.x - x, ball.y - y, -EYE
    local dd, dc = dx * dx + dy * dy + dz * dz, dx * cx + dy * cy + dz * cz
    local inside = dc * dc - dd * (cx * cx + cy * cy + cz * cz - BALL * BALL)
    local at = inside > 0 and (dc - math.sqrt(inside)) / dd or -1
    if at > 0 and at < nearest then
      nearest = at
      r, g, b = scaled(ball.color, fade(at * ahead) * (0.55 + 0.45 * (EYE + at * dz) / BALL))
    end
  end
  if nearest < math.huge then return r, g, b end
  return scaled(sky, (128 + 120 * dz / ahead) / 256)
end

-- How many pixels of a picture differ from what the second painter puts there.
local function differing(pixels, truth, size, ahead_of_centre)
  local world, turn = world_of(truth, size), truth.heading * math.pi / 2
  local east, south = math.sin(turn), -math.cos(turn)
  local x, y = truth.x + 1.5 + ahead_of_centre * east, truth.y + 1.5 + ahead_of_centre * south
  local different, cosine, sine = 0, math.cos(PITCH), math.sin(PITCH)
  for row = BORDER, SIDE - BORDER - 1 do
    for col = BORDER, SIDE - BORDER - 1 do
      local right = (2 * (col + 0.5) / SIDE - 1) * math.tan(FIELD / 2)
      local up = (1 - 2 * (row + 0.5) / SIDE) * math.tan(FIELD / 2)
      local ahead, high = cosine + up * sine, up * cosine - sine
      local r, g, b = seen(world, x, y, ahead * east - right * south, ahead * south + right * east, high, ahead)
      local p = pixels + (row * SIDE + col) * 3
      if math.abs(p[0] - r) > 4 or math.abs(p[1] - g) > 4 or math.abs(p[2] - b) > 4 then different = different + 1 end
    end
  end
  return different / (SIDE - 2 * BORDER) ^ 2
end

local function bordered(pixels, color)
  for row = 0, SIDE - 1 do
    for col = 0, SIDE - 1 do
      if row < BORDER or row >= SIDE - BORDER or col < BORDER or col >= SIDE - BORDER then
        for c = 0, 2 do
          if math.abs(pixels[(row * SIDE + col) * 3 + c] - color[c + 1] * 255 / 220 * 0.7) > 2 then return false end
        end
      end
    end
  end
  return true
end

for _, case in ipairs { { "grid", 9, 0 }, { "grid", 15, 0 }, { "continuous", 9, 0.075 }, { "continuous", 13, 0.075 } } do
  local mode, size, ahead = unpack(case)
  t.test(("%s, %dx%d: pictures as a camera would take them"):format(mode, size, size), function()
    local copies = 12
    local env = envs.new("memory_maze", { mode = mode, size = size, observation = "pixels", num_envs = copies, randomize_colors = 1 })
    t.eq(table.concat(env.observation_space.shape, "x"), "64x64x3")
    t.eq(env.observation_space.dtype, "u8")
    local r, worst, sum, n = env_rig.rig(env), 0, 0, 0
    env:reset_raw(r.obs, size)
    for time = 0, 24 do
      if time % 8 == 0 then
        for i = 0, copies - 1 do
          local truth, pixels = env:truth(i), ffi.cast("uint8_t *", r.obs) + i * r.size
          local part = differing(pixels, truth, size, ahead)
          worst, sum, n = t.larger(worst, part), sum + part, n + 1
          t.ok(bordered(pixels, targets[truth.colors[truth.prompt + 1]]), "the border has the prompt's colour")
        end
      end
      env_rig.step(r)
    end
    -- edges of walls are as sharp as rays are dense; where a pixel's middle lies near one, painters differ
    t.ok(sum / n < 0.005, ("%.4f of the pixels differ"):format(sum / n))
    t.ok(worst < 0.02, ("%.4f of the pixels of one picture differ"):format(worst))
  end)
end
