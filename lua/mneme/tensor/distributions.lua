-- distributions.lua -- mn.categorical, mn.bernoulli and mn.normal, as in torch.distributions: log_prob, entropy, sample, mode, kl.
-- They are made of ops, so that gradients flow, plans record them, and a sample that a plan recorded is another one at each replay.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local op_binding = require "mneme.tensor.op_binding"
local random = require "mneme.tensor.random"
local tensor = require "mneme.tensor.tensor"
local ops, describe = tensor.ops, op_binding.describe

local distributions = {}

-- A tensor with gradient as a constant.
local function constant(x) return x:wants_grad() and x:detach() or x end

local function check_tensor(what, x)
  if not tensor.is(x) or x:dtype() ~= "f32" then errors.raise(("%s is %s, expected a float32 tensor"):format(what, describe(x))) end
  return x
end

-- Refuse numbers for which fits(number) is false.  While a plan records there are none yet: debug=1 then finds what is not finite.
local function check_numbers(what, x, fits, expected)
  if engine.recording then return x end
  local p = x:data()
  for i = 0, x:size() - 1 do
    if not fits(p[i]) then errors.raise(("%s[%d] is %g, expected %s"):format(what, i, p[i], expected)) end
  end
  return x
end
local function is_number(x) return x == x end
local function above_zero(x) return x > 0 and x < math.huge end
local function is_probability(x) return x >= 0 and x <= 1 end
local function not_negative(x) return x >= 0 and x < math.huge end

