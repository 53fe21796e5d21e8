-- noisy_cartpole.lua -- cart and pole, pale where the agent observes them; angle and position, true and observed; policy, value
-- and state norm: does the memory filter the noise?    mneme view noisy_cartpole, or mneme view runs/NAME
local mn = require "mneme"
local panels = mn.scene.panels

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

local function draw(view, now)
  local body = mn.scene.body(view, now)
  local world, middle, lower = view:split(body, "rows", { "5*", "4*", "4*" })
  panels.world(view, world, now, { title = "cart and pole", note = "pale: as observed" })

  local angle, place = view:split(middle, "columns", { "1*", "1*" })
  local nothing = "this environment has no cart"
  panels.signals(view, angle, now, { title = "angle", y_name = "degrees", lines = both("angle", 1, 180 / math.pi),
    empty = nothing })
  panels.signals(view, place, now, { title = "cart", y_name = "metres", lines = both("x", 0, 1), empty = nothing })

  local policy, value, memory = view:split(lower, "columns", { "1*", "1*", "1*" })
  panels.policies(view, policy, now)
  panels.value(view, value, now)
  panels.norms(view, memory, now)
end

return mn.scene {
  env = { "noisy_cartpole", noise = 0.2 },
  core = { "gru", d_model = 64 },
  draw = draw,
}
