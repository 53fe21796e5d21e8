-- reading.lua -- how a core reads its memory: what it declares, or else what is measured of a small one like it.
local lazy = require "mneme.base.lazy"
local contract_rig = lazy "mneme.models.contract_rig"

---@return string? way a word of core.reads; nil: no way's weights are those that are read
return function(c)
  if c.reads or c.found ~= nil then return c.reads or c.found or nil end
  return contract_rig.reading(c)
end
