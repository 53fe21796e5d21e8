-- test_popgym.lua -- POPGym's games of remembering against their rules, written down a second time (game_rig.lua) and
-- held to episodes of POPGym itself; random play against its figures and theory.
local t = require "tests.harness"
local envs = require "mneme.envs"
local registry = require "mneme.base.registry"
local safetensors = require "mneme.tensor.safetensors"
local env_rig = require "tests.support.env_rig"
local game_rig = require "tests.support.game_rig"

local act, rig, rules = env_rig.act, env_rig.rig, game_rig.rules
local play, within, LEVELS = game_rig.play, game_rig.within, game_rig.levels

local GAMES = { "repeat_previous", "repeat_first", "autoencode", "concentration", "count_recall" }

t.test("POPGym's own episodes follow the rules of this file", function()
  local file = safetensors.read(registry.root .. "tests/fixtures/envs/popgym.safetensors").tensors
  for _, name in ipairs(GAMES) do
    for _, level in ipairs(LEVELS) do
      local at = name .. "." .. level .. "."
      local decks, actions, obs, rewards = file[at .. "cards"], file[at .. "action"], file[at .. "obs"], file[at .. "reward"]
      local cards, n, size = { value = {}, query = {} }, decks.shape[2], obs.shape[2]
      for i = 1, n do
        cards.value[i] = decks.data[i - 1]
        if decks.shape[1] == 2 then cards.query[i] = decks.data[n + i - 1] end
      end
      local game, paid, over = rules[name](cards, level), 0, false
      for s = 0, actions.count do
        for k = 1, size do t.eq(game.seen[k], obs.data[s * size + k - 1], at .. "obs at step " .. s) end
        t.eq(over, s == actions.count, at .. "the end")
        if not over then
          local reward
          reward, over = game.step(actions.data[s])
          t.near(reward, rewards.data[s], 1e-7, at .. "reward at step " .. s)
          paid = paid + (reward > 0 and 1 or 0)
        end
      end
      t.ok(paid > 5, at .. "hardly anything was right")
    end
  end
end)

-- ---- the engine's games ----

-- What the engine deals becomes the cards of a game of ours as it is seen.
local function learn_cards(name, cards, seen, truth)
  if name == "concentration" then cards.value = cards.value[1] and cards.value or truth.cards
  elseif name == "autoencode" then cards.value[#cards.value + 1] = seen[2]
  else
    cards.value[#cards.value + 1] = seen[1]
    cards.query[#cards.query + 1] = seen[2]
  end
end

-- Half of the time what is right, by the truth; a closed card that matches, in the game of pairs.
local function choose(truth, copy, step, n)
  local any = act(copy, step, n)
  if act(copy, step + 5, 2) == 0 then return any end
  if not truth.cards then return math.max(0, truth.answer) end
  for i = 0, n - 1 do
    local at = (any + i) % n
    local matches = truth.waiting == 0 or at ~= truth.first and truth.cards[at + 1] == truth.cards[truth.first + 1]
    if truth.open[at + 1] == 0 and matches then return at end
  end
end

for _, name in ipairs(GAMES) do
  t.test(name .. ": exactly the rules, at every level", function()
    for _, level in ipairs(LEVELS) do
      local env = envs.new(name, { level = level, num_envs = 3 })
      local r, games, decks, ends = rig(env), {}, {}, 0
      local function row(from, i)
        local seen = {}
        for k = 1, r.size do seen[k] = from[i * r.size + k - 1] end
        return seen
      end
      local function begin(i)
        decks[i] = { value = {}, query = {} }
        local seen = row(r.obs, i)
        learn_cards(name, decks[i], seen, env:truth(i))
        games[i] = rules[name](decks[i], level)
        for k = 1, r.size do t.eq(seen[k], games[i].seen[k], "first observation") end
      end
      env:reset_raw(r.obs, 3)
      for i = 0, 2 do begin(i) end
      for s = 1, 2000 do
        for i = 0, 2 do r.action[i] = choose(env:truth(i), i, s, env.action_space.n) end
        env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
        for i = 0, 2 do
          local done = r.terminated[i] + r.truncated[i] > 0
          local seen = row(done and env.ended.final_obs or r.obs, i)
          learn_cards(name, decks[i], seen)
          local reward, over = games[i].step(r.action[i])
          t.near(r.reward[i], reward, 1e-7, level .. ": reward at step " .. s)
          t.eq(done, over, level .. ": the end")
          for k = 1, r.size do t.eq(seen[k], games[i].seen[k], level .. ": observation") end
          if over then
            ends = ends + 1
            begin(i)
          end
        end
      end
      t.ok(ends >= 6, "episodes did not end")
    end
  end)
end

-- Random play: the return and its standard error as POPGym gives them (tests/reference/envs.py random, 300 to 4000
-- episodes each), the return of theory where there is one, the length.
local random_play = {
  repeat_previous = { easy = { -0.5004, 0.0020, -1 / 2, 51 }, medium = { -0.4945, 0.0022, -1 / 2, 103 },
    hard = { -0.4981, 0.0020, -1 / 2, 155 } },
  repeat_first = { easy = { -0.5017, 0.0020, -1 / 2, 51 }, medium = { -0.5037, 0.0019, -1 / 2, 415 },
    hard = { -0.5045, 0.0017, -1 / 2, 831 } },
  autoencode = { easy = { -0.4984, 0.0022, -1 / 2, 103 }, medium = { -0.4969, 0.0019, -1 / 2, 207 },
    hard = { -0.5010, 0.0022, -1 / 2, 311 } },
  concentration = { easy = { -0.1915, 0.0016, nil, 104 }, medium = { -0.1844, 0.0016, nil, 208 },
    hard = { -0.8370, 0.0014, nil, 104 } },
  count_recall = { easy = { -0.9268, 0.0010, 2 / 27 - 1, 51 }, medium = { -0.9260, 0.0008, 2 / 27 - 1, 103 },
    hard = { -0.8835, 0.0010, 2 / 17 - 1, 207 } },
}

for _, name in ipairs(GAMES) do
  t.test(name .. ": random play comes to POPGym's figures and to what theory says", function()
    for _, level in ipairs(LEVELS) do
      local want = random_play[name][level]
      -- 100,000 episodes of the easy level, and as many steps of the others
      local episodes = math.floor(1e5 * random_play[name].easy[4] / want[4])
      local got = play(name, { level = level, num_envs = 1000 }, episodes)
      within(got.ret, want[1], level .. ": return", want[2])
      if want[3] then
        within(got.ret, want[3], level .. ": return by theory")
        within(got.score, (1 + want[3]) / 2, level .. ": score by theory")
      end
      t.eq(got.length, want[4], level .. ": length")
    end
  end)
end
