-- test_reference.lua -- what random actions, no memory and a perfect memory score: as every environment declares it, against episodes that are played.
local ffi = require "ffi"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local best_players = require "tests.support.best_players"
local reference_scores = require "mneme.envs.reference_scores"
local registry = require "mneme.base.registry"
local t = require "tests.harness"

-- Settings whose references differ, besides the defaults: { name, settings }, cheap ones.
local variants = {
  { "tmaze", { corridor = 2 } }, { "tmaze", { corridor = 5 } }, { "tmaze", { corridor = 20 } }, { "tmaze_bakker", { corridor = 10 } },
  { "repeat_first", { level = "medium" } }, { "repeat_previous", { k = 1 } }, { "repeat_previous", { level = "hard" } },
  { "autoencode", { level = "medium" } }, { "count_recall", { level = "medium" } }, { "count_recall", { level = "hard" } },
  { "selective_copy", { symbols = 3 } }, { "associative_recall", { symbols = 3, pairs = 5 } }, { "associative_recall", { level = "hard" } },
  { "noisy_cartpole", { noise = 0, velocities = 1 } }, { "noisy_cartpole", { noise = 0 } }, { "concentration", { decks = 2 } },
  { "concentration", { level = "hard" } }, { "memory_maze", { size = 11, observation = "vector" } },
  { "memory_maze", { mode = "continuous", observation = "vector" } },
  { "memory_chain", { memory_length = 1 } }, { "memory_chain", { memory_length = 3, num_bits = 5 } },
  { "tmaze_passive", { corridor = 1 } }, { "tmaze_passive", { corridor = 5 } }, { "tmaze_active", { corridor = 1 } }, { "tmaze_active", { corridor = 5 } },
  { "rock_sample", { size = 5, rocks = 5 } }, { "minigrid_memory", { size = 7 } },
  { "gridworld", { view = 7, cue_steps = 3 } }, { "mystery_path_grid", { level = "easy" } },
}
local slow = { craftax = true, craftax_classic = true, mystery_path = true, tmaze = true, tmaze_bakker = true, memory_maze = true, minigrid_memory = true }

local function made(name, settings, num_envs, seed)
  local all = { num_envs = num_envs, seed = seed or 20 }
  for key, value in pairs(settings) do all[key] = value end
  return envs.new(name, all)
end

