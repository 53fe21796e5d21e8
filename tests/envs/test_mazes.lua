-- test_mazes.lua -- the mazes of memory_maze against statistics of the official generator, and players that know
-- nothing or everything against the scores they reached in mazes of that generator.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local maze_rig = require "tests.support.maze_rig"
local rig = require("tests.support.env_rig").rig

local C = engine.C
local maze_of, distances, tally, SOUTH, EAST = maze_rig.maze_of, maze_rig.distances, maze_rig.tally, maze_rig.south, maze_rig.east

local function make(settings) return envs.new("memory_maze", settings) end

-- ---- the generator ----

-- Of 20,000 accepted mazes of labmaze 1.0.6 each: mean and standard deviation over mazes; `rejected` is the
-- part of all mazes that had fewer rooms than targets, `rooms` the parts with that many rooms before that.
local reference = {
  [9] = { rejected = .0169, rooms = { [3] = .2869, [4] = .6962 }, open = { 59.44, 3.99 }, room = { 41.19, 5.58 },
    cycles = { 23.60, 3.41 }, between = { 7.986, 1.888 }, from_spawn = { 6.426, 1.742 }, corner = .745,
    odd_odd = .937, odd_even = .775, even_even = .313 },
  [11] = { rejected = 0, rooms = { [4] = .2278, [5] = .3469, [6] = .4253 }, open = { 86.54, 6.76 }, room = { 58.16, 8.13 },
    cycles = { 34.34, 5.46 }, between = { 9.695, 2.229 }, from_spawn = { 8.216, 2.187 }, corner = .698,
    odd_odd = .936, odd_even = .762, even_even = .284 },
  [13] = { rejected = .0043, rooms = { [5] = .0316, [6] = .9641 }, open = { 110.86, 7.62 }, room = { 68.17, 6.81 },
    cycles = { 40.78, 5.27 }, between = { 11.332, 2.199 }, from_spawn = { 9.812, 2.544 }, corner = .544,
    odd_odd = .896, odd_even = .697, even_even = .233 },
  [15] = { rejected = 0, rooms = { [9] = 1 }, open = { 145.04, 7.21 }, room = { 81, 0 }, cycles = { 47.58, 2.83 },
    between = { 12.770, 2.239 }, from_spawn = { 11.591, 2.951 }, corner = .541,
    odd_odd = .910, odd_even = .695, even_even = .184 },
}
local REFERENCE_MAZES, MAZES = 20000, 3000

