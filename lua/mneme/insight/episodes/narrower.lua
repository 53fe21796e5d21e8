-- narrower.lua -- the episodes that are left of many continue in a stepper of fewer environments, with the same numbers, so that those which are
-- over cost nothing.
local ffi = require "ffi"
local state_arrays = require "mneme.models.state_arrays"
local tables = require "mneme.base.tables"

local narrower = {}
local LEAST = 8                    -- environments: the engine multiplies as many rows at a time

-- The memory of one environment, into that of environment k of p.
local function put(p, state, b, k)
  for name, t in pairs(state) do
    local axis, from, to = p.agent.core:batch_axis(name), t:data(), p.state[name]:data()
    local blocks, inner = state_arrays.around(t:shape(), axis)
    local B = t:shape()[axis]
    for block = 0, blocks - 1 do ffi.copy(to + (block * p.num_envs + k) * inner, from + (block * B + b) * inner, 4 * inner) end
  end
end

---Environments of the next narrower stepper; 0: there is none.
---@param width integer
---@return integer
function narrower.next(width) return width >= 2 * LEAST and math.ceil(width / 2) or 0 end

---Episodes of a stepper, as they would continue there after restart_plan(), in one of half as many environments, a quarter ...; between step() and
---forward(), where it does not depend on where a plan begins (free) and clamps no probe.
---@param p Stepper
---@param envs integer[] at most narrower.next(p.num_envs); environment k of the other plays what envs[k + 1] plays here
---@return Stepper other kept for the next time
function narrower.of(p, envs)
  local B, width = p.num_envs, p.num_envs
  while narrower.next(width) >= math.max(#envs, 1) do width = narrower.next(width) end
  p.narrower = p.narrower or {}
  local other = p.narrower[width] or p:twin({ num_envs = width }, tables.merged(p.given, { rows = p.piece }))
  p.narrower[width], other.narrower = other, p.narrower
  p:restart_plan()
  local moment, worlds = p:branch(true), {}
  local rows = tables.map(moment.rows, function() return {} end)
  for k = 1, width do
    local b = envs[math.min(k, #envs)]
    worlds[k - 1] = moment.worlds[b]
    put(other, p.state, b, k - 1)
    for i, bytes in ipairs(moment.rows) do rows[i][k] = bytes:sub(#bytes / B * b + 1, #bytes / B * (b + 1)) end
  end
  moment.worlds, moment.state = worlds, other.state
  for i = 2, #rows do moment.rows[i] = table.concat(rows[i]) end              -- the first is the clock, which all share
  other:restore(moment)
  return other
end

return narrower
