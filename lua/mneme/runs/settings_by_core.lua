-- settings_by_core.lua -- the settings that a script publishes for cores: published = { NAME = { lr = ... }, ["NAME option=value"] = { ... } }.
-- A learner's settings in an entry are for the learner that the script declares; ["gru learner=ppo"] has those for another.  Under a learner
-- without published settings, what is published for a core has that learner's defaults.
local errors = require "mneme.base.errors"
local learner_settings = require "mneme.runs.learner_settings"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local published = {}

---Entries whose settings of a learner all name it: "gru" becomes "gru learner=a2c", and "gru" with what is of the core alone.
---@param entries any what a script gives as published
---@param learner string? the one that the script declares; nil: its learner is no setting
---@return table|fun(name: string, cfg: table): table
function published.by_learner(entries, learner)
  if type(entries) == "function" then return entries end
  errors.need("config: published", entries, nil, "{ NAME = { lr = ... } } or function(name, cfg)")
  local all = {}
  for key, entry in pairs(entries) do
    local other = type(key) == "string" and key:match " learner=(%S+)"
    if other and not learner then errors.raise(("config: published: %s: this script has no setting learner"):format(key)) end
    if other then learner_settings.find(other) end
    if other or not learner or type(entry) ~= "table" then all[key] = entry
    else
      local of_core = {}
      for name, value in pairs(entry) do if not learner_settings.keys[name] then of_core[name] = value end end
      all[key], all[key .. " learner=" .. learner] = of_core, entries[key .. " learner=" .. learner] or entry
    end
  end
  return all
end

-- A run's core as values.entry compares it; learner: another than the run's.
local function thing(cfg, learner)
  return tables.merged({ learner = learner or cfg.learner }, type(cfg.core) == "table" and cfg.core or { cfg.core })
end

-- The settings of learners that are published for some core, sorted.
local function learner_keys(entries)
  local found = {}
  for _, entry in pairs(type(entries) == "table" and entries or {}) do
    for key in pairs(type(entry) == "table" and entry or {}) do found[key] = learner_settings.keys[key] and true or nil end
  end
  return tables.keys(found)
end

---What is published for a run's core and learner.
---@param entries table|function of by_learner
---@param learner string? the one that the script declares
---@return table values
---@return table<string, any> defaults of the run's learner, of what is published for another learner alone
function published.of(entries, cfg, learner)
  local of_run = thing(cfg)
  if type(entries) == "function" then return entries(of_run[1], cfg) or {}, {} end
  local found, defaults = of_run[1] and setting_types.entry(entries, of_run) or {}, {}
  if cfg.learner ~= learner then
    local class = learner_settings.find(cfg.learner)
    for _, key in ipairs(of_run[1] and learner_keys(entries) or {}) do
      local value = class.defaults[key]
      if type(value) == "boolean" and type(cfg[key]) == "number" then value = value and 1 or 0 end
      if found[key] == nil then defaults[key] = value end
    end
  end
  return found, defaults
end

-- "lr=0.0005, entropy_coef=0.01" and where they differ " in place of the script's 0.0001, 0.001"; nil: none of the keys.
local function list(keys, cfg, own)
  local now, before, differ = {}, {}, false
  for i, key in ipairs(keys) do
    now[i], before[i] = key .. "=" .. setting_types.show(cfg[key]), setting_types.show(own[key])
    differ = differ or setting_types.show(cfg[key]) ~= before[i]
  end
  return keys[1] and table.concat(now, ", "), differ and " in place of the script's " .. table.concat(before, ", ") or ""
end

-- Why a core has no published settings of its learner: "gru's published settings are for a2c", "no settings are published for mlstm".
local function why_none(entries, cfg, name)
  local of = {}
  for key in pairs(type(entries) == "table" and entries or {}) do
    local learner = tostring(key):match " learner=(%S+)"
    for option in pairs(learner and setting_types.entry(entries, thing(cfg, learner)) or {}) do of[learner] = of[learner] or learner_settings.keys[option] end
  end
  of = table.concat(tables.keys(of), " and ")
  return of ~= "" and ("%s's published settings are for %s"):format(name, of) or "no settings are published for " .. name
