-- normaliser.lua -- observations and rewards by running statistics, as Gymnasium 1.4's vector wrappers NormalizeObservation and
-- NormalizeReward have them (with autoreset in the same step), and clipping as CleanRL adds it.
--   norm_obs      (x - mean) / sqrt(var + 1e-8) of each observed value (of several arrays, of the floats alone), then clipped to +- clip_obs (0: never)
--   norm_reward   r / sqrt(var + 1e-8), var that of the discounted return so far of all environments
--   clip_reward   after that, to +- clip_reward (0: never)
--   norm          welford: var is that of a sample, sum of squares / (n - 1), and 1 before two samples, as stream AC has it; absent, gymnasium:
--                 its vector wrappers' constants
-- Statistics are double precision, and a checkpoint holds their bytes; evaluation uses them and leaves them as they are.  Several
-- ranks have the same statistics: those of all their environments.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local ranks = require "mneme.tensor.ranks"
local state_arrays = require "mneme.models.state_arrays"
local tensor = require "mneme.tensor.tensor"

local EPSILON, FIRST_COUNT = 1e-8, 1e-4
local SETTINGS = { "norm_obs", "clip_obs", "norm_reward", "clip_reward", "norm" }

---@class Normaliser
---@field norm_obs boolean
---@field norm_reward boolean
---@field clip_obs number
---@field clip_reward number
local Normaliser = {}
Normaliser.__index = Normaliser

-- Doubles in the bytes of a tensor, [rows,8].
local function doubles(rows)
  local t = tensor.new { shape = { rows, 8 }, dtype = "u8" }
  return t, ffi.cast("double *", t:data())
end

