-- horizon.lua -- how many steps an environment asks its agent to remember, where its settings say so.
local C = require("mneme.base.engine").C

local CARDS = 52
local decks = { repeat_first = { easy = 1, medium = 8, hard = 16 }, autoencode = { easy = 1, medium = 2, hard = 3 } }
local levels = { repeat_previous = { easy = 4, medium = 32, hard = 64 }, selective_copy = { easy = 20, medium = 72, hard = 272 } }

local horizon = {}

local function corridor(s) return s.corridor, ("the corridor is %d"):format(s.corridor) end
local function own_or(s, value, level) return value > 0 and value or level[s.level] end

horizon.of = {
  tmaze = corridor, tmaze_bakker = corridor,
  repeat_first = function(s)
    local n = own_or(s, s.decks, decks.repeat_first) * CARDS - 1
    return n, ("the first card is asked for %d steps later"):format(n)
  end,
  repeat_previous = function(s)
    local n = own_or(s, s.k, levels.repeat_previous) - 1
    return n, ("a card is asked for %d steps later"):format(n)
  end,
  autoencode = function(s)
    local n = 2 * CARDS * own_or(s, s.decks, decks.autoencode)
    return n, ("the first card is asked for %d steps later"):format(n)
  end,
  selective_copy = function(s)
    local n = own_or(s, s.length, levels.selective_copy)
    return n, ("the first symbol is asked for up to %d steps later"):format(n)
  end,
}

---The steps between an observation and its last use.
---@param env Env
---@return integer? steps nil: the settings do not determine it
---@return string? words "the corridor is 200"
function horizon.steps(env)
  local name = env.id:match "^(.-)%-v%d+$" or env.id
  local f = horizon.of[name]
  if f and env.world.vec ~= nil and C.mn_env_find(name) >= 0 then return f(env.settings) end
end

return horizon
