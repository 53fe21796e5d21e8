-- stream.lua -- stream AC(lambda): an actor-critic that learns at every step, from that step alone, with eligibility traces and steps that are bounded
-- (Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606, algorithms 1, 3 and 5).  Nothing is stored and nothing is replayed.
--   delta = r + gamma V(s') - V(s)                both by the parameters of this step; 0 for V(s') where an episode ended
--   the value's trace takes in grad V(s), the policy's grad [log pi(a|s) + entropy_coef sign(delta) H(pi(.|s))]
--   then both move by obgd (learn/obgd.lua)
-- The two networks are what leads to the value and what leads to the policy: torso and core belong to both, and move by the sum of both steps.
-- Gradients flow through one step of the memory (credit=trace), or by its sensitivities back to the episode's first step (credit=exact).
-- num_steps changes no number: after that many steps the program looks at the log, the clock and Ctrl-C.
local ffi = require "ffi"
local rollout_batch = require "mneme.learn.rollout_batch"
local define = require("mneme.learn.learners").define
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local extra_losses = require "mneme.learn.extra_losses"
local lazy = require "mneme.base.lazy"
local obgd = require "mneme.learn.obgd"
local plan = require "mneme.tensor.plan"
local ranks = require "mneme.tensor.ranks"
local exact_credit = lazy "mneme.learn.exact_credit"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local C = engine.C

