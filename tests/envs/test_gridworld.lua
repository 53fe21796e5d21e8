-- test_gridworld.lua -- mazes drawn in characters: what their signs do, what is seen of them, and what drawings
-- are refused.
local t = require "tests.harness"
local envs = require "mneme.envs"

local UP, DOWN, LEFT, RIGHT = 0, 1, 2, 3
local UNSEEN, WALL, FLOOR, GOAL, TRAP, CUE, KEY, DOOR, CHOICE, SAYS = 0, 1, 2, 3, 4, 5, 6, 10, 14, 20

local function world(map, settings)
  local given = { map = map, num_envs = 1 }
  for key, value in pairs(settings or {}) do given[key] = value end
  local env = envs.new("gridworld", given)
  return env, env:reset(1):data()
end

-- Walk a list of actions; the last step's reward, whether it ended, and the score.
local function walk(env, actions)
  local reward, over, info
  for _, action in ipairs(actions) do
    local _, r, terminated, _, i = env:step { action }
    reward, over, info = r:data()[0], terminated:data()[0] == 1, i
  end
  return reward, over, over and info.score:data()[0]
end

-- The 3 x 3 window as text.
local function window(obs)
  local rows = {}
  for y = 0, 2 do rows[y + 1] = ("%d %d %d"):format(obs[3 * y], obs[3 * y + 1], obs[3 * y + 2]) end
  return table.concat(rows, " / ")
end

t.test("what is seen: codes of the cells about the agent, north on top, then the keys it carries", function()
  local env, obs = world("#G#\n.S!\n a ", { view = 3, occlusion = 0 })
  t.eq(window(obs), ("%d %d %d / %d %d %d / %d %d %d"):format(WALL, GOAL, WALL, FLOOR, FLOOR, TRAP, UNSEEN, KEY, UNSEEN))
  t.eq(obs[9], 0)
  walk(env, { DOWN })
  t.eq(obs[9], KEY, "the key is carried")
  t.eq(window(obs), ("%d %d %d / %d %d %d / 0 0 0"):format(FLOOR, FLOOR, TRAP, UNSEEN, FLOOR, UNSEEN))
  t.eq(env:truth(0).keys, 1)
end)

t.test("goals and traps end it, walls and the map's end stop the agent, a step has its price", function()
  local map = "G.S!"
  local reward, over, score = walk(world(map), { LEFT, LEFT })
  t.eq(reward, 1) t.eq(over, true) t.eq(score, 1)
  reward, over, score = walk(world(map, { step_reward = -0.25 }), { RIGHT })
  t.eq(reward, -1.25) t.eq(over, true) t.eq(score, 0)
  local env = world(map, { step_reward = -0.25 })
  t.eq(walk(env, { UP, UP, DOWN }), -0.25)
  t.eq(env:truth(0).x, 2)
end)

t.test("a door is a wall until its key is carried; another colour's key does not open it", function()
  local env = world "Sb.Ba.AG"
  for _ = 1, 3 do walk(env, { RIGHT }) end
  t.eq(env:truth(0).x, 3, "through B with b")
  walk(env, { RIGHT, RIGHT, RIGHT })
  t.eq(env:truth(0).keys, 3)
  local reward, over = walk(env, { RIGHT })
  t.eq(over, true) t.eq(reward, 1)
  env = world "a.SA.G"                      -- the key lies the other way
  walk(env, { RIGHT })
  t.eq(env:truth(0).x, 2, "a closed door")
  walk(env, { LEFT, LEFT, RIGHT, RIGHT, RIGHT })
  t.eq(env:truth(0).x, 3, "an open one")
end)

t.test("of the choices the one that the cue names pays; each is right as often, and so is each start", function()
  local env = envs.new("gridworld", { map = "1S?S2", num_envs = 4000, view = 3, seed = 3 })
  local obs = env:reset():data()
  local says, starts, actions = { 0, 0 }, { [1] = 0, [3] = 0 }, {}
  for i = 0, 3999 do
    local x, right = env:truth(i).x, env:truth(i).right
    local seen = obs[i * 13 + (x == 1 and 5 or 3)]
    t.eq(seen, SAYS + right - 1, "what the cue says")
    says[right], starts[x] = says[right] + 1, starts[x] + 1
    actions[i + 1] = x == 1 and LEFT or RIGHT
  end
  for _, n in ipairs { says[1], says[2], starts[1], starts[3] } do t.near(n, 2000, 4 * math.sqrt(1000)) end
  local right = {}
  for i = 0, 3999 do
    local f = env:truth(i)
    right[i] = (f.x == 1 and 1 or 2) == f.right
  end
  local _, reward, terminated, _, info = env:step(actions)
  for i = 0, 3999 do
    t.eq(terminated:data()[i], 1)
    t.eq(reward:data()[i], right[i] and 1 or -1)
    t.eq(info.score:data()[i], right[i] and 1 or 0)
  end
end)

