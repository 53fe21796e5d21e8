-- test_mystery_path.lua -- the Mystery Paths against memory-gym 1.0.2: games it played on our boards, step by
-- step and pixel by pixel (tests/reference/mystery_path.py); its paths and its random play, as statistics.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local crc32 = require("mneme.base.zlib").crc32
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local env_rig = require "tests.support.env_rig"

local rig = env_rig.rig
local ids = { "mystery_path", "mystery_path_grid" }

local function with(settings, more)
  local all = {}
  for _, list in ipairs { settings, more } do for key, value in pairs(list) do all[key] = value end end
  return all
end

-- ---- game by game ----

-- What a vector tells, read back: pixels of the agent (grid: the middle of its cell), heading, fall, origin, goal.
local function read_vector(name, obs)
  local at = 0
  local function one_hot(n)
    local found
    for i = 0, n - 1 do
      t.ok(obs[at + i] == 0 or obs[at + i] == 1, "neither 0 nor 1")
      if obs[at + i] == 1 then
        t.ok(not found, "two ones where one may be")
        found = i
      end
    end
    at = at + n
    return found
  end
  local seen = { column = one_hot(7), row = one_hot(7), fell = one_hot(1) and true or false }
  seen.start_x, seen.start_y, seen.goal_x, seen.goal_y = one_hot(7), one_hot(7), one_hot(7), one_hot(7)
  seen.x, seen.y = seen.column * 12 + 6, seen.row * 12 + 6
  if name == "mystery_path_grid" then
    seen.heading = 2 * one_hot(4)
  else
    seen.heading = one_hot(8)
    seen.x, seen.y = seen.x + math.floor(6 * obs[at] + 0.5), seen.y + math.floor(6 * obs[at + 1] + 0.5)
    at = at + 2
  end
  return seen, at
end

-- Play the recorded actions of all episodes of a play at once; visit(copy, step, obs, reward, done, score)
-- sees what comes of them until an environment's episode is over.
local function replay(play, more, visit)
  local n = #play.episodes
  local env = envs.new(play.env, with(play.settings, with(more, { num_envs = n, seed = play.seed })))
  local r, over = rig(env), {}
  env:reset_raw(r.obs)
  for i = 0, n - 1 do visit(env, i, 0, r.obs + i * r.size) end
  for step = 1, env.time_limit do
    for i = 0, n - 1 do r.action[i] = play.episodes[i + 1].action[step] or 0 end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    for i = 0, n - 1 do
      if not over[i] then
        over[i] = r.terminated[i] + r.truncated[i] > 0
        local obs = over[i] and env.ended.final_obs or r.obs
        visit(env, i, step, obs + i * r.size, r.reward[i], over[i], r.terminated[i], env.ended.score[i])
      end
    end
  end
  for i = 0, n - 1 do t.ok(over[i], "an episode goes on and on") end
  env:close()
end

local plays = json.decode((files.read "tests/fixtures/envs/mystery_path.json"))

