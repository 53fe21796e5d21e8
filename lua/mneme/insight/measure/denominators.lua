-- denominators.lua -- measures the denominator s.q of a linear memory while an agent acts: how often it is near 0 or
-- negative.  Feature maps phi >= 0 keep it from being negative, relu allows 0, and a signed map lets it cross 0, so that
-- the read-out is divided by a number of either sign.
local errors = require "mneme.base.errors"
local implicit_attention_rules = require "mneme.models.implicit_attention_rules"

local denominators = {}

-- s.q of one head, from the memory after a step and the query of that step.
local function of_head(mind, layer, head, s)
  local q, n = implicit_attention_rules.whole(mind, layer, head, "q")
  local sum = 0
  for i = 0, n - 1 do sum = sum + s.values[head * n + i] * q[i] end
  return sum
end

---Run an agent and measure its memory's denominator at every step in every head.
---@param p Stepper whose core keeps the sum of its keys (states "layers.0.s")
---@param o table steps = of each environment; within = what counts as next to nothing (default: the eps that the core adds)
---@return table { near_zero, negative: shares of all s.q; read, the largest number that was read, by its size }
function denominators.ask(p, o)
  local core = p.agent.core
  local layers, H, within = {}, core.config.n_heads, o.within or core.config.eps
  for n = 0, core.config.n_layers - 1 do
    if p.memory["layers." .. n .. ".s"] then layers[#layers + 1] = n end
  end
  if #layers == 0 then errors.raise(("denominators: %s keeps no sum of keys to divide by"):format(core.name)) end
  local all, near, negative, read = 0, 0, 0, 0
  for step = 1, o.steps do
    p:forward()
    for b = 0, p.num_envs - 1 do
      local mind = p:snapshot(b)
      for _, layer in ipairs(layers) do
        local s, said = mind.memory["layers." .. layer .. ".s"], mind.probes["layers." .. layer .. ".retrieved"]
        for head = 0, H - 1 do
          local d = of_head(mind, layer, head, s)
          all = all + 1
          if math.abs(d) <= within then near = near + 1 end
          if d < 0 then negative = negative + 1 end
        end
        for i = 0, said.shape[1] * said.shape[2] - 1 do read = math.max(read, math.abs(said.values[i])) end
      end
    end
    if step < o.steps then p:step() end
  end
  return { near_zero = near / all, negative = negative / all, read = read }
end

return denominators
