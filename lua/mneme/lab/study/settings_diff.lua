-- settings_diff.lua -- compares the settings of several runs: which are the same, and which differ.
local lazy = require "mneme.base.lazy"
local learners = lazy "mneme.learn.learners"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local settings = {}

---Settings that make no other run: where it lies, what it shows and keeps, how many threads.
---@param ... string further ones
---@return table<string, boolean> set
function settings.idle(...)
  return tables.set { "run", "resume", "view", "where", "threads", "debug", "profile", "quick", "full", "checkpoint_every", "keep_checkpoints", "record_every",
    ... }
end

---A configuration with dotted keys: { core = { name = "gru", eta = 4 } } is { core = "gru", ["core.eta"] = 4 }.
---@param config table as config.json holds it
---@return table<string, any> flat numbers, texts and booleans; lists as texts
function settings.flat(config)
  local flat = {}
  local function walk(prefix, t)
    for key, value in pairs(t) do
      local path = key == "name" and prefix ~= "" and prefix or prefix == "" and key or prefix .. "." .. key
      if type(value) == "table" and #value == 0 then walk(path, value)
      else flat[path] = type(value) == "table" and setting_types.show(value) or value end
    end
  end
  walk("", config)
  return flat
end

-- The settings of a run's learner, as config.json has them; of an earlier version, which did not write them, its defaults.
local function of_learner(info)
  local stored, name = info.learner, info.config.learner
  if type(stored) == "table" then return type(stored.config) == "table" and stored.config or {} end
  return type(name) == "string" and learners.defaults()[name] or {}
end

---Fills in what some run was given and another has by default: of the learner, of the core, and of the environment or data set.  So a default
---that was typed is no difference.
---@param list { flat: table<string, any>, info: table }[] of settings.flat and config.json; `flat` gets the values
---@param whole boolean? with all settings of the learners that the runs wrote
function settings.fill(list, whole)
  if #list < 2 and not whole then return end          -- nothing to compare with
  local some = {}
  for _, r in ipairs(list) do for key in pairs(r.flat) do some[key] = true end end
  for _, r in ipairs(list) do
    local core, data = type(r.info.core) == "table" and r.info.core.config or {}, r.info.task or (r.info.sequence_task or {}).settings or {}
    for key, value in pairs(of_learner(r.info)) do
      if some[key] or whole and r.info.learner then
        if r.flat[key] == nil then r.flat[key] = value end
        if type(value) == "boolean" then r.flat[key] = (r.flat[key] == true or r.flat[key] == 1) and 1 or 0 end
      end
    end
    for key in pairs(some) do
      local part, option = key:match "^([^.]+)%.([^.]+)$"
      if part and r.flat[key] == nil and r.flat[part] ~= nil then r.flat[key] = (part == "core" and core or data)[option] end
    end
  end
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
