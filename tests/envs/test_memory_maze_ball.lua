-- test_memory_maze_ball.lua -- memory_maze where a ball rolls: against what was measured on the original, against
-- its walls and targets, and random players as statistics.
local ffi = require "ffi"
local t = require "tests.harness"
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local scene = require "mneme.insight.view.scene"
local env_rig = require "tests.support.env_rig"

local C, rig = engine.C, env_rig.rig
local NOOP, FORWARD, LEFT, RIGHT, FORWARD_RIGHT = 0, 1, 2, 3, 5

local function make(settings)
  settings.mode = "continuous"
  return envs.new("memory_maze", settings)
end

local function act(r, action)
  for i = 0, r.n - 1 do r.action[i] = action end
  r.env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
end

local function poses(env)
  local list = {}
  for i = 0, env.num_envs - 1 do list[i] = env:truth(i) end
  return list
end

-- What every environment does in each step of a sequence of actions: cells rolled, and degrees turned to the right.
local function responses(env, actions)
  local r, rolled, turned = rig(env), {}, {}
  env:reset_raw(r.obs, 1)
  local before = poses(env)
  for k, action in ipairs(actions) do
    act(r, action)
    local now = poses(env)
    for i = 0, r.n - 1 do
      rolled[i], turned[i] = rolled[i] or {}, turned[i] or {}
      rolled[i][k] = math.sqrt((now[i].x - before[i].x) ^ 2 + (now[i].y - before[i].y) ^ 2)
      turned[i][k] = ((now[i].heading - before[i].heading + 2) % 4 - 2) * 90
    end
    before = now
  end
  return rolled, turned
end

local function alike(what, got, want, tolerance)
  for k, x in ipairs(want) do t.near(got[k], x, tolerance, ("%s, step %d"):format(what, k)) end
end

t.test("speed and turn follow as they do in the original", function()
  local rolled, turned = responses(make { num_envs = 200, size = 15 },
    { FORWARD, FORWARD, FORWARD, FORWARD, FORWARD, FORWARD, NOOP, NOOP, NOOP, FORWARD, FORWARD })
  local free = 0
  for i = 0, 199 do
    if rolled[i][6] > 0.24 and rolled[i][11] > 0.2 then          -- no wall on the way
      free = free + 1
      alike("forward", rolled[i], { 0.112, 0.219, 0.243, 0.248, 0.250, 0.250, 0.138, 0.031, 0.007 }, 0.001)
    end
    t.eq(turned[i][1], 0)
  end
  t.ok(free > 5, "only " .. free .. " balls had room")
  for sign, action in pairs { [-1] = LEFT, [1] = RIGHT } do
    rolled, turned = responses(make { num_envs = 5 }, { action, action, action, action, NOOP, NOOP })
    for i = 0, 4 do
      alike("turn", turned[i], { 14.1 * sign, 18.4 * sign, 18.4 * sign, 18.4 * sign, 2.9 * sign, 0 }, 0.1)
      t.eq(rolled[i][4], 0)
    end
  end
  rolled, turned = responses(make { num_envs = 200 }, { FORWARD_RIGHT, FORWARD_RIGHT, FORWARD_RIGHT, FORWARD_RIGHT })
  free = 0
  for i = 0, 199 do
    if rolled[i][4] > 0.24 then
      free = free + 1
      alike("both", rolled[i], { 0.112, 0.219, 0.243 }, 0.001)
    end
    alike("both", turned[i], { 14.1, 18.4, 18.4 }, 0.1)
  end
  t.ok(free > 50)
end)

-- How far a place lies from the nearest wall.
local function clearance(truth, size)
  local least = math.huge
  for row = math.floor(truth.y + 0.5) - 1, math.floor(truth.y + 0.5) + 1 do
    for col = math.floor(truth.x + 0.5) - 1, math.floor(truth.x + 0.5) + 1 do
      local inside = row >= 0 and row < size and col >= 0 and col < size
      if not inside or truth.layout[row * size + col + 1] == 0 then
        local dx, dy = math.max(0, math.abs(truth.x - col) - 0.5), math.max(0, math.abs(truth.y - row) - 0.5)
        least = math.min(least, math.sqrt(dx * dx + dy * dy))
      end
    end
  end
  return least
end

t.test("the ball never enters a wall, sticks to what it meets, and comes away again", function()
  local size, n = 9, 24
  local env = make { num_envs = n, size = size, time_limit = 100000 }
  local r = rig(env)
  env:reset_raw(r.obs, 4)
  local met = 0
  for time = 1, 400 do
    if time <= 200 then env_rig.step(r) else act(r, FORWARD) end
    for i = 0, n - 1 do
      local room = clearance(env:truth(i), size)
      t.ok(room > 0.1 - 1e-5, ("copy %d is %.4f from a wall"):format(i, room))
      if room < 0.105 then met = met + 1 end
    end
  end
  t.ok(met > 100, "no wall was met")
  local stuck = poses(env)
  act(r, FORWARD)
  for i = 0, n - 1 do
    local now = env:truth(i)
    t.near(now.x, stuck[i].x, 0.03) t.near(now.y, stuck[i].y, 0.03)
  end
  for _ = 1, 10 do act(r, RIGHT) end             -- about a half turn
  for _ = 1, 3 do act(r, FORWARD) end
  local away = 0
  for i = 0, n - 1 do
    local now = env:truth(i)
    if math.abs(now.x - stuck[i].x) + math.abs(now.y - stuck[i].y) > 0.3 then away = away + 1 end
  end
  t.ok(away > n * 0.8, away .. " balls came away")
end)