---@class Stream: OnPolicy
---@field lanes table[] of each stream { x, resets, previous, state, actions, entropy, past, learn }: its step as leaves of one environment
local Stream = {
  every_step = function() return true end,
  doc = "stream AC(lambda): learns at every step, with traces and bounded steps", source = "Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606",
  objective = [[
After every step each network moves along its trace,

$$\delta = r + \gamma V(s') - V(s), \quad z \leftarrow \gamma \lambda z + g, \quad
w \leftarrow w + \frac{\alpha}{\max(1, \max(|\delta|, 1) \alpha \kappa \|z\|_1)} \delta z$$

with $g = \nabla V(s)$ for the value and $g = \nabla [\log \pi(a | s) + c_e \mathrm{sign}(\delta) H(\pi(\cdot | s))]$ for the policy. Here
$\alpha$ is lr, $\kappa$ kappa and kappa_value, $c_e$ entropy_coef; traces are cleared where an episode ends.]],
  config = { num_steps = 64, lambda = 0.8, entropy_coef = 0.01, lr = 1, kappa = 3, kappa_value = 2, credit = "trace", norm_obs = true, norm_reward = true,
    norm = "welford", clip_obs = 0 },
  without = { "adam_eps", "value_coef", "lr_schedule", "warmup", "beta1", "beta2", "weight_decay", "max_norm", "horizon", "carry", "aux_coef" },
}

---What the parameters rise along, for one step of one stream: `step` has logits [1,1,actions], values [1,1], policy, actions [1,1] and
---entropy [1], entropy_coef with the sign of delta.
---@return Tensor of the policy's network, one number
---@return Tensor of the value's
function Stream.loss(_, step)
  local policy = step.policy
  return (policy:log_prob(step.actions) + policy:entropy() * step.entropy):sum(), step.values:sum()
end

-- ---- plans ----

-- A leaf of one row of environments.
local function row_of(buffer, B)
  local shape = buffer:shape()
  shape[1], shape[2] = 1, B
  return tensor.new { shape = shape, dtype = buffer:dtype(), time = true }
end

-- What the agent is given in a step of B environments.
local function step_leaves(self, B)
  local leaves = { x = row_of(self.inputs, B), resets = row_of(self.resets, B), previous = self.agent:previous_leaves(1, B) }
  leaves.at = { x = leaves.x:data(), resets = leaves.resets:data(), action = leaves.previous and leaves.previous.action and leaves.previous.action:data(),
    reward = leaves.previous and leaves.previous.reward and leaves.previous.reward:data() }
  return leaves
end

-- All environments act together.
local function make_acting(self)
  local now, after = step_leaves(self, self.B), step_leaves(self, self.B)
  local piece = { first = 0, rows = 1, to = 1, state = self.agent.core:initial(self.B), probes = {} }
  local function probe(name, t) piece.probes[name] = t return t end
  piece.act = plan(function(x, resets, state, previous)
    local past = self.alone and self.lanes[0].past
    local forward = past and function(...) return past:heard(self.agent.act, ...) end or self.alone and self.agent.act
      or function(...) return tensor.off_tape(self.agent.act, ...) end
    if past then state = past:with_past(state) end
    local logits, values, last, core_output = forward(self.agent, x, resets, state, probe, previous)
    piece.core_output = core_output
    return logits, values, last, self.agent:choose(logits, self.clock, self)
  end)
  self.now, self.after, self.pieces = now, after, { piece }
  piece.record = function()
    piece.logits, piece.values, piece.after, piece.actions = piece.act(now.x, now.resets, piece.state, now.previous)
    piece.at = { actions = piece.actions:data(), values = piece.values:data(), logits = piece.logits:data() }
  end
  self.follow = plan(function()
    local _, values = tensor.off_tape(self.agent.act, self.agent, after.x, after.resets, piece.after, nil, after.previous)
    return values
  end)
end

-- Stream b learns: what its step gives to both traces, and its sensitivities.
local function record_learning(self, b)
  local lane, agent, opt = self.lanes[b], self.agent, self.optimiser
  local step = { logits = lane.logits, values = lane.values, actions = lane.actions, entropy = lane.entropy }
  if not self.alone then
    if lane.past then step.logits, step.values = lane.past:heard(agent, lane.x, lane.resets, lane.past:with_past(lane.state), nil, lane.previous)
    else step.logits, step.values = agent(lane.x, lane.resets, lane.state, nil, lane.previous) end
  end
  step.policy = agent:distribution(step.logits)
  local objectives = { errors.call(self.loss, self, step) }
  for i, net in ipairs(opt.networks) do
    extra_losses.check_scalar(("%s: loss, of %s"):format(self.what, net.name), objectives[i], self.loss)
    opt:trace(net, b, objectives[i], i < #opt.networks)
  end
  if b == self.B - 1 then extra_losses.check_trained(self) end
  if lane.past then lane.past:step(lane.x, lane.resets, lane.state, lane.previous) end
  if b == self.B - 1 then opt:apply() end
end

-- Leaves of each stream; of one stream alone those of acting.
local function make_lanes(self)
  self.lanes = {}
  for b = 0, self.B - 1 do
    local lane = self.alone and self.now or step_leaves(self, 1)
    self.lanes[b] = lane
    lane.state = self.alone and self.pieces[1].state or self.agent.core:initial(1, b)
    lane.actions = row_of(self.played, 1)
    lane.entropy = tensor.new { self.entropy_coef or 0 }
    lane.at.actions, lane.at.entropy = lane.actions:data(), lane.entropy:data()
    if self.credit == "exact" then lane.past = exact_credit(self.agent.core, 1, function(...) return self.agent:features(...) end) end
  end
end

---The traces, and the plans of a step.
function Stream:prepare()
  local agent, what = self.agent, self.what
  if self.credit == "window" then
    errors.usage(what .. ": credit=window: there is no window, each step is learned from alone", "credit=trace, or credit=exact")
  end
  if engine.device ~= "cpu" then
    errors.usage(("%s: it learns after every step, which device=%s would take longer to begin than to do"):format(what, engine.device), "device=cpu")
  end
  if ranks.size > 1 then errors.usage(what .. ": it trains in one process", "num_envs streams, which share their parameters") end
  if self.extra.terms[1] or next(self.modules) then errors.usage(what .. ": its traces are of the agent alone, and take no aux and no modules") end
  self.alone = self.B == 1 and not agent:acts_apart()
  self.optimiser = obgd(self:networks(), { streams = self.B, lr = self.lr, decay = self.gamma * self.lambda })
  self.size = { x = self.row_bytes / self.B, action = 4 * (self.env.action_space.size or 1) }
  make_acting(self)
  make_lanes(self)
  local piece = self.pieces[1]
  piece.record()
  for b = 0, self.B - 1 do
    local lane = self.lanes[b]
    if self.alone then lane.logits, lane.values = piece.logits, piece.values end
    lane.learn = plan(function() record_learning(self, b) end)
  end
  self.learn = self.lanes[self.B - 1].learn
  self.followed = self.follow():data()
  for t = 0, self.T - 1 do self.row.action[t], self.row.value[t] = piece.at.actions, piece.at.values end
  self.moves = {}                        -- columns of states into the lanes' leaves
  for _, name in ipairs(self.alone and {} or agent.core:state_names()) do
    local rows = tables.product(piece.state[name]:shape(), 1, agent.core:batch_axis(name) - 1)
    for b = 0, self.B - 1 do
      self.moves[#self.moves + 1] = { from = piece.state[name]:data(), to = self.lanes[b].state[name]:data(), b = b, rows = rows,
        bytes = 4 * piece.state[name]:size() / rows / self.B }
    end
  end
end

-- ---- a step ----

local bytes_at = ffi.typeof "char *"

-- What the agent reads of n streams, from number k of a row on: into `to`, from number i on.
local function copy(self, to, i, n, k, x, resets, action, reward)
  local X, A = self.size.x, self.size.action
  ffi.copy(ffi.cast(bytes_at, to.x) + i * X, ffi.cast(bytes_at, x) + k * X, n * X)
  ffi.copy(to.resets + i, resets + k, n)
  if to.action ~= nil then ffi.copy(ffi.cast(bytes_at, to.action) + i * A, ffi.cast(bytes_at, action) + k * A, n * A) end
  if to.reward ~= nil then ffi.copy(to.reward + i, reward + k, 4 * n) end
end

-- Row t as the agent reads it.
local function read_row(self, leaves, t)
  local row, told = self.row, self.row.previous
  copy(self, leaves.at, 0, self.B, 0, row.inputs[t], row.resets[t], told.action and told.action[t], told.reward and told.reward[t])
end

-- Where a time limit cut an episode off: what would have followed instead of the next episode's beginning.
local function read_uncut(self)
  local peek, cut = self.peek, self.outcome_at.cut
  if self.normaliser then self.normaliser:uncut(self, self.t) end
  local x, resets, told = peek.x:data(), peek.resets:data(), peek.previous or {}
  local action, reward = told.action and told.action:data(), told.reward and told.reward:data()
  for b = 0, self.B - 1 do if cut[b] ~= 0 then copy(self, self.after.at, b, 1, b, x, resets, action, reward) end end
end

-- The errors of a step, and the ends of episodes.
local function errors_of_step(self, t)
  local opt, row, at, bonus = self.optimiser, self.row, self.outcome_at, self.entropy_coef or 0
  local reward, done, bootstraps = row.reward[t], row.done[t + 1], self.peek ~= nil
  for b = 0, self.B - 1 do
    local goes_on = done[b] == 0 or bootstraps and at.cut[b] ~= 0
    local delta = reward[b] + (goes_on and self.gamma * self.followed[b] or 0) - self:predicted(b)
    opt.delta_data[b], opt.over_data[b] = delta, done[b]
    self.lanes[b].at.entropy[0] = delta > 0 and bonus or delta < 0 and -bonus or 0
    self.sum_of_errors = self.sum_of_errors + math.abs(delta)
  end
end

-- Step t: act, see what follows, learn.
local function step(self, t)
  local row, piece, lanes, moves, now = self.row, self.pieces[1], self.lanes, self.moves, self.now.at
  read_row(self, self.now, t)
  if self.epsilon then self:explore(self.step + t * self.num_envs) end
  piece.act:rows(0, 1)
  if self.watch then
    piece.first = t
    self.watch(t, piece)
  end
  local cut = self.env:roll(self.buffers, t, piece.at.actions)
  if self.normaliser then self.normaliser:after(self, t) end
  read_row(self, self.after, t + 1)
  self.t = t
  if cut and self.peek then read_uncut(self) end
  self.follow:run()
  errors_of_step(self, t)
  for i = 1, #moves do
    local m = moves[i]
    C.mn_copy_column(m.to, 1, 0, m.from, self.B, m.b, m.rows, m.bytes)
  end
  for b = 0, self.B - 1 do
    if not self.alone then copy(self, lanes[b].at, 0, 1, b, now.x, now.resets, now.action, now.reward) end
    ffi.copy(lanes[b].at.actions, ffi.cast(bytes_at, row.played[t]) + b * self.size.action, self.size.action)
    local learn = lanes[b].learn
    if learn.recorded then learn:run() else learn() end
  end
  tensor.keep(piece.after, piece.state)
  self:advance_clock(1)
end

---num_steps steps of every environment, each learned from at once.
function Stream:rollout()
  for i = 1, #self.overwritten do engine.check(C.mn_tensor_changes(engine.ctx, self.overwritten[i], "rollout")) end
  engine.check(C.mn_rollout_begin(engine.ctx, self.buffers, self.B, self.T, self.row_bytes))
  if self.normaliser then self.normaliser:before(self) end
  self.sum_of_errors = 0
  tensor.keep(self.next, self.pieces[1].state)
  for t = 0, self.T - 1 do
    step(self, t)
    self.optimiser:tick()
  end
  tensor.keep(self.pieces[1].state, self.next)
  self:count_episodes()
  self.losses.td_error = self.sum_of_errors / (self.T * self.B)
end

---Its steps have learned already; false if a number is not finite.
---@return boolean fine
function Stream:update()
  return self.losses.td_error - self.losses.td_error == 0 and self.optimiser:grad_norm() - self.optimiser:grad_norm() == 0
end

---Its plans.
function Stream:plans()
  local list = { { "act", self.pieces[1].act }, { "follow", self.follow } }
  for b = 0, self.B - 1 do list[#list + 1] = { "update", self.lanes[b].learn } end
  return list
end

---What a checkpoint holds: traces of each stream, and its sensitivities.
function Stream:contents()
  local list = rollout_batch.checkpoint.contents(self)
  for b = 0, self.B - 1 do
    for _, entry in ipairs(self.lanes[b].past and self.lanes[b].past:contents() or {}) do
      list[#list + 1] = { ("stream.%d.%s"):format(b, entry[1]), entry[2] }
    end
  end
  return list
end

---One line: which agent, on what, and the memory that learning takes.
function Stream:headline()
  local past = self.lanes[0].past
  return ("%s on %s, %d parameters, traces of %.1f MiB%s"):format(self.agent.core.name, self.env.id, self.agent.module:count(),
    4 * self.optimiser:floats() / 2 ^ 20, past and past:cost(self.B) or "")
end

local class = define(Stream)
class.carry, class.horizon, class.learns_acting = true, 0, true

---The parameters that lead to a head: 1 the policy's or Q's, 2 the value's.
---@return Tensor[]
function class:parameters_of(head)
  local list, agent = {}, self.agent
  for _, part in ipairs { agent.torso, agent.core.module, agent.heads.children[head][2] } do
    if type(part) == "table" and part.parameters then part:parameters(list) end
  end
  return list
end

---What moves along a trace of its own, each by one tensor of the loss.
---@return table[] { name, parameters, kappa }
function class:networks()
  return { { name = "actor", parameters = self:parameters_of(1), kappa = self.kappa },
    { name = "critic", parameters = self:parameters_of(2), kappa = self.kappa_value } }
end

---What stream b expected of the step that it has just made.
function class:predicted(b) return self.pieces[1].at.values[b] end

return class