-- Can something be drawn of each row: is its largest number finite, and none NaN?
local function check_rows(what, x, lowest, expected)
  if engine.recording then return x end
  local p, shape = x:data(), x:shape()
  local n = shape[#shape]
  for row = 0, x:size() / n - 1 do
    local top = -math.huge
    for i = row * n, row * n + n - 1 do top = top == top and (p[i] > top or p[i] ~= p[i]) and p[i] or top end
    if not (top > lowest and top < math.huge) then errors.raise(("%s: row %d, whose largest number is %g: expected %s"):format(what, row, top, expected)) end
  end
  return x
end

-- Arguments as mn.categorical(logits), { logits = x } or { probs = x }: logits, probs; one of them nil.
local function logits_or_probs(name, given)
  if tensor.is(given) or type(given) ~= "table" then return check_tensor(name .. ": logits", given) end
  for _, key in ipairs(tables.keys(given)) do
    if key ~= "logits" and key ~= "probs" then errors.unknown("argument of " .. name .. ":", key, { "logits", "probs" }) end
  end
  if (given.logits == nil) == (given.probs == nil) then errors.raise(name .. ": expected either logits or probs") end
  if given.logits ~= nil then return check_tensor(name .. ": logits", given.logits) end
  return nil, check_tensor(name .. ": probs", given.probs)
end

local function check_same(q, kind, text)
  if type(q) ~= "table" or getmetatable(q) ~= kind then
    errors.raise(("%s:kl: %s, expected another %s"):format(text, type(q) == "table" and tostring(q) or describe(q), text))
  end
end

local function shape_text(x) return "[" .. table.concat(x:shape(), ",") .. "]" end

-- ---- categorical ----

---@class Categorical a distribution over 0 .. A-1 for each row
---@field logits Tensor [...,A]
local Categorical = {}
Categorical.__index = Categorical

-- The logarithms of the probabilities, which several methods need.
local function log_probs(d)
  d.log = d.log or ops.log_softmax(d.logits)
  return d.log
end

-- A class that is ruled out (logit -inf) has p ln p = 0.
local function finite(log) return log:clamp { lo = -1e30 } end

---The log-probability of classes.
---@param x Tensor [...] int32
---@return Tensor [...]
function Categorical:log_prob(x) return ops.pick(log_probs(self), x) end

---In nats.
---@return Tensor [...]
function Categorical:entropy() return -(self:probs() * finite(log_probs(self))):sum(-1) end

---The probabilities of the classes.
---@return Tensor probs [...,A]
function Categorical:probs() return ops.softmax(self.logits) end

---A class drawn for each row.
---@return Tensor [...] int32
function Categorical:sample()
  check_rows("categorical:sample: logits", self.logits, -math.huge, "a finite one, so that a class is possible, and no NaN")
  return (ops.random_index(self.logits, random.key()))
end

---The likeliest class of each row, the first of equals.
---@return Tensor [...] int32
function Categorical:mode() return (select(2, ops.max(constant(self.logits), { axis = -1 }))) end

---KL(self || other), in nats; inf where other rules a class out that self does not.
---@param other Categorical
---@return Tensor [...]
function Categorical:kl(other)
  check_same(other, Categorical, "categorical")
  local mine, theirs = log_probs(self), log_probs(other)
  local ruled_out = ops.logical_and(theirs:eq(-math.huge), mine:ne(-math.huge))
  return ops.where(ruled_out, math.huge, self:probs() * (finite(mine) - finite(theirs))):sum(-1)
end

function Categorical:__tostring() return "categorical(" .. shape_text(self.logits) .. ")" end

---A distribution over classes for each row, from logits [...,A]: mn.categorical(logits), mn.categorical { probs = p }.
---@param logits Tensor|{ logits: Tensor?, probs: Tensor? }
---@return Categorical
function distributions.categorical(logits)
  local x, probs = logits_or_probs("categorical", logits)
  if #(x or probs):shape() == 0 then errors.raise "categorical: one number, expected [...,A]" end
  if probs then
    check_numbers("categorical: probs", probs, not_negative, "numbers of at least 0, finite")
    check_rows("categorical: probs", probs, 0, "one above 0, so that a class is possible")
  end
  return setmetatable({ logits = x or ops.where(probs:gt(0), probs:clamp { lo = 1.2e-38 }:log(), -math.huge) }, Categorical)
end

-- ---- bernoulli ----

---@class Bernoulli 1 or 0 for each element
---@field logits Tensor ln(p / (1 - p))
local Bernoulli = {}
Bernoulli.__index = Bernoulli

local EPS = 2 ^ -23                -- probabilities as near to 0 and 1 as float32 can tell

---The log-probability of each element.
---@param x Tensor zeros and ones, as floats
---@return Tensor
function Bernoulli:log_prob(x) return self.logits * check_tensor("bernoulli: x", x) - self.logits:softplus() end

---In nats.
---@return Tensor
function Bernoulli:entropy() return self.logits:softplus() - self.logits * self.logits:sigmoid() end

---The probability of 1.
---@return Tensor
function Bernoulli:probs() return self.logits:sigmoid() end

---A draw for each element.
---@return Tensor zeros and ones, as floats
function Bernoulli:sample()
  check_numbers("bernoulli:sample: logits", self.logits, is_number, "a number")
  local u = ops.random_uniform(self.logits, random.key())
  return (constant(self:probs()) - u):sign():relu()
end

---The likelier of 0 and 1; 0 where they are equal.
---@return Tensor
function Bernoulli:mode() return constant(self.logits):sign():relu() end

---KL(self || other), in nats.
---@param other Bernoulli
---@return Tensor
function Bernoulli:kl(other)
  check_same(other, Bernoulli, "bernoulli")
  return self:probs() * (self.logits - other.logits) - self.logits:softplus() + other.logits:softplus()
end

function Bernoulli:__tostring() return "bernoulli(" .. shape_text(self.logits) .. ")" end

---1 with a probability for each element, else 0: mn.bernoulli(logits), mn.bernoulli { probs = p }.
---@param logits Tensor|{ logits: Tensor?, probs: Tensor? }
---@return Bernoulli
function distributions.bernoulli(logits)
  local x, probs = logits_or_probs("bernoulli", logits)
  if probs then
    probs = check_numbers("bernoulli: probs", probs, is_probability, "0 to 1"):clamp { lo = EPS, hi = 1 - EPS }
    x = probs:log() - (1 - probs):log()
  end
  return setmetatable({ logits = x }, Bernoulli)
end

-- ---- normal ----

---@class Normal a normal distribution for each element
---@field mean Tensor
---@field std Tensor of the same shape
local Normal = {}
Normal.__index = Normal

local HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

---The log-density of each element; :sum(-1) is that of a vector.
---@param x Tensor
---@return Tensor
function Normal:log_prob(x)
  local z = (check_tensor("normal: x", x) - self.mean) / self.std
  return z:square() * -0.5 - self.std:log() - HALF_LOG_2PI
end

---In nats.
---@return Tensor
function Normal:entropy() return self.std:log() + (0.5 + HALF_LOG_2PI) end

---A sample as a function of mean and std, through which gradients flow.
---@return Tensor
function Normal:rsample() return self.mean + self.std * ops.random_normal(self.mean, random.key()) end

---A draw for each element, a constant for gradients.
---@return Tensor
function Normal:sample() return constant(self:rsample()) end

---The likeliest value of each element.
---@return Tensor
function Normal:mode() return self.mean end

---KL(self || other), in nats.
---@param other Normal
---@return Tensor of each element
function Normal:kl(other)
  check_same(other, Normal, "normal")
  local ratio, far = (self.std / other.std):square(), ((self.mean - other.mean) / other.std):square()
  return (ratio + far - ratio:log() - 1) * 0.5
end

function Normal:__tostring() return "normal(" .. shape_text(self.mean) .. ")" end

-- A number as a tensor [1].
local function as_tensor(what, x)
  if type(x) == "number" then return tensor.new { x } end
  return check_tensor(what, x)
end

---A normal distribution for each element: mn.normal(mean, std).
---@param mean Tensor|number
---@param std Tensor|number above 0; shapes broadcast
---@return Normal
function distributions.normal(mean, std)
  mean, std = as_tensor("normal: mean", mean), as_tensor("normal: std", std)
  if shape_text(mean) ~= shape_text(std) then
    mean, std = mean + std * 0, std + mean * 0
  end
  check_numbers("normal: mean", mean, is_number, "a number")
  check_numbers("normal: std", std, above_zero, "a number above 0, finite")
  return setmetatable({ mean = mean, std = std }, Normal)
end

-- ---- divergence ----

---KL(p || q) in nats, as torch.distributions.kl_divergence: of two distributions of one kind, or of two tensors of logits [...,A].
---@param p Categorical|Bernoulli|Normal|Tensor
---@param q Categorical|Bernoulli|Normal|Tensor
---@return Tensor
function distributions.kl_divergence(p, q)
  if tensor.is(p) and tensor.is(q) then p, q = distributions.categorical(p), distributions.categorical(q) end
  if type(p) ~= "table" or type(p.kl) ~= "function" then
    errors.raise(("kl_divergence: p is %s, expected a distribution or logits"):format(describe(p)))
  end
  return p:kl(q)
end

return distributions
