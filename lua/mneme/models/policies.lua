-- policies.lua -- policies as distributions over the actions of a space.  An agent's policy head gives P numbers a step, [T,B,P], the
-- parameters; agent:distribution(parameters) is their meaning, which learners ask: they know no softmax.
--   categorical        of a discrete space: the parameters are logits
--   epsilon_greedy     of a discrete space: the parameters are Q values, of which the largest is taken, but for a share of random actions
--   multi_categorical  of several choices at once: the logits of each, one after another
--   normal             of a box: means and log-deviations; drawn without bounds, which environments clip to
--   tanh_normal        of a box with bounds: tanh of a normal draw, stretched to the bounds
-- A kind of one's own is a table { size = function(space) ... end, of = function(parameters, space) ... end }, the option `distribution` of mn.agent.
local errors = require "mneme.base.errors"
local op_binding = require "mneme.tensor.op_binding"
local nn = require "mneme.tensor.nn"
local random = require "mneme.tensor.random"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local distributions = require("mneme.base.lazy") "mneme.tensor.distributions"
local M, ops = {}, tensor.ops

---@class Policy the distribution of each step's action
---@field parameters Tensor [T,B,P]
---@field sample fun(self: Policy, draw: Draw?): Tensor actions [T,B] or [T,B,size]; a constant for gradients
---@field mode fun(self: Policy, draw: Draw?): Tensor the likeliest actions
---@field log_prob fun(self: Policy, actions: Tensor): Tensor [T,B]
---@field entropy fun(self: Policy): Tensor [T,B] in nats
---@field kl fun(self: Policy, other: Policy): Tensor [T,B] KL(self || other) in nats
---@field describe fun(self: Policy): string what it is called
---@field each string? what a parameter of a discrete action is: "logit", "Q"
---@field fused table<string, function>? losses in one op by name, "a2c" and "ppo": of logits, the fast form

---@class Draw where the random numbers of acting come from: functions of the seed, the environment and its time alone
---@field clock Tensor [3] i32: the seed, then the time of the first row
---@field first integer the number of the first environment
---@field place Tensor? [B] i32: the number of each, in place of its index
local Draw = {}
Draw.__index = Draw

-- Numbers of the shape of x [T,B,K]; each call of one Draw others.
local function noise(self, x, uniform)
  self.stream = (self.stream or 0) + 1
  return ops.policy_noise { like = x, clock = self.clock, place = self.place, first = self.first, stream = self.stream, uniform = uniform and 1 or 0 }
end
---Standard normal numbers.
---@param x Tensor [T,B,K] of their shape
---@return Tensor
function Draw:normal(x) return noise(self, x, false) end
---Uniform numbers in [0, 1).
---@param x Tensor [T,B,K] of their shape
---@return Tensor
function Draw:uniform(x) return noise(self, x, true) end

-- Without a Draw: the generator of mn.manual_seed.
local free = { normal = function(_, x) return (ops.random_normal(x, random.key())) end,
  uniform = function(_, x) return (ops.random_uniform(x, random.key())) end }

local function class(name)
  local C = { describe = function() return name end }
  C.__index, C.__tostring = C, function(self) return ("%s([%s])"):format(name, table.concat(self.parameters:shape(), ",")) end
  return C
end

-- Columns from .. to - 1 of the parameters.
local function part(x, from, to) return (ops.slice { x = x, axis = -1, from = from, to = to }) end

local function likeliest(x) return (select(2, ops.max(x, { axis = -1 }))) end

local kinds = {}

-- What a person reads of the parameters at a pointer, and what each number is: probabilities, or means and deviations.
local function softmax(p, n, into)
  local top, sum = -math.huge, 0
  for a = 0, n - 1 do top = math.max(top, p[a]) end
  for a = 0, n - 1 do into[a] = math.exp(p[a] - top) sum = sum + into[a] end
  for a = 0, n - 1 do into[a] = into[a] / sum end
end

-- ---- categorical ----

local Categorical = class "categorical"
Categorical.fused = { a2c = ops.a2c_loss, ppo = ops.ppo_loss }

local function drawn(self, draw, greedy)
  if not draw then return nil end
  return (ops.softmax_sample { logits = self.parameters, clock = draw.clock, place = draw.place, first = draw.first, greedy = greedy })
