-- settings_diff.lua -- compares the settings of several runs: which are the same, and which differ.
local tables = require "mneme.base.tables"
local values = require "mneme.base.setting_types"

local settings = {}

---A configuration with dotted keys: { core = { name = "gru", eta = 4 } } is { core = "gru", ["core.eta"] = 4 }.
---@param config table as config.json holds it
---@return table<string, any> flat numbers, texts and booleans; lists as texts
function settings.flat(config)
  local flat = {}
  local function walk(prefix, t)
    for key, value in pairs(t) do
      local path = key == "name" and prefix ~= "" and prefix or prefix == "" and key or prefix .. "." .. key
      if type(value) == "table" and #value == 0 then walk(path, value)
      else flat[path] = type(value) == "table" and values.show(value) or value end
    end
  end
  walk("", config)
  return flat
end

---Part the keys of several configurations.
---@param list table<string, any>[] of settings.flat
---@return string[] same keys that all have with the same value, sorted
---@return string[] other keys that differ or are not in all of them
function settings.divide(list)
  local all, same, other = {}, {}, {}
  for _, flat in ipairs(list) do for key in pairs(flat) do all[key] = true end end
  for _, key in ipairs(tables.keys(all)) do
    local equal = true
    for _, flat in ipairs(list) do equal = equal and flat[key] == list[1][key] end
    table.insert(equal and same or other, key)
  end
  return same, other
end

return settings