t.test("the cue speaks for cue_steps steps, and is silent afterwards", function()
  local env, obs = world("1.?S2", { view = 3, cue_steps = 2 })
  t.ok(obs[3] >= SAYS)
  walk(env, { UP })
  t.ok(obs[3] >= SAYS)
  walk(env, { UP })
  t.eq(obs[3], CUE)
  walk(env, { LEFT, LEFT })
  t.eq(obs[3], CHOICE)
end)

t.test("walls and closed doors hide what is behind them; from two cells each sees the other", function()
  local _, obs = world("S#G\n...", { view = 5 })
  t.eq(obs[14], UNSEEN, "behind a wall")
  t.eq(obs[13], WALL, "the wall itself")
  _, obs = world("S#G\n...", { view = 5, occlusion = 0 })
  t.eq(obs[14], GOAL)
  local env
  env, obs = world("aSA.G", { view = 7 })
  t.eq(obs[3 * 7 + 4], DOOR)
  t.eq(obs[3 * 7 + 5], UNSEEN)
  walk(env, { LEFT, RIGHT })
  t.eq(obs[3 * 7 + 5], FLOOR, "an open door hides nothing")
  -- In a maze with many pillars, sight from one cell to another is the same both ways.
  local rows, size = {}, 9
  for y = 1, size do
    rows[y] = {}
    for x = 1, size do rows[y][x] = (x * 7 + y * 5 + x * y) % 4 == 0 and "#" or "." end
  end
  local function map(sx, sy, gx, gy)
    local lines = {}
    for y = 1, size do
      lines[y] = {}
      for x = 1, size do lines[y][x] = rows[y][x] end
    end
    lines[sy][sx], lines[gy][gx] = "S", "!"
    for y = 1, size do lines[y] = table.concat(lines[y]) end
    return table.concat(lines, "\n") .. "\nG"
  end
  local hidden, pairs_seen = 0, 0
  for n = 1, 60 do
    local sx, sy = n * 5 % size + 1, n * 11 % size + 1
    local gx, gy = (n * 7 + 3) % size + 1, (n * 4 + 1) % size + 1
    if rows[sy][sx] == "." and rows[gy][gx] == "." and (sx ~= gx or sy ~= gy) then
      local function sees(ax, ay, bx, by)
        local ok, _, o = pcall(world, map(ax, ay, bx, by), { view = 15 })
        return ok and o[(by - ay + 7) * 15 + bx - ax + 7] == TRAP, ok
      end
      local there, ok1 = sees(sx, sy, gx, gy)
      local back, ok2 = sees(gx, gy, sx, sy)
      if ok1 and ok2 then
        t.eq(there, back)
        pairs_seen, hidden = pairs_seen + 1, hidden + (there and 0 or 1)
      end
    end
  end
  t.ok(pairs_seen > 15 and hidden > 3, ("%d pairs, %d hidden"):format(pairs_seen, hidden))
end)

t.test("drawings that cannot be played are refused, naming line and column", function()
  local function refused(map, pattern) t.raises(function() world(map) end, pattern) end
  refused("#S.\n#.%\n..G", "map line 2, column 3: '%%' is unknown; expected # wall")
  refused("\n\n#S\9G", "map line 3, column 3: byte 9 is unknown")
  refused("   \n ", "the map is empty")
  refused("#.G", "no start S")
  refused("S..", "no goal G and no choices")
  refused("S.1", "one choice, 1; expected at least two")
  refused("S#G", "start in line 1, column 1 to a goal")
  refused("..\nS.1#2", "start in line 2, column 1 to choice 2")
  refused("S.A.G", "to a goal")                                     -- no key
  refused("S!G", "to a goal")                                       -- only through a trap
  refused("SG" .. (" "):rep(9998) .. ".", "10001 columns and 1 lines, expected at most 64 each")
  refused(("S\n"):rep(65) .. "G", "1 columns and 66 lines")
  t.fails(function() world("SG", { view = 4 }) end)
  t.fails(function() world(7) end)
  t.fails(function() world "SG\0" end)
  t.fails(function() envs.new("tmaze", { map = "SG" }) end)
end)

t.test("lines may differ in length, blank ones around the map do not count; another map's bytes are refused", function()
  local env = world "\n\n  #\n  S\n ..G\n\n"
  t.eq(env:truth(0).width, 4)
  t.eq(env:truth(0).height, 3)
  local _, over = walk(env, { DOWN, RIGHT })
  t.eq(over, true)
  t.fails(function() env:restore(0, (world "SG"):save(0)) end)
  t.eq(#env:save(0), #(world "SG"):save(0))
end)
