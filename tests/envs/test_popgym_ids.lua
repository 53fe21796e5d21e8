-- test_popgym_ids.lua -- POPGym's 48 IDs, written down from its registry: each leads to an environment with the level, the number of actions and what of
-- the step before an agent needs; what is no ID is refused.
local t = require "tests.harness"
local envs = require "mneme.envs"
local mn = require "mneme"
local native = require "mneme.envs.native"

-- Class, its environment, and its actions at each level; 0: a box.
local TASKS = {
  { "Autoencode", "autoencode", 4, 4, 4 }, { "Battleship", "battleship", 64, 100, 144, "action" }, { "Concentration", "concentration", 52, 104, 52 },
  { "CountRecall", "count_recall", 27, 27, 17 }, { "HigherLower", "higher_lower", 2, 2, 2 }, { "LabyrinthEscape", "labyrinth_escape", 4, 4, 4 },
  { "LabyrinthExplore", "labyrinth_explore", 4, 4, 4 }, { "MineSweeper", "minesweeper", 16, 36, 64, "action" },
  { "MultiarmedBandit", "multiarmed_bandit", 10, 20, 30, "action" }, { "NoisyPositionOnlyCartPole", "noisy_position_only_cartpole", 2, 2, 2 },
  { "NoisyPositionOnlyPendulum", "noisy_position_only_pendulum", 0, 0, 0 }, { "PositionOnlyCartPole", "position_only_cartpole", 2, 2, 2 },
  { "PositionOnlyPendulum", "position_only_pendulum", 0, 0, 0 }, { "RepeatFirst", "repeat_first", 4, 4, 4 },
  { "RepeatPrevious", "repeat_previous", 4, 4, 4 }, { "VelocityOnlyCartPole", "velocity_only_cartpole", 2, 2, 2 },
}
local LEVELS = { "Easy", "Medium", "Hard" }

t.test("POPGym's 48 IDs lead to its tasks and levels, in three spellings", function()
  local n, declared = 0, 0
  for _, about in ipairs(envs.list()) do declared = declared + (about.doc:find("(POPGym)", 1, true) and 1 or 0) end
  t.eq(declared, #TASKS, "environments that say that they are POPGym's")
  for _, task in ipairs(TASKS) do
    for i, level in ipairs(LEVELS) do
      local id = task[1] .. level
      for _, spelt in ipairs { "popgym:" .. id, ("popgym-%s-v0"):format(id), ("popgym:popgym-%s-v0"):format(id) } do
        local number, at = native.find(spelt)
        t.eq(envs.list()[number + 1].name, task[2], spelt)
        t.eq(at, level:lower(), spelt)
      end
      local env = envs.new("popgym:" .. id, { num_envs = 1 })
      t.eq(env.settings.level, level:lower(), id)
      t.eq(env.action_space.kind == "box" and 0 or env.action_space.n, task[2 + i], id .. ": actions")
      t.eq(env.needs, task[6], id .. ": what an agent needs of the step before")
      env:close()
      n = n + 1
    end
  end
  t.eq(n, 48)
end)

t.test("an agent reads of the step before what its task needs, unless previous= says otherwise", function()
  for _, task in ipairs(TASKS) do
    local env = mn.env("popgym:" .. task[1] .. "Easy", { num_envs = 2 })
    for _, asked in ipairs { "", "none", "reward" } do
      local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, previous = asked }
      t.eq(agent.previous.action, asked == "" and task[6] == "action", task[1] .. " previous=" .. asked)
      t.eq(agent.previous.reward, asked == "reward", task[1] .. " previous=" .. asked)
    end
    env:close()
  end
end)

t.test("what is no ID of POPGym is refused, with the nearest one; a level that contradicts the ID, too", function()
  for _, wrong in ipairs { "popgym:BattleshipEsy", "popgym:Battleship", "popgym:MemoryMazeEasy", "popgym-RepeatFirstHrad-v0", "popgym:tmaze" } do
    t.fails(function() envs.new(wrong, {}) end)
  end
  t.fails(function() envs.new("popgym:BattleshipEasy", { level = "hard" }) end)
  local env = envs.new("popgym:BattleshipHard", { level = "hard" })
  t.eq(env.settings.level, "hard")
end)
