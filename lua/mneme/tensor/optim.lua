-- optim.lua -- optimisers as in torch.optim: Adam, AdamW, RAdam, SGD, RMSprop, with clipping by the global norm, in place on leaves.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local module = require "mneme.tensor.module"
local ranks = require "mneme.tensor.ranks"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class Optimiser
local Optimiser = {}
Optimiser.__index = Optimiser

-- What kinds differ in: `name`, which names of a checkpoint begin with; `state`, per parameter, by the names that checkpoints have;
-- `squares`: its state holds squares of gradients; `hyper`, values that change between replays of a plan and are in a tensor: lr first, the
-- step last; and the update of one parameter.

local adam_kind = { name = "adam", squares = true,
  state = function() return { "m", "v" } end,
  hyper = function(o) return { o.lr, 1 - o.beta1, 1 - o.beta2, o.eps, o.max_norm, 0 } end,
  update = function(self, p, i)
    ops.adam { w = p, m = self.m[i], v = self.v[i], hyper = self.hyper, norm = self.norm, weight_decay = self.weight_decay,
      rectified = self.kind.rectified }
  end }

local radam_kind = { name = "radam", squares = true, rectified = 1, state = adam_kind.state, hyper = adam_kind.hyper, update = adam_kind.update }

local sgd_kind = { name = "sgd",
  state = function(o) return o.momentum > 0 and { "v" } or {} end,
  hyper = function(o) return { o.lr, o.momentum, o.dampening, o.weight_decay, o.max_norm, 0 } end,
  update = function(self, p, i)
    ops.sgd { w = p, v = self.v and self.v[i], hyper = self.hyper, norm = self.norm, nesterov = self.nesterov }
  end }

local rmsprop_kind = { name = "rmsprop", squares = true,
  state = function(o) return { "v", o.momentum > 0 and "m" or nil, o.centered and "mean" or nil } end,
  hyper = function(o) return { o.lr, 1 - o.alpha, o.eps, o.weight_decay, o.momentum, o.max_norm, 0 } end,
  update = function(self, p, i)
    ops.rmsprop { w = p, v = self.v[i], m = self.m and self.m[i], mean = self.mean and self.mean[i], hyper = self.hyper, norm = self.norm }
  end }

local below_one = { beta1 = true, beta2 = true, alpha = true, momentum = true }

local function check_parameters(what, parameters)
  errors.need(what .. ": parameters", parameters, nil, "a list of leaves, such as agent:parameters()")
  local seen = {}
  for i, p in ipairs(parameters) do
    if not tensor.is(p) then errors.raise(("%s: parameter %d is a %s, expected a leaf"):format(what, i, type(p))) end
    if not p:wants_grad() then errors.raise(("%s: parameter %d wants no gradient, expected leaves such as net:parameters()"):format(what, i)) end
    if seen[p.slot] then errors.raise(("%s: parameter %d [%s] is parameter %d again: is a module in two places?"):format(what, i,
      table.concat(p:shape(), ","), seen[p.slot])) end
    seen[p.slot] = i
  end
  if #parameters == 0 then errors.raise(what .. ": no parameters, expected a list of leaves, such as net:parameters()") end
end

