-- test_scripted_players.lua -- the games of remembering, played: a perfect memory scores 1, none what theory says, and
-- one of the wrong kind in between; what is dealt; settings.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"
local game_rig = require "tests.support.game_rig"

local rig, play, within, of, remembering = env_rig.rig, game_rig.play, game_rig.within, game_rig.of, game_rig.remembering
local LEVELS, COPYING = game_rig.levels, { "associative_recall", "selective_copy" }

local perfect = {}

function perfect.repeat_previous(level)
  local k = of(level, 4, 32, 64)
  return function()
    local seen = {}
    return function(obs)
      seen[#seen + 1] = obs[0]
      return seen[#seen - k + 1] or 0
    end
  end
end

function perfect.repeat_first()
  return function()
    local first
    return function(obs)
      first = first or obs[0]
      return first
    end
  end
end

function perfect.autoencode()
  return function()
    local seen, playing = {}, false
    return function(obs)
      if not playing then seen[#seen + 1] = obs[1] end
      playing = obs[0] == 0
      return playing and table.remove(seen) or 0
    end
  end
end

function perfect.count_recall()
  return function()
    local counts = {}
    return function(obs)
      counts[obs[0]] = (counts[obs[0]] or 0) + 1
      return counts[obs[1]] or 0
    end
  end
end

function perfect.associative_recall(level)
  local blank = of(level, 8, 32, 32)
  return function()
    local values = {}
    return function(obs)
      if obs[1] ~= blank then values[obs[0]] = obs[1] end
      return values[obs[0]]
    end
  end
end

function perfect.selective_copy()
  return function()
    local seen = {}
    return function(obs)
      if obs[0] < 8 then seen[#seen + 1] = obs[0] end
      return obs[0] == 9 and table.remove(seen, 1) or 0
    end
  end
end

for name, new in pairs(perfect) do
  t.test(name .. ": a perfect memory of what was seen scores 1", function()
    for _, level in ipairs(LEVELS) do
      local got = play(name, { level = level, num_envs = 20 }, 60, remembering(new(level)))
      t.near(got.score[1], 1, 1e-6, level)
      t.near(got.ret[1], 1, 1e-5, level)
    end
  end)
end

-- Turn over two closed cards that match as far as `known` tells, else closed ones that it does not know.
local function pairs_player(know)
  return remembering(function()
    local known = {}
    return function(obs, r, i)
      local truth, pick, unknown, partner = r.env:truth(i), nil, nil, {}
      know(known, obs, r, truth)
      for at = 0, r.size - 1 do
        if truth.open[at + 1] == 0 and at ~= truth.first then
          local kind = known[at]
          if not kind then unknown = unknown or at
          elseif truth.waiting == 1 then pick = pick or kind == known[truth.first] and at or nil
          elseif partner[kind] then pick = pick or at
          else partner[kind] = at end
        end
      end
      return pick or unknown or select(2, next(partner))
    end
  end)
end

t.test("concentration: who knows all cards scores 1, who remembers those seen less, who forgets least", function()
  local function all(known, _, r, truth) for at = 0, r.size - 1 do known[at] = truth.cards[at + 1] end end
  local function seen(known, obs, r)
    for at = 0, r.size - 1 do
      if obs[at] < r.env.observation_space.codes - 1 then known[at] = obs[at] end
    end
  end
  local function forgets(known, obs, r)
    for at = 0, r.size - 1 do known[at] = nil end
    seen(known, obs, r)
  end
  local function score(level, know) return play("concentration", { level = level, num_envs = 20 }, 60, pairs_player(know)) end
  for _, level in ipairs(LEVELS) do
    local best, good, poor = score(level, all), score(level, seen), score(level, forgets)
    t.near(best.score[1], 1, 1e-5, level)
    t.near(best.ret[1], 1, 1e-5, level)
    t.eq(best.length, #best.env.action_space.names)
    t.ok(good.score[1] < 0.99 and good.score[1] > poor.score[1] + 0.1, ("%s: %.3f %.3f"):format(level, good.score[1], poor.score[1]))
    t.near(good.ret[1], good.score[1], 1e-4, "a score is a return that is not negative")
  end
end)

-- The most that one can score who answers by the present observation alone.
t.test("a player without memory scores what theory says", function()
  for i, level in ipairs(LEVELS) do
    local d = ({ 1, 2, 3 })[i]
    within(play("repeat_previous", { level = level, num_envs = 500 }, 2000, function(r, c) return (r.obs[c] + 1) % 4 end).score,
      13 * d / (52 * d - 1), "repeat_previous, a suit that is not seen, " .. level)
    within(play("autoencode", { level = level, num_envs = 500 }, 2000, function(r, c) return r.obs[2 * c + 1] end).score,
      (13 * d + 0.75) / (52 * d), "autoencode, the suit that is seen, " .. level)
    d = ({ 1, 8, 16 })[i]
    local n = 52 * d - 1
    within(play("repeat_first", { level = level, num_envs = 500 }, 1000, function(r, c) return r.obs[c] end).score,
      (1 + (n - 1) * (13 * d - 1) / n) / n, "repeat_first, the suit that is seen, " .. level)
    for _, name in ipairs(COPYING) do
      within(play(name, { level = level, num_envs = 500 }, 2000, function() return 3 end).score,
        1 / (name == "selective_copy" and 8 or of(level, 8, 32, 32)), name .. ", always the same, " .. level)
    end
  end
end)

-- Chances that k of `m` cards drawn from a deck of `n`, `good` of them of a kind, are of that kind.
local function hypergeometric(n, good, m)
  local p, log = {}, { [0] = 0 }
  for i = 1, n do log[i] = log[i - 1] + math.log(i) end
  local function choose_log(a, b) return log[a] - log[b] - log[a - b] end
  for k = math.max(0, m - n + good), math.min(m, good) do
    p[k] = math.exp(choose_log(good, k) + choose_log(n - good, m - k) - choose_log(n, m))
  end
  return p
end

t.test("count_recall: the best guess from what is seen now scores what theory says", function()
  local chance = { same = {}, other = {} }         -- of each count, where card and query are the same or not
  for shown = 1, 51 do
    for k, p in pairs(hypergeometric(51, 25, shown - 1)) do chance.same[k + 1] = (chance.same[k + 1] or 0) + p / 51 end
    for k, p in pairs(hypergeometric(51, 26, shown - 1)) do chance.other[k] = (chance.other[k] or 0) + p / 51 end
  end
  local best, mean = {}, 0
  for case, list in pairs(chance) do
    for k, p in pairs(list) do if p > (list[best[case]] or 0) then best[case] = k end end
    mean = mean + list[best[case]] / 2
  end
  within(play("count_recall", { num_envs = 500 }, 10000, function(r, c)
    return r.obs[2 * c] == r.obs[2 * c + 1] and best.same or best.other
  end).score, mean, "score")
end)

t.test("associative_recall: a memory that keeps the first value of a key is wrong about keys that come again", function()
  local function first_value()
    local values = {}
    return function(obs)
      if obs[1] < 32 then values[obs[0]] = values[obs[0]] or obs[1] end
      return values[obs[0]]
    end
  end
  local got = play("associative_recall", { level = "hard", num_envs = 100 }, 1000, remembering(function() return first_value() end))
  within(got.score, 1 / 32, "64 pairs of 32 symbols: every key comes twice")
end)

t.test("decks are shuffled: each suit as often as it should, neighbours alike as often as theory says", function()
  local env = envs.new("repeat_first", { num_envs = 1000 })
  local r, alike, count, last = rig(env), 0, {}, ffi.new("int[?]", 1000)
  local firsts = { [0] = 0, 0, 0, 0 }
  env:reset_raw(r.obs, 4)
  for i = 0, 999 do count[i] = { [0] = 0, 0, 0, 0 } end
  local function take(i, suit)
    count[i][suit] = count[i][suit] + 1
    last[i] = suit
  end
  for i = 0, 999 do take(i, r.obs[i]) firsts[r.obs[i]] = firsts[r.obs[i]] + 1 end
  for s = 1, 51 * 4 do
    env_rig.step(r)
    for i = 0, 999 do
      local ended = r.terminated[i] == 1
      t.eq(ended, s % 51 == 0)
      local suit = ended and env.ended.final_obs[i] or r.obs[i]
      alike = alike + (suit == last[i] and 1 or 0)
      take(i, suit)
      if ended then
        for k = 0, 3 do t.eq(count[i][k], 13, "cards of a suit in a deck") count[i][k] = 0 end
        take(i, r.obs[i])
        firsts[r.obs[i]] = firsts[r.obs[i]] + 1
      end
    end
  end
  within({ alike / (1000 * 51 * 4), math.sqrt(12 / 51 * 39 / 51 / (1000 * 51 * 4)) }, 12 / 51, "neighbours of the same suit")
  for k = 0, 3 do within({ firsts[k] / 5000, math.sqrt(3 / 16 / 5000) }, 1 / 4, "first cards") end
end)

t.test("selective_copy: symbols stand anywhere with the same chance; length = tokens is the copy environment", function()
  local env = envs.new("selective_copy", { tokens = 4, length = 10, symbols = 5, num_envs = 4000 })
  local r, places, kinds = rig(env), {}, {}
  env:reset_raw(r.obs, 1)
  for s = 1, 10 do
    places[s] = 0
    for i = 0, r.n - 1 do
      local x = r.obs[i]
      t.ok(x <= 5, "a question while symbols are shown")
      if x < 5 then places[s], kinds[x] = places[s] + 1, (kinds[x] or 0) + 1 end
    end
    env_rig.step(r)
  end
  for s = 1, 10 do within({ places[s] / r.n, math.sqrt(0.24 / r.n) }, 0.4, "place " .. s) end
  for x = 0, 4 do within({ kinds[x] / (4 * r.n), math.sqrt(0.16 / (4 * r.n)) }, 0.2, "symbol " .. x) end
  env = envs.new("selective_copy", { tokens = 6, length = 6, num_envs = 2 })
  r = rig(env)
  env:reset_raw(r.obs, 1)
  for s = 0, 11 do
    for i = 0, 1 do
      t.eq(r.obs[i] < 8, s < 6)
      if s >= 6 then t.eq(env:truth(i).answer, env:truth(i).tokens[s - 5]) end
    end
    env_rig.step(r)
  end
  t.eq(r.terminated[0], 1)
end)

t.test("associative_recall: keys come in rounds, questions too; settings of one's own", function()
  local env = envs.new("associative_recall", { pairs = 7, symbols = 5, questions = 12, num_envs = 50 })
  local r = rig(env)
  t.eq(env.observation_space.codes, 6)
  t.eq(env.action_space.n, 5)
  env:reset_raw(r.obs, 1)
  local asked, shown = {}, {}
  for i = 0, 49 do asked[i], shown[i] = {}, {} end
  for s = 1, 19 do
    for i = 0, 49 do
      local key, value = r.obs[2 * i], r.obs[2 * i + 1]
      local times = s <= 7 and shown[i] or asked[i]
      t.eq(value < 5, s <= 7, "values are shown with pairs alone")
      times[key] = (times[key] or 0) + 1
      t.eq(env:truth(i).answer, s <= 7 and -1 or env:truth(i).values[key + 1])
    end
    if s == 5 then for i = 0, 49 do for key = 0, 4 do t.eq(shown[i][key], 1, "a round of pairs") end end end
    if s == 17 then for i = 0, 49 do for key = 0, 4 do t.eq(asked[i][key], 2, "two rounds of questions") end end end
    env_rig.step(r)
  end
  for i = 0, 49 do t.eq(r.terminated[i], 1) end
end)

t.test("settings that cannot be had together are refused; those that can are taken", function()
  t.fails(function() envs.new("repeat_previous", { k = 52 }) end)
  t.fails(function() envs.new("repeat_previous", { level = "hard", decks = 1 }) end)
  t.fails(function() envs.new("selective_copy", { tokens = 21 }) end)
  t.fails(function() envs.new("autoencode", { level = "eazy" }) end)
  t.eq(envs.new("repeat_previous", { k = 831, decks = 16 }).settings.k, 831)
  t.eq(envs.new("concentration", { decks = 4, cards = "ranks" }).action_space.n, 208)
  t.eq(envs.new("concentration", { decks = 4, cards = "ranks" }).observation_space.codes, 14)
  t.eq(envs.new("count_recall", { decks = 16, cards = "colors" }).action_space.n, 417)
  t.eq(envs.new("concentration").action_space.names[52], "51")
  t.eq(table.concat(envs.new("repeat_first").action_space.names, " "), "spades diamonds clubs hearts")
  for _, name in ipairs { "autoencode", "repeat_first", "repeat_previous" } do
    local largest = play(name, { decks = 16, num_envs = 4 }, 4)
    t.ok(largest.length >= 831, name)
  end
end)

-- What a version does may never change: a digest of a rollout, whole numbers throughout.
t.test("their rollouts are those of the day they were made", function()
  local pinned = { associative_recall = 699196570, autoencode = 182510903, concentration = 1250371103,
    count_recall = 1448759430, repeat_first = 1221180123, repeat_previous = 266559543, selective_copy = 1964835757 }
  for name, want in pairs(pinned) do
    local log, digest = env_rig.roll(envs.new(name .. "-v0", { num_envs = 2 }), 1, 400), 7
    for i = 0, 1 do
      for k = 1, #log[i] do digest = (digest * 31 + log[i]:byte(k)) % 2147483647 end
    end
    t.eq(digest, want, name)
  end
end)
