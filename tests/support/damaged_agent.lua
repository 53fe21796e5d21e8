-- damaged_agent.lua -- a trained agent with a known damage: a stepper whose memory is changed before one step of every episode, as if the
-- agent were so itself.
local interventions = require "mneme.insight.episodes.interventions"

local damaged_agent = {}

---Before step `at` of each episode of a stepper the intervention happens, whatever else is done to it.
---@param p Stepper
---@param kind string "erase": that part forgets; "force": a gate is `to` in that step
---@param what string
---@param at integer
---@param to number?
---@return Stepper p
function damaged_agent.at_step(p, kind, what, at, to)
  local list = interventions.new(p, { { kind = kind, what = what, at = at, to = to, steps = to and 1 or nil } })
  local forward = p.forward
  function p:forward()
    for step = at, to and at + 1 or at do
      local envs = {}
      for b = 0, self.num_envs - 1 do if self.step_of[b] == step then envs[#envs + 1] = b end end
      if #envs > 0 then list:before(step, envs) end
    end
    return forward(self)
  end
  return p
end

return damaged_agent