end

---Which settings a run has because of its core and learner, and why; nil: the script's own, which are published for this core, or nothing is.
---@param entries table|function of by_learner
---@param own table the script's own settings
---@param learner string? the one that the script declares
---@param named table<string, any> settings that are given, and the script's of this size (quick=1)
---@param default any the script's own core
---@return string?
function published.text(entries, cfg, own, learner, named, default)
  local core, theirs = thing(cfg)[1], thing { core = default, learner = learner }
  if not core then return nil end
  local found, defaults = published.of(entries, cfg, learner)
  local name = core:match("[^/]*$"):gsub("%.lua$", "")
  local replaced, standard, unknown, of_learner = {}, {}, {}, false
  for _, key in ipairs(tables.keys(found)) do
    of_learner = of_learner or learner_settings.keys[key] ~= nil
    if key ~= "core" and not named[key] and cfg[key] ~= nil
      and setting_types.show(cfg[key]) ~= setting_types.show(own[key]) then replaced[#replaced + 1] = key end
  end
  for _, key in ipairs(learner_keys(entries)) do
    if not named[key] and cfg[key] ~= nil and found[key] == nil then table.insert(defaults[key] ~= nil and standard or unknown, key) end
  end
  local parts, text, before = {}, list(replaced, cfg, own)
  if text then parts[1] = ("uses %s's published %s%s%s"):format(name, text, of_learner and learner and (" (%s)"):format(cfg.learner) or "", before) end
  local why = of_learner and "" or why_none(entries, cfg, name) .. ": "
  text, before = list(standard, cfg, own)
  if text then parts[#parts + 1] = ("%suses %s's defaults %s%s"):format(why, cfg.learner, text, before) end
  text = not of_learner and not text and core ~= theirs[1] and list(unknown, cfg, own)
  if text then
    local entry, same = setting_types.entry(entries, theirs) or {}, true
    for _, key in ipairs(unknown) do same = same and entry[key] ~= nil and setting_types.show(entry[key]) == setting_types.show(cfg[key]) end
    parts[#parts + 1] = ("%suses the script's own %s%s"):format(why, text, same and (" (%s's)"):format(theirs[1]) or "")
  end
  return parts[1] and table.concat(parts, "; ")
end

-- ---- where each value came from ----

-- Where the value of each setting of a run came from: "given" (typed), "study" (its study's own), "published" (for its
-- core and learner), "learner" (the learner's default: the published value is for another), "quick" or "full" (the script's values of that
-- size), "size" (found by size=); a setting without one has the script's default.  config.json keeps it, so that a report cites sources
-- for values.

---The origins of settings.
---@param layers { published: table?, learner: table?, size: string?, sized: table?, given: { [1]: string }[], by_user: table<string, boolean> } by_user: by the
---  first part of a key; other words are a study's
---@return table<string, string>
function published.origins(layers)
  local of = {}
  for _, layer in ipairs { { layers.learner or {}, "learner" }, { layers.published or {}, "published" }, { layers.sized or {}, layers.size } } do
    for key, value in pairs(layer[1]) do
      if key ~= "quick" and key ~= "full" then
        of[key] = layer[2]
        for option in pairs(setting_types.is_named(value) and value or {}) do if option ~= 1 then of[key .. "." .. option] = layer[2] end end
      end
    end
  end
  for _, pair in ipairs(layers.given) do of[pair[1]] = layers.by_user[pair[1]:match "^[^.]+"] and "given" or "study" end
  return of
end

---Adds the options of a core whose values were found for size=.
---@param of table<string, string>
---@param before any settings of the core as they were chosen
---@param now any and as the core was made
---@return table<string, string> of
function published.add_size(of, before, now)
  for option, value in pairs(type(now) == "table" and type(before) == "table" and now or {}) do
    if before[option] ~= value and type(option) == "string" then of["core." .. option] = "size" end
  end
  return of
end

return published
