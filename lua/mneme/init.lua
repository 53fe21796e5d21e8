-- init.lua -- the table that require "mneme" returns.  Parts are loaded when first used; every op of
-- engine/ops is a function here too: mn.matmul(a, b), mn.linear_attention { q = q, k = k, ... }.
local pairs = require("mneme.base.luajit").pairs      -- first: the files of Mneme that are loaded after it have a pairs() without fault
require("mneme.base.trusted_code").install()      -- what scripts load is noted for their runs
require("mneme.base.errors").about = function(kind, name) return require("mneme.commands.help").meaning(kind, name) end
local suggest = require("mneme.tensor.op_binding").suggest
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
require "mneme.tensor.random"                     -- x:dropout(p)

local mn = {
  Tensor = tensor.Tensor, ops = tensor.ops,
  tensor = tensor.new, sequence = tensor.sequence, is_tensor = tensor.is,
  clear_tape = tensor.clear_tape, no_grad = tensor.no_grad, keep = tensor.keep,
}

-- name in mn = a module; or a module and one field of it (and a field of that ...); or a module of which `fields` are public, with `call` as a table that
-- is called like a function; or a `group` of such parts.  Outside lua/ only require "mneme" is written (tests/project/
-- test_public_rule.lua), so what scenes, panels, experiments and documents need is named here.
local parts = {
  plan = { "mneme.tensor.plan" },
  recur = { "mneme.tensor.recur" },
  nn = { "mneme.tensor.nn" },
  dropout = { "mneme.tensor.random", "dropout" },
  manual_seed = { "mneme.tensor.nn", "manual_seed" },
  print = { "mneme.tensor.show", "print" },
  env = { "mneme.envs", "new" },
  dataset = { "mneme.envs.dataset", "new" },
  core = { "mneme.models.cores", call = "new", fields = { "block", "preset" } },
  encoder = { "mneme.models.encoder", "new" },
  agent = { "mneme.models.agent", "new" },
  torso = { "mneme.models.observation_torsos", "new" },
  sequence_model = { "mneme.models.sequence_model", "new" },
  sized = { "mneme.models.default_core_size", "sized" },
  a2c = { "mneme.learn.learners", "list", "a2c", "new" },
  ppo = { "mneme.learn.learners", "list", "ppo", "new" },
  pqn = { "mneme.learn.learners", "list", "pqn", "new" },
  learner = { "mneme.learn.learners", "new" },
  learners = { "mneme.learn.learners", "list" },
  on_policy = { "mneme.learn.learners", "define" },
  supervised = { "mneme.learn.supervised", "new" },
  config = { "mneme.runs.config", "new" },
  help = { "mneme.commands.help", "show" },
  json = { "mneme.base.json" },
  stats = { "mneme.stats" },
  run = { group = { info = { "mneme.runs.run_folder", "read_info" }, metrics = { "mneme.runs.metrics_reader", "read" },
    state_dict = { "mneme.learn.stored_parameters", "state_dict" }, step_unit = { "mneme.runs.metrics_reader", "unit" } } },
}
-- Modules of which fields are parts under their own names.
for module, names in pairs {
  ["mneme.tensor.constructors"] = "zeros ones empty full arange linspace eye rand randn randint randperm zeros_like ones_like full_like rand_like randn_like",
  ["mneme.tensor.losses"] = "mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy_with_logits nll_loss cross_entropy kl_div",
  ["mneme.tensor.distributions"] = "categorical bernoulli normal kl_divergence",
  ["mneme.tensor.gradients"] = "grad custom_gradient",
  ["mneme.tensor.optim"] = "adam adamw radam sgd rmsprop",
  ["mneme.tensor.saved"] = "save load",
  ["mneme.envs.action_spaces"] = "box multi_discrete",
  ["mneme.models.gated_linear"] = "features gates decays",
} do
  for name in names:gmatch "%S+" do parts[name] = { module, name } end
end

