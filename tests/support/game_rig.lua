-- game_rig.lua -- games of remembering, written down a second time for their tests; and players of them.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local C, rig = engine.C, env_rig.rig
local LEVELS = { "easy", "medium", "hard" }

-- ---- the rules: rules[name](cards, level) deals from cards.value, cards.query; cards may be filled as the game goes on.
-- A game has seen, a list of numbers, and step(action), which gives reward, over. ----

local function of(level, easy, medium, hard) return level == "easy" and easy or level == "medium" and medium or hard end

local rules = {}

function rules.repeat_previous(cards, level)
  local n, k = 52 * of(level, 1, 2, 3), of(level, 4, 32, 64)
  local game, shown = { seen = { cards.value[1] } }, 1
  function game.step(action)
    local reward = 0
    if shown >= k then reward = (action == cards.value[shown - k + 1] and 1 or -1) / (n - k) end
    shown = shown + 1
    game.seen = { cards.value[shown] }
    return reward, shown == n
  end
  return game
end

function rules.repeat_first(cards, level)
  local n, game, shown = 52 * of(level, 1, 8, 16), { seen = { cards.value[1] } }, 1
  function game.step(action)
    shown = shown + 1
    game.seen = { cards.value[shown] }
    return (action == cards.value[1] and 1 or -1) / (n - 1), shown == n
  end
  return game
end

function rules.autoencode(cards, level)
  local n, game, shown = 52 * of(level, 1, 2, 3), { seen = { 1, cards.value[1] } }, 1
  local hand = { cards.value[1] }
  function game.step(action)
    if shown < n then
      shown = shown + 1
      hand[shown] = cards.value[shown]
      game.seen = { shown < n and 1 or 0, hand[shown] }
      return 0, false
    end
    local right = action == table.remove(hand)
    game.seen = { 0, 0 }
    return (right and 1 or -1) / n, #hand == 0
  end
  return game
end

function rules.concentration(cards, level)
  local n, down = 52 * of(level, 1, 2, 1), of(level, 2, 2, 13)
  local length = math.ceil(2 * n - n / (2 * n - 1))
  local up, turn, steps, game = {}, {}, 0, {}
  local function look()
    game.seen = {}
    for i = 1, n do game.seen[i] = up[i] and cards.value[i] or down end
    for _, i in ipairs(turn) do game.seen[i] = cards.value[i] end
  end
  look()
  function game.step(action)
    local reward, over = 0, false
    steps = steps + 1
    turn[#turn + 1] = action + 1
    look()
    local a, b = turn[1], turn[2]
    if up[a] or up[b] then
      reward, turn = -#turn / length, {}
    elseif b then
      if a ~= b and cards.value[a] == cards.value[b] then
        reward, up[a], up[b] = 2 / n, true, true
        over = true
        for i = 1, n do over = over and up[i] end
      else
        reward = -2 / length
      end
      turn = {}
    end
    return reward, over or steps == length
  end
  return game
end

function rules.count_recall(cards, level)
  local n, game, shown = 52 * of(level, 1, 2, 4), { seen = { cards.value[1], cards.query[1] } }, 1
  local counts = { [cards.value[1]] = 1 }
  function game.step(action)
    local right = action == (counts[cards.query[shown]] or 0)
    shown = shown + 1
    local card = cards.value[shown]
    counts[card] = (counts[card] or 0) + 1
    game.seen = { card, cards.query[shown] }
    return (right and 1 or -1) / (n - 1), shown == n
  end
  return game
end

-- ---- playing ----

-- Play `episodes` episodes, all of them: choose(r, copy, s) gives an action at step s of the run, or, if it is nil,
-- actions are random.  Mean and standard error of return and score, and the mean length.
local function play(name, settings, episodes, player)
  local env = envs.new(name, settings)
  local r, n_actions, each = rig(env), env.action_space.n, math.ceil(episodes / settings.num_envs)
  local n, count, random = r.n, ffi.new("int[?]", r.n), ffi.new("float[?]", r.n)
  local left, total, ret, ret2, score, score2, length = n * each, 0, 0, 0, 0, 0, 0
  env:reset_raw(r.obs, 11)
  while left > 0 do
    if player then
      for i = 0, n - 1 do r.action[i] = player(r, i, r.time) end
    else
      C.mn_random_uniform(1, 5, r.time, random, n)
      for i = 0, n - 1 do r.action[i] = random[i] * n_actions end
    end
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    r.time = r.time + 1
    for i = 0, n - 1 do
      if r.terminated[i] + r.truncated[i] > 0 and count[i] < each then
        local x, y = env.ended.ret[i], env.ended.score[i]
        count[i], left, total = count[i] + 1, left - 1, total + 1
        ret, ret2, score, score2 = ret + x, ret2 + x * x, score + y, score2 + y * y
        length = length + env.ended.length[i]
      end
    end
  end
  local function mean(sum, squares) return { sum / total, math.sqrt(math.max(0, squares / total - (sum / total) ^ 2) / total) } end
  return { ret = mean(ret, ret2), score = mean(score, score2), length = length / total, env = env }
end

local function within(got, want, what, more)
  t.near(got[1], want, 4 * math.sqrt(got[2] ^ 2 + (more or 0) ^ 2) + 1e-6, what)
end

-- Players see observations, and the flags that begin an episode; they remember what `new` made for their copy.
local function remembering(new)
  local memory = {}
  return function(r, i, s)
    if s == 0 or r.terminated[i] + r.truncated[i] > 0 then memory[i] = new() end
    return memory[i](r.obs + i * r.size, r, i)
  end
end

return { rules = rules, levels = LEVELS, of = of, play = play, within = within, remembering = remembering }
