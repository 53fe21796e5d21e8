-- init.lua -- the table that require "mneme" returns.  Parts are loaded when first used; every op of
-- engine/ops is a function here too: mn.matmul(a, b), mn.linear_attention { q = q, k = k, ... }.
local tensor = require "mneme.tensor.tensor"

local mn = {
  Tensor = tensor.Tensor, ops = tensor.ops,
  tensor = tensor.new, sequence = tensor.sequence, is_tensor = tensor.is,
  sweep = tensor.sweep, no_grad = tensor.no_grad, keep = tensor.keep,
}

-- name in mn = module, and the field of it (none: the module itself)
local parts = {
  plan = { "mneme.tensor.plan" },
  nn = { "mneme.tensor.nn" },
  env = { "mneme.envs.env", "new" },
  scene = { "mneme.view.scene", "new" },
  core = { "mneme.models.core", "new" },
  encoder = { "mneme.models.encoder", "new" },
  agent = { "mneme.models.agent", "new" },
  torso = { "mneme.models.torso", "new" },
  a2c = { "mneme.learn.a2c", "new" },
  ppo = { "mneme.learn.ppo", "new" },
  adam = { "mneme.tensor.optim", "adam" },
  adamw = { "mneme.tensor.optim", "adamw" },
  config = { "mneme.runs.config", "new" },
  help = { "mneme.commands.help", "show" },
  features = { "mneme.models.gated_linear", "features" },
  gates = { "mneme.models.gated_linear", "gates" },
  json = { "mneme.base.json" },
  task = { "mneme.envs.sequence_task", "new" },
  sequence_model = { "mneme.models.sequence_model", "new" },
  supervised = { "mneme.learn.supervised", "new" },
  trajectory = { "mneme.episodes.trajectory", "read" },
  recording = { "mneme.episodes.trajectory_writer" },
  replay = { "mneme.episodes.trajectory_replay" },
  study = { "mneme.study.study", "new" },
  sized = { "mneme.models.match_parameters" },
  interventions = { "mneme.episodes.interventions" },
  stats = { "mneme.stats" },
  figures = { "mneme.figures" },
  manual_seed = { "mneme.tensor.nn", "manual_seed" },
  plot = { "mneme.commands.plot" },
}

---The names in mn, sorted, ops left out.
---@return string[]
function mn.names()
  local names, own = {}, { ops = true }
  for name in pairs(mn) do own[name] = own[name] or not tensor.ops[name] and "own" end
  for name in pairs(parts) do own[name] = "own" end
  for name, kind in pairs(own) do if kind == "own" then names[#names + 1] = name end end
  table.sort(names)
  return names
end

-- What earlier rooms need of later ones is handed over here, when a script first asks for the part.
local function learner()
  require("mneme.learn.trainer").observers = {
    require("mneme.runs.debugging").open, require("mneme.episodes.training_recorder").open, require("mneme.episodes.live_publisher").open,
  }
end
local hand_over = {
  a2c = learner, ppo = learner, supervised = learner,
  config = function()
    require("mneme.runs.config").help = function(...) return require("mneme.commands.help").settings(...) end
  end,
}

-- old name = new name: see base/renamed.lua
local successors = {}

return setmetatable(mn, { __index = function(_, key)
  local new = successors[key]
  if new then
    require("mneme.base.renamed").note("mn." .. key, "mn." .. new)
    return mn[new]
  end
  local part = parts[key]
  if not part then return tensor.ops[key] end
  if hand_over[key] then hand_over[key]() end
  local value = require(part[1])
  if part[2] then value = value[part[2]] end
  rawset(mn, key, value)
  return value
end })
