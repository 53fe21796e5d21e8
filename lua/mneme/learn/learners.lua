-- learners.lua -- learners by name: mn.learners, and the one that the setting learner= names.
-- A learner is a file of lua/mneme/learners, of learners/ where you work, or an entry that the script puts into mn.learners.
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local extra_losses = lazy "mneme.learn.extra_losses"
local did_you_mean = lazy "mneme.base.did_you_mean"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local learner_settings = require "mneme.runs.learner_settings"

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
  local class = named(registry.load(path)(), name, path)
  rawset(list, name, class)
  return class
end

---The names of all learners, sorted.
function learners.names()
  local all = tables.set(registry.names "learners")
  for name in pairs(list) do if not name:find "%.lua$" then all[name] = true end end
  return tables.keys(all)
end

---A learner by name, or by the path of its file.
---@return Learner
function learners.find(name)
  if type(name) ~= "string" then errors.raise(("learner: %s, expected a name such as \"ppo\""):format(type(name) == "nil" and "nil" or "a " .. type(name))) end
  local class = rawget(list, name)
  if class then return named(class, name, "mn.learners." .. name) end
  if name:find "%.lua$" then return load(name, name) end
  local known = learners.names()
  if tables.has(known, name) then return load(registry.file("learners", name, "learner"), name) end
  if not errors.nearest(name, known) and not did_you_mean.hint("learner", name) then
    errors.usage(("unknown learner '%s'"):format(name), ("known: %s; an own one is a file learners/%s.lua, or stands in the script above mn.config: "
      .. "mn.learners.%s = mn.on_policy { ... }"):format(table.concat(known, " "), name, name))
  end
  errors.unknown("learner", name, known)
end

---The loss of a learner as a text with LaTeX equations; nil: it does not say, or there is no such learner.
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
  if tables.has(registry.names "learners", name) then return learners.find(name) end
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

-- ---- mn.on_policy ----

-- A learner that acts, from its settings and its loss (docs/write-a-learner.md).  A2C and PPO are made with it.
---@class Learner a kind of learner, such as mn.learners.ppo
---@overload fun(cfg: table, env: Env, agent: Agent, extra: table?): OnPolicy
---@field name string?
---@field defaults table<string, number|boolean|string> its settings
---@field new fun(cfg: table, env: Env, agent: Agent, extra: table?): OnPolicy

local texts = { acts = "string", optimiser = "string", name = "string", doc = "string", source = "string", objective = "string", base = "table",
  config = "table", about = "table", without = "table" }

