-- init.lua -- the table that require "mneme" returns.  Parts are loaded when first used; every op of
-- engine/ops is a function here too: mn.matmul(a, b), mn.linear_attention { q = q, k = k, ... }.
local tensor = require "mneme.tensor"

local mn = {
  Tensor = tensor.Tensor, ops = tensor.ops,
  tensor = tensor.new, is_tensor = tensor.is,
  sweep = tensor.sweep, no_grad = tensor.no_grad, keep = tensor.keep,
}

-- name in mn = module, and the field of it (none: the module itself)
local parts = {
  plan = { "mneme.plan" }, nn = { "mneme.nn" }, env = { "mneme.env", "new" }, scene = { "mneme.scene", "new" },
  core = { "mneme.core", "new" }, encoder = { "mneme.encoder", "new" }, agent = { "mneme.agent", "new" },
  torso = { "mneme.torso", "new" }, a2c = { "mneme.a2c", "new" }, ppo = { "mneme.ppo", "new" },
  adam = { "mneme.optim", "adam" }, adamw = { "mneme.optim", "adamw" }, config = { "mneme.config", "new" }, help = { "mneme.help", "show" },
  features = { "mneme.family", "features" }, gates = { "mneme.family", "gates" }, json = { "mneme.json" },
  task = { "mneme.task", "new" }, sequence_model = { "mneme.sequence_model", "new" }, supervised = { "mneme.supervised", "new" },
  trajectory = { "mneme.trajectory", "read" }, recording = { "mneme.recording" }, replay = { "mneme.replay" },
  study = { "mneme.study", "new" }, sized = { "mneme.sized" }, interventions = { "mneme.interventions" },
  stats = { "mneme.stats" }, figures = { "mneme.figures" }, manual_seed = { "mneme.nn", "manual_seed" },
  plot = { "mneme.plot" },
}

---A leaf whose first axis is time: sequences of plans that run by rows.
---@param spec table as for mn.tensor
function mn.sequence(spec)
  if type(spec) == "table" then spec.time = true end          -- what is none is refused where tensors are made
  return tensor.new(spec)
end

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

return setmetatable(mn, { __index = function(_, key)
  local part = parts[key]
  if not part then return tensor.ops[key] end
  local value = require(part[1])
  if part[2] then value = value[part[2]] end
  rawset(mn, key, value)
  return value
end })
