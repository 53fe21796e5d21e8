-- cue_agent.lua -- an agent made by hand whose one memory is the cue: channel 0 of its gru keeps it, channel 1 says in each step
-- whether this is the junction, and remembers nothing.
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"

local cue_agent = { corridor = 12 }

-- Places are seen in Gray code: that of the junction, 11, is 1110, and no other of them is.
---@param options table? of the stepper
---@param forgets integer? a place, 1 to 10, at which the gate of channel 0 opens: there it forgets
function cue_agent.new(num_envs, options, forgets)
  local env = mn.env("tmaze", { corridor = cue_agent.corridor, num_envs = num_envs })
  local agent = mn.agent { env = env, core = { "gru", d_model = 2 }, hidden = 2 }
  local p = agent:state_dict()
  for _, x in pairs(p) do x:fill(0) end
  local function set(name, values) for i, v in pairs(values) do p[name]:data()[i] = v end end
  set("core.layers.0.iz.bias", { [0] = 30, -30 })                     -- z = 1: kept
  set("core.layers.0.iz.weight", { [0] = -60, -60 })                   -- where the cue shows: taken in
  if forgets then                                                    -- z = 0 where all bits of the place are as there
    local gray, ones = bit.bxor(forgets, bit.rshift(forgets, 1)), 0
    for i = 0, 3 do
      local one = bit.band(bit.rshift(gray, 3 - i), 1)
      ones = ones + one
      set("core.layers.0.iz.weight", { [6 + i] = one == 1 and -60 or 60 })
    end
    set("core.layers.0.iz.bias", { [0] = 60 * ones - 30 })
    set("core.layers.0.iz.weight", { [0] = -1000, -1000 })
  end
  set("core.layers.0.in.weight", { [0] = -10, 10 })                    -- down, up
  set("core.layers.0.in.weight", { [16 + 6] = 20, [16 + 7] = 20, [16 + 8] = 20, [16 + 9] = -20 })
  set("core.layers.0.in.bias", { [1] = -50 })                         -- 1 at the junction, else -1
  set("actor.0.weight", { [0] = 5, 0, 0, 5 })
  set("actor.1.weight", { [0] = 10, 40, -10, 40 })                     -- up, down: the cue, and only at the junction
  set("actor.1.bias", { [2] = -30, [3] = 25 })
  return stepper.new(env, agent, options or { seed = 3 })
end

return cue_agent
