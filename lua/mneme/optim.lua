-- optim.lua -- Adam with clipping by the global norm, in place on leaves.
local errors = require "mneme.errors"
local find = require "mneme.find"
local tensor = require "mneme.tensor"
local ops = tensor.ops

---@class Adam
local Adam = {}
Adam.__index = Adam

---Adam (Kingma & Ba 2015); gradients are first scaled to max_norm where their global norm reaches it.
---@param parameters Tensor[] leaves that want a gradient
---@param options table? { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 (no clipping) }
---@return Adam
local function adam(parameters, options)
  local o = { lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, max_norm = 0 }
  for key, value in pairs(options or {}) do
    if o[key] == nil then errors.unknown("key of adam", key, find.keys(o)) end
    o[key] = value
  end
  local self = setmetatable({ parameters = parameters, m = {}, v = {} }, Adam)
  for i, p in ipairs(parameters) do
    self.m[i], self.v[i] = tensor.new { shape = p:shape() }, tensor.new { shape = p:shape() }
  end
  -- Numbers that change between replays of a plan live in a tensor: lr, 1-beta1, 1-beta2, eps, max_norm, step.
  self.hyper = tensor.new { o.lr, 1 - o.beta1, 1 - o.beta2, o.eps, o.max_norm, 0 }
  self.hyper_data = self.hyper:data()
  self.sum, self.norm = tensor.new { 0, 0 }, tensor.new { 0 }
  self.norm_data = self.norm:data()
  return self
end

---Count one step (before the update that uses it); `lr` may change with it.
function Adam:tick(lr)
  self.hyper_data[5] = self.hyper_data[5] + 1
  if lr then self.hyper_data[0] = lr end
end

---The update itself, as ops: a plan may record it.
function Adam:apply()
  for i, p in ipairs(self.parameters) do ops.grad_norm { w = p, sum = self.sum, norm = self.norm, first = i == 1 } end
  for i, p in ipairs(self.parameters) do
    ops.adam { w = p, m = self.m[i], v = self.v[i], hyper = self.hyper, norm = self.norm }
  end
end

---One step outside a plan.
function Adam:step(lr) self:tick(lr) self:apply() end

function Adam:zero_grad() for _, p in ipairs(self.parameters) do p:zero_grad() end end

---The global norm of the gradients at the last step, before clipping.
function Adam:grad_norm() return self.norm_data[0] end

---Everything to save: named tensors (`name.m`, `name.v` of each named parameter) and the step count.
function Adam:state(names)
  local list = {}
  for i in ipairs(self.parameters) do
    list[#list + 1] = { names[i] .. ".m", self.m[i] }
    list[#list + 1] = { names[i] .. ".v", self.v[i] }
  end
  list[#list + 1] = { "step", self.hyper }
  return list
end

return { adam = adam }
