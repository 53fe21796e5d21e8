-- learners.lua -- learners by name: mn.learners, and the one that the setting learner= names.
-- A learner is a file of lua/mneme/learners, of learners/ where you work, or an entry that the script puts into mn.learners.
local errors = require "mneme.base.errors"
local meanings = require "mneme.base.meanings"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local user_file = require "mneme.base.user_file"

local learners = {}
local list = {}                    -- mn.learners

-- A learner's class, once it is known under a name.
local function named(class, name, where)
  if type(class) ~= "table" or type(class.new) ~= "function" or type(class.defaults) ~= "table" then
    errors.raise(("%s is %s, expected what mn.on_policy { ... } gives"):format(where, type(class) == "table" and "another table" or "a " .. type(class)))
  end
  class.name = rawget(class, "name") or name               -- not its base's
  return class
end

local function load(path, name)
  local class = named(user_file.load(path)(), name, path)
  rawset(list, name, class)
  return class
end

---The names of all learners, sorted.
---@return string[]
function learners.names()
  local all = {}
  for _, name in ipairs(registry.names "learners") do all[name] = true end
  for name in pairs(list) do if not name:find "%.lua$" then all[name] = true end end
  return tables.keys(all)
end

---A learner by name, or by the path of its file.
---@param name string
---@return Learner
function learners.find(name)
  if type(name) ~= "string" then errors.raise(("learner: %s, expected a name such as \"ppo\""):format(type(name) == "nil" and "nil" or "a " .. type(name))) end
  local class = rawget(list, name)
  if class then return named(class, name, "mn.learners." .. name) end
  if name:find "%.lua$" then return load(name, name) end
  local known = learners.names()
  for _, one in ipairs(known) do if one == name then return load(registry.file("learners", name, "learner"), name) end end
  if not errors.nearest(name, known) and not meanings.hint("learner", name) then
    errors.usage(("unknown learner '%s'"):format(name), ("known: %s; an own one is a file learners/%s.lua, or stands in the script above mn.config: "
      .. "mn.learners.%s = mn.on_policy { ... }"):format(table.concat(known, " "), name, name))
  end
  errors.unknown("learner", name, known)
end

---The loss of a learner as a text with LaTeX equations; nil: it does not say, or there is no such learner.
---@param name string
---@return string?
function learners.objective(name)
  if name == "supervised" then return require("mneme.learn.supervised").objective end
  local ok, class = pcall(learners.find, name)
  return ok and (rawget(class, "objective") or not rawget(class, "loss") and class.objective) or nil
end

---The defaults of every learner by its name, supervised training among them.
---@return table<string, table<string, any>>
function learners.defaults()
  local all = { supervised = require("mneme.learn.supervised").defaults }
  for _, name in ipairs(learners.names()) do
    local ok, class = pcall(learners.find, name)                   -- a broken file of the user is no reason to give no help
    all[name] = ok and class.defaults or nil
  end
  return all
end

learners.list = setmetatable(list, { __index = function(_, name)
  for _, one in ipairs(type(name) == "string" and registry.names "learners" or {}) do
    if one == name then return learners.find(name) end
  end
  errors.unknown("learner", name, learners.names())
end })

---The learner that the settings name: learner=a2c, learner=ppo, or one of your own (learners/NAME.lua, or mn.learners.NAME).
---@param cfg table from mn.config { learner = "a2c", ... }: settings of the learner and of the run; see docs/learners.md
---@param env Env
---@param agent Agent
---@param extra table? { aux = ..., modules = ... }, as for mn.a2c
---@return OnPolicy learner learner:train() trains
function learners.new(cfg, env, agent, extra)
  errors.need("learner: settings", cfg, nil, "mn.config { learner = \"a2c\", ... }")
  if cfg.learner == nil then errors.usage("learner: the settings have no `learner`", "mn.config { learner = \"a2c\", ... }") end
  return learners.find(cfg.learner).new(cfg, env, agent, extra)
end

return learners
