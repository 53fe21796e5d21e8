-- popgym_tasks.lua -- plays POPGym's tasks of engine/envs for its originals to play the same (tests/reference/popgym_tasks.py), and for the test that
-- holds them to what those did.    luajit tests/support/popgym_tasks.lua prints what was played as JSON.
package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local LEVELS, SEED, SIDES = { "easy", "medium", "hard" }, 5, { easy = 11, medium = 15, hard = 19 }
-- Steps of each level; how an action is chosen, where any would show little.
local steps = { battleship = 400, minesweeper = 120, higher_lower = 330, multiarmed_bandit = 700, position_only_cartpole = 900,
  velocity_only_cartpole = 900, position_only_pendulum = 420, labyrinth_escape = 1500, labyrinth_explore = 1100 }
local choose = {}
local function balance(truth, any) return any % 10 == 0 and any % 2 or truth.angle + 0.4 * truth.angle_dot + 0.05 * truth.x_dot > 0 and 1 or 0 end
choose.position_only_cartpole, choose.velocity_only_cartpole = balance, balance
function choose.minesweeper(truth, any)              -- mostly a cell without a mine
  local n = #truth.mines
  for i = 0, n - 1 do
    local cell = (any + i) % n
    if any % 9 == 0 and truth.mines[cell + 1] >= 0 or truth.mines[cell + 1] == 0 and truth.known[cell + 1] < 0 then return cell end
  end
end
function choose.battleship(truth, any, n)            -- by turns a cell that has not been shot at, and any
  for i = 0, n - 1 do
    if any % 3 == 0 or truth.known[(any + i) % n + 1] < 0 then return (any + i) % n end
  end
  return any % n
end
local function wander(truth, any, _, side)           -- mostly where it was not yet; else anywhere
  local ways = { [0] = { 0, -1 }, { 0, 1 }, { -1, 0 }, { 1, 0 } }
  for i = 0, 3 do
    local action = (any + i) % 4
    local row, column = truth.row + ways[action][1], truth.column + ways[action][2]
    if any % 7 > 0 and row >= 0 and column >= 0 and row < side and column < side and truth.visited[row * side + column + 1] == 0 then return action end
  end
  return any % 4
end
choose.labyrinth_escape, choose.labyrinth_explore = wander, wander

---What an environment does: { seed, truths = of each first observation, first = steps before it, actions, seen, rewards, ended }.
local function play(name, level)
  local env = envs.new(name, { level = level, num_envs = 1, seed = SEED })
  local r, box = env_rig.rig(env), env.action_space.kind == "box"
  local played = { name = name, level = level, truths = {}, first = {}, begun = {}, actions = {}, seen = {}, rewards = {}, ended = {}, states = {} }
  local function row(from)
    local out = {}
    for k = 1, r.size do out[k] = from[k - 1] end
    return out
  end
  local function begin(s)
    local i = #played.first + 1
    played.truths[i], played.first[i], played.begun[i] = env:truth(0), s, row(r.obs)
  end
  env:reset_raw(r.obs, SEED)
  begin(0)
  for s = 1, steps[name] do
    local any = env_rig.act(0, s, 1009)
    local chosen = choose[name] and choose[name](env:truth(0), any, env.action_space.n, SIDES[level])
    r.action[0] = box and (any / 1009 - 0.5) * 5 or chosen or any % env.action_space.n
    played.actions[s] = r.action[0]
    env:step_raw(r.action, r.obs, r.reward, r.terminated, r.truncated)
    local over = r.terminated[0] + 2 * r.truncated[0]
    played.seen[s], played.rewards[s], played.ended[s] = row(over > 0 and env.ended.final_obs or r.obs), r.reward[0], over
    if over > 0 then begin(s) end
    if choose[name] == balance then
      local now = env:truth(0)
      played.states[s] = { now.x, now.x_dot, now.angle, now.angle_dot }
    end
  end
  return played
end

if arg and arg[0] and arg[0]:find "popgym_tasks%.lua$" then
  local all = {}
  for name in pairs(steps) do
    for _, level in ipairs(LEVELS) do all[#all + 1] = play(name, level) end
  end
  print(require("mneme.base.json").encode(all))
end
return { play = play, steps = steps, levels = LEVELS, seed = SEED }