---The names in mn, sorted, ops left out; or those of a kind.
---@param kind string? "cores", "attentions", "envs", "datasets", "learners", "ops", "scenes" or "experiments"
---@return string[]
function mn.names(kind)
  if kind ~= nil then return require("mneme.base.catalogue").names(kind) end
  local names, own = {}, { ops = true }
  for name in pairs(mn) do own[name] = own[name] or not rawget(tensor.ops, name) and "own" end
  for _, list in ipairs { parts, require("mneme.insight").parts, require("mneme.lab").parts } do
    for name in pairs(list) do own[name] = "own" end
  end
  for name in pairs(tensor.functions) do own[name] = own[name] or not rawget(tensor.ops, name) and "own" end
  for name, whose in pairs(own) do if whose == "own" then names[#names + 1] = name end end
  table.sort(names)
  return names
end

-- The other houses.  A door of theirs lists `parts` in the same form; it is loaded when a name is asked for that the library lacks.
local houses = { "mneme.insight", "mneme.lab" }

-- What the library needs of later houses is passed here, when a script first uses the part: what watches a training, its fresh episodes and
-- the map of its memory, each loaded if it is needed, and the text of --help.
local function learner()
  local trainer = require "mneme.learn.trainer"
  trainer.observers = {
    function(l, ...) if l.cfg.debug ~= "0" or l.cfg.profile ~= "0" then return require("mneme.runs.debugging").open(l, ...) end end,
    function(l) if l.cfg.debug == "credit" then require("mneme.insight.measure.credit_angle").watch(l) end end,
    function(l, ...) if l.cfg.view then return require("mneme.insight.episodes.live_publisher").open(l, ...) end end,
    function(l, ...) if l.cfg.threads == 0 then return require("mneme.learn.thread_choice").open(l, ...) end end,
  }
  trainer.fresh = function(...) return require("mneme.insight.episodes.fresh_episodes").of_learner(...) end
  trainer.map = function(...) return require("mneme.insight.episodes.causal_map_file").keep(...) end
end
local function settings()
  require("mneme.runs.config").help = function(...) return require("mneme.commands.help").settings(...) end
  local learner_settings = require "mneme.runs.learner_settings"
  learner_settings.find = function(name) return require("mneme.learn.learners").find(name) end
  learner_settings.all = function() return require("mneme.learn.learners").defaults() end
end
local hand_over = { config = settings, study = settings, supervised = learner, a2c = learner, ppo = learner, learner = learner, learners = learner,
  on_policy = learner }

-- The value of a part; `path`: its name, for errors.
local strict
local function load(part, path)
  if part.group then
    return setmetatable({}, { group = part.group, __index = function(group, name)          -- each member when a script first reads it
      local value = load(part.group[name] or suggest.unknown(path .. ".", name, {}, tables.keys(part.group)), ("%s.%s"):format(path, name))
      if type(value) == "table" then strict(("%s.%s"):format(path, name), value) end
      rawset(group, name, value)
      return value
    end })
  end
  local module = require(part[1])
  if not part.fields then
    local value = module
    for i = 2, #part do value = value[part[i]] end
    return value
  end
  local value, call = {}, module[part.call]
  for _, field in ipairs(part.fields) do value[field] = assert(module[field], field) end
  return call and setmetatable(value, { called = call, __call = function(_, ...) return call(...) end }) or value
end

-- Tables that a script adds entries to; an entry's members may be absent.
local registries = { features = true, gates = true, decays = true, learners = true }

-- A name that is missing in a part, or in a table of it, is an error: nil would be a default somewhere.
function strict(path, t)
  local meta = getmetatable(t)
  if meta and meta.__index then return end                                -- guarded already
  suggest.guard(path .. ".", t)
  for key, inner in pairs(registries[path:sub(4)] and {} or t) do
    if type(key) == "string" and type(inner) == "table" then strict(path .. "." .. key, inner) end
  end
end

return setmetatable(mn, { __index = function(_, key)
  local part = parts[key]
  if not part then
    local value = tensor.functions[key] or rawget(tensor.ops, key)
    if value ~= nil then return value end
    for _, house in ipairs(houses) do part = part or require(house).parts[key] end
  end
  if not part then
    local known = mn.names()
    for name in pairs(tensor.ops) do known[#known + 1] = name end
    suggest.unknown("mn.", key, suggest.functions, known)
  end
  if hand_over[key] then hand_over[key]() end
  local value = load(part, "mn." .. key)
  if type(value) == "table" then strict("mn." .. key, value) end
  rawset(mn, key, value)
  return value
end })