-- Mean, variance and count of n numbers; with parts of those that are floats, the others stay as they are.
local function statistics(n, parts)
  local bytes, p = doubles(2 * n + 1)
  local ranges = {}
  for _, part in ipairs(parts or {}) do if part.kind == "floats" then ranges[#ranges + 1] = { part.from, part.from + part.n - 1 } end end
  return { some = parts ~= nil, ranges = parts and ranges or { { 0, n - 1 } }, bytes = bytes, n = n, mean = p, var = p + n, count = p + 2 * n,
    sum = ffi.new("double[?]", n), off = ffi.new("double[?]", n) }
end

-- What the agent's load_state_dict was given.
local function given(learner) return learner.agent and learner.agent.statistics end

-- From nothing, or from what the agent was given, { "observation.mean" = ... }.
local function start(s, from, name, norm)
  for k = 0, s.n - 1 do s.mean[k], s.var[k] = 0, norm == "welford" and 0 or 1 end
  s.count[0] = norm == "welford" and 0 or FIRST_COUNT
  for part, n in pairs { mean = s.n, var = s.n, count = 1 } do
    local t = from and from[name .. "." .. part]
    if t and (t:size() ~= n or t:dtype() ~= "f32") then
      errors.raise(("load_state_dict: normalise.%s.%s is %s with %d numbers, expected f32 with %d"):format(name, part, t:dtype(), t:size(), n))
    end
    for k = 0, t and n - 1 or -1 do s[part][k] = t:data()[k] end
  end
end

-- The variance by which values are divided.
local function variance(self, s, k)
  if self.norm ~= "welford" then return s.var[k] end
  local n = s.count[0]
  return n < 1.5 and 1 or s.var[k] * n / (n - 1)
end

-- Take in `rows` more samples on each rank, x [rows, n] (Chan, Golub and LeVeque 1983).
local function update(s, x, rows)
  local n, sum, off, total = s.n, s.sum, s.off, rows * ranks.size
  ffi.fill(sum, 8 * n)
  ffi.fill(off, 8 * n)
  for i = 0, rows - 1 do
    for k = 0, n - 1 do sum[k] = sum[k] + x[i * n + k] end
  end
  ranks.sum(sum, n)
  for k = 0, n - 1 do sum[k] = sum[k] / total end
  for i = 0, rows - 1 do
    for k = 0, n - 1 do
      local d = x[i * n + k] - sum[k]
      off[k] = off[k] + d * d
    end
  end
  ranks.sum(off, n)
  local count = s.count[0]
  local all = count + total
  for _, range in ipairs(s.ranges) do for k = range[1], range[2] do
    local d = sum[k] - s.mean[k]
    s.var[k] = (s.var[k] * count + off[k] + d * d * count * total / all) / all
    s.mean[k] = s.mean[k] + d * total / all
  end end
  s.count[0] = all
end

local function clipped(x, most)
  if most > 0 then
    if x > most then return most elseif x < -most then return -most end
  end
  return x
end

-- ---- what is acted on, or evaluated ----

---Normalise observations by the statistics as they stand.
---@param x ffi.cdata* float[rows * n]
---@param into ffi.cdata* float[rows * n], which may be x
function Normaliser:observations(x, into, rows)
  local s, most = self.of_observation, self.clip_obs
  local n, mean, scale = s.n, s.mean, s.off
  for k = 0, n - 1 do scale[k] = math.sqrt(variance(self, s, k) + EPSILON) end
  if s.some and into ~= x then ffi.copy(into, x, 4 * rows * n) end
  for i = 0, rows - 1 do
    for _, range in ipairs(s.ranges) do
      for k = range[1], range[2] do into[i * n + k] = clipped((x[i * n + k] - mean[k]) / scale[k], most) end
    end
  end
end

---What is taken from each observed number, what it is then divided by, and whether it is clipped to +- clip_obs.
---@return number[] mean, number[] scale, boolean[] clipped
function Normaliser:scales()
  local s, mean, scale, touched = self.of_observation, {}, {}, {}
  for k = 1, s.n do mean[k], scale[k], touched[k] = 0, 1, false end
  for _, range in ipairs(s.ranges) do
    for k = range[1], range[2] do
      mean[k + 1], scale[k + 1], touched[k + 1] = s.mean[k], math.sqrt(variance(self, s, k) + EPSILON), true
    end
  end
  return mean, scale, touched
end

---What a reward is divided by.
function Normaliser:reward_scale() return self.norm_reward and math.sqrt(variance(self, self.of_return, 0) + EPSILON) or 1 end

---A reward by the statistics as they stand.
function Normaliser:reward(r) return clipped(r / self:reward_scale(), self.clip_reward) end

-- ---- while a learner acts ----

---Begin: no statistics, and the first observations.
---@param learner OnPolicy row T of its x is there
function Normaliser:begin(learner)
  engine.wait()
  local row, T, B = learner.row, learner.T, learner.B
  row.paid = {}
  for t = 0, T - 1 do row.paid[t] = ffi.new("float[?]", B) end
  if self.norm_obs then
    start(self.of_observation, given(learner), "observation", self.norm)
    update(self.of_observation, row.x[T], B)
    self:observations(row.x[T], row.inputs[T], B)
  end
  if self.norm_reward then
    start(self.of_return, given(learner), "return", self.norm)
    ffi.fill(self.returns_so_far, 8 * B)
  end
end

---Before a rollout: it begins with the last row of the one before.
function Normaliser:before(learner)
  if not self.norm_obs then return end
  engine.wait()
  ffi.copy(learner.row.inputs[0], learner.row.inputs[learner.T], learner.row_bytes)
end

---Step t was made: its rewards, and the observations after it.
function Normaliser:after(learner, t)
  engine.wait()
  local row, B, returns = learner.row, learner.B, self.returns_so_far
  local reward, done, told = row.reward[t], row.done[t + 1], row.previous.reward
  ffi.copy(row.paid[t], reward, 4 * B)
  if self.norm_reward then
    local terminated = learner.outcome_at.terminated
    for b = 0, B - 1 do returns[b] = returns[b] * learner.gamma * (1 - terminated[b]) + reward[b] end
    update(self.of_return, returns, B)
    for b = 0, B - 1 do if done[b] ~= 0 then returns[b] = 0 end end
  end
  for b = 0, B - 1 do
    reward[b] = self:reward(reward[b])
    if told and done[b] == 0 then told[t + 1][b] = reward[b] end
  end
  if self.norm_obs then
    update(self.of_observation, row.x[t + 1], B)
    self:observations(row.x[t + 1], row.inputs[t + 1], B)
  end
end

---What would have followed step t, had no time limit cut an episode off: its observation counts in no statistics.
function Normaliser:uncut(learner, t)
  engine.wait()
  local peek, cut, told = learner.peek, learner.outcome_at.cut, learner.peek.previous and learner.peek.previous.reward
  local x, n = peek.x:data(), peek.x:size() / learner.B
  for b = 0, learner.B - 1 do
    if cut[b] ~= 0 then
      if self.norm_obs then self:observations(x + b * n, x + b * n, 1) end
      if told then told:data()[b] = learner.row.reward[t][b] end
    end
  end
end

-- ---- saving ----

---What a checkpoint holds of it, as in OnPolicy:contents.
---@param list table[] added to
function Normaliser:contents(list)
  if self.norm_obs then list[#list + 1] = { "normalise.observation", self.of_observation.bytes } end
  if self.norm_reward then
    list[#list + 1] = { "normalise.return", self.of_return.bytes }
    list[#list + 1] = { "normalise.returns", self.returns_bytes, batch_axis = 1 }
  end
end

---Environment b begins an episode, though none of its own has ended.
function Normaliser:begins(b) if self.norm_reward then self.returns_so_far[b] = 0 end end

---A checkpoint has been read back, and the last observations.
function Normaliser:restored(learner)
  if not self.norm_obs then return end
  engine.wait()
  self:observations(learner.row.x[learner.T], learner.row.inputs[learner.T], learner.B)
end

---What config.json says of it.
function Normaliser:describe()
  local about = {}
  for _, key in ipairs(SETTINGS) do about[key] = self[key] end
  return about
end

-- ---- making one ----

local function make(settings, space, B)
  local self = setmetatable({}, Normaliser)
  for _, key in ipairs(SETTINGS) do self[key] = settings[key] end
  if self.norm_obs then self.of_observation = statistics(state_arrays.size(space.shape), space.parts) end
  if self.norm_reward then
    self.of_return = statistics(1)
    self.returns_bytes, self.returns_so_far = doubles(B)
  end
  return self
end

local normaliser = {}

---The normaliser of a learner; nil: its settings ask for none.
---@param what string the learner's name, for errors
---@param learner OnPolicy with its settings
---@return Normaliser?
function normaliser.of_learner(what, learner)
  local space = learner.env.observation_space
  if not learner.norm_obs and (given(learner) or {})["observation.mean"] then
    errors.usage(what .. ": norm_obs=0, and the agent's parameters are of a run with norm_obs=1",
      "norm_obs=1 begins with its statistics; without the names normalise.* they are left out")
  end
  if not (learner.norm_obs or learner.norm_reward or learner.clip_reward > 0) then return nil end
  local floats = not space.parts
  for _, part in ipairs(space.parts or {}) do floats = floats or part.kind == "floats" end
  if learner.norm_obs and (not floats or space.dtype == "u8") then
    errors.usage(("%s: norm_obs=1: the observations of %s are %s, expected floats%s"):format(what, learner.env.id, not floats and "codes and pictures"
      or space.codes and "codes (u8)" or "intensities (u8)", not floats and " among them" or ""), "norm_obs=0; norm_reward and clip_reward stay")
  end
  return make(learner, space, learner.B)
end

---The normaliser of a run, with the statistics of a checkpoint, which stay as they are.
---@param about table of describe, from config.json
---@param space table env.observation_space
---@param checkpoint table { tensors, path }
---@return Normaliser
function normaliser.of_checkpoint(about, space, checkpoint)
  local self = make(about, space, 1)
  for name, s in pairs { observation = self.of_observation, ["return"] = self.of_return } do
    local stored = checkpoint.tensors["normalise." .. name]
    if not stored or stored:size() ~= s.bytes:size() or stored:dtype() ~= "u8" then
      errors.fail(("%s has no statistics of each %s"):format(checkpoint.path, name))
    end
    s.bytes:copy(stored)
  end
  return self
end

normaliser.EPSILON = EPSILON
return normaliser