-- One maze's figures; and what must be so in every maze.
local function measure(m, add)
  local open, room, edges, by_parity = 0, 0, 0, { { 0, 0 }, { 0, 0 }, { 0, 0 } }
  for row = 1, m.size do
    for col = 1, m.size do
      local parity, is, ways = by_parity[3 - row % 2 - col % 2], m.cells[row][col], 0
      parity[1], parity[2] = parity[1] + (is > 0 and 1 or 0), parity[2] + 1
      if is > 0 then
        for _, d in ipairs(maze_rig.directions) do ways = ways + (m.cells[row + d[1]][col + d[2]] > 0 and 1 or 0) end
        t.ok(ways >= 2, "a dead end")
        open, room, edges = open + 1, room + (is == 2 and 1 or 0), edges + ways / 2
      end
    end
  end
  for i, key in ipairs { "odd_odd", "odd_even", "even_even" } do add(key, by_parity[i][1] / by_parity[i][2]) end
  add("open", open)
  add("room", room)
  add("cycles", edges - open + 1)
  add("corner", m.cells[1][1] > 0 and 1 or 0)
  local far, reached = distances(m, m.row, m.col)
  t.eq(reached, open, "cells that can be reached")
  local total, pairs_of = 0, 0
  for _, target in ipairs(m.targets) do
    local steps = far[target[1] * 64 + target[2]]
    t.ok(steps > 0 and m.cells[target[1]][target[2]] == 2, "a target is in a room and not where the agent begins")
    total = total + steps
  end
  add("from_spawn", total / #m.targets)
  total = 0
  for i, from in ipairs(m.targets) do
    far = distances(m, from[1], from[2])
    for k, to in ipairs(m.targets) do
      if k ~= i then total, pairs_of = total + far[to[1] * 64 + to[2]], pairs_of + 1 end
    end
  end
  add("between", total / pairs_of)
end

for size, want in pairs(reference) do
  t.test(("%dx%d: %d mazes agree with labmaze's within 4 standard errors, none has a dead end"):format(size, size, MAZES), function()
    local env = make { size = size, num_envs = MAZES }
    local r, add, figures = rig(env), tally()
    env:reset_raw(r.obs, size)
    local rejected, rooms = 0, {}
    for i = 0, MAZES - 1 do
      local m = maze_of(env:truth(i), size)
      measure(m, add)
      rejected, rooms[m.rooms] = rejected + m.rejected, (rooms[m.rooms] or 0) + 1
    end
    local shown = {}
    local function agree(key, got, expected, sd, n)
      local error = sd * math.sqrt(1 / n + 1 / REFERENCE_MAZES)
      shown[#shown + 1] = ("%s %.4g"):format(key, got)
      t.near(got, expected, 4 * error + 6e-4, key)         -- the table is rounded
    end
    local function part(key, got, p, n) agree(key, got, p, math.sqrt(p * (1 - p)), n) end
    for _, key in ipairs { "open", "room", "cycles", "between", "from_spawn" } do
      local mean, sd, n = figures(key)
      agree(key, mean, want[key][1], want[key][2] + 0.005, n)
      agree(key .. " sd", sd, want[key][2], want[key][2] / math.sqrt(2) + 0.005, n)
    end
    for _, key in ipairs { "odd_odd", "odd_even", "even_even" } do
      local mean, sd, n = figures(key)
      agree(key, mean, want[key], sd, n)
    end
    part("corner", (figures "corner"), want.corner, MAZES)
    part("rejected", rejected / (rejected + MAZES), want.rejected, MAZES)
    for k, p in pairs(want.rooms) do part(k .. " rooms", (rooms[k] or 0) / (MAZES + rejected), p, MAZES) end
  end)
end

t.test("rooms are 3x3, 3x5 or 5x3, as many as are said, and each target has its own; any size", function()
  for _, case in ipairs { { 7, 3 }, { 7, 4 }, { 9, 4 }, { 11, 6 }, { 13, 3 }, { 17, 0 }, { 23, 5 }, { 31, 6 } } do
    local env = make { size = case[1], targets = case[2], num_envs = 60 }
    env:reset_raw(rig(env).obs, 1)
    for i = 0, 59 do
      local m, kinds, add = maze_of(env:truth(i), case[1]), {}, tally()
      t.eq(#m.targets, case[2] > 0 and case[2] or 6)
      measure(m, add)
      local rooms, taken, mine = 0, {}, {}
      for row = 1, m.size do
        for col = 1, m.size do
          if m.cells[row][col] == 2 and not taken[row * 64 + col] then
            local high, wide = 0, 0
            while m.cells[row + high][col] == 2 do high = high + 1 end
            while m.cells[row][col + wide] == 2 do wide = wide + 1 end
            rooms = rooms + 1
            kinds[high .. "x" .. wide] = true
            for y = row, row + high - 1 do
              for x = col, col + wide - 1 do
                t.eq(m.cells[y][x], 2, "a room is a rectangle")
                taken[y * 64 + x] = rooms
              end
            end
          end
        end
      end
      t.eq(rooms, m.rooms)
      for kind in pairs(kinds) do
        t.ok(kind == "3x3" or (kind == "3x5" or kind == "5x3") and m.size >= 9 and m.size <= 13, kind)
      end
      for _, target in ipairs(m.targets) do
        local room = taken[target[1] * 64 + target[2]]
        t.ok(not mine[room], "two targets in a room")
        mine[room] = true
      end
    end
  end
end)

-- ---- players ----

-- Mean returns over 400 episodes in labmaze's mazes.
local scores = {
  [9] = { steps = 250, absolute = 32.87, oracle = 23.11, random = .37, random_six = .65 },
  [11] = { steps = 500, absolute = 53.75, oracle = 39.20, random = .35, random_six = .68 },
  [13] = { steps = 750, absolute = 68.22, oracle = 50.81, random = .49, random_six = .82 },
  [15] = { steps = 1000, absolute = 80.94, oracle = 61.20, random = .36, random_six = .68 },
}
local REFERENCE_EPISODES = 400

-- Both are means: of 400 episodes there, of n here, spread alike.
local function agree(what, got, expected, sd, n)
  t.near(got, expected, 4 * sd * math.sqrt(1 / n + 1 / REFERENCE_EPISODES) + 0.005, what)
end

for size, want in pairs(scores) do
  t.test(("%dx%d: random play reaches what it should"):format(size, size), function()
    for _, actions in ipairs { 4, 6 } do
      local n, pool = 1600, 2 ^ 18
      local env = make { size = size, num_envs = n, actions = actions, seed = size }
      t.eq(env.time_limit, want.steps)
      local r, add, figures = rig(env), tally()
      local random, action = ffi.new("float[?]", pool), ffi.new("int32_t[?]", pool)
      C.mn_random_uniform(1, size, actions, random, pool)
      for i = 0, pool - 1 do action[i] = random[i] * actions end
      env:reset_raw(r.obs)
      local rounds = size == 9 and actions == 4 and 63 or 1
      for s = 1, rounds * want.steps do  -- each step another stretch of the pool
        env:step_raw(action + s * 7919 % (pool - n), r.obs, r.reward, r.terminated, r.truncated)
        if r.truncated[0] == 1 then
          for i = 0, n - 1 do add("return", env.ended.ret[i]) end
        end
      end
      local mean, sd, episodes = figures "return"
      agree("return with " .. actions .. " actions", mean, actions == 4 and want.random or want.random_six, sd, episodes)
    end
  end)
end

-- Steps to a target from every cell and heading, [(row * 64 + col) * 4 + heading]: forward, or a quarter turn.
local function turns_and_steps(m, target)
  local far, queue, next_out = {}, {}, 1
  local function reach(row, col, heading, steps)
    local at = (row * 64 + col) * 4 + heading
    if m.cells[row][col] > 0 and not far[at] then
      far[at] = steps
      queue[#queue + 1] = at
    end
  end
  for h = 0, 3 do reach(target[1], target[2], h, 0) end
  while queue[next_out] do
    local at = queue[next_out]
    next_out = next_out + 1
    local row, col, h = math.floor(at / 256), math.floor(at / 4) % 64, at % 4
    reach(row - SOUTH[h], col - EAST[h], h, far[at] + 1)
    reach(row, col, (h + 1) % 4, far[at] + 1)
    reach(row, col, (h + 3) % 4, far[at] + 1)
  end
  return far
end

for size, want in pairs(scores) do
  t.test(("%dx%d: who knows the maze reaches what it should"):format(size, size), function()
    local n = 400
    local env = make { size = size, num_envs = n, seed = size + 1 }
    local r, add, figures = rig(env), tally()
    local copies, ways = {}, {}
    env:reset_raw(r.obs)
    local draws = ffi.new("float[?]", n * 200)
    C.mn_random_uniform(1, size, 9, draws, n * 200)
    for i = 0, n - 1 do
      local m = maze_of(env:truth(i), size)
      copies[i], ways[i] = m, {}
      local far, at, step, touched, left = {}, { m.row, m.col }, 0, -1, m.prompt
      for k, target in ipairs(m.targets) do
        ways[i][k], far[k] = turns_and_steps(m, target), distances(m, target[1], target[2])
      end
      while step <= want.steps do              -- any of four directions at each step, without turning
        step = step + far[left][at[1] * 64 + at[2]]
        at, touched = m.targets[left], touched + 1
        left = (left + math.floor(draws[i * 200 + touched] * (#m.targets - 1))) % #m.targets + 1
      end
      add("absolute", touched)
    end
    for _ = 1, want.steps do
      for i = 0, n - 1 do
        local m = copies[i]
        local far = ways[i][m.prompt]
        local here = far[(m.row * 64 + m.col) * 4 + m.heading]
        local row, col = m.row + SOUTH[m.heading], m.col + EAST[m.heading]
        if (far[(row * 64 + col) * 4 + m.heading] or 1 / 0) < here then
          r.action[i], m.row, m.col = 1, row, col
        else
          local left = (m.heading + 3) % 4
          r.action[i] = far[(m.row * 64 + m.col) * 4 + left] < here and 2 or 3
          m.heading = r.action[i] == 2 and left or (m.heading + 1) % 4
        end
      end
      env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
      for i = 0, n - 1 do
        copies[i].prompt = r.obs[i * r.size + 49] - 3
      end
    end
    for i = 0, n - 1 do
      t.eq(r.truncated[i], 1)
      add("oracle", env.ended.ret[i])
      add("score", env.ended.score[i])
    end
    for _, key in ipairs { "absolute", "oracle" } do
      local mean, sd = figures(key)
      agree(key, mean, want[key], sd, n)
    end
    t.ok(figures "score" > 0.9, "score of the oracle: " .. (figures "score"))
  end)
end
