-- extra_losses.lua -- terms that a script adds to a learner's loss, and the modules that they train besides the agent:
--   mn.learner(cfg, env, agent, { aux = { rebuild = function(batch) ... return loss end }, modules = { decoder = decoder } })
local errors = require "mneme.base.errors"
local module = require "mneme.tensor.module"
local nn = require "mneme.tensor.nn"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local extra_losses = {}
local known = { "aux", "modules" }

-- A tensor of one element, whose value is logged; `f` gave it.
local function check_scalar(what, t, f)
  local where = errors.position_of(f)
  if not tensor.is(t) then
    errors.raise(("%s gave %s, expected a tensor of one element"):format(what, type(t) == "nil" and "nothing" or "a " .. type(t)), { where = where })
  end
  if t:size() ~= 1 or t:dtype() ~= "f32" then
    errors.raise(("%s gave a tensor [%s] (%s), expected one element (f32)"):format(what, table.concat(t:shape(), ","), t:dtype()),
      { hint = "x:mean()", where = where })
  end
  return t
end

-- The terms as a sorted list { name, f }.
local function terms_of(what, aux)
  if aux == nil then return {} end
  if type(aux) == "function" then return { { "aux", aux } } end
  errors.need(what .. ": aux", aux, nil, "function(batch) ... return loss end, or { NAME = function }")
  local list = {}
  for _, name in ipairs(tables.keys(aux)) do
    if type(aux[name]) ~= "function" then errors.raise(("%s: aux.%s is a %s, expected a function(batch)"):format(what, name, type(aux[name]))) end
    list[#list + 1] = { name, aux[name] }
  end
  return list
end

---What a script adds to a learner.
---@param what string the learner's name, for errors
---@param extra table? { aux, modules }
---@return table { terms = { name, f }[], module = nn.container of the modules }
function extra_losses.read(what, extra)
  extra = extra or {}
  errors.need(what .. ": the fourth argument", extra, nil, "{ aux = function(batch) ... end }")
  for key in pairs(extra) do
    if key ~= known[1] and key ~= known[2] then errors.unknown(("key of the fourth argument of %s:"):format(what), key, known) end
  end
  local children, modules = {}, extra.modules or {}
  errors.need(what .. ": modules", modules, nil, "{ NAME = mn.nn.linear(...) }")
  for _, name in ipairs(tables.keys(modules)) do
    children[#children + 1] = { name, module.need(("%s: modules.%s"):format(what, name), modules[name]) }
  end
  return { terms = terms_of(what, extra.aux), module = nn.container(children) }
end

---The loss of an update: the learner's own, checked, with the extra terms.
---@param learner OnPolicy
---@param batch Batch
---@return Tensor loss
---@return table<string, Tensor> logged by name, each of one element
function extra_losses.total(learner, batch)
  local loss, logged = errors.call(learner.loss, learner, batch)
  check_scalar(learner.what .. ": loss", loss, learner.loss)
  local named = {}
  errors.need(learner.what .. ": what loss gave to log", logged or {}, nil, "{ NAME = tensor of one element }")
  for name, t in pairs(logged or {}) do named[name] = check_scalar(("%s: loss, %s"):format(learner.what, tostring(name)), t, learner.loss) end
  for _, term in ipairs(learner.extra.terms) do
    local value = check_scalar("aux: " .. term[1], errors.call(term[2], batch), term[2])
    if named[term[1]] or term[1] == "loss" then errors.raise(("aux: %s is logged by %s itself, expected another name"):format(term[1], learner.what)) end
    named[term[1]] = value
    loss = loss + value * learner.aux_coef
  end
  named.loss = loss
  return loss, named
end

return extra_losses