end
local function value_of(self) return distributions.categorical(self.parameters) end
function Categorical:sample(draw) return drawn(self, draw, 0) or value_of(self):sample() end
function Categorical:mode(draw) return drawn(self, draw, 1) or value_of(self):mode() end
function Categorical:log_prob(actions) return (ops.pick(ops.log_softmax(self.parameters), actions)) end
function Categorical:entropy() return value_of(self):entropy() end
function Categorical:kl(other) return value_of(self):kl(value_of(other)) end

local function is_discrete(space) return space.kind == "discrete" end
kinds.categorical = {
  fits = is_discrete, each = "logit",
  size = function(space) return space.n end,
  show = function(p, space, into) softmax(p, space.n, into) end, names = function(space) return space.names end,
  of = function(logits) return setmetatable({ parameters = logits }, Categorical) end,
}

-- ---- epsilon-greedy ----

local Greedy = class "epsilon_greedy"
local LITTLE = 0.01                    -- log_prob and kl of a policy that takes the largest Q always are of one that errs this often: else infinite

-- The logits of a draw that is random with probability epsilon, else the first of the largest.
local function draws_of(self, epsilon)
  local best = ops.one_hot { index = self:mode(), classes = self.n }
  return (best * (1 - epsilon) + epsilon / self.n):log()
end
local function told(self)
  self.value = self.value or distributions.categorical(draws_of(self, self.epsilon or tensor.new { LITTLE }))
  return self.value
end
function Greedy:sample(draw)
  if not self.epsilon then return self:mode() end
  local logits = draws_of(self, self.epsilon)
  return draw and ops.softmax_sample { logits = logits, clock = draw.clock, place = draw.place, first = draw.first } or ops.random_index(logits, random.key())
end
function Greedy:mode() return likeliest(self.parameters:detach()) end
function Greedy:log_prob(actions) return told(self):log_prob(actions) end
function Greedy:entropy() return self.epsilon and told(self):entropy() or ops.max(self.parameters:detach(), { axis = -1 }) * 0 end
function Greedy:kl(other) return told(self):kl(told(other)) end

kinds.epsilon_greedy = {
  fits = is_discrete, each = "Q", values = true,
  size = function(space) return space.n end, names = function(space) return space.names end,
  show = function(p, space, into)
    local best = 0
    for a = 1, space.n - 1 do if p[a] > p[best] then best = a end end
    for a = 0, space.n - 1 do into[a] = a == best and 1 or 0 end
  end,
  of = function(q, space, epsilon) return setmetatable({ parameters = q, n = space.n, epsilon = epsilon }, Greedy) end,
}

-- ---- several categoricals ----

local Several = class "multi_categorical"

-- The sum over the choices of f(policy of choice k, k).
local function total(self, f)
  local sum
  for k, policy in ipairs(self.parts) do sum = sum and sum + f(policy, k) or f(policy, k) end
  return sum
end
-- One action of each choice, [T,B] each, as [T,B,size].
local function together(self, f) return tensor.functions.stack(tables.map(self.parts, f), -1) end

-- The largest of logits with Gumbel noise is a draw of their softmax.
function Several:sample(draw)
  local u = (draw or free):uniform(self.parameters)
  local noisy, at = self.parameters:detach() - (-u:log()):log(), 0
  return together(self, function(policy)
    at = at + policy.size
    return likeliest(part(noisy, at - policy.size, at))
  end)
end
function Several:mode() return together(self, function(policy) return likeliest(policy.parameters:detach()) end) end
function Several:log_prob(actions) return total(self, function(policy, k) return policy:log_prob(actions:select(-1, k - 1)) end) end
function Several:entropy() return total(self, function(policy) return policy:entropy() end) end
function Several:kl(other) return total(self, function(policy, k) return policy:kl(other.parts[k]) end) end

