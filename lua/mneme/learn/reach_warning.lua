-- reach_warning.lua -- warns before training when a core cannot look as far back as its environment asks, or when a new one forgets
-- far sooner.
local gate_start = require "mneme.models.gate_start"
local horizon = require "mneme.envs.horizon"

local MOST = 20                -- half-lives: 2^-20 of what was written is left, and of its gradient

---@param core Core
---@param env Environment
---@return string? warning "core agalite forgets half of what it writes every 0.71 steps at the start, and the corridor is 200: ..."
return function(core, env)
  local layers, back, steps, words = core:half_lives(), core:reach(), horizon.steps(env)
  if steps and back and back > 0 and steps > back then          -- 0: no memory, on purpose
    return ("core %s acts on the last %d steps at most, and %s: what came before cannot be known there"):format(core.name, back, words)
  end
  if not layers or not steps then return nil end
  local _, longest = gate_start.describe(layers)
  if steps <= MOST * longest then return nil end
  return ("core %s forgets half of what it writes every %.2g steps at the start, and %s: 2^-%.0f of it is left there; "
    .. "core.remember=%d begins with gates that keep more"):format(core.name, longest, words, steps / longest, math.max(1, math.ceil(steps / 10)))
end
