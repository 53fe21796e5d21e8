-- noisy_cartpole.lua -- cart and pole, pale where the agent observes them; angle and position, true and observed; policy, value
-- and state norm: does the memory filter the noise?    mneme view noisy_cartpole, or mneme view runs/NAME
local mn = require "mneme"

-- A true value and the observed one, an element of the observation, in another unit.
local function both(name, place, unit)
  local function seen(entry)
    local o = entry.observation
    if not o or o.shape[1] > 4 then return nil end
    local value = o.values[o.shape[1] == 4 and 2 * place or place]
    return value and value * unit
  end
  return {
    { name = "observed", of = seen, thick = 1 },
    { name = "true", of = function(entry) return entry.truth and entry.truth[name] and entry.truth[name] * unit end },
  }
end

local function signal(title, y_name, lines)
  return { "1*", "signals", { title = title, y_name = y_name, lines = lines, empty = "this environment has no cart" } }
end

return mn.scene {
  env = { "noisy_cartpole", noise = 0.2 },
  core = { "gru", d_model = 64 },
  layout = { "rows", { "5*", "world", { title = "cart and pole", note = "pale: as observed" } },
    { "4*", "columns", signal("angle", "degrees", both("angle", 1, 180 / math.pi)), signal("cart", "metres", both("x", 0, 1)) },
    { "4*", "columns", { "1*", "policies" }, { "1*", "value" }, { "1*", "norms" } } },
}
