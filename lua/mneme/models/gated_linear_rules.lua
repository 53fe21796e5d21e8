-- gated_linear_rules.lua -- which combinations of settings of the gated linear family are valid, and why others are not.
-- A combination that cannot be computed is always an error.  A setting without effect is an error
-- if the user gave it, because an experiment about it would show nothing.  (Files list every setting: there it is ignored.)
local decay_rules = require "mneme.models.axes.decay_rules"
local decays = require "mneme.models.axes.decays"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local feature_maps = require "mneme.models.axes.feature_maps"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local gates = require "mneme.models.axes.gates"

local combinations = {}

-- Every file of forms/: name -> the setting that chooses it; each is loaded when it is used.
local delta_rules = { delta = true, fastweight = true }
local axis_of = {}
for _, file in ipairs(files.list(registry.library .. "models/forms")) do
  local name = file:match "^(.+)%.lua$"
  if name then axis_of[name] = delta_rules[name] and "update" or "approximation" end
end
local function form_of(name) return require("mneme.models.forms." .. name) end

---Settings of the family that are words, and the words; those that other cores have, too, are in core.lua.
local words = {
  feature = feature_maps.list, gate = gates.list, nn_act = { relu = true, elu1 = true, exp = true },
  decay = decays.list, query = { single = true, double = true },
  approximation = {}, update = { sum = true }, form = { code = true, paper = true, cossin = true },
}
for name, axis in pairs(axis_of) do words[axis][name] = true end
combinations.words = words

---How a configuration holds its memory: a file of forms/.
function combinations.memory(cfg) return form_of(cfg.update ~= "sum" and cfg.update or cfg.approximation) end

---What the decay of a configuration keeps, with its gates; nil: its form has gates and a decay of its own.  Where the setting has no
---meaning it is separable.
---@return DecayUse?
---@return string? problem why the form does not go with the setting
function combinations.decay(cfg)
  local memory, gate, K = combinations.memory(cfg), gates.list[cfg.gate], feature_maps.size(cfg)
  if memory.gate then return nil end
  local use = decay_rules.examine(cfg, gate, K)
  if use.product or memory.any_decay then return use end
  return decay_rules.examine(cfg, gate, K, "separable"),
    ("decay=%s %s: it is not a product of a vector of values and one of keys"):format(use.name, memory.products or "does not go with this form")
end

local function lists(list, key) return tables.has(list or {}, key) end

