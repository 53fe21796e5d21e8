-- reads.lua -- the values of `reads`, by which a core declares how it reads its memory; implicit_attention.lua explains each.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local known = {
  gated = true, kept = true, delta = true, fastweight = true, gated_delta = true, bonus = true, unlearned = true, averages = true,
  softmax = true, frames = true, joint = true, vector = true, nothing = true,
}
local reads = {
  known = known,
  with_weights = { "gated", "kept", "delta", "fastweight", "gated_delta", "bonus", "unlearned", "averages", "softmax" },       -- a step has one
}

---Refuse an unknown word; nil is allowed.
---@param word string? a core's `reads`
---@param core string its name, for the error
---@param build function that gave it
function reads.check(word, core, build)
  if word ~= nil and not known[word] then
    errors.unknown(("core %s: reads ="):format(core), tostring(word), tables.keys(known), nil, errors.position_of(build))
  end
end

---Does a step of the past have a weight in this way of reading?
---@param way string
---@return boolean
function reads.has_weights(way)
  for _, one in ipairs(reads.with_weights) do if one == way then return true end end
  return false
end

return reads