-- What a definition may hold: texts, settings, and methods of OnPolicy.
local function check_definition(d, base)
  errors.need("on_policy: a learner", d, nil, "{ config = { lr = 1e-3 }, loss = function(self, batch) ... end }")
  if d.base ~= nil and (type(d.base) ~= "table" or type(d.base.defaults) ~= "table") then
    errors.raise(("on_policy: base is %s, expected a learner such as mn.learners.ppo"):format(type(d.base) == "table" and "another table"
      or "a " .. type(d.base)))
  end
  for key, value in pairs(d) do
    local method = key == "loss" or type(base[key]) == "function" and key ~= "new"
    local kind = texts[key] or method and "function"
    if not kind then
      local known = tables.keys(texts)
      for _, word in ipairs { "loss", "setup", "update", "modules" } do known[#known + 1] = word end
      errors.unknown("key of on_policy:", key, known)
    end
    if type(value) ~= kind then errors.raise(("on_policy: %s is a %s, expected a %s"):format(key, type(value), kind)) end
  end
  if d.optimiser and not d.optimiser:find "^r?adamw?$" then
    errors.raise(("on_policy: optimiser is '%s', expected adamw, adam or radam"):format(d.optimiser), { hint = "another, whose rate is the setting lr: "
      .. "setup = function(self) self.optimiser = mn.sgd(self.agent:parameters()) end" })
  end
  if not base.loss and not d.loss then errors.raise "on_policy: there is no loss, expected loss = function(self, batch) ... end" end
end

-- Fields of OnPolicy, which a setting would overwrite, or they it.
local FIELDS = " agent B buffers cfg clock done env epsilon extra finished first inputs learn losses memory_resets modules next normaliser num_envs optimiser "
  .. "past peek pieces played previous progress resets rewards row step T what x "

-- The base's settings, but for those that it goes `without`, with those of the definition over them; new ones become settings of scripts.
local function settings_of(what, base, config, about, without)
  local defaults = tables.merged(base.defaults)
  for _, key in ipairs(without) do
    if defaults[key] == nil then errors.unknown("key of without of " .. what .. ":", tostring(key), tables.keys(base.defaults)) end
    defaults[key] = nil
  end
  for key in pairs(config) do
    if FIELDS:find(" " .. tostring(key) .. " ", 1, true) or type(base[key]) == "function" then
      errors.raise(("on_policy: a setting called '%s': a learner has a field of that name, expected another"):format(key))
    end
  end
  for key, value in pairs(config) do defaults[key] = learner_settings.declare(what, key, value, about[key]) end
  for key in pairs(about) do
    if config[key] == nil then errors.unknown("setting in about of " .. what .. ":", key, tables.keys(config)) end
  end
  return defaults
end

---Define a learner that acts in environments and learns from its own rollouts.  It gets a run folder, a log, checkpoints, exact
---resume, ranks, and the settings that A2C and PPO share (mneme help a2c); eval, view and intervene work on its runs.
---@param d table
---  loss = function(self, batch): returns a tensor of one element, and maybe { NAME = tensor of one element } to log as
---  losses/NAME.  self has every setting (self.gamma) and the fields of OnPolicy, batch those of Batch;
---  config = { NAME = default } its settings, over those that are shared; about = { NAME = "meaning" or { "meaning", range = {lo, hi},
---  whole = true, choices = {...} } } of those that are its own alone;
---  without = { NAME } shared settings that mean nothing to it; acts = "values": by the largest of the Q values that the agent's policy head gives,
---  with self.epsilon [1], a share of random actions; optimiser = "radam": in place of "adamw"; doc, source: texts for help; objective:
---  what is minimised, with LaTeX equations, for reports;
---  base: the learner that it is a variant of (mn.learners.ppo), whose methods it has;
---  modules = function(self): { NAME = module, or leaf with a gradient } that are trained and saved besides the agent; in self.modules then;
---  setup = function(self): runs once, when all buffers are there, after the base's; update = function(self): the update after each rollout, by default
---  one step of the optimiser (self:optimiser_step()), returns false if a value is not finite; more methods of OnPolicy may be replaced
---@return Learner learner called with (cfg, env, agent, extra) as mn.a2c is; `mn.learners.NAME = learner` makes it learner=NAME
function learners.define(d)
  local on_policy = require "mneme.learn.on_policy"
  local base = type(d) == "table" and type(d.base) == "table" and d.base or on_policy
  check_definition(d, base)
  local class = tables.merged(d)
  class.base, class.config, class.about, class.without = nil, nil, nil, nil
  -- What a variant sets up comes after what its base does, which it may call itself, too: a class does it once for each learner.
  if d.setup then
    local own, before = d.setup, base.setup
    function class.setup(self)
      self.set_up = self.set_up or {}
      if self.set_up[own] then return end
      self.set_up[own] = true
      before(self)
      local prepared = self.optimiser
      own(self)
      extra_losses.check_optimiser(self, prepared, own)
    end
  end
  if d.modules then
    function class.modules(self) return tables.merged(base.modules(self) or {}, extra_losses.of_class(d.modules, self)) end
  end
  class.defaults = settings_of(d.name or "on_policy", base, d.config or {}, d.about or {}, d.without or {})
  local instances = { __index = class }
  ---A learner of this kind: mn.a2c is advantage actor-critic, mn.ppo proximal policy optimisation (mneme help a2c, mneme help ppo).
  ---@param cfg table learner keys (docs/learners.md lists them) and the run's, as from mn.config
  ---@param env Env
  ---@param agent Agent
  ---@param extra table? { aux = function(batch) or { NAME = function(batch) }, modules = { NAME = module } }: terms that are added to the loss
  ---  with the weight aux_coef and logged as losses/NAME, and the modules that they train besides the agent
  ---@return OnPolicy
  function class.new(cfg, env, agent, extra)
    local name = rawget(class, "name") or base.name and "variant of " .. base.name or "learner"          -- a variant is not its base
    return on_policy.new(instances, name, cfg, env, agent, extra)
  end
  return setmetatable(class, { __index = base, __call = function(_, ...) return class.new(...) end })
end

return learners
