-- rollout_batch.lua -- what a loss reads of a rollout that was acted on tape.  Each field is computed when it is first read, so that a
-- loss pays for nothing else; PPO's minibatches (learners/ppo.lua) have the same fields.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local ffi = require "ffi"
local random = require "mneme.tensor.random"
local ranks = require "mneme.tensor.ranks"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local ops = tensor.ops

---@class Batch T steps of B environments; PPO's T and B are those of a minibatch
---@field observations Tensor [T,B,...] as the agent reads them: in the environment's type, normalised with norm_obs
---@field done Tensor [T,B] u8: 1 where the observation begins an episode
---@field previous table? { action = [T,B] i32, reward = [T,B] }, if the agent reads them
---@field actions Tensor [T,B] i32: what was done; of several numbers [T,B,size], of a box floats as they were drawn
---@field rewards Tensor [T,B] what it paid: normalised with norm_reward; at a time limit, gamma V of what would have followed is in it
---@field features Tensor [T,B,core.d_in] with gradient: what the core reads (the torso's output, and `previous`)
---@field core_output Tensor [T,B,core.d_out] with gradient: what the policy and value heads read
---@field logits Tensor [T,B,actions] with gradient: the parameters of policy
---@field policy Policy of each step: log_prob(actions), entropy(), kl(other): see models/policies.lua
---@field values Tensor [T,B] with gradient
---@field returns Tensor [T,B] constants: lambda-returns, by gamma and lambda
---@field advantages Tensor [T,B] constants: returns less the values of when they were acted
---@field old_log_probs Tensor? [T,B] constants: log-probabilities of `actions` when they were acted; PPO only
---@field old_values Tensor? [T,B] constants; PPO only
---@field live Tensor? [T,B] of a vector of Gymnasium alone (vector=1): 0 in steps that only began an episode, which no loss may count, else 1
local makers, batches = {}, {}

-- The first T rows of what the pieces computed.
for _, name in ipairs { "logits", "values", "core_output" } do
  makers[name] = function(l) return ops.slice(l:sequence(name), { to = l.T }) end
end

---A window on rows from .. to-1 of a sequence.
---@param t Tensor a leaf
---@param timed boolean? is it itself a sequence, of a plan that is run by rows?  nil: as a view is
---@return Tensor
function batches.window(t, from, to, timed)
  local shape = t:shape()
  local row = t:size() / shape[1]
  shape[1] = to - from
  local w = tensor.view(t, from * row, shape)
  if timed ~= nil then engine.check(engine.C.mn_leaf_time(engine.ctx, w, timed)) end
  return w
end

---What an agent is told of the step before, through f.
---@param previous table<string, Tensor>?
---@param f fun(t: Tensor, name: string): Tensor
---@return table<string, Tensor>? nil: it is told nothing
function batches.told(previous, f)
  local all
  for name, t in pairs(previous or {}) do
    all = all or {}
    all[name] = f(t, name)
  end
  return all
end

-- The first T rows of a buffer.
local function rows(l, t) return batches.window(t, 0, l.T) end
function makers.policy(l, batch) return l.agent:distribution(batch.logits) end
function makers.observations(l) return rows(l, l.inputs) end
function makers.done(l) return rows(l, l.done) end
function makers.actions(l) return l.played end
function makers.rewards(l) return l.rewards end
function makers.live(l)
  l.live_read = true
  return l.live
end
function makers.previous(l) return batches.told(l.previous, function(t) return rows(l, t) end) end

-- Computed again: pieces of a rollout hand the core windows of their own lengths.
function makers.features(l, batch) return l.agent:features(batch.observations, batch.previous) end

for _, name in ipairs { "returns", "advantages" } do
  makers[name] = function(l, batch)
    batch.returns, batch.advantages = ops.lambda_returns { rewards = l.rewards, values = l:sequence "values", done = l.done,
      gamma = l.gamma, lambda = l.lambda }
    return rawget(batch, name)
  end
end

-- Reading what is not there is an error, but for `previous` and `live`, which not every agent and environment has.
local function missing(name)
  if name ~= "previous" and name ~= "live" then
    errors.unknown("field of batch:", name, tables.keys(tables.merged(makers, { old_log_probs = 1, old_values = 1 })))
  end
end

---The rollout that a learner has just made.
---@return Batch
function batches.of_rollout(learner)
  return setmetatable({}, { __index = function(batch, name)
    if not makers[name] then return missing(name) end
    local value = makers[name](learner, batch)
    if name ~= "live" then batch[name] = value end
    return value
  end })
end

---A batch whose fields are all there.
---@param live Tensor? of a minibatch
---@return Batch
function batches.of(fields, learner, live)
  return setmetatable(fields, { __index = function(_, name)
    if name ~= "live" then return missing(name) end
    learner.live_read = true
    return live
  end })
end

---The mean over all steps, or over those that are live.
---@param live Tensor? [T,B]
---@return fun(x: Tensor): Tensor
function batches.mean_over(live)
  local count = live and live:sum()
  return function(x) return live and (x * live):sum() / count or x:mean() end
end

-- ---- what a rollout writes: observations, actions, rewards, ends, the outcomes of episodes ----

---Pointers to every row of a [T,B,...] buffer: made once, so that stepping makes no garbage.
---@param into table receives them from index `first` on
---@param first integer? 0 by default
---@return table into
function batches.rows_of(t, into, first)
  local count, p = t:shape()[1], t:data()
  local stride = t:size() / count
  for i = 0, count - 1 do into[(first or 0) + i] = p + i * stride end
  return into
end

-- Buffers of a rollout, and pointers to their rows.
local function make_buffers(self)
  local T, B, space = self.T, self.B, self.env.observation_space
  self.x = tensor.new { shape = { T + 1, B, unpack(space.shape) }, dtype = space.dtype, time = true }
  self.inputs = self.norm_obs and tensor.new { shape = self.x:shape(), time = true } or self.x
  self.done = tensor.new { shape = { T + 1, B }, dtype = "u8" }
  self.resets = tensor.new { shape = { T + 1, B }, dtype = "u8", time = true }
  self.previous = self.agent:previous_leaves(T + 1, B)
  self.rewards, self.played = tensor.new { shape = { T, B } },
    tensor.new { shape = self.env.action_space:shape(T, B), dtype = self.env.action_space.dtype }
  self.live = self.env.skips and tensor.new { shape = { T, B } } or nil
  self.live_at = self.live and self.live:data()
  self.overwritten = { self.x, self.done, self.resets, self.rewards, self.played, self.inputs ~= self.x and self.inputs or nil }
  self.overwritten[#self.overwritten + 1] = self.live
  for _, t in pairs(self.previous or {}) do self.overwritten[#self.overwritten + 1] = t end
  self.row = { action = {}, value = {}, reward = batches.rows_of(self.rewards, {}), played = batches.rows_of(self.played, {}),
    x = batches.rows_of(self.x, {}), inputs = batches.rows_of(self.inputs, {}), done = batches.rows_of(self.done, {}),
    resets = batches.rows_of(self.resets, {}), previous = {} }
  self.row.paid = self.row.reward            -- as the environment gave them
  for name, t in pairs(self.previous or {}) do self.row.previous[name] = batches.rows_of(t, {}) end
  self.row_bytes = self.x:size() / (T + 1) * (space.dtype == "u8" and 1 or 4)
end

-- What would have been seen next, had no time limit cut an episode off.
local function make_peek(self)
  local B, space = self.B, self.env.observation_space
  return { x = tensor.new { shape = { 1, B, unpack(space.shape) }, dtype = space.dtype },
    resets = tensor.new { shape = { 1, B }, dtype = "u8" }, previous = self.agent:previous_leaves(1, B) }
end

-- Where each step of the rollout leaves what came of it, without anybody looking: mn_rollout of engine/mneme.h.
local function make_rollout(self)
  local T, B, r = self.T, self.B, ffi.new "mn_rollout"
  local previous = self.previous or {}
  local peek = self.bootstrap_truncated and (self.env.time_limit > 0 or self.env.truncates) and make_peek(self) or nil
  local function place(field, t) if t then r[field] = t:data() end end
  self.outcomes = { score = tensor.new { shape = { T, B } }, ret = tensor.new { shape = { T, B } },
    length = tensor.new { shape = { T, B }, dtype = "i32" }, terminated = tensor.new { shape = { B }, dtype = "u8" },
    cut = tensor.new { shape = { B }, dtype = "u8" } }
  self.outcome_at = {}
  for field, t in pairs(self.outcomes) do
    place(field, t)
    self.outcome_at[field] = t:data()
  end
  for field, t in pairs { obs = self.x, done = self.done, resets = self.resets, told_action = previous.action,
    told_reward = previous.reward, played = self.played, reward = self.rewards, seen = self.memory_resets.seen } do
    place(field, t)
  end
  if peek then
    local told = peek.previous or {}
    for field, t in pairs { obs = peek.x, resets = peek.resets, action = told.action, reward = told.reward } do
      place("uncut_" .. field, t)
    end
  end
  r.context, r.reset_on_done = self.context, self.reset_on_done
  r.action_size, r.floats = self.env.action_space.size, self.env.action_space.dtype == "f32"
  self.peek, self.buffers = peek, r
end

---Make the buffers of a learner (on_policy.lua), and what mn_rollout reads of them.
---@param self OnPolicy with T, B, env and its settings
function batches.make(self)
  make_buffers(self)
  make_rollout(self)
end

-- ---- resets of memories ----

-- When the state of an environment is reset: flags that cores take as `done`.  A reset happens where an
-- episode begins (unless reset_on_done = false), after `context` observations since the last reset (0: never), and
-- where the learner asks for it (between rollouts, carry = false).
---@class MemoryResets
---@field seen Tensor [B] i32: observations that each environment's memory holds; saved with checkpoints
local MemoryResets = {}
MemoryResets.__index = MemoryResets

---@param B integer environments
function batches.resets(B, reset_on_done, context)
  local seen = tensor.new { shape = { B }, dtype = "i32" }
  return setmetatable({ B = B, reset_on_done = reset_on_done, context = context, seen = seen, count = seen:data() }, MemoryResets)
end

---Clear every environment's memory: `flags` (uint8_t[B]) of the observations that come next.
function MemoryResets:all(flags)
  ffi.fill(flags, self.B, 1)
  ffi.fill(self.count, 4 * self.B)
end

---An observation was taken in and another comes, which starts an episode where `done` (uint8_t[B]) says so.
function MemoryResets:step(done, flags)
  local count, context = self.count, self.context
  for b = 0, self.B - 1 do
    count[b] = count[b] + 1
    local clear = (self.reset_on_done and done[b] ~= 0) or (context > 0 and count[b] >= context)
    flags[b] = clear and 1 or 0
    if clear then count[b] = 0 end
  end
end

-- ---- what a checkpoint holds of a learner that acts, and how training continues from it: methods of OnPolicy ----

---@class OnPolicy
local M = {}
batches.checkpoint = M

---Does it learn from each step by itself, so that none can be left out (live)?
---@return boolean
function M:every_step() return self.acts == "values" end

---What acting computes (`forward`), without a tape: for learners whose updates run the sequences again.
---@return Tensor logits
---@return Tensor values
---@return table<string, Tensor> state
---@return Tensor core_output
function M:forward_again(...) return tensor.off_tape(self.agent.act, self.agent, ...) end

---Of a class that acts by Q values: the share of random actions at a step of the training.  It falls along a line from epsilon_start to
---epsilon_end, over the share epsilon_decay of the training.
---@param step number
function M:explore(step)
  local done = self:share_done(step)
  if not done and self.epsilon_start ~= self.epsilon_end then
    errors.raise(self.what .. ": epsilon_decay needs to know how long training is: cfg has no steps")
  end
  local left = self.epsilon_decay > 0 and math.max(0, 1 - (done or 1) / self.epsilon_decay) or 0
  engine.wait()
  self.epsilon_at = self.epsilon_at or self.epsilon:data()
  self.epsilon_at[0] = self.epsilon_end + (self.epsilon_start - self.epsilon_end) * left
end

-- The environments as one row of bytes each, zeros after the shorter ones.
local function saved_worlds(env)
  local saved, longest = {}, 1
  for b = 0, env.num_envs - 1 do
    saved[b] = env:save(b)
    longest = math.max(longest, #saved[b])
  end
  longest = ranks.most(longest)
  local t = tensor.new { shape = { env.num_envs, longest }, dtype = "u8" }
  for b = 0, env.num_envs - 1 do ffi.copy(t:data() + b * longest, saved[b], #saved[b]) end
  return t
end

-- The last row of a [T+1,B,...] buffer, from which training continues.
local function last_row(t)
  local shape = t:shape()
  local at = t:size() / shape[1] * (shape[1] - 1)
  table.remove(shape, 1)
  return tensor.view(t, at, shape)
end

---All that a checkpoint holds: { name, tensor }, in order.
---@return table[]
function M:contents()
  local list = self.optimiser:contents()
  local core = self.agent.core
  local function add(name, t, batch_axis) list[#list + 1] = { name, t, batch_axis = batch_axis or 1 } end
  for _, name in ipairs(core:state_names()) do add("state." .. name, self.next[name], core:batch_axis(name)) end
  add("observation", last_row(self.x))
  add("done", last_row(self.done))
  add("resets", last_row(self.resets))
  add("seen", self.memory_resets.seen)
  for _, name in ipairs { "action", "reward" } do          -- in this order: equal runs give equal files
    local t = self.previous and self.previous[name]
    if t then add("previous." .. name, last_row(t)) end
  end
  list[#list + 1] = { "clock", self.clock }
  self.agent.module:each(function(name, t) list[#list + 1] = { "agent." .. name, t } end)
  self.extra.module:each(function(name, t) list[#list + 1] = { "extra." .. name, t } end)
  if self.normaliser then self.normaliser:contents(list) end
  for _, entry in ipairs(self.past and self.past:contents() or {}) do add(entry[1], entry[2]) end
  list[#list + 1] = { "worlds", saved_worlds(self.env), own = true, batch_axis = 1 }
  list[#list + 1] = { "episodes", self.finished:running(), own = true, optional = true }
  return list
end

-- What of that a rollout changes before it is over; of a class that learns while it acts all.
local function changed(self)
  local list = {}
  for _, item in ipairs(self:contents()) do
    local name = item[1]
    local acts = name == "seen" or name == "clock" or name:find "^normalise%."
    if acts or self.learns_acting and not item.own then list[#list + 1] = item[2] end
  end
  return list
end

---A rollout begins.  Where a script or workers step the environments, which may fail in the middle of it, what it changes is kept: see undo.
function M:remember()
  if not self.env:mark() then return end
  engine.wait()
  self.changed = self.changed or changed(self)
  self.kept = self.kept or {}
  for i = 1, #self.changed + 1 do
    local t = self.changed[i] or random.state()
    if t and not self.kept[i] then
      local bytes = t:size() * (t:dtype() == "u8" and 1 or 4)
      self.kept[i] = { t = t, bytes = bytes, was = ffi.new("char[?]", bytes) }
    end
    if t then ffi.copy(self.kept[i].was, t:data(), self.kept[i].bytes) end
  end
end

---Its environments have failed in the middle of a rollout: what a checkpoint holds is as it was before.
---@return integer? steps 0: it was undone; nil: it cannot be
function M:undo()
  if not (self.kept and self.env:stopped()) then return end
  for _, kept in ipairs(self.kept) do ffi.copy(kept.t:data(), kept.was, kept.bytes) end
  return 0
end

---What a checkpoint holds besides tensors.
---@return table
function M:counters() return { episodes = self.finished:counters() } end

-- Environment b cannot be played again up to where the checkpoint was: it has begun a new episode.
local function begins(self, b)
  local row, T, previous = self.row, self.T, self.row.previous
  row.done[T][b], row.resets[T][b], self.memory_resets.count[b] = 1, 1, 0
  if previous.action then self.env.action_space:clear(previous.action[T], b) end
  if previous.reward then previous.reward[T][b] = 0 end
  if self.normaliser then self.normaliser:begins(b) end
end

---Go on from a checkpoint, whose tensors are in place.
---@param checkpoint table
function M:restored(checkpoint)
  local worlds, observations = checkpoint.tensors.worlds, self.row.x[self.T]
  local shape, all = worlds:shape(), self.env.num_envs * ranks.size
  if worlds:dtype() ~= "u8" or #shape ~= 2 or shape[1] ~= all then
    errors.fail(("%s: worlds is %s [%s], expected u8 [%d, bytes]"):format(checkpoint.path, worlds:dtype(), table.concat(shape, ","), all))
  end
  local bytes, n = shape[2], self.x:size() / (self.T + 1) / self.B
  local anew, why = 0, nil
  for b = 0, self.B - 1 do
    local reason = self.env:resume(b, ffi.string(worlds:data() + (self.first + b) * bytes, bytes), observations + b * n)
    if reason then
      begins(self, b)
      anew, why = anew + 1, reason
    end
  end
  if why then
    terminal.note(("mneme: warning: %d of %d environments begin a new episode here, so that the run goes on otherwise than without a stop: %s"):format(anew,
      self.B, why))
  end
  if self.normaliser then self.normaliser:restored(self) end
  self.finished:restore(checkpoint.counters.episodes, checkpoint.path, checkpoint.tensors.episodes)
  self.step = checkpoint.step
end

return batches