-- Calls f(what, name, settings) with the defaults of every environment, and with the variants.
local function each(f)
  for _, e in ipairs(envs.list()) do f(e.name, e.name, {}) end
  for _, v in ipairs(variants) do
    local words = { v[1] }
    for key, value in pairs(v[2]) do words[#words + 1] = key .. "=" .. value end
    f(table.concat(words, " "), v[1], v[2])
  end
end

-- Scores of `count` episodes in each environment, so that short ones do not count more: their mean and variance, and how many.
-- choose(b, obs, from, last) gives the action of environment b, whose observation begins at obs[from]; nil: random ones.  last: the action
-- before, nil where an episode begins.
local function play(env, count, choose)
  local B, space = env.num_envs, env.observation_space
  local size = 1
  for _, n in ipairs(space.shape) do size = size * n end
  local obs = ffi.new(space.dtype == "u8" and "uint8_t[?]" or "float[?]", B * size)
  local action, reward = env.action_space:room(B), ffi.new("float[?]", B)
  local terminated, truncated, played = ffi.new("uint8_t[?]", B), ffi.new("uint8_t[?]", B), ffi.new("int32_t[?]", B)
  local left, sum, squares, last = B * count, 0, 0, {}
  env:reset_raw(obs)
  while left > 0 do
    for b = 0, B - 1 do
      if choose then action[b] = choose(b, obs, b * size, last[b]) else env.action_space:any(action, b, math.random) end
      last[b] = action[b]
    end
    env:step_raw(action, obs, reward, terminated, truncated)
    for b = 0, B - 1 do
      if terminated[b] + truncated[b] > 0 then last[b] = nil end
      if terminated[b] + truncated[b] > 0 and played[b] < count then
        played[b], left = played[b] + 1, left - 1
        sum, squares = sum + env.ended.score[b], squares + env.ended.score[b] ^ 2
      end
    end
  end
  local n = B * count
  return sum / n, math.max(0, squares / n - (sum / n) ^ 2), n
end

-- Is the mean of n scores the declared one, to five standard errors?  measured: over how many episodes the declared one was; of rare
-- successes or failures a few episodes more or less are nothing.
local function agrees(what, declared, mean, variance, n, measured)
  local variances = math.max(variance, declared * (1 - declared) / 1e4) * (1 / n + (measured and 1 / measured or 0))
  local bound = 5 * math.sqrt(variances) + ((declared < 1e-2 or declared > 0.999) and 2 / n or 0)
  t.ok(math.abs(mean - declared) <= bound, ("%s: %.5f of %d episodes, declared %.5f, expected within %.5f"):format(what, mean, n, declared, bound))
end

t.test("chance is what uniformly random actions score, in every environment", function()
  math.randomseed(7)
  each(function(what, name, settings)
    local env = made(name, settings, slow[name] and 100 or 500)
    local r = t.ok(env.reference and env.reference.chance, what .. " declares chance") and env.reference
    local mean, variance, episodes = play(env, slow[name] and 3 or 4)
    agrees(what, r.chance, mean, variance, episodes, r.episodes)
    env:close()
  end)
end)

t.test("chance <= memoryless <= best, all within 0..1; what is not known is absent", function()
  each(function(what, name, settings)
    local r, before = made(name, settings, 1).reference, 0
    for _, key in ipairs(reference_scores.names) do
      local value = r[key]
      if value then
        t.ok(value >= before - 1e-12 and value <= 1, ("%s: %s=%g after %g"):format(what, key, value, before))
        before = value
      end
    end
    t.ok(r.episodes == nil or r.episodes >= 1000, what)
  end)
end)

-- The key of an observation of codes.
local function key_of(obs, from, size)
  local key = 0
  for i = from, from + size - 1 do key = key * 256 + obs[i] end
  return key
end

t.test("questions: the answer that was most frequent for each observation scores memoryless, the right one best", function()
  local tried = 0
  each(function(what, name, settings)
    local env = made(name, settings, 40)
    env:reset()
    if not env:truth(0).answer then return end
    local size, came = env.observation_space.shape[1], {}
    local best = play(env, 6, function(b, obs, from)
      local answer, key = env:truth(b).answer, key_of(obs, from, size)
      if answer < 0 then return 0 end
      came[key] = came[key] or {}
      came[key][answer] = (came[key][answer] or 0) + 1
      return answer
    end)
    t.near(best, env.reference.best, env.reference.best == 1 and 1e-6 or 5e-3, what)          -- of a counter of cards it was measured
    local most = {}
    for key, answers in pairs(came) do
      for answer, times in pairs(answers) do
        if not most[key] or times > answers[most[key]] then most[key] = answer end
      end
    end
    env = made(name, settings, 200, 21)
    agrees(what, env.reference.memoryless, play(env, 5, function(_, obs, from) return most[key_of(obs, from, size)] or 0 end))
    tried = tried + 1
  end)
  t.ok(tried >= 12, "environments with questions")
end)

t.test("T-Mazes: who turns by the cue scores best, with its return; who always turns up scores memoryless", function()
  for _, name in ipairs { "tmaze", "tmaze_bakker" } do
    for _, corridor in ipairs { 2, 7, 160 } do
      local env = made(name, { corridor = corridor }, 100)
      local function walk(turn)
        return function(b)
          local truth = env:truth(b)
          return truth.distance > 0 and 3 or turn or truth.cue
        end
      end
      t.eq(play(env, 1, walk()), env.reference.best)
      t.near(env.ended.ret[0], env.reference.best_return, 1e-4)
      agrees(name, env.reference.memoryless, play(env, 4, walk(0)))
    end
  end
end)

t.test("CartPole: pushing where the pole falls, from exact observations, scores best: with the speeds without memory", function()
  for velocities = 0, 1 do
    local env, before = made("noisy_cartpole", { noise = 0, velocities = velocities }, 50), {}
    local mean = play(env, 1, function(b, obs, from)
      local x, angle = obs[from], obs[from + 1 + velocities]
      local old = before[b] or { x, angle }
      before[b] = { x, angle }
      local x_dot, angle_dot = (x - old[1]) / 0.02, (angle - old[2]) / 0.02
      if velocities == 1 then x_dot, angle_dot = obs[from + 1], obs[from + 3] end
      return angle + 0.3 * angle_dot + 0.02 * x + 0.05 * x_dot > 0 and 1 or 0
    end)
    t.eq(mean, env.reference.best)
    t.eq(env.reference.memoryless, velocities == 1 and 1 or 0.248)
  end
  t.eq(made("noisy_cartpole", { noise = 0.15 }, 1).reference.best, nil, "measured for POPGym's noises alone")
end)

t.test("gridworld: the example's cue read scores best, ignored memoryless; of a map that somebody drew nothing is known", function()
  local env = made("gridworld", {}, 200)
  local function walk(guess)
    return function(b)
      local at = env:truth(b)
      if at.keys == 0 then return at.x < 3 and 3 or 1 end
      if at.x < 7 then return at.y > 2 and 0 or at.y < 2 and 1 or 3 end
      return (guess or at.right) == 1 and 0 or 1
    end
  end
  t.eq(play(env, 1, walk()), env.reference.best)
  agrees("gridworld", env.reference.memoryless, play(env, 4, walk(1)))
  t.eq(made("gridworld", { view = 7 }, 1).reference.memoryless, nil, "a wider view shows cue and choices at once")
  t.eq(made("gridworld", { map = "####\n#SG#\n####" }, 1).reference, nil)
end)

-- Left, right, up, down: what lies to the right of each, the way back, and where the neighbour stands in a view of 3x3.
local right_of, back_of, seen_at = { [0] = 2, 3, 1, 0 }, { [0] = 1, 0, 3, 2 }, { [0] = 3, 5, 1, 7 }

-- Keeps a wall on the right, by the view and the last action alone.  At the upper and the left border the view is not centred.
local function along_the_wall(_, v, o)
  local before = v[o + 9]
  local function wall(i) return v[o + i] == 1 end
  local function open(way) return not wall(seen_at[way]) end
  if v[o + 4] ~= 2 then
    if v[o + 1] == 2 and (before == 4 or before == 2 and wall(6) and wall(7) and wall(8)) then return 3 end
    if v[o + 3] == 2 and (before == 4 or before == 0 and wall(2) and wall(5) and wall(8)) then return 1 end
    local right = right_of[before]
    for _, way in ipairs { right, before, back_of[right], back_of[before] } do if open(way) then return way end end
  end
  for way = 0, 3 do if open(way) then return way end end
  return 0
end

-- A way to play without a memory for each of these tasks: of the environment, its choice.
local without_memory = {
  labyrinth_escape = function() return along_the_wall end, labyrinth_explore = function() return along_the_wall end,
  battleship = function() return function(_, _, _, last) return last and last + 1 or 0 end end,
  multiarmed_bandit = function(env)
    return function(_, v, o, last) return last and (v[o] == 1 and last or (last + 1) % env.action_space.n) or 0 end
  end,
  velocity_only_cartpole = function(env)
    local k = env.settings.level == "easy" and 0.2 or 0.1
    return function(_, v, o) return v[o + 1] + k * v[o] > 0 and 1 or 0 end
  end,
  concentration = function(env)
    local n, down = env.observation_space.shape[1], env.observation_space.codes - 1
    return function(_, v, o)
      local list = {}
      for i = 0, n - 1 do if v[o + i] == down then list[#list + 1] = i end end
      return list[math.random(#list)]
    end
  end,
  mortar_mayhem_endless = function() return function() return 0 end end,
  -- To the right, at times up or down and then to the right, not onto the path that is seen.
  mystery_path_endless = function()
    return function(_, v, o)
      local row, heading = 0, v[o + 9] == 1 and 1 or v[o + 10] == 1 and 2 or 3
      for r = 0, 6 do if v[o + r] == 1 then row = r end end
      if v[o + 12] == 1 then return 0 end
      if v[o + 7] ~= 0 or v[o + 8] ~= 0 then return heading end
      local ways = {}
      for way, r in pairs { [2] = row - 1, [3] = row + 1 } do if r >= 0 and r <= 6 and v[o + 13 + r * 7 + 6] == 0 then ways[#ways + 1] = way end end
      return (heading ~= 1 or math.random() < 0.8 or #ways == 0) and 1 or ways[math.random(#ways)]
    end
  end,
  -- To the end; seldom into the lower end as soon as it faces that, else it looks back, and turns to the upper one if that is right.
  minigrid_memory = function(env)
    local steps = 5 * env.settings.size ^ 2
    return function(_, v, o)
      local heading, wall = v[o + 49], v[o + 38] == 2
      if heading == 0 then return wall and 1 or 2 end
      if heading == 1 then return math.random() < 12 / steps and 2 or 1 end
      if heading == 3 then return 2 end
      for row = 0, 5 do
        local object = v[o + row * 7 + 4]
        if object >= 3 then return object == v[o + 47] and 1 or 0 end
      end
      return 1
    end
  end,
}

local by_level = { { level = "easy" }, { level = "medium" }, { level = "hard" } }
local cases = { minigrid_memory = { { size = 7 }, { size = 9 }, { size = 11 }, { size = 11, hallway = "random" }, { size = 17, hallway = "random" } },
  mystery_path_endless = { {} }, mortar_mayhem_endless = { {}, { allowed_commands = 5 } }, noisy_cartpole = { {} } }

t.test("what is declared without a memory is reached without one, on every level", function()
  math.randomseed(3)
  for name, choice_of in pairs(without_memory) do
    for _, settings in ipairs(cases[name] or by_level) do
      local env = made(name, settings, 100, 31)
      local what, count = ("%s %s"):format(name, settings.level or settings.size), name == "labyrinth_explore" and 1 or 3
      agrees(what, env.reference.memoryless, play(env, count, choice_of(env)))
      env:close()
    end
  end
end)

t.test("what is declared of a perfect memory is what the best player known reaches, on every level", function()
  math.randomseed(4)
  for name, choice_of in pairs(best_players) do
    local few = name:find "pendulum" and 24 or name == "mystery_path_endless" and 8 or 100
    for _, settings in ipairs(cases[name] or by_level) do
      local env = made(name, settings, few, 33)
      local mean, variance, episodes = play(env, 2, choice_of(env))
      agrees(("%s %s"):format(name, settings.level or ""), env.reference.best, mean, variance, episodes, 1000)
      t.ok(env.reference.memoryless == nil or mean > env.reference.memoryless, name .. ": no better than without a memory")
      env:close()
    end
  end
end)

t.test("settings change it; another time limit, or facts in the observation, make it unknown", function()
  local function of(name, settings) return made(name, settings, 1).reference end
  t.ok(of("tmaze", { corridor = 5 }).chance > 0.49 and of("tmaze", { corridor = 200 }).chance < 0.1)
  t.near(of("tmaze", { corridor = 20 }).best_return, 4 - 1.9, 1e-9)
  t.eq(of("selective_copy", { symbols = 4 }).memoryless, 0.25)
  t.ok(of("count_recall", {}).memoryless < of("count_recall", { level = "hard" }).memoryless)
  t.eq(of("repeat_previous", { k = 1 }).memoryless, 1)
  t.eq(of("tmaze", { time_limit = 30 }), nil)
  local seen = of("tmaze", { corridor = 5, facts = 1 })
  t.eq(seen.memoryless, nil)
  t.eq(seen.best, 1)
  t.eq(of("memory_maze", { targets = 4 }).chance, nil, "measured for the published targets alone")
end)

t.test("docs/environments.md lists what the environments declare with their defaults", function()
  local page, listed = files.read(registry.root .. "docs/environments.md"):match "\n## What guessing scores\n(.-)\n## ", 0
  for _, e in ipairs(envs.list()) do
    local row = page:match("| `" .. e.name .. "` | ([^\n]*)|\n")
    if row then
      local r, cells = made(e.name, {}, 1).reference, {}
      for i, key in ipairs(reference_scores.names) do cells[i] = r[key] and reference_scores.short(r[key]) or "" end
      t.eq((row:gsub(" ", "")), table.concat(cells, "|"), e.name)
      listed = listed + 1
    end
  end
  t.eq(listed, #envs.list())
end)

-- ---- environments of scripts ----

local function scripted(more)
  local spec = { observation = { 1 }, actions = 2, num_envs = 1, reset = function() return { 0 } end,
    step = function(_, action) return { 0 }, 0, true, action end }
  for key, value in pairs(more) do spec[key] = value end
  return envs.new(spec)
end

t.test("a script's environment declares numbers or functions; undeclared is absent", function()
  t.eq(scripted({}).reference, nil)
  local r = scripted({ chance = 0.25, memoryless = function() return 0.5 end }).reference
  t.eq(r.chance, 0.25)
  t.eq(r.memoryless, 0.5)
  t.eq(r.best, nil)
  t.eq(reference_scores.text(r), "no memory gives 0.5")
  t.eq(reference_scores.text(scripted({ chance = 0.25 }).reference), "random actions give 0.25")
  t.eq(reference_scores.text(scripted({ best = 1 }).reference), nil, "best is no guess")
  t.eq(reference_scores.text(scripted({ chance = 0 }).reference), "random actions give 0", "a declared zero is known")
  t.eq(reference_scores.text(scripted({ chance = 1e-9 }).reference), "random actions give <0.001")
end)

t.test("normalised: 0 is no memory, 1 a perfect one; of one bound, or two that are equal, nothing", function()
  local r = { chance = 0.1, memoryless = 0.25, best = 0.75 }
  for score, want in pairs { [0.25] = 0, [0.75] = 1, [0.5] = 0.5, [0] = -0.5, [1] = 1.5 } do t.near(reference_scores.normalised(score, r), want, 1e-12) end
  t.eq(reference_scores.normalised(nil, r), nil)
  for _, known in ipairs { {}, { memoryless = 0.5 }, { chance = 0.1, best = 1 }, { memoryless = 1, best = 1 }, "none" } do
    t.eq(reference_scores.normalised(0.5, known), nil)
    t.ok(not (reference_scores.text(known, 0.5) or ""):find "normalised")
  end
  t.ok(reference_scores.text(r, 0.5):find "; normalised 0.500$")
end)

t.test("each is checked: its type, its range, their order, its name", function()
  for _, name in ipairs(reference_scores.names) do
    for _, wrong in ipairs { "1", {}, -0.1, 1.5, 0 / 0, function() end, function() return 3 end } do
      t.raises(function() scripted { [name] = wrong } end, name)
    end
  end
  t.fails(function() scripted { chance = 0.5, memoryless = 0.25 } end)
  t.fails(function() scripted { chance = 0.5, best = 0.25 } end)
  t.raises(function() scripted { memoryles = 0.5 } end, "memoryless")
end)