-- Names of the entries that have a key, as "approximation=cos or update=delta".
local function owners(key)
  local names = {}
  for name, f in pairs(feature_maps.list) do if lists(f.keys, key) then names[#names + 1] = "feature=" .. name end end
  for name, axis in pairs(axis_of) do if lists(form_of(name).keys, key) then names[#names + 1] = axis .. "=" .. name end end
  table.sort(names)
  return table.concat(names, " or ")
end

-- Why a key that features or memories have of their own makes no difference; nil: it does.
local function foreign(x, key)
  if not lists(x.feature.keys, key) and not lists(x.memory.keys, key) then return "it belongs to " .. owners(key) end
end

local function other_gates(x)
  if x.memory.gate then return ("update=%s has gates of its own"):format(x.cfg.update) end
end

-- Why the bias of a gate makes no difference; nil: it does.
local function no_gate(x, name)
  local gate = x.memory.gate or x.gate
  if not gate[name] then return ("there is no gate %s"):format(name) end
  if x.cfg.remember ~= "published" and x.cfg.remember ~= "biases" then return ("remember=%s sets how gates begin"):format(x.cfg.remember) end
end

-- Keys that may make no difference; `why` says so.  In vain is any word but `plain`; with `always`, any value that
-- was set; where `axes` decide, a value that was set while they are as they always are (a user who sets feature=elu1 knows
-- that it has no eta).
local of_feature = { feature = "outer_relu" }
local of_memory = { approximation = "full", update = "sum" }
local rules = {
  { "approximation", plain = "full", why = function(x)
    if x.cfg.update ~= "sum" then return ("update=%s needs the whole matrix"):format(x.cfg.update) end
  end },
  { "gate", always = true, why = other_gates },
  { "decay", plain = "separable", why = function(x)
    return x.memory.own_decay or x.gate.decay and ("gate=%s has a decay of its own"):format(x.cfg.gate)
      or decay_rules.lacks(x.cfg.decay, x.gate) or x.misfit
  end },
  { "beta_bias", always = true, why = function(x) return no_gate(x, "beta") end },
  { "gamma_bias", always = true, why = function(x) return no_gate(x, "gamma") end },
  { "p_gamma_bias", always = true, why = function(x) return no_gate(x, "p_gamma") end },
  { "normalise", always = true, why = function(x)
    if x.cfg.normalise and x.memory.unnormalised then return ("update=%s has no normaliser"):format(x.cfg.update) end
  end },
  { "eta", axes = of_feature, why = foreign }, { "nu", axes = of_feature, why = foreign },
  { "m", axes = of_feature, why = foreign }, { "feature_eps", axes = of_feature, why = foreign },
  { "nn_act", axes = of_feature, plain = "relu", why = foreign },
  { "r", axes = of_memory, why = foreign }, { "form", axes = of_memory, plain = "code", why = foreign },
  { "norm_eps", axes = of_memory, why = foreign }, { "seed", axes = of_memory, why = foreign },
}

local function in_vain(rule, cfg, given)
  local key = rule[1]
  if rule.plain and cfg[key] ~= rule.plain then return true end
  if given[key] == nil or not rule.axes then return given[key] ~= nil and rule.always end
  for axis, usual in pairs(rule.axes) do if given[axis] ~= nil or cfg[axis] ~= usual then return false end end
  return true
end

local function refuse(...) errors.raise("core: " .. string.format(...), { status = 2 }) end

local also = { count = { { boolean = true, ["function"] = true }, "true or function(cfg, K)" },
               word = { { string = true, ["function"] = true }, "the name of an op, or function(cfg)" } }

-- An entry that a script has put into a list of the library's: its members by name and type.
local function check_own(what, of, name)
  local entry, whose = of.list[name], ("mn.%ss.%s"):format(what, name)
  if entry == of.ours[name] then return end
  errors.need(whose, entry, nil, "{ doc = ..., ... }")
  for key, value in pairs(entry) do
    local kind = of.members[key]
    if not kind then errors.unknown(("key of %s:"):format(whose), tostring(key), tables.keys(of.members)) end
    local several = also[kind]
    if type(value) ~= kind and not (several and several[1][type(value)]) then
      refuse("%s.%s is %s, expected %s", whose, key, tables.in_words(value), several and several[2] or "a " .. kind)
    end
  end
end

---Refuse a configuration that has no meaning.
---@param cfg table complete
---@param given table what the user set
---@param lenient boolean? ignore keys that make no difference
function combinations.check(cfg, given, lenient)
  for key, known in pairs(words) do
    if not rawget(known, cfg[key]) then errors.unknown(key .. " =", cfg[key], tables.keys(known)) end
  end
  for _, key in ipairs { "eta", "nu", "m", "r" } do errors.whole("core", key .. " =", cfg[key], 1) end
  for _, key in ipairs { "eps", "den_clamp", "norm_eps", "feature_eps" } do
    if not (cfg[key] >= 0) then refuse("%s = %g, expected at least 0", key, cfg[key]) end
  end
  check_own("feature", feature_maps, cfg.feature)
  check_own("gate", gates, cfg.gate)
  check_own("decay", decays, cfg.decay)
  if type(decays.list[cfg.decay].keep) ~= "function" then refuse("mn.decays.%s.keep is missing, expected function(beta, gamma)", cfg.decay) end
  local x = { cfg = cfg, feature = feature_maps.list[cfg.feature], gate = gates.list[cfg.gate], memory = combinations.memory(cfg) }
  local K = feature_maps.size(cfg)
  local problem = x.memory.refuses and x.memory.refuses(cfg, K) or not x.memory.gate and x.gate.refuses and x.gate.refuses(cfg, K)
  if not problem then
    for _, name in ipairs { "beta", "gamma", "p_gamma" } do
      local n = x.gate[name]
      if type(n) == "function" then
        errors.whole("mn.gates." .. cfg.gate, name .. " is", errors.call(n, cfg, K), 1, { where = errors.position_of(n), status = 2 })
      end
    end
    local decay, misfit = combinations.decay(cfg)
    x.misfit = misfit
    if misfit and not decay.product then problem = misfit end
  end
  if not problem and x.feature.rescales and not x.memory.rescales then
    problem = ("feature=%s rescales the state when its largest logit grows; the state of %s cannot be rescaled"):format(cfg.feature,
      cfg.update ~= "sum" and "update=" .. cfg.update or "approximation=" .. cfg.approximation)
  end
  if not problem and cfg.rotary and feature_maps.rows(cfg) % 2 ~= 0 then
    problem = ("rotary=true rotates pairs of values, but a key has %d"):format(feature_maps.rows(cfg))
  end
  if problem then refuse("%s", problem) end
  if lenient then return end
  for _, rule in ipairs(rules) do
    local key = rule[1]
    local why = in_vain(rule, cfg, given) and rule.why(x, key)
    if why then refuse("%s=%s makes no difference: %s", key, tostring(cfg[key]), why) end
  end
end

---Why a configuration has no sensitivities (models/axes/gated_linear_sensitivities.lua); nil: it has.
---@return string?
function combinations.no_sensitivities(cfg)
  local feature, gate = feature_maps.list[cfg.feature], gates.list[cfg.gate]
  if cfg.update ~= "sum" then return ("update=%s mixes the elements of its state"):format(cfg.update) end
  if cfg.approximation ~= "cos" and cfg.approximation ~= "full" then return ("approximation=%s has none"):format(cfg.approximation) end
  if cfg.decay ~= "separable" or gate.apply then return "they are known for decay=separable with a gate of the input" end
  if feature.map or cfg.rotary then return "they are known for features whose elements do not mix" end
end

return combinations