-- How near the straight way between two places comes to a third.
local function nearest(a, b, x, y)
  local dx, dy = b.x - a.x, b.y - a.y
  local length = dx * dx + dy * dy
  local part = length > 0 and math.max(0, math.min(1, ((x - a.x) * dx + (y - a.y) * dy) / length)) or 0
  return math.sqrt((a.x + part * dx - x) ^ 2 + (a.y + part * dy - y) ^ 2)
end

t.test("a touch of the target asked for pays 1 and asks for another, and nothing else does", function()
  local n, touches = 64, 0
  local env = make { num_envs = n, time_limit = 100000 }
  local r = rig(env)
  env:reset_raw(r.obs, 8)
  local before = poses(env)
  for _ = 1, 400 do
    for i = 0, n - 1 do                                  -- steer towards the target, through walls if need be
      local b = before[i]
      local ahead, right = b.target_vectors[2 * b.prompt + 1], b.target_vectors[2 * b.prompt + 2]
      local stray = math.abs(right) > 0.3 * ahead
      r.action[i] = (env_rig.act(i, r.time, 5) == 0 or not stray) and FORWARD or right > 0 and FORWARD_RIGHT or LEFT
    end
    r.time = r.time + 1
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    local now = poses(env)
    for i = 0, n - 1 do
      local a, b = before[i], now[i]
      local x, y = a.targets[2 * a.prompt + 1], a.targets[2 * a.prompt + 2]
      local way = nearest(a, b, x, y)
      if math.abs(way - 0.387) > 1e-4 then t.eq(r.reward[i], way < 0.387 and 1 or 0, ("at %.4f"):format(way)) end
      t.eq(b.prompt ~= a.prompt, r.reward[i] == 1, "the prompt changes with the reward")
      t.eq(r.terminated[i], 0)
      touches = touches + r.reward[i]
      local turn = b.heading * math.pi / 2
      local east, south = b.targets[1] - b.x, b.targets[2] - b.y
      t.near(b.target_vectors[1], east * math.sin(turn) - south * math.cos(turn), 1e-4, "ahead")
      t.near(b.target_vectors[2], east * math.cos(turn) + south * math.sin(turn), 1e-4, "to the right")
    end
    before = now
  end
  t.ok(touches > 20, touches .. " touches")
end)

t.test("time limits and actions as published", function()
  for size, steps in pairs { [9] = 1000, [11] = 2000, [13] = 3000, [15] = 4000 } do
    local env = make { size = size }
    t.eq(env.time_limit, steps)
    t.eq(table.concat(env.action_space.names, " "), "noop forward left right forward_left forward_right")
  end
  t.eq(make({ actions = 4 }).action_space.n, 4)
  t.fails(function() make { observation = "pixels", minimap = 1 } end)
end)

-- envs.md's check of the same rules: mean speed .0337, return .334 +- .010 over 3,000 episodes.
t.test("random players roll and touch as often as another program of the same rules says", function()
  local n = 4096
  local env = make { num_envs = n, observation = "vector", seed = 3 }
  local r, random = rig(env), ffi.new("float[?]", n)
  env:reset_raw(r.obs, 3)
  local touches, square, speed, counted = ffi.new("int[?]", n), 0, 0, 1024
  local x, y = ffi.new("float[?]", counted), ffi.new("float[?]", counted)
  for time = 1, 1000 do
    for i = 0, counted - 1 do x[i], y[i] = r.obs[i * r.size], r.obs[i * r.size + 1] end
    C.mn_random_uniform(11, time, 0, random, n)
    for i = 0, n - 1 do r.action[i] = math.floor(random[i] * 6) end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    for i = 0, n - 1 do touches[i] = touches[i] + r.reward[i] end
    for i = 0, time < 1000 and counted - 1 or -1 do
      local dx, dy = r.obs[i * r.size] - x[i], r.obs[i * r.size + 1] - y[i]
      speed = speed + 9 * math.sqrt(dx * dx + dy * dy) / counted / 999
    end
  end
  local sum = 0
  for i = 0, n - 1 do
    sum, square = sum + touches[i], square + touches[i] ^ 2
    t.eq(r.truncated[i], 1)
  end
  local mean = sum / n
  local error_of_mean = math.sqrt((square / n - mean ^ 2) / n)
  t.near(mean, 0.334, 4 * math.sqrt(error_of_mean ^ 2 + 0.010 ^ 2), "return")
  t.near(speed, 0.0337, 0.0015, "cells a step")
end)

t.test("drawn: the maze, where the ball looks, and the picture that it sees", function()
  local side, painter = 64, scene.painter()
  local env = make { observation = "pixels", num_envs = 2 }
  local r = rig(env)
  env:reset_raw(r.obs, 1)
  for _ = 1, 7 do env_rig.step(r) end
  local drawing = env:draw(1)
  local shapes, arrow = C.mn_canvas_shapes(drawing), nil
  for i = 0, C.mn_canvas_count(drawing) - 1 do
    if shapes[i].kind == canvas.TRIANGLE then arrow = shapes[i].data end
  end
  t.near(arrow, (env:truth(1).heading - 1) * math.pi / 2, 1e-5)
  local bounds = ffi.new "float[4]"
  C.mn_canvas_bounds(drawing, bounds)
  local width = math.ceil((bounds[2] - bounds[0]) / (bounds[3] - bounds[1]) * side)
  local page = painter:paint({ draw = function(v) v:append(drawing, { x = 0, y = 0, w = width, h = side }) end }, {}, width, side)
  for row = 0, side - 1 do                       -- at the right, as large as it is seen
    for col = 0, side - 1 do
      for c = 0, 2 do
        local drawn = page[(row * width + width - side + col) * 4 + c]
        t.eq(drawn, r.obs[r.size + (row * side + col) * 3 + c], ("row %d, column %d"):format(row, col))
      end
    end
  end
end)
