-- extra_losses.lua -- terms that a script adds to a learner's loss, and the modules that they train besides the agent:
--   mn.learner(cfg, env, agent, { aux = { rebuild = function(batch) ... return loss end }, modules = { decoder = decoder } })
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tensor_module = require "mneme.tensor.module"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local extra_losses = {}

---A tensor of one element, such as one whose value is logged; `f` gave it.
function extra_losses.check_scalar(what, t, f)
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

-- The names of a table's entries, sorted; one without a name is an error.
local function names_of(what, given)
  for key in pairs(given) do
    if type(key) ~= "string" then errors.raise(("%s[%s] has no name, expected { NAME = ... }"):format(what, tostring(key))) end
  end
  return tables.keys(given)
end

-- The terms as a sorted list { name, f }.
local function terms_of(what, aux)
  if aux == nil then return {} end
  if type(aux) == "function" then return { { "aux", aux } } end
  errors.need(what .. ": aux", aux, nil, "function(batch) ... return loss end, or { NAME = function }")
  local list = {}
  for _, name in ipairs(names_of(what .. ": aux", aux)) do
    if type(aux[name]) ~= "function" then errors.raise(("%s: aux.%s is a %s, expected a function(batch)"):format(what, name, type(aux[name]))) end
    list[#list + 1] = { name, aux[name] }
  end
  return list
end

-- Modules of a class or a script: each a module, or a leaf with a gradient.
local function check_modules(what, modules)
  errors.need(what .. ": modules", modules, nil, "{ NAME = mn.nn.linear(...) }")
  for _, name in ipairs(names_of(what .. ": modules", modules)) do
    local one = modules[name]
    if not tensor.is(one) then tensor_module.need(("%s: modules.%s"):format(what, name), one) elseif not one:wants_grad() then
      errors.raise(("%s: modules.%s is a tensor that wants no gradient, expected a module or a leaf with grad = true"):format(what, name))
    end
  end
  return modules
end

---The modules of a class: what its function `modules` gives of a learner.
---@return table
function extra_losses.of_class(modules, learner)
  local made = check_modules(learner.what, modules(learner) or {})          -- not a tail call: this frame stands for the user's
  return made
end
errors.calls(extra_losses.of_class)

---What a class and a script add to a learner.
---@param what string the learner's name, for errors
---@param extra table? { aux, modules } of the script
---@param of_class table? modules of the class
---@return table { terms = { name, f }[], module = a module of all modules }
---@return table<string, Module|Tensor> those by name
function extra_losses.read(what, extra, of_class)
  extra = extra or {}
  errors.need(what .. ": the fourth argument", extra, nil, "{ aux = function(batch) ... end }")
  errors.members("the fourth argument of " .. what, extra, "aux modules")
  local all, module = {}, { leaves = {}, named = {}, children = {} }
  for _, modules in ipairs { of_class or {}, check_modules(what, extra.modules or {}) } do
    for name, one in pairs(modules) do
      if all[name] then errors.raise(("%s: modules.%s is given twice"):format(what, name)) end
      all[name] = one
    end
  end
  for _, name in ipairs(tables.keys(all)) do
    local one = all[name]
    if tensor.is(one) then module.leaves[#module.leaves + 1], module.named[#module.named + 1] = one, { name, one }
    else module.children[#module.children + 1] = { name, tensor_module.of(one) } end
  end
  return { terms = terms_of(what, extra.aux), module = tensor_module.new(module, function() end) }, all
end

-- What the user's functions call a leaf: a variable that they close over, or a field of a table there; nil: it was not found.
local function name_of(slot, functions)
  local seen = {}
  local function look(name, x, depth)
    if type(x) == "cdata" then                     -- a type of tensors is one, too, and has no slot
      local readable, at = pcall(function() return tensor.is(x) and x.slot end)
      return readable and at == slot and name or nil
    end
    if depth == 0 or (type(x) ~= "table" and type(x) ~= "function") or seen[x] then return end
    seen[x] = true
    if type(x) == "table" and rawget(x, "children") and getmetatable(x) then         -- a module
      for _, p in ipairs(x:parameters()) do if p.slot == slot then return name end end
    end
    local found
    for key, value in pairs(type(x) == "table" and x or {}) do found = found or look(("%s.%s"):format(name, tostring(key)), value, depth - 1) end
    for i = 1, type(x) == "function" and debug.getinfo(x, "u").nups or 0 do
      local upvalue, value = debug.getupvalue(x, i)
      found = found or look(upvalue, value, depth - 1)
    end
    return found
  end
  for _, f in ipairs(functions) do                 -- what the user wrote first
    local found = look("loss", f, 5)
    if found then return found, f end
  end
end

-- The functions by which a user's leaf may come into a loss.
local function of_user(learner)
  local list, agent = {}, learner.agent or { asked = {} }
  for _, term in ipairs(learner.extra and learner.extra.terms or {}) do list[#list + 1] = term[2] end
  list[#list + 1] = learner.loss or learner.model
  for _, part in ipairs { "policy", "value", "torso" } do list[#list + 1] = agent.asked[part] end
  list[#list + 1] = agent.kind and not agent.kind_name and agent.kind.own or nil
  list[#list + 1] = agent.core and agent.core.forward
  return list
end

---Refuse a loss that reaches a leaf which the optimiser does not move: called where the update is recorded, before its first step.
function extra_losses.check_trained(learner)
  local moved, leaf, i, asked = {}, ffi.new "mn_tensor", 0, learner.agent and learner.agent.asked or {}
  for _, p in ipairs(learner.optimiser.parameters) do moved[p.slot] = true end
  while engine.C.mn_plan_graded(learner.learn.handle, i, leaf) do
    if not moved[leaf.slot] then
      for _, p in ipairs(learner.extra and learner.extra.module:parameters(learner.agent:parameters()) or {}) do
        if p.slot == leaf.slot then
          errors.raise(("%s: a parameter [%s] has a gradient in the loss, but self.optimiser, which setup made, does not move it"):format(learner.what,
            table.concat(p:shape(), ",")), { where = errors.position_of(learner.loss), hint = "mn.sgd(self.agent:parameters()) moves all of the agent" })
        end
      end
      local functions = of_user(learner)
      local name, f = name_of(leaf.slot, functions)
      f = f or functions[1]
      local where = type(f) == "function" and not errors.ours(debug.getinfo(f, "S")) and errors.position_of(f) or nil
      errors.raise(("%s: %s [%s] has a gradient in the loss, but belongs to no module, so that it would be neither trained nor saved"):format(
        learner.what or "supervised", name or "a tensor", table.concat(leaf:shape(), ",")), { where = where,
        hint = ((f == asked.policy or f == asked.value or f == asked.torso)
          and "mn.nn.module { %s = ..., forward = function(self, x) ... end } in place of the function"
          or (not learner.agent or f == learner.agent.core.forward) and "make it in build, as a part of the module: mn.nn.module { %s = ... }"
          or "modules = function(self) return { %s = ... } end beside the learner's loss, or { modules = { ... } } of mn.learner; "
          .. "a constant: x:detach()"):format(name and name:match "[%w_]+$" or "NAME") })
    end
    i = i + 1
  end
end

---What `setup` made of a learner's optimiser, which was `prepared`: refused where its steps would not be the learner's; the log names its leaves.
function extra_losses.check_optimiser(learner, prepared, setup)
  local opt, part_of, extra = learner.optimiser, {}, learner.extra.module
  if opt == prepared then return end
  local function refuse(what, ...)
    errors.raise(("%s: setup made self.optimiser, " .. what):format(learner.what, ...), { where = errors.position_of(setup) })
  end
  if type(opt) ~= "table" or getmetatable(opt) ~= getmetatable(prepared) then
    refuse("%s, expected %s", opt == nil and "nothing" or "a " .. type(opt),
      prepared.kind and "an optimiser such as mn.sgd(self.agent:parameters())" or "none: this learner's own moves its traces")
  end
  local parts = extra:parts(learner.agent.module:parts(), "extra")
  for i, p in ipairs(extra:parameters(learner.agent:parameters())) do part_of[p.slot] = parts[i] end
  learner.part_names = tables.map(opt.parameters, function(p, i)
    return part_of[p.slot] or refuse("whose parameter %d [%s] belongs to no module, so that no checkpoint would hold it", i, table.concat(p:shape(), ","))
  end)
  if opt.asked and opt.asked ~= learner.lr then refuse("with lr = %g, but its rate is the setting lr, %g", opt.asked, learner.lr) end
  learner.max_norm = opt.max_norm
end

-- Its errors name the place of the user's loss.
local function total(own, learner, batch)
  local loss, logged = errors.call(own, learner, batch)
  extra_losses.check_scalar(learner.what .. ": loss", loss, learner.loss)
  local named = {}
  errors.need(learner.what .. ": what loss gave to log", logged or {}, nil, "{ NAME = tensor of one element }")
  for _, name in ipairs(names_of(learner.what .. ": what loss gave to log", logged or {})) do
    named[name] = extra_losses.check_scalar(("%s: loss, %s"):format(learner.what, name), logged[name], learner.loss)
  end
  for _, term in ipairs(learner.extra.terms) do
    local value = extra_losses.check_scalar("aux: " .. term[1], errors.call(term[2], batch), term[2])
    if named[term[1]] or term[1] == "loss" then errors.raise(("aux: %s is logged by %s itself, expected another name"):format(term[1], learner.what)) end
    named[term[1]] = value
    loss = loss + value * learner.aux_coef
  end
  if learner.live and not learner.live_read then
    errors.raise(("%s: env.vector=1 has steps that only begin an episode; the loss reads no batch.live, which says which these are"):format(learner.what),
      { where = errors.position_of(learner.loss), hint = "(x * batch.live):sum() / batch.live:sum() in place of x:mean(); or without env.vector" })
  end
  if not loss:wants_grad() then errors.raise(learner.what .. ": the loss has no gradient: it depends on nothing that is trained") end
  named.loss = loss
  return loss, named
end
errors.calls(total)

---The loss of an update: the learner's own, checked, with the extra terms.
---@return Tensor loss
---@return table<string, Tensor> logged by name, each of one element
function extra_losses.total(learner, batch) return total(learner.loss, learner, batch) end

return extra_losses
