-- sensitivity.lua -- exact credit: gradients that reach back beyond the window in which a loss was computed, to the episode's first step.
-- A core whose state has a diagonal Jacobian (or one of blocks of two), with gates that are functions of its input alone, keeps for each
-- element of its state how that depends on the few parameters that are its own: S, its sensitivities (Williams and Zipser 1989).  Within a
-- window gradients flow as ever; what they ask of the state in which it began goes on through S (op with_past).  Over a window S is carried by one product a kind
-- of parameter (op carry_sensitivity), whose factors are gradients of the last state, summed: each parameter of an element moves that
-- element alone, so a sum over elements keeps them apart.
-- Exact for a layer's own parameters.  Left out is what parts below a layer (embedding, torso, lower layers) did to its state before the
-- window.
-- A core declares
--   sensitivities   a list, of each layer { groups, run }
--     groups        each: { state = full name, from = its first element, count, kinds, across = number of the group that it turns into,
--                   where the Jacobian is of blocks of two }; kinds: the parameters of an element, each
--                   { weight = [O,D]?, bias = [O]?, row = function(i): the row that belongs to element i, from 0 }
--     run           function(x, done, state) -> of each group { y = [B,...] its elements after the window, u = of each kind [T,B,count]: what
--                   row row(i) gives at a step for element i (weight x + bias; bias alone), of which y is computed }
--   and its forward takes a seventh argument, sense(n, x), to be called with the input of each such layer.
local errors = require "mneme.base.errors"
local gradients = require "mneme.tensor.gradients"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

---@class Sensitivities
---@field state table<string, Tensor> leaves: the state in which the window begins, as carry reads it
---@field kinds table[] of every group: { S, next, rows, weight, bias, from, state }
local Sensitivities = {}
Sensitivities.__index = Sensitivities

local function kinds_of(self, group, B)
  local list = {}
  for k, kind in ipairs(group.kinds) do
    local R = (kind.weight and kind.weight:shape()[2] or 0) + (kind.bias and 1 or 0)
    local rows = tensor.new { shape = { group.count }, dtype = "i32" }
    for i = 0, group.count - 1 do rows:data()[i] = kind.row(i) end
    list[k] = { S = tensor.new { shape = { B, group.count, R } }, next = tensor.new { shape = { B, group.count, R } }, rows = rows,
      weight = kind.weight, bias = kind.bias, from = group.from, state = group.state }
    self.kinds[#self.kinds + 1] = list[k]
  end
  return list
end

---@param core Core
---@param B integer environments
---@return Sensitivities all 0: nothing came before
local function new(core, B)
  if not core.sensitivities then
    errors.usage(("credit=exact: core %s declares no sensitivities: %s"):format(core.name, core.no_sensitivities or "its state mixes its elements"))
  end
  local self = setmetatable({ core = core, B = B, kinds = {}, groups = {}, state = {} }, Sensitivities)
  for name in pairs(core.states) do
    self.state[name] = tensor.new { shape = core:state_shape(name, B), grad = true }
  end
  for n, layer in ipairs(core.sensitivities) do
    self.groups[n] = {}
    for g, group in ipairs(layer.groups) do self.groups[n][g] = kinds_of(self, group, B) end
  end
  self.plan = plan(function(...) self:record(...) end)
  return self
end

---Numbers of one environment.
---@return integer
function Sensitivities:floats()
  local n = 0
  for _, kind in ipairs(self.kinds) do n = n + kind.S:size() / self.B end
  return n
end

---The state in which a window begins, through which gradients go on to what came before.
---@param state table<string, Tensor>
---@param leaves table<table, Tensor>? in place of S, by kind: those of a minibatch
---@return table<string, Tensor>
function Sensitivities:with_past(state, leaves)
  local whole = {}
  for name, t in pairs(state) do whole[name] = t end
  for _, kind in ipairs(self.kinds) do
    whole[kind.state] = ops.with_past { state = whole[kind.state], S = leaves and leaves[kind] or kind.S, w = kind.weight, bias = kind.bias,
      rows = kind.rows, from = kind.from }
  end
  return whole
end

-- Elements of a state, [B,count].
local function elements(self, t, group)
  return ops.slice { x = ops.reshape(t, { d0 = self.B, d1 = t:size() / self.B }), axis = -1, from = group.from, to = group.from + group.count }
end

-- The window: inputs of every layer, then of each group how its last state depends on the first and on what each step wrote.
function Sensitivities:record(x, done, state)
  local inputs = {}
  tensor.off_tape(self.core.forward, x, done, state, nil, nil, nil, function(n, e) inputs[n] = e end)
  for n, layer in ipairs(self.core.sensitivities) do
    local results = layer.run(inputs[n], done, state)
    for g, group in ipairs(layer.groups) do
      local grads = gradients.grad(ops.sum(results[g].y), { state[group.state], unpack(results[g].u) }, { retain = g < #results })
      local keep, across = elements(self, grads[1], group), nil
      if group.across then across = elements(self, grads[1], layer.groups[group.across]) end
      for k, kind in ipairs(self.groups[n][g]) do
        ops.carry_sensitivity { S = kind.S, keep = keep, g = grads[k + 1], x = kind.weight and inputs[n], across = across,
          other = across and self.groups[n][group.across][k].S, into = kind.next }
      end
    end
  end
end

---Look at the window that began in `state`: what S will be after it, for `move_on`.
---@param x Tensor [T,B,d_in] what the core read
---@param done Tensor [T,B]
---@param state table<string, Tensor>
function Sensitivities:look(x, done, state)
  tensor.keep(state, self.state)
  self.plan(x, done, self.state)
end

---The next window begins.
function Sensitivities:move_on()
  for _, kind in ipairs(self.kinds) do kind.S:copy(kind.next) end
end

return new