t.test("the recorded games meet falls, goals, limits, and both levels", function()
  local falls, goals, limits = 0, 0, 0
  for _, play in ipairs(plays) do
    for _, e in ipairs(play.episodes) do
      falls, goals, limits = falls + e.fails[#e.fails], goals + e.success, limits + 1 - e.success
    end
  end
  t.ok(falls > 20 and goals > 2 and limits > 1, ("%d falls, %d goals, %d limits"):format(falls, goals, limits))
end)

for k, play in ipairs(plays) do
  local title = ("%s, game %d"):format(play.env, k)

  t.test(title .. ": moves, falls, pays and ends as memory-gym", function()
    replay(play, {}, function(env, i, step, obs, reward, over, terminated, score)
      local e, seen = play.episodes[i + 1], read_vector(play.env, obs)
      local facts = not over and env:truth(i)
      local what = ("copy %d, step %d: "):format(i, step)
      if step == 0 then t.eq(table.concat(facts.path, " "), table.concat(e.path, " "), what .. "another path") end
      for _, key in ipairs { "x", "y", "heading" } do t.eq(seen[key], e[key][step + 1], what .. key) end
      local falls = step > 0 and e.fails[step + 1] > e.fails[step]
      t.eq(seen.fell, falls and play.settings.visual_feedback ~= "no", what .. "fell")
      if facts then
        t.eq(facts.fails, e.fails[step + 1], what .. "fails")
        t.near(facts.x, (seen.x - 6) / 12, 1e-6, what .. "x of truth")
        t.near(facts.y, (seen.y - 6) / 12, 1e-6, what .. "y of truth")
        local shown = play.settings.level == "easy"
        for _, key in ipairs { "start_x", "start_y", "goal_x", "goal_y" } do
          local hidden = not shown or (key:find "start" and play.settings.show_origin == "no")
          t.eq(seen[key], not hidden and facts[key] or nil, what .. key)
        end
      end
      if step == 0 then return end
      t.near(reward, e.reward[step], 1e-7, what .. "reward")
      t.eq(over, step == #e.action, what .. "over")
      if over then
        t.eq(terminated, e.success, what .. "terminated at the goal only")
        t.eq(score, e.success, what .. "score")
      end
    end)
  end)

  t.test(title .. ": the same pixels", function()
    replay(play, { observation = "pixels" }, function(_, i, step, obs)
      t.eq(crc32(obs, 84 * 84 * 3), play.episodes[i + 1].frame[step + 1], ("copy %d, frame %d"):format(i, step))
    end)
  end)
end

-- ---- as statistics ----

-- Of 40,000 paths of memory-gym: { mean, standard deviation }; how many of a hundred paths have that many cells; and
-- how many of its cells lie in each slice across the way from the start to the goal.
local PATHS = 40000
local published = { cells = { 10.090, 1.646 }, walls = { 11.286, 2.744 }, apart = { 9.291, 1.65 } }
local lengths = { [7] = .0429, [8] = .1360, [9] = .2145, [10] = .2131, [11] = .1824, [12] = .1278, [13] = .0691,
  [14] = .0114, [15] = .0024 }
local slices = { 1.62, 1.50, 1.26, 1.27, 1.27, 1.53, 1.64 }

-- A board from its facts (the numbers of mystery_truth): how many cells and walls, the distance of the ends in
-- cells, both of them counted, and the cells of each slice.
local START_X, START_Y, GOAL_X, GOAL_Y, PATH, WALLS = 5, 6, 7, 8, 10, 59
local function measure(facts)
  local across, down = math.abs(facts[GOAL_X] - facts[START_X]), math.abs(facts[GOAL_Y] - facts[START_Y])
  local m = { 0, 0, 0, 0, 0, 0, 0, cells = 0, walls = 0, apart = across + down + 1 }
  for i = 0, 48 do
    local x, y = i % 7, math.floor(i / 7)
    local slice = across == 6 and math.abs(x - facts[START_X]) or math.abs(y - facts[START_Y])
    m[slice + 1] = m[slice + 1] + facts[PATH + i]
    m.cells, m.walls = m.cells + facts[PATH + i], m.walls + facts[WALLS + i]
  end
  return m
end

for _, name in ipairs(ids) do
  t.test(name .. ": 100,000 paths are as memory-gym's", function()
    local n, names, facts = 100000, ffi.new "const char *[1]", ffi.new "const float *[1]"
    local env = envs.new(name, { num_envs = n, seed = 21 })
    local sums, squares, counts = {}, {}, {}
    env:reset_raw(rig(env).obs)
    for i = 0, n - 1 do
      t.eq(engine.C.mn_vec_truth(env.world.vec, i, names, facts), 206)
      local m = measure(facts[0])
      counts[m.cells] = (counts[m.cells] or 0) + 1
      for key, x in pairs(m) do
        sums[key], squares[key] = (sums[key] or 0) + x, (squares[key] or 0) + x * x
      end
    end
    for key, want in pairs(published) do
      local mean = sums[key] / n
      t.near(mean, want[1], 4 * want[2] * math.sqrt(1 / n + 1 / PATHS) + 5e-4, key)
      t.near(math.sqrt(squares[key] / n - mean * mean), want[2], 0.02, "deviation of " .. key)
    end
    for cells, want in pairs(lengths) do
      t.near((counts[cells] or 0) / n, want, 4 * math.sqrt(want * (1 / n + 1 / PATHS)) + 5e-5, cells .. " cells")
    end
    for cells in pairs(counts) do t.ok(cells >= 7 and cells <= 19, "a path of " .. cells) end
    for i, want in ipairs(slices) do t.near(sums[i] / n, want, 0.02, "slice " .. i) end
    env:close()
  end)
end

-- Uniformly random play: mean and standard error of the return, the length, the falls and the score of an episode,
-- over the first `episodes` of each of 256 copies (all of them finished, so that short ones are not preferred).
local function random_play(name, settings, episodes)
  local env = envs.new(name, with(settings, { num_envs = 256, seed = 31 }))
  local r, n_actions, state = rig(env), env.action_space.n, bit.tobit(2463534242)
  local left, fails, sums, total = ffi.new("int32_t[256]"), ffi.new("int32_t[256]"), {}, 0
  env:reset_raw(r.obs)
  for i = 0, 255 do left[i] = episodes end
  local function add(key, x)
    local s = sums[key] or { 0, 0 }
    s[1], s[2], sums[key] = s[1] + x, s[2] + x * x, s
  end
  for _ = 1, episodes * env.time_limit do
    for i = 0, 255 do                  -- xorshift32, Marsaglia 2003
      state = bit.bxor(state, bit.lshift(state, 13))
      state = bit.bxor(state, bit.rshift(state, 17))
      state = bit.bxor(state, bit.lshift(state, 5))
      r.action[i] = bit.rshift(state, 8) % n_actions
    end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    for i = 0, 255 do
      if r.terminated[i] + r.truncated[i] == 0 then
        fails[i] = fails[i] + r.obs[i * r.size + 14]
      else
        if left[i] > 0 then
          total, left[i] = total + 1, left[i] - 1
          add("fails", fails[i] + env.ended.final_obs[i * r.size + 14])
          add("ret", env.ended.ret[i])
          add("length", env.ended.length[i])
          add("score", env.ended.score[i])
        end
        fails[i] = 0
      end
    end
  end
  t.eq(total, 256 * episodes, "episodes that finished")
  env:close()
  for key, s in pairs(sums) do
    local mean = s[1] / total
    sums[key] = { mean, math.sqrt(math.max(0, s[2] / total - mean * mean) / total) }
  end
  return sums
end

-- What memory-gym comes to: { mean, standard error }.
local random = {
  { "mystery_path_grid", {}, ret = { .0073, .0022 }, score = { .0073, .0022 }, length = { 127.59, .15 },
    fails = { 12.51, .12 } },
  { "mystery_path_grid", { level = "easy" }, ret = { .2591, .0044 } },
  { "mystery_path", {}, ret = { .2251, .0021 }, length = { 512, 0 }, fails = { 31.64, .18 } },
}

for _, case in ipairs(random) do
  local name, settings = case[1], case[2]
  t.test(("%s, %s: 100,000 random episodes come to memory-gym's figures"):format(name, settings.level or "hard"), function()
    local got = random_play(name, settings, 391)
    for key, want in pairs(case) do
      if type(key) == "string" then
        t.near(got[key][1], want[1], 4 * math.sqrt(got[key][2] ^ 2 + want[2] ^ 2) + 1e-4, key)
      end
    end
  end)
end
