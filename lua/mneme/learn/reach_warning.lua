-- reach_warning.lua -- warns before training when a core cannot look as far back as its environment asks, or when a new one forgets
-- far sooner.
local gate_start = require "mneme.models.gate_start"

-- Half-lives.  Over 28 of them (the demo: a corridor of 20) every seed learns; over 85 (60) 14 of gate_start's 30 do, over 170 (120) one.
local MOST = 40
local NONE = 149               -- 2^-149 is the least number above 0 in float32

-- What it means for learning that 2^-n is left.
local function left(n)
  return ("2^-%.0f of it is left there with a zero input, "):format(n) .. (n > NONE and "which is 0 in float32, as is its gradient" or "and of its gradient")
end

---@param core Core
---@param env Env
---@return string? warning "core agalite forgets half of what it writes every 0.71 steps at the start, and the corridor is 200: ..."
return function(core, env)
  local layers, back, steps, words = core:half_lives(), core:reach(), env:horizon()
  if steps and back and back > 0 and steps > back then          -- 0: no memory, on purpose
    return ("core %s acts on the last %d steps at most, and %s: what came before cannot be known there"):format(core.name, back, words)
  end
  if not layers or not steps then return nil end
  local _, longest = gate_start.describe(layers)
  if steps <= MOST * longest then return nil end
  local n, least = steps / longest, math.max(1, math.ceil(steps / 10))
  local half_life = ("%.2g"):format(longest)
  return ("core %s forgets half of what it writes every %s at the start, and %s: %s; core.remember=%d, or any half-life up to %d, begins with "
    .. "gates that keep enough"):format(core.name, half_life == "1" and "step" or half_life .. " steps", words, left(n), least, steps)
end
