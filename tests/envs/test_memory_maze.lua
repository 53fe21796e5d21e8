-- test_memory_maze.lua -- memory_maze's rules and its window against a second, slow telling of them; its pools of
-- levels; what it refuses.
local t = require "tests.harness"
local envs = require "mneme.envs"
local maze_rig = require "tests.support.maze_rig"
local rig = require("tests.support.env_rig").rig

local maze_of, SOUTH, EAST = maze_rig.maze_of, maze_rig.south, maze_rig.east

local function make(settings) return envs.new("memory_maze", settings) end

-- ---- the window ----

-- Whether a line from cell to cell, put a hair to one side, runs through the inside of a square about (y, x).
local function runs_through(y, x, row, col, to_row, to_col, hair)
  local dy, dx = to_row - row, to_col - col
  local oy, ox = row - dx * hair, col + dy * hair
  local from, to = 0, 1
  for _, axis in ipairs { { oy, dy, y }, { ox, dx, x } } do
    local lo, hi = axis[3] - 0.5 - axis[1], axis[3] + 0.5 - axis[1]
    if axis[2] == 0 then
      if lo >= 0 or hi <= 0 then return false end
    else
      lo, hi = lo / axis[2], hi / axis[2]
      from, to = math.max(from, math.min(lo, hi)), math.min(to, math.max(lo, hi))
    end
  end
  return to - from > 1e-9
end

local function line_is_free(m, row, col, to_row, to_col)
  for _, hair in ipairs { 1e-5, -1e-5 } do
    local free = true
    for y = math.min(row, to_row), math.max(row, to_row) do
      for x = math.min(col, to_col), math.max(col, to_col) do
        if m.cells[y][x] == 0 and runs_through(y, x, row, col, to_row, to_col, hair) then free = false end
      end
    end
    if free then return true end
  end
  return false
end

-- The cells of the window as { row, col, seen }, far to near, left to right.
local function window(m, view)
  local list, open = {}, {}
  local south, east = SOUTH[m.heading], EAST[m.heading]
  for k = 0, view * view - 1 do
    local ahead, right = view - 1 - math.floor(k / view), k % view - (view - 1) / 2
    local row, col = m.row + ahead * south + right * east, m.col + ahead * east - right * south
    local is = m.cells[row] and m.cells[row][col] or 0
    list[k + 1] = { row, col, is > 0 and line_is_free(m, m.row, m.col, row, col), is }
    if list[k + 1][3] then open[row * 64 + col] = true end
  end
  for _, cell in ipairs(list) do
    if cell[4] == 0 then
      for dy = -1, 1 do
        for dx = -1, 1 do cell[3] = cell[3] or open[(cell[1] + dy) * 64 + cell[2] + dx] end
      end
    end
  end
  return list
end

-- ---- the rules, once more ----

-- The code of a cell; 4 + colour for a target.
local function code_of(m, row, col, colors)
  for i, target in ipairs(m.targets) do
    if target[1] == row and target[2] == col then return 4 + colors[i] end
  end
  return (m.cells[row] and m.cells[row][col] or 0) + 1
end