kinds.multi_categorical = {
  fits = function(space) return space.kind == "multi_discrete" end,
  size = function(space) return #kinds.multi_categorical.names(space) end,
  show = function(p, space, into)
    for _, n in ipairs(space.counts) do
      softmax(p, n, into)
      p, into = p + n, into + n
    end
  end,
  names = function(space)
    local names = {}
    for k, n in ipairs(space.counts) do
      for a = 0, n - 1 do names[#names + 1] = ("%s %d"):format(space.names[k], a) end
    end
    return names
  end,
  of = function(logits, space)
    local parts, at = {}, 0
    for k, n in ipairs(space.counts) do
      parts[k] = kinds.categorical.of(part(logits, at, at + n))
      parts[k].size, at = n, at + n
    end
    return setmetatable({ parameters = logits, parts = parts }, Several)
  end,
}

-- ---- normal ----

-- One learned log-deviation for each number of an action, which does not depend on the input and starts at 0; the head gives the means.
local function with_deviation(head, size)
  local log_std = random.parameters.new { size }
  return nn.module({ kind = "normal", named = { { "log_std", log_std } }, children = { { "mean", head } } }, function(_, y)
    local mean = head(y)
    return (ops.concat(mean, mean * 0 + log_std))
  end)
end

local Normal = class "normal"
function Normal:sample(draw) return ((self.value.mean + self.value.std * (draw or free):normal(self.value.mean)):detach()) end
function Normal:mode() return (self.value.mean:detach()) end
function Normal:log_prob(actions) return self.value:log_prob(actions):sum(-1) end
function Normal:entropy() return self.value:entropy():sum(-1) end
function Normal:kl(other) return self.value:kl(other.value):sum(-1) end

local function normal_of(x, size) return distributions.normal(part(x, 0, size), part(x, size, 2 * size):exp()) end
local function show_normal(p, space, into)
  for k = 0, space.size - 1 do into[k], into[space.size + k] = p[k], math.exp(p[space.size + k]) end
end
local function normal_names(space)
  local names = {}
  for k, name in ipairs(space.names) do names[k], names[space.size + k] = name .. " mean", name .. " deviation" end
  return names
end
local function is_box(space) return space.kind == "box" end
local function twice(space) return 2 * space.size end

kinds.normal = { fits = is_box, size = twice, means = true, show = show_normal, names = normal_names,
  of = function(x, space) return setmetatable({ parameters = x, value = normal_of(x, space.size) }, Normal) end }

-- ---- tanh of a normal ----

local Squashed = class "tanh_normal"
local EDGE = 1 - 2 ^ -20               -- tanh of what is beyond 7.3 is 1 in float32, whose inverse is infinite

local function squash(self, z) return z:tanh() * self.half + self.middle end
-- log(1 - tanh(z)^2), exact where tanh is 1: 2 (log 2 - z - softplus(-2 z)).
local function log_slope(z) return (z * -1 - (z * -2):softplus() + math.log(2)) * 2 end
local function inside(self, z) return (self.value:log_prob(z) - log_slope(z) - self.log_half):sum(-1) end

function Squashed:sample(draw) return squash(self, self.value.mean + self.value.std * (draw or free):normal(self.value.mean)):detach() end
---Where the normal's mean goes, the median.
function Squashed:mode() return squash(self, self.value.mean):detach() end
function Squashed:log_prob(actions)
  local y = ((actions - self.middle) / self.half):clamp { lo = -EDGE, hi = EDGE }
  return inside(self, (((1 + y) / (1 - y)):log() * 0.5):detach())
end
---An estimate from one draw: there is no closed form.
function Squashed:entropy() return inside(self, self.value:rsample()) * -1 end
---That of the two normals, which the same squashing leaves as it is.
function Squashed:kl(other) return self.value:kl(other.value):sum(-1) end

kinds.tanh_normal = { size = twice, means = true, show = show_normal, names = normal_names,
  fits = function(space)
    for k = 1, is_box(space) and space.size or 0 do if space.high[k] - space.low[k] == math.huge then return false end end
    return is_box(space)
  end,
  of = function(x, space)
    local half, middle, log_half = {}, {}, {}
    for k = 1, space.size do
      half[k], middle[k] = (space.high[k] - space.low[k]) / 2, (space.high[k] + space.low[k]) / 2
      log_half[k] = math.log(half[k])
    end
    return setmetatable({ parameters = x, value = normal_of(x, space.size), half = tensor.new(half), middle = tensor.new(middle),
      log_half = tensor.new(log_half) }, Squashed)
  end }

-- ---- one's own ----

-- A kind whose policies are checked. What one has not raises an error where it is asked for, which learners and tools do differ in.
local function own(kind)
  local where = { where = errors.position_of(kind.of) }
  return tables.merged(kind, { own = kind.of, of = function(...)
    local policy = errors.call(kind.of, ...)
    if type(policy) ~= "table" then
      errors.raise(("agent: `of` of its distribution gave %s, expected a table of functions: sample, log_prob, entropy, mode, kl"):format(
        policy == nil and "nothing" or "a " .. type(policy)), where)
    end
    policy.lacks, policy.describe = policy.lacks or {}, policy.describe or function() return "of its own" end
    for _, name in ipairs { "sample", "mode", "log_prob", "entropy", "kl" } do
      if not policy[name] then
        policy.lacks[name] = true
        policy[name] = function() errors.raise(("agent: distribution %s: it has no %s, which is needed here"):format(policy:describe(), name), where) end
      end
    end
    return policy
  end })
end

-- How many random numbers the generator of mn.manual_seed has given.
local function count() return random.state() and random.state():data()[2] or 0 end

-- What a policy of one's own gives of zeros has the shapes that learners read, and draws from `draw` alone.
local function try(kind, space, size)
  local policy, before, action = kind.of(tensor.new { shape = { 2, 3, size } }, space), count(), nil
  local function gives(name, shape, dtype, argument)
    if policy.lacks[name] then return nil end
    local y = errors.call(policy[name], policy, argument)
    if not tensor.is(y) or y:dtype() ~= dtype or table.concat(y:shape(), ",") ~= table.concat(shape, ",") then
      errors.raise(("agent: distribution %s: %s gave %s of parameters [2,3,%d], expected a tensor [%s] (%s)"):format(policy:describe(), name,
        op_binding.describe(y), size, table.concat(shape, ","), dtype), { where = errors.position_of(policy[name]) })
    end
    return y
  end
  local draw = M.draw(tensor.new { shape = { 3 }, dtype = "i32" })
  for _, name in ipairs { "mode", "sample" } do action = gives(name, space:shape(2, 3), space.dtype, draw) or action end
  if count() ~= before then
    errors.raise(("agent: distribution %s: sample draws random numbers of its own, expected draw:normal(x) or draw:uniform(x): then a run can be resumed")
      :format(policy:describe()), { where = errors.position_of(policy.sample) })
  end
  if action then gives("log_prob", { 2, 3 }, "f32", action) end
  gives("entropy", { 2, 3 }, "f32")
  gives("kl", { 2, 3 }, "f32", policy)
  if count() ~= before then random.state():data()[2] = before end
end

-- ---- which one ----

local usual = { discrete = "categorical", multi_discrete = "multi_categorical", box = "normal" }

---The kind of distribution for a space: the one asked for, or else the usual.
---@param asked string|table|nil a name, or a kind of one's own
---@return table kind { size(space), of(parameters, space, epsilon), means = the head gives means and a deviation is learned beside it,
---  values = the parameters are Q values: epsilon [1], a share of random actions, or nil; each = what a parameter of an action is }
---@return string? name nil: one's own
function M.for_space(space, asked)
  if type(asked) == "table" then
    if type(asked.of) ~= "function" or type(asked.size) ~= "function" then
      errors.raise "agent: distribution is a table, expected { size = function(space) ... end, of = function(parameters, space) ... end }"
    end
    local kind = own(asked)
    tensor.no_grad(try, kind, space, errors.whole("agent", "size of its distribution", asked.size(space), 1))
    return kind
  end
  local name = asked or usual[space.kind]
  local kind = kinds[name]
  if not kind or not kind.fits(space) then
    local fitting = {}
    for key, k in pairs(kinds) do if k.fits(space) then fitting[#fitting + 1] = key end end
    table.sort(fitting)
    errors.raise(("agent: distribution=%s, expected %s for %s"):format(tostring(name), table.concat(fitting, " or "), tostring(space)))
  end
  return kind, name
end

---A Draw: see above.
---@param first integer?
---@param place Tensor?
---@return Draw
function M.draw(clock, first, place) return setmetatable({ clock = clock, first = first or 0, place = place }, Draw) end

M.with_deviation = with_deviation
return M