local function new(what, kind, parameters, o, options)
  check_parameters(what, parameters)
  errors.need(what .. ": options", options or {}, nil, "{ lr = 1e-3, ... }")
  for key, value in pairs(options or {}) do
    if o[key] == nil then errors.unknown("key of " .. what, key, tables.keys(o)) end
    local most = below_one[key] and 1 or math.huge
    if type(o[key]) == "boolean" then
      if type(value) ~= "boolean" then errors.raise(("%s: %s = %s, expected true or false"):format(what, key, tostring(value))) end
    elseif type(value) ~= "number" or not (value >= 0 and value < most) then
      errors.raise(("%s: %s = %s, expected a number from 0 to below %g"):format(what, key, tostring(value), most))
    end
    o[key] = value
  end
  if o.nesterov and (o.momentum == 0 or o.dampening > 0) then errors.raise(what .. ": nesterov = true, expected momentum above 0 and dampening = 0") end
  local self = setmetatable({ parameters = parameters, kind = kind, nesterov = o.nesterov, max_norm = o.max_norm, asked = (options or {}).lr,
    left_out = 0, state = {} }, Optimiser)
  for _, name in pairs(kind.state(o)) do self.state[#self.state + 1], self[name] = name, {} end
  table.sort(self.state)
  for i, p in ipairs(parameters) do
    for _, name in ipairs(self.state) do self[name][i] = tensor.new { shape = p:shape() } end
  end
  self.hyper = tensor.new(kind.hyper(o))
  self.hyper_data = self.hyper:data()
  self.steps = tensor.new { shape = { 2 }, dtype = "i32" }         -- the same count, whole: low 31 bits, high; float32 ends at 2^24
  self.steps_data = self.steps:data()
  if kind.update == adam_kind.update and (o.weight_decay or 0) > 0 then self.weight_decay = tensor.new { o.weight_decay } end
  self.sum, self.norm, self.own = tensor.new { 0, 0 }, tensor.new { 0 }, {}
  self.own_norms = tensor.new { shape = { #parameters } }
  for i in ipairs(parameters) do self.own[i] = tensor.view(self.own_norms, i - 1, { 1 }) end
  self.norm_data = self.norm:data()
  return self
end

---Adam (Kingma & Ba 2015); gradients are first scaled to max_norm where their global norm reaches it.
---@param parameters Tensor[] leaves that want a gradient
---@param options table? { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 (no clipping) }
---@return Optimiser
local function adam(parameters, options)
  return new("adam", adam_kind, parameters, { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 }, options)
end

---Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch has it: w shrinks by lr weight_decay w.
---@param parameters Tensor[]
---@param options table? adam's, and weight_decay = 0.01
---@return Optimiser
local function adamw(parameters, options)
  return new("adamw", adam_kind, parameters,
    { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0, weight_decay = 0.01 }, options)
end

---Rectified Adam (Liu et al. 2020, algorithm 2): its first steps, of whose squared gradients too few are known, are of the mean gradient alone;
---later ones grow to Adam's.  Equal to optax.radam; weight decay as adamw.
---@param parameters Tensor[]
---@param options table? adam's, and weight_decay = 0
---@return Optimiser
local function radam(parameters, options)
  return new("radam", radam_kind, parameters, { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0, weight_decay = 0 }, options)
end

---Stochastic gradient descent, as torch.optim.SGD: weight decay is added to the gradient, lr multiplies the momentum.
---@param parameters Tensor[]
---@param options table? { lr = 1e-3, momentum = 0, dampening = 0, nesterov = false, weight_decay = 0, max_norm = 0 (no clipping) }
---@return Optimiser
local function sgd(parameters, options)
  return new("sgd", sgd_kind, parameters,
    { lr = 1e-3, momentum = 0, dampening = 0, nesterov = false, weight_decay = 0, max_norm = 0 }, options)
end

---RMSprop (Tieleman & Hinton 2012), as torch.optim.RMSprop.
---@param parameters Tensor[]
---@param options table? { lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = false, max_norm = 0 (no clipping) }
---@return Optimiser
local function rmsprop(parameters, options)
  return new("rmsprop", rmsprop_kind, parameters,
    { lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = false, max_norm = 0 }, options)
end

---The values of its next step, once nobody computes with them: lr first, the steps so far last.
---@return ffi.cdata* float[]
function Optimiser:settings()
  engine.wait()
  return self.hyper_data
end

---Count one step (before the update that uses it); `lr` may change with it.
---@param lr number? of this step; nil: as before
function Optimiser:tick(lr)
  if lr ~= nil and (type(lr) ~= "number" or lr ~= lr) then errors.raise(("%s: lr of a step is %s, expected a number"):format(self.kind.name, tostring(lr))) end
  self:look_back()
  self.due = true
  local hyper, n = self:settings(), self:updates() + 1
  hyper[self.hyper:size() - 1] = n
  self.steps_data[0], self.steps_data[1] = n % 2 ^ 31, math.floor(n / 2 ^ 31)
  if lr then hyper[0] = lr end
end

---The update itself, as ops: a plan may record it.  Several ranks first take the mean of their gradients.
function Optimiser:apply()
  if ranks.size > 1 then
    for i, p in ipairs(self.parameters) do ops.ranks_mean { w = p, more = i < #self.parameters } end
  end
  for i, p in ipairs(self.parameters) do
    ops.grad_norm { w = p, sum = self.sum, norm = self.norm, own = self.own[i], first = i == 1 }
  end
  for i, p in ipairs(self.parameters) do self.kind.update(self, p, i) end
end

---Was the last step left out?  Then it is counted, and the first time said.
function Optimiser:look_back()
  if not self.due then return end
  self.due = false
  local norm, most = self:grad_norm(), self.max_norm > 0 and self.max_norm or math.huge
  if norm - norm == 0 and not (self.kind.squares and math.min(norm, most) > 1e19) then return end       -- as mn_step_scale
  self.left_out = self.left_out + 1
  if self.left_out > 1 then return end
  local where = errors.position()
  terminal.note(("mneme: warning: %s%s left step %.0f out, and nothing has changed: the norm of the gradients is %g%s"):format(
    where and where .. ": " or "", self.kind.name, self:updates(), norm,
    norm - norm == 0 and ", whose square float32 does not hold: max_norm clips it" or ""))
end

---How many steps were left out so far, because the norm of the gradients was not finite, or its square was not and nothing clipped it.
---@return integer
function Optimiser:steps_left_out()
  self:look_back()
  return self.left_out
end

---One step outside a plan.  Where the norm of the gradients is NaN or infinite, nothing changes: a warning says so the first time, and
---steps_left_out() counts it.
---@param lr number? as for tick
function Optimiser:step(lr)
  self:tick(lr)
  self:apply()
  if not engine.recording then self:look_back() end
end

---Forget the gradients of all parameters.
function Optimiser:zero_grad() for _, p in ipairs(self.parameters) do p:zero_grad() end end

---The global norm of the gradients at the last step, before clipping.
---@return number
function Optimiser:grad_norm()
  engine.wait()
  return self.norm_data[0]
end

---The same of groups of parameters, of which each has a name.
---@param names string[] of each parameter the group
---@return table<string, number>
function Optimiser:grad_norms(names)
  local norms, own = {}, self.own_norms:data()
  for i, name in ipairs(names) do norms[name] = (norms[name] or 0) + own[i - 1] ^ 2 end
  for name, sum in pairs(norms) do norms[name] = math.sqrt(sum) end
  return norms
end

---Numbers to log: the global norm, those of groups, and the learning rate.
---@param m table<string, number> they are put here
---@param names string[] see grad_norms
function Optimiser:metrics(m, names)
  m["grad/norm"], m["charts/learning_rate"] = self:grad_norm(), self:lr()
  if self:steps_left_out() > 0 then m["grad/steps_left_out"] = self.left_out end
  for name, norm in pairs(self:grad_norms(names)) do m["grad/" .. name] = norm end
end

local as_float = ffi.new "float[1]"

---How many updates were counted.
---@return integer
function Optimiser:updates()
  local about = self:settings()[self.hyper:size() - 1]
  local n = self.steps_data[0] + self.steps_data[1] * 2 ^ 31
  as_float[0] = n
  return as_float[0] == about and n or about          -- a checkpoint of an earlier version has the float alone
end
---The learning rate of the last step.
---@return number
function Optimiser:lr() return self:settings()[0] end

---What a checkpoint holds of it, { name, tensor } each: adam.m.000, adam.v.000 ..., adam.hyper and adam.steps.
---@return table[]
function Optimiser:contents()
  local list, kind = {}, self.kind.name
  for i in ipairs(self.parameters) do
    for _, name in ipairs(self.state) do list[#list + 1] = { ("%s.%s.%03d"):format(kind, name, i - 1), self[name][i] } end
  end
  list[#list + 1] = { kind .. ".hyper", self.hyper }
  list[#list + 1] = { kind .. ".steps", self.steps, optional = true }
  return list
end

---The same by name, as torch's state_dict: for mn.save.  The tensors are the optimiser's own.
---@return table<string, Tensor>
function Optimiser:state_dict()
  local dict = {}
  for _, item in ipairs(self:contents()) do dict[item[1]] = item[2] end
  return dict
end

---Continue where an optimiser of as many parameters was.
---@param dict table<string, Tensor> such as mn.load(path)
function Optimiser:load_state_dict(dict)
  engine.wait()
  local mine, steps = self:state_dict(), self.kind.name .. ".steps"
  if type(dict) == "table" and not dict[steps] then mine[steps] = nil end          -- of an earlier version
  module.load(self.kind.name .. ":load_state_dict", mine, dict, true)
end

return { adam = adam, adamw = adamw, radam = radam, sgd = sgd, rmsprop = rmsprop }
