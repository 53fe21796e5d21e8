-- test_credit.lua -- mn.measure.credit: the gradients of an episode run as a sequence are those of what the agent did, for every core.
local t = require "tests.harness"
local contract_rig = require "mneme.models.contract_rig"
local credit = require "mneme.insight.measure.credit"
local mn = require "mneme"

local function played(name, env_name, settings, options, most)
  mn.manual_seed(2)
  local env = mn.env(env_name, settings)
  local about = { env = env, core = name, hidden = 16 }
  for key, value in pairs(options or {}) do about[key] = value end
  local agent = mn.agent(about)
  return agent, env, credit.play(mn.stepper.new(env, agent, { seed = 5 }), most or 8)
end

for _, name in ipairs(mn.names "cores") do
  t.test(name .. ": the values are those that the agent had, no step depends on a later one, and pieces give what the whole gives", function()
    local small = contract_rig.fresh({ name }, 3, { d_in = 21 })               -- published sizes take ten times as long
    local agent, env, episode = played(name, "tmaze", { corridor = 30, num_envs = 1, seed = 3 }, { previous = "action,reward", core = small }, 19)
    t.eq(episode.T, 19, "more than one piece")
    local map = credit.map(agent, env, episode, { 3, episode.T - 1 })
    t.ok(map.reached < 1e-4, ("values differ by %g"):format(map.reached))
    for _, of in ipairs { "value", "action" } do
      for s = 4, episode.T - 1 do t.eq(map[of][1][s + 1], 0) end
      t.ok(map[of][1][4] > 0, "a step depends on what it observed")
      for s = 0, episode.T - 1 do
        local squares = 0
        for _, part in ipairs(map.names) do squares = squares + map.parts[part][of][2][s + 1] ^ 2 end
        t.near(math.sqrt(squares), map[of][2][s + 1], 1e-6 * (1 + map[of][2][s + 1]))
      end
    end
    local whole = credit.map(agent, env, episode, { episode.T - 1 }, episode.T).rows[1]         -- as one piece
    for _, of in ipairs { "value", "action" } do
      local most = 0
      for s = 1, episode.T do most = math.max(most, whole[of][s]) end
      for s = 1, episode.T do t.near(map[of][2][s], whole[of][s], 1e-4 * most) end
    end
  end)
end

-- What a small change of one input does to the value of the last step.
for _, name in ipairs { "gru", "lru", "gated_linear", "gtrxl" } do
  t.test(name .. ": a gradient's size is what finite differences give", function()
    local agent, env, episode = played(name, "repeat_previous", { num_envs = 1, seed = 3 })
    local T = episode.T
    local map = credit.map(agent, env, episode, { T - 1 })
    local D = agent.core.config.d_in
    local function value_with(s, j, change)
      local x = mn.tensor { shape = { T, 1, D } }
      local features = mn.tensor { shape = { T, 1, unpack(env.observation_space.shape) }, dtype = env.observation_space.dtype }
      require("ffi").copy(features:data(), table.concat(episode.x))
      features = agent:features(features)
      for i = 0, T * D - 1 do x:data()[i] = features:data()[i] end
      x:data()[s * D + j] = x:data()[s * D + j] + change
      local done = mn.tensor { shape = { T, 1 }, dtype = "u8" }
      for i = 1, T do done:data()[i - 1] = episode.resets[i] end
      local _, values = agent.heads((agent.core:act(x, done, agent.core:initial(1))))
      return values:data()[T - 1]
    end
    for _, s in ipairs { T - 1, T - 2, T - 4 } do
      local squares = 0
      for j = 0, D - 1 do squares = squares + ((value_with(s, j, 3e-4) - value_with(s, j, -3e-4)) / 6e-4) ^ 2 end
      t.near(map.value[1][s + 1], math.sqrt(squares), 2e-2 * math.sqrt(squares) + 1e-4)
    end
  end)
end

t.test("a memory that looks at nothing gives no credit to the past; pictures and codes are explained, too", function()
  local agent, env, episode = played("feedforward", "memory_maze", { num_envs = 1, seed = 3, observation = "grid" })
  local map = credit.map(agent, env, episode, { episode.T - 1 })
  for s = 0, episode.T - 2 do t.eq(map.value[1][s + 1], 0) end
  t.eq(table.concat(map.names, " "), "view target")                          -- as the environment names them
  agent, env, episode = played("gru", "mystery_path_grid", { num_envs = 1, seed = 3, observation = "pixels" })
  map = credit.map(agent, env, episode, { 2 })
  t.eq(table.concat(map.names, " "), "observation")
  t.ok(map.value[1][1] > 0)
end)

t.test("a step that the episode has not is refused", function()
  local agent, env, episode = played("gru", "repeat_previous", { num_envs = 1, seed = 3 })
  t.fails(function() credit.map(agent, env, episode, { 8 }) end)
  t.raises(function() credit.play(mn.stepper.new(mn.env("repeat_previous", { num_envs = 2 }), agent)) end, "expected one")
end)
