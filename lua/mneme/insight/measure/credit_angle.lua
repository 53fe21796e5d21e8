-- credit_angle.lua -- what credit leaves out: the gradient of an update beside that of backpropagation through a whole stretch of rollouts.
-- Both are of the same loss, that of the newest rollout, at the same parameters, over torso and core.  The whole one runs the stretch again from the state
-- in which it began, so that nothing is cut but what lies before it.  Training keeps its bits.  With dropout the two differ by their draws, too.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local ranks = require "mneme.tensor.ranks"
local gradient_again = require "mneme.insight.measure.gradient_again"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local credit_angle = { ROLLOUTS = 8 }

-- What a rollout gives an agent, for all of a stretch: { buffer of the learner, rows of the stretch, bytes of a row }.
local function streams(learner, rows)
  local list = { x = learner.inputs, resets = learner.resets }
  for name, t in pairs(learner.previous or {}) do list["previous." .. name] = t end
  for name, t in pairs(list) do
    local shape = t:shape()
    local bytes = t:size() / shape[1] * (t:dtype() == "u8" and 1 or 4)
    shape[1] = rows + 1
    list[name] = { from = t, all = tensor.new { shape = shape, dtype = t:dtype() }, bytes = bytes }
  end
  return list
end

local function bytes_of(t) return ffi.cast("uint8_t *", t:data()) end

-- The newest rollout goes to the end, and what was there moves one rollout to the front.
local function take(self)
  local learner, T, rows = self.learner, self.learner.T, self.rows
  engine.wait()
  for _, s in pairs(self.streams) do
    local to = bytes_of(s.all)
    for first = 0, rows - 2 * T, T do ffi.copy(to + first * s.bytes, to + (first + T) * s.bytes, T * s.bytes) end
    ffi.copy(to + (rows - T) * s.bytes, bytes_of(s.from), (T + 1) * s.bytes)
  end
  table.insert(self.states, tensor.keep(learner.pieces[1].state, #self.states == self.rollouts and table.remove(self.states, 1) or nil))
end

-- The loss of the stretch's last rollout, as the whole stretch gives it.
local function whole_loss(self)
  local learner, whole = self.learner, {}
  local from, to = self.rows - learner.T, self.rows + 1
  return gradient_again(learner, { past = false, sequence = function(_, name) return whole[name] end }, nil, function()
    local previous
    for name, s in pairs(self.streams) do
      local key = name:match "^previous%.(.*)"
      if key then
        previous = previous or {}
        previous[key] = s.all
      end
    end
    local logits, values, _, core_output = learner.agent(self.streams.x.all, self.streams.resets.all, self.state, nil, previous)
    whole.logits, whole.values = ops.slice { x = logits, from = from, to = to }, ops.slice { x = values, from = from, to = to }
    whole.core_output = ops.slice { x = core_output, from = from, to = to }
  end)
end

-- Write the values of parameters, or their gradients, into `into`.
local function copy(parameters, into, read)
  for i, p in ipairs(parameters) do ffi.copy(into[i], read(p), 4 * p:size()) end
end
local function values_of(p) return p:data() end
local function gradient_of(p) return p:grad_data() end
local function room(parameters)
  local list = {}
  for i, p in ipairs(parameters) do list[i] = ffi.new("float[?]", p:size()) end
  return list
end

-- Of the last update: the cosine between its gradient and the whole one, and the ratio of their norms; nil where either is 0, or the stretch is not full.
local function measure(self)
  if #self.states < self.rollouts then return nil end
  engine.wait()
  copy(self.parameters, self.gradient, gradient_of)
  copy(self.all, self.now, values_of)
  for i, p in ipairs(self.all) do ffi.copy(p:data(), self.before[i], 4 * p:size()) end
  self.state = tensor.keep(self.states[1], self.state)
  self.whole = self.whole or whole_loss(self)
  self.whole()
  local product, own, whole = 0, 0, 0
  for i, p in ipairs(self.parameters) do
    local g, w = self.gradient[i], p:grad_data()
    for k = 0, p:size() - 1 do product, own, whole = product + g[k] * w[k], own + g[k] ^ 2, whole + w[k] ^ 2 end
  end
  for i, p in ipairs(self.all) do ffi.copy(p:data(), self.now[i], 4 * p:size()) end
  if own == 0 or whole == 0 then return nil end
  return product / math.sqrt(own * whole), math.sqrt(own / whole)
end

---Measure along a training: call before learner:train().  Each line of the log then has credit/cosine and credit/ratio.
---@param learner OnPolicy a2c, or one of your own whose update is one step on the whole rollout
---@param rollouts integer? of a stretch, the newest of which has the loss; by default 8
---@return fun(): number?, number? measure of the last update: cosine, and |its gradient| / |whole|; nil: too early, or a gradient is 0
function credit_angle.watch(learner, rollouts)
  local what = "credit_angle: " .. tostring(learner.what)
  if learner.lanes or not learner.pieces or learner.acts == "values" or learner.minibatches then
    errors.usage(what .. " does not take one step on a whole rollout, whose gradient this is", "learner=a2c")
  end
  if ranks.size > 1 then errors.usage(what .. ": measured in one process, not over ranks") end
  rollouts = rollouts or credit_angle.ROLLOUTS
  if type(rollouts) ~= "number" or rollouts % 1 ~= 0 or rollouts < 2 then
    errors.raise(("%s: rollouts is %s, expected a whole number from 2"):format(what, tostring(rollouts)))
  end
  local self = { learner = learner, rollouts = rollouts, rows = rollouts * learner.T, states = {}, all = learner.optimiser.parameters, parameters = {} }
  local trained = {}
  for _, p in ipairs(self.all) do trained[p] = true end
  for _, part in ipairs { learner.agent.torso, learner.agent.core.module } do
    for _, p in ipairs(part:parameters()) do if trained[p] then self.parameters[#self.parameters + 1] = p end end
  end
  self.streams, self.before, self.now, self.gradient = streams(learner, self.rows), room(self.all), room(self.all), room(self.parameters)
  local advance, metrics = learner.advance, learner.metrics
  function learner.advance(l)
    engine.wait()
    copy(self.all, self.before, values_of)
    local steps, fine = advance(l)
    take(self)
    return steps, fine
  end
  local function now() return measure(self) end
  function learner.metrics(l, m)
    metrics(l, m)
    m["credit/cosine"], m["credit/ratio"] = now()
  end
  return now
end

return credit_angle