local function expected_grid(m, settings, colors)
  local want = {}
  for k, cell in ipairs(window(m, settings.view)) do want[k] = cell[3] and code_of(m, cell[1], cell[2], colors) or 0 end
  want[#want + 1] = (settings.cue_frames == 0 or m.shown < settings.cue_frames) and 4 + colors[m.prompt] or 0
  if settings.minimap == 1 then
    for row = 1, m.size do
      for col = 1, m.size do
        want[#want + 1] = row == m.row and col == m.col and 10 + m.heading or code_of(m, row, col, colors)
      end
    end
  end
  return want
end

local function expected_vector(m, settings)
  local n, half = m.size, (m.size + 1) / 2
  local want = { (m.col - half) / n, (m.row - half) / n, EAST[m.heading], SOUTH[m.heading] }
  for turn = 0, 3 do
    local h, free = (m.heading + turn) % 4, 0
    while m.cells[m.row + SOUTH[h] * (free + 1)][m.col + EAST[h] * (free + 1)] > 0 do free = free + 1 end
    want[#want + 1] = free / n
  end
  local sees = {}
  for _, cell in ipairs(window(m, settings.view)) do sees[cell[1] * 64 + cell[2]] = cell[3] end
  for i, target in ipairs(m.targets) do
    local seen = settings.minimap == 1 or sees[target[1] * 64 + target[2]]
    local right = (m.heading + 1) % 4
    local down, over = target[1] - m.row, target[2] - m.col
    want[#want + 1] = (settings.cue_frames == 0 or m.shown < settings.cue_frames) and m.prompt == i and 1 or 0
    want[#want + 1] = seen and 1 or 0
    want[#want + 1] = seen and (down * SOUTH[m.heading] + over * EAST[m.heading]) / n or 0
    want[#want + 1] = seen and (down * SOUTH[right] + over * EAST[right]) / n or 0
  end
  return want
end

local TURN = { [0] = 0, 0, 3, 1, 3, 1 }

for number, settings in ipairs {
  {}, { view = 5, cue_frames = 3 }, { view = 3, minimap = 1, actions = 6 }, { randomize_colors = 1, minimap = 1, size = 11 },
  { observation = "vector" }, { observation = "vector", size = 15, cue_frames = 1, actions = 6, minimap = 1 },
  { observation = "vector", size = 13, view = 5, levels = 3 }, { levels = 5, size = 31, actions = 6, randomize_colors = 1 },
} do
  local words = {}
  for key, value in pairs(settings) do words[#words + 1] = key .. "=" .. value end
  t.test("exactly the rules: " .. (words[1] and table.concat(words, " ") or "as it comes"), function()
    settings.num_envs, settings.time_limit = 6, 150
    local env = make(settings)
    settings = env.settings
    local r, copies, touches, limits = rig(env), {}, 0, 0
    env:reset_raw(r.obs, number)
    local function enter(i)
      local truth = env:truth(i)
      copies[i] = maze_of(truth, settings.size)
      copies[i].shown, copies[i].steps, copies[i].touched, copies[i].colors = 0, 0, 0, truth.colors
    end
    for i = 0, r.n - 1 do enter(i) end
    for s = 0, 400 do
      for i = 0, r.n - 1 do
        local m = copies[i]
        local want = (settings.observation == "grid" and expected_grid or expected_vector)(m, settings, m.colors)
        t.eq(r.size, #want)
        for k, x in ipairs(want) do
          local got = r.obs[i * r.size + k - 1]
          if math.abs(got - x) > 1e-6 then t.eq(got, x, ("copy %d, step %d, slot %d"):format(i, s, k - 1)) end
        end
        -- mostly ahead; aside where it is blocked
        local blocked = m.cells[m.row + SOUTH[m.heading]][m.col + EAST[m.heading]] == 0
        local draw = (i * 7919 + s * 104729 + math.floor(s / 7) * 31) % 1009 % 12
        r.action[i] = draw < env.action_space.n and draw or blocked and 2 + draw % 2 or 1
      end
      env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
      for i = 0, r.n - 1 do
        local m, a, reward = copies[i], r.action[i], 0
        m.heading = (m.heading + TURN[a]) % 4
        if a == 1 or a > 3 then
          local row, col = m.row + SOUTH[m.heading], m.col + EAST[m.heading]
          if m.cells[row][col] > 0 then m.row, m.col = row, col end
        end
        m.shown, m.steps = m.shown + 1, m.steps + 1
        if m.row == m.targets[m.prompt][1] and m.col == m.targets[m.prompt][2] then
          reward, m.shown, m.touched, touches = 1, 0, m.touched + 1, touches + 1
          if r.truncated[i] == 0 then
            local prompt = env:truth(i).prompt + 1
            t.ok(prompt ~= m.prompt, "the same target is asked for again")
            m.prompt = prompt
          end
        end
        t.eq(r.reward[i], reward)
        t.eq(r.terminated[i], 0)
        t.eq(r.truncated[i] == 1, m.steps == 150)
        if r.truncated[i] == 1 then
          limits = limits + 1
          local oracle = env.action_space.n == 4 and 2.9 + 0.89 * m.size or 1.2 + 0.76 * m.size
          t.near(env.ended.score[i], math.min(1, m.touched * oracle / m.steps), 1e-5)
          enter(i)
        end
      end
    end
    t.ok(limits == 12 and touches >= (settings.size < 20 and 1 or 0), ("%d episodes, %d touches"):format(limits, touches))
  end)
end

t.test("of two cells each sees the other or neither does", function()
  local env = make { size = 11, num_envs = 40, time_limit = 0 }
  local r, sees, both = rig(env), {}, 0
  env:reset_raw(r.obs, 3)
  for i = 0, r.n - 1 do sees[i] = {} end
  for s = 0, 600 do
    for i = 0, r.n - 1 do
      local truth = env:truth(i)
      local south, east = SOUTH[truth.heading], EAST[truth.heading]
      for k = 0, 48 do
        local ahead, right = 6 - math.floor(k / 7), k % 7 - 3
        local row, col = truth.y + ahead * south + right * east, truth.x + ahead * east - right * south
        if (truth.layout[row * 11 + col + 1] or 0) > 0 and col >= 0 and col < 11 then
          local seen = r.obs[i * r.size + k] > 0
          sees[i][(truth.y * 11 + truth.x) * 128 + row * 11 + col] = seen
          local back = sees[i][(row * 11 + col) * 128 + truth.y * 11 + truth.x]
          if back ~= nil then
            both = both + 1
            t.eq(back, seen, "line of sight")
          end
        end
      end
      r.action[i] = ({ 1, 1, 2, 1, 3, 1, 1, 2 })[(i * 31 + s * 17 + math.floor(s / 5)) % 8 + 1]
    end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
  end
  t.ok(both > 10000, both .. " pairs")
end)

-- ---- pools, bad input ----

t.test("a pool holds so many mazes, the same ones in every environment and in larger pools", function()
  local function layouts(settings)
    settings.num_envs = 300
    local env, met, n = make(settings), {}, 0
    env:reset_raw(rig(env).obs, settings.seed)
    for i = 0, 299 do
      local truth = env:truth(i)
      local key = table.concat(truth.layout) .. table.concat(truth.targets, ",")
      if not met[key] then met[key], n = true, n + 1 end
    end
    return met, n
  end
  local small, n = layouts { levels = 7, seed = 1 }
  t.eq(n, 7)
  local same, again = layouts { levels = 7, seed = 2 }
  t.eq(again, 7)
  local large = layouts { levels = 40, seed = 3 }
  local other, others = layouts { levels = 7, level_seed = 1 }
  t.eq(others, 7)
  for key in pairs(small) do t.ok(same[key] and large[key] and not other[key], "the mazes of a pool") end
  local _, fresh = layouts { seed = 1 }
  t.eq(fresh, 300, "without a pool every maze is new")
end)

t.test("impossible mazes are refused, and said why", function()
  for _, bad in ipairs {
    { { size = 10 }, "size=10, expected an odd number of 7..31" }, { { size = 5 }, "size=5" },
    { { size = 10000 }, "size=10000" }, { { size = 0 }, "size=0" },
    { { size = 9, targets = 5 }, "targets=5, expected 3..4 in a maze of size=9" }, { { targets = 2 }, "targets=2, expected 3..4" },
    { { view = 4 }, "view=4, expected 3, 5 or 7" }, { { actions = 5 }, "actions=5, expected 4 .* 6 .* or 0" },
    { { observation = "smell" }, "observation.*smell" }, { { levels = -1 }, "levels=%-1" },
  } do
    t.raises(function() make(bad[1]) end, bad[2])
  end
  local env = make { num_envs = 1 }
  env:reset(1)
  t.fails(function() env:step { 4 } end)
  t.eq(#make({ actions = 6 }).action_space.names, 6)
end)
