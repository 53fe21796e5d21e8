-- tmaze.lua -- the corridor lit by what the memory knows of the cue, policy, value, memory and gates: is the cue still in the memory
-- when the agent stands at the junction?    mneme view tmaze, or mneme view runs/NAME
local mn = require "mneme"
local panels = mn.scene.panels

local function draw(view, now)
  local body = mn.scene.body(view, now, { story = true })
  local world, mind, memory = view:split(body, "rows", { body.h < 300 * view.unit and "2.5*" or "1.5*", "1.7*", "3*" })

  local cue = now.truth.cue and now.actions[now.truth.cue + 1]
  panels.world(view, world, now, {
    title = "corridor",
    note = cue and { ("cue: %s, shown at step 0 only; green: the memory knows it there; striped: not known to be used"):format(cue),
      ("cue: %s, shown at step 0 only"):format(cue), "cue: " .. cue }, known = "cue",
    place = function(entry) return entry.x and entry.x + 0.5, 0 end,
  })

  mn.scene.lay(view, mind, now, { "columns", { "3*", "policy" }, { "4*", "value" }, { "4*", "knowledge", { fact = "cue" } } })

  if #now.gates == 0 then return panels.memory(view, memory, now) end
  local state, gates = view:split(memory, "columns", { "3*", "2*" })
  panels.memory(view, state, now)
  if gates.h < 240 then return panels.gates(view, gates, now) end        -- a small window
  local heat, time = view:split(gates, "rows", { "1*", "1*" })
  panels.memory(view, heat, now, { of = "probes", kinds = now.gates, title = "gates", unit = "0 … 1" })
  panels.gates(view, time, now)
end

return mn.scene {
  env = { "tmaze", corridor = 20 },
  draw = draw,
}
