-- rollout_buffers.lua -- what a rollout of a learner writes: observations, actions, rewards, ends, the outcomes of episodes.
local ffi = require "ffi"
local tensor = require "mneme.tensor.tensor"

local M = {}

---Pointers to every row of a [T,B,...] buffer: made once, so that stepping makes no garbage.
---@param t Tensor
---@param into table receives them from index `first` on
---@param first integer? 0 by default
---@return table into
function M.rows_of(t, into, first)
  local rows, p = t:shape()[1], t:data()
  local stride = t:size() / rows
  for i = 0, rows - 1 do into[(first or 0) + i] = p + i * stride end
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
  self.rewards, self.played = tensor.new { shape = { T, B } }, tensor.new { shape = { T, B }, dtype = "i32" }
  self.overwritten = { self.x, self.done, self.resets, self.rewards, self.played, self.inputs ~= self.x and self.inputs or nil }
  for _, t in pairs(self.previous or {}) do self.overwritten[#self.overwritten + 1] = t end
  self.row = { action = {}, value = {}, reward = M.rows_of(self.rewards, {}), played = M.rows_of(self.played, {}),
    x = M.rows_of(self.x, {}), inputs = M.rows_of(self.inputs, {}), done = M.rows_of(self.done, {}), resets = M.rows_of(self.resets, {}), previous = {} }
  self.row.paid = self.row.reward            -- as the environment gave them
  for name, t in pairs(self.previous or {}) do self.row.previous[name] = M.rows_of(t, {}) end
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
  local peek = self.bootstrap_truncated and self.env.time_limit > 0 and make_peek(self) or nil
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
  self.peek, self.buffers = peek, r
end

---Make the buffers of a learner (on_policy.lua), and what mn_rollout reads of them.
---@param self OnPolicy with T, B, env and its settings
function M.make(self)
  make_buffers(self)
  make_rollout(self)
end

return M
