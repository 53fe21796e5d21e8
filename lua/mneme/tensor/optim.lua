-- optim.lua -- Adam and AdamW with clipping by the global norm, in place on leaves.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local ranks = require "mneme.tensor.mpi"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class Adam
local Adam = {}
Adam.__index = Adam

local function new(what, parameters, o, options)
  errors.need(what .. ": parameters", parameters, nil, "a list of leaves, such as agent:parameters()")
  errors.need(what .. ": options", options or {}, nil, "{ lr = 1e-3, ... }")
  for i, p in ipairs(parameters) do
    if not tensor.is(p) then errors.raise(("%s: parameter %d is a %s, expected a leaf"):format(what, i, type(p))) end
  end
  for key, value in pairs(options or {}) do
    if o[key] == nil then errors.unknown("key of " .. what, key, tables.keys(o)) end
    local most = key:match "^beta" and 1 or math.huge
    if type(value) ~= "number" or not (value >= 0 and value < most) then
      errors.raise(("%s: %s = %s, expected a number from 0 to below %g"):format(what, key, tostring(value), most))
    end
    o[key] = value
  end
  local self = setmetatable({ parameters = parameters, m = {}, v = {} }, Adam)
  for i, p in ipairs(parameters) do
    self.m[i], self.v[i] = tensor.new { shape = p:shape() }, tensor.new { shape = p:shape() }
  end
  -- Values that change between replays of a plan are in a tensor: lr, 1-beta1, 1-beta2, eps, max_norm, step.
  self.hyper = tensor.new { o.lr, 1 - o.beta1, 1 - o.beta2, o.eps, o.max_norm, 0 }
  self.hyper_data = self.hyper:data()
  if (o.weight_decay or 0) > 0 then self.weight_decay = tensor.new { o.weight_decay } end
  self.sum, self.norm, self.own = tensor.new { 0, 0 }, tensor.new { 0 }, {}
  self.squares = tensor.new { shape = { #parameters } }
  for i in ipairs(parameters) do self.own[i] = tensor.view(self.squares, i - 1, { 1 }) end
  self.norm_data = self.norm:data()
  return self
end

---Adam (Kingma & Ba 2015); gradients are first scaled to max_norm where their global norm reaches it.
---@param parameters Tensor[] leaves that want a gradient
---@param options table? { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 (no clipping) }
---@return Adam
local function adam(parameters, options)
  return new("adam", parameters, { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 }, options)
end

---Adam with decoupled weight decay (Loshchilov & Hutter 2019), as torch has it: w shrinks by lr weight_decay w.
---@param parameters Tensor[]
---@param options table? adam's, and weight_decay = 0.01
---@return Adam
local function adamw(parameters, options)
  return new("adamw", parameters,
    { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0, weight_decay = 0.01 }, options)
end

---The numbers of its next step, once nobody computes with them: lr, 1 - beta1, 1 - beta2, eps, max_norm, steps so far.
---@return ffi.cdata* float[6]
function Adam:settings()
  engine.wait()
  return self.hyper_data
end

---Count one step (before the update that uses it); `lr` may change with it.
---@param lr number? of this step; nil: as before
function Adam:tick(lr)
  if lr ~= nil and (type(lr) ~= "number" or lr ~= lr) then errors.raise(("adam: lr of a step is %s, expected a number"):format(tostring(lr))) end
  local hyper = self:settings()
  hyper[5] = hyper[5] + 1
  if lr then hyper[0] = lr end
end

---The update itself, as ops: a plan may record it.  Several ranks first take the mean of their gradients.
function Adam:apply()
  if ranks.size > 1 then
    for i, p in ipairs(self.parameters) do ops.ranks_mean { w = p, more = i < #self.parameters } end
  end
  for i, p in ipairs(self.parameters) do
    ops.grad_norm { w = p, sum = self.sum, norm = self.norm, own = self.own[i], first = i == 1 }
  end
  for i, p in ipairs(self.parameters) do
    ops.adam { w = p, m = self.m[i], v = self.v[i], hyper = self.hyper, norm = self.norm,
      weight_decay = self.weight_decay }
  end
end

---One step outside a plan.
---@param lr number? as for tick
function Adam:step(lr) self:tick(lr) self:apply() end

---Forget the gradients of all parameters.
function Adam:zero_grad() for _, p in ipairs(self.parameters) do p:zero_grad() end end

---The global norm of the gradients at the last step, before clipping.
---@return number
function Adam:grad_norm()
  engine.wait()
  return self.norm_data[0]
end

---The same of groups of parameters, of which each has a name.
---@param names string[] of each parameter the group
---@return table<string, number>
function Adam:grad_norms(names)
  local norms, squares = {}, self.squares:data()
  for i, name in ipairs(names) do norms[name] = (norms[name] or 0) + squares[i - 1] end
  for name, sum in pairs(norms) do norms[name] = math.sqrt(sum) end
  return norms
end

---Numbers to log: the global norm, those of groups, and the learning rate.
---@param m table<string, number> they are put here
---@param names string[] see grad_norms
function Adam:metrics(m, names)
  m["grad/norm"], m["charts/learning_rate"] = self:grad_norm(), self:lr()
  for name, norm in pairs(self:grad_norms(names)) do m["grad/" .. name] = norm end
end

---How many updates were counted, and the learning rate of the last.
---@return integer
function Adam:updates() return self:settings()[5] end
---The learning rate of the last step.
---@return number
function Adam:lr() return self:settings()[0] end

---What a checkpoint holds of it, { name, tensor } each: adam.m.000, adam.v.000 ... and adam.hyper.
---@return table[]
function Adam:contents()
  local list = {}
  for i in ipairs(self.parameters) do
    local name = ("%03d"):format(i - 1)
    list[#list + 1], list[#list + 2] = { "adam.m." .. name, self.m[i] }, { "adam.v." .. name, self.v[i] }
  end
  list[#list + 1] = { "adam.hyper", self.hyper }
  return list
end

return { adam = adam, adamw = adamw }
