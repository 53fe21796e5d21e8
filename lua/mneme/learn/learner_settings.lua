-- learner_settings.lua -- the settings of learners: one vocabulary for A2C, PPO and supervised training, each key with the
-- numbers that it may have.  A learner lists those that it takes with their published values; docs/learners.md and
-- docs/tasks.md say what they mean.
local errors = require "mneme.base.errors"
local find = require "mneme.base.registry"

local learner_keys = {}

-- { least, greatest }; "whole": a whole number; a list of words: one of them.
local whole, at_least_0, share = "whole", { 0, math.huge }, { 0, 1 }
local rules = {
  num_steps = { 1, 2 ^ 24, whole }, epochs = { 1, 2 ^ 24, whole }, minibatches = { 1, 2 ^ 24, whole },
  horizon = { 0, 2 ^ 24, whole }, context = { 0, 2 ^ 24, whole }, warmup = { 0, 2 ^ 31, whole },
  gamma = share, lambda = share, lr = at_least_0, lr_schedule = require("mneme.tensor.lr_schedule").names,
  entropy_coef = at_least_0, value_coef = at_least_0, clip = at_least_0, target_kl = at_least_0, max_norm = at_least_0,
  eval_every = { 1, 2 ^ 53, whole }, eval_batches = { 1, 2 ^ 24, whole },
  weight_decay = at_least_0, adam_eps = at_least_0, beta1 = share, beta2 = share,
}

-- What a learner reads of the run's own, where it is given.
local of_run = { seed = { 0, 2 ^ 53, whole }, steps = { 1, 2 ^ 53 }, stop_score = { 0, 2 ^ 53 } }

local function refuse(what, key, value, expected)
  local shown = type(value) == "string" and ("'%s'"):format(value) or tostring(value)
  errors.usage(("%s: %s=%s, expected %s"):format(what, key, shown, expected))
end

local function check(what, key, value, default)
  local rule = rules[key] or of_run[key]
  if type(default) == "boolean" then
    if value == 0 or value == 1 then return value == 1 end
    if type(value) ~= "boolean" then refuse(what, key, value, "true or false") end
  elseif type(default) == "string" then
    for _, word in ipairs(rule) do if word == value then return value end end
    errors.unknown(("%s: %s ="):format(what, key), value, rule)
  elseif type(value) ~= "number" or not (value >= rule[1] and value <= rule[2]) or value == math.huge
    or (rule[3] == whole and value % 1 ~= 0) then
    local from_to = rule[2] == math.huge and ("of at least %g"):format(rule[1]) or ("in %g..%g"):format(rule[1], rule[2])
    refuse(what, key, value, ("a %snumber %s"):format(rule[3] == whole and "whole " or "", from_to))
  end
  return value
end

---A learner's settings: the given ones over its defaults, each checked.  What else `cfg` holds is the script's own.
---@param what string the learner's name, for errors
---@param cfg table from mn.config, or plain
---@param defaults table<string, number|boolean|string>
---@return table<string, number|boolean|string>
function learner_keys.read(what, cfg, defaults)
  errors.need(what .. ": settings", cfg, nil, "mn.config { ... }, or a table of them")
  for key in pairs(of_run) do
    if cfg[key] ~= nil then check(what, key, cfg[key]) end
  end
  local set = {}
  for key, default in pairs(defaults) do
    local given = cfg[key]
    if given == nil then given = default end
    set[key] = check(what, key, given, default)
  end
  return set
end

---A learner's settings as rows of a help text: key, default, what it may be.
---@param defaults table<string, number|boolean|string>
---@return string[][]
function learner_keys.rows(defaults)
  local rows = {}
  for _, key in ipairs(find.keys(defaults)) do
    local default, rule, may = defaults[key], rules[key] or of_run[key], "0 1"
    if type(default) == "string" then may = table.concat(rule, " ")
    elseif type(default) == "number" then
      may = rule[2] == math.huge and ("at least %g"):format(rule[1]) or ("%.15g..%.15g"):format(rule[1], rule[2])
    end
    rows[#rows + 1] = { key, type(default) == "boolean" and (default and "1" or "0") or tostring(default), may }
  end
  return rows
end

return learner_keys
