-- losses.lua -- losses as functions, as in torch.nn.functional: mn.mse_loss(input, target, { reduction = "mean" }).
-- Input and target have the same shape: a loss of shapes that only broadcast is nearly always a mistake.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local op_binding = require "mneme.tensor.op_binding"
local tensor = require "mneme.tensor.tensor"
local ops, describe = tensor.ops, op_binding.describe

local losses = {}

local REDUCTIONS = { "mean", "sum", "none" }

-- The options of a loss, checked: reduction, and those of `known`, which has the defaults.
local function options_of(name, options, known)
  if options ~= nil and (type(options) ~= "table" or tensor.is(options)) then
    errors.raise(("%s: options are %s, expected { reduction = \"mean\" }"):format(name, describe(options)))
  end
  local o = tables.merged({ reduction = "mean" }, known)
  for key, value in pairs(options or {}) do
    if o[key] == nil then errors.unknown("argument of " .. name .. ":", key, tables.keys(o)) end
    if key ~= "reduction" and (type(value) ~= "number" or not (value > 0 and value < math.huge)) then
      errors.raise(("%s: %s = %s, expected a number above 0"):format(name, key, describe(value)))
    end
    o[key] = value
  end
  return o
end

local function reduce(name, loss, reduction)
  if reduction == "mean" then return loss:mean() end
  if reduction == "sum" then return loss:sum() end
  if reduction == "none" then return loss end
  errors.raise(("%s: reduction = %s, expected one of %s"):format(name, describe(reduction), table.concat(REDUCTIONS, ", ")))
end

local function shape_text(x) return table.concat(x:shape(), ",") end

-- Both are float32 tensors of one shape.
local function check_pair(name, input, target)
  for what, x in pairs { input = input, target = target } do
    if not tensor.is(x) then errors.raise(("%s: %s is %s, expected a tensor"):format(name, what, describe(x))) end
  end
  local a, b = shape_text(input), shape_text(target)
  if a ~= b then
    errors.raise(("%s: input is [%s], target [%s], expected the same shape"):format(name, a, b), { hint = "target:reshape(...) makes them alike" })
  end
end

-- A loss of a pair: what f gives of the options, reduced.
local function of_pair(name, input, target, options, known, f)
  local o = options_of(name, options, known)
  check_pair(name, input, target)
  return reduce(name, f(o), o.reduction)
end

---(input - target)^2.
---@param input Tensor
---@param target Tensor of the same shape
---@param options { reduction: "mean"|"sum"|"none" }?
---@return Tensor loss [1]; reduction = "none": input's shape
function losses.mse_loss(input, target, options)
  return of_pair("mse_loss", input, target, options, {}, function() return (input - target):square() end)
end

---|input - target|.
---@param input Tensor
---@param target Tensor of the same shape
---@param options { reduction: "mean"|"sum"|"none" }?
---@return Tensor loss
function losses.l1_loss(input, target, options)
  return of_pair("l1_loss", input, target, options, {}, function() return (input - target):abs() end)
end

-- c (|d| - c/2) with c = min(|d|, delta) is d^2/2 near zero and delta (|d| - delta/2) beyond.
local function huber(input, target, delta)
  local size = (input - target):abs()
  local near = size:clamp { hi = delta }
  return near * (size - near * 0.5)
end

---The Huber loss: d^2 / 2 where |d| < delta, else delta (|d| - delta / 2), with d = input - target.
---@param input Tensor
---@param target Tensor of the same shape
---@param options { reduction: "mean"|"sum"|"none", delta: number }? delta = 1
---@return Tensor loss
function losses.huber_loss(input, target, options)
  return of_pair("huber_loss", input, target, options, { delta = 1 }, function(o) return huber(input, target, o.delta) end)
end

---The Huber loss divided by beta: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2.
---@param input Tensor
---@param target Tensor of the same shape
---@param options { reduction: "mean"|"sum"|"none", beta: number }? beta = 1
---@return Tensor loss
function losses.smooth_l1_loss(input, target, options)
  return of_pair("smooth_l1_loss", input, target, options, { beta = 1 }, function(o) return huber(input, target, o.beta) * (1 / o.beta) end)
end

---Of logits x and targets z in 0..1: -z ln sigmoid(x) - (1 - z) ln(1 - sigmoid(x)), as softplus(x) - x z.
---@param input Tensor logits
---@param target Tensor of the same shape
---@param options { reduction: "mean"|"sum"|"none" }?
---@return Tensor loss
function losses.binary_cross_entropy_with_logits(input, target, options)
  local name = "binary_cross_entropy_with_logits"
  if type(options) == "table" and (options.pos_weight or options.weight) then
    errors.raise(name .. ": there are no weights", { hint = "reduction = \"none\" gives the losses to multiply" })
  end
  return of_pair(name, input, target, options, {}, function() return input:softplus() - input * target end)
end

---Minus the log-probability of the target's class.
---@param log_probs Tensor [...,V] as from log_softmax
---@param target Tensor [...] int32 classes from 0
---@param options { reduction: "mean"|"sum"|"none" }?
---@return Tensor loss
function losses.nll_loss(log_probs, target, options)
  local o = options_of("nll_loss", options, {})
  return reduce("nll_loss", -ops.pick(log_probs, target), o.reduction)
end

---The loss of a classifier: minus the log-probability of the target's class, or of a distribution over classes.  With named arguments, or
---without reduction, it is the op of that name, which also returns each row's loss and whether its largest logit is the right one.
---@param logits Tensor [...,V]
---@param target Tensor [...] int32 classes from 0, or [...,V] probabilities
---@param options { reduction: "mean"|"sum"|"none", asked: Tensor }? asked [...] u8 of the op: 1 for the rows that count
---@return Tensor loss, Tensor? nats, Tensor? right
function losses.cross_entropy(logits, target, options)
  local plain = options == nil or type(options) == "table" and options.reduction == nil
  if tensor.is(logits) and tensor.is(target) and target:dtype() == "f32" then
    return of_pair("cross_entropy", logits, target, options, {}, function() return -(target * ops.log_softmax(logits)):sum(-1) end)
  elseif plain then
    if options == nil then return ops.cross_entropy(logits, target) end
    return ops.cross_entropy(logits, target, options)
  end
  local o = options_of("cross_entropy", options, {})
  return reduce("cross_entropy", -ops.pick(ops.log_softmax(logits), target), o.reduction)
end

---target (ln target - input), as torch.nn.functional.kl_div: the divergence of a distribution `target` from the one whose logarithms are
---`input`.  The first argument is a logarithm and the other is not; mn.kl_divergence(p, q) takes two distributions.
---@param input Tensor log-probabilities
---@param target Tensor probabilities, of the same shape
---@param options { reduction: string }? "mean", "sum", "none" or "batchmean": the sum divided by the first axis, the divergence of rows
---@return Tensor loss
function losses.kl_div(input, target, options)
  local o = options_of("kl_div", options, {})
  check_pair("kl_div", input, target)
  local loss = target * (target:clamp { lo = 1.2e-38 }:log() - input)        -- 0 ln 0 is 0
  if o.reduction == "batchmean" then return loss:sum() * (1 / input:shape()[1]) end
  return reduce("kl_div", loss, o.reduction)
end

return losses
