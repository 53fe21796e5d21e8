-- tables.lua -- helpers for Lua tables.
local tables = {}

---The keys of a table as texts, sorted.
---@return string[]
function tables.keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

return tables
