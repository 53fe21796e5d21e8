-- endless_plays.lua -- plays Memory Gym's endless tasks of engine/envs for memory-gym to play the same (tests/reference/endless.py), and for the test that
-- holds them to what that did.    luajit tests/support/endless_plays.lua prints what was played as JSON.
package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local SEED = 11
-- Name, settings, how often an action is a random one (of 100), episodes.
local plays = {
  { "mortar_mayhem_endless", {}, 8, 4 }, { "mortar_mayhem_endless", { command_show_delay = 0, explosion_duration = 3 }, 25, 6 },
  { "mortar_mayhem_endless", { allowed_commands = 4, visual_feedback = "no", explosion_delay = 12 }, 0, 1 },
  { "mystery_path_endless", {}, 3, 5 }, { "mystery_path_endless", { show_past_path = "no", reward_fall_off = -0.1, stamina_level = 15 }, 10, 3 },
}
local MOST_STEPS = 1200

local choose = {}
-- Towards the target by the nearest way round the edges; anywhere while nothing else matters.
function choose.mortar_mayhem_endless(now)
  local function way(from, to)
    local d = (to - from + 3) % 6 - 3
    return math.abs(d) < 0.25 and 0 or d < 0 and 1 or 2
  end
  return 3 * way(now.x, now.target_x) + way(now.y, now.target_y)
end
function choose.mystery_path_endless(now) return now.ahead < 0 and 0 or now.ahead end

---What the environment does: { name, settings, episodes = { { x, y, heading, count, actions, rewards, ended, frames, score } } }; observation: "vector" or
---"pixels", of which frame(obs, n) is written down; full: a setting.
local function play(which, observation, frame, full)
  local name, given, chance, episodes = unpack(plays[which])
  local settings = { num_envs = 1, seed = SEED, observation = observation, full = full }
  for key, value in pairs(given) do settings[key] = value end
  local env = envs.new(name, settings)
  local r, played = env_rig.rig(env), { name = name, settings = given, episodes = {} }
  local function note(log, seen)
    local now = env:truth(0)
    log.x[#log.x + 1], log.y[#log.y + 1], log.heading[#log.heading + 1] = now.x, now.y, now.heading
    log.count[#log.count + 1] = now.executed or now.tiles
    if frame then log.frames[#log.frames + 1] = frame(seen, r.size) end
    if now.command then log.command = now.command end
    if now.path and not log.pieces then log.pieces = {} end
    if now.path then log.pieces[math.floor(now.column / 8) + 1] = now.path end
  end
  env:reset_raw(r.obs, SEED)
  local time = 0
  for e = 1, episodes do
    local log = { x = {}, y = {}, heading = {}, count = {}, frames = {}, actions = {}, rewards = {}, ended = {} }
    played.episodes[e] = log
    note(log, r.obs)
    for _ = 1, MOST_STEPS do
      time = time + 1
      local any = env_rig.act(0, time, 1009)
      r.action[0] = any % 100 < chance and math.floor(any / 100) % env.action_space.n or choose[name](env:truth(0))
      log.actions[#log.actions + 1] = r.action[0]
      env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
      log.rewards[#log.rewards + 1], log.ended[#log.ended + 1] = r.reward[0], r.terminated[0]
      if r.terminated[0] > 0 then
        if frame then log.frames[#log.frames + 1] = frame(env.ended.final_obs, r.size) end
        log.score = env.ended.score[0]
        break
      end
      note(log, r.obs)
    end
    if log.ended[#log.ended] == 0 then break end
  end
  env:close()
  return played
end

if arg and arg[0] and arg[0]:find "endless_plays%.lua$" then
  local all = {}
  for i = 1, #plays do all[i] = play(i, "vector") end
  print(require("mneme.base.json").encode(all))
end
return { play = play, plays = plays, seed = SEED }
