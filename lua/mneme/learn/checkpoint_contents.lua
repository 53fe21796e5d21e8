-- checkpoint_contents.lua -- what a checkpoint holds of a learner that acts, and how training continues from it: methods of OnPolicy.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local ranks = require "mneme.tensor.ranks"
local tensor = require "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"

---@class OnPolicy
local M = {}

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
  list[#list + 1] = { "worlds", saved_worlds(self.env), own = true, batch_axis = 1 }
  list[#list + 1] = { "episodes", self.finished:running(), own = true, optional = true }
  return list
end

---What a checkpoint holds besides tensors.
---@return table
function M:counters() return { episodes = self.finished:counters() } end

---Go on from a checkpoint, whose tensors are in place.
---@param checkpoint table
function M:restored(checkpoint)
  local worlds, observations = checkpoint.tensors.worlds, self.row.x[self.T]
  local shape, all = worlds:shape(), self.env.num_envs * ranks.size
  if worlds:dtype() ~= "u8" or #shape ~= 2 or shape[1] ~= all then
    errors.fail(("%s: worlds is %s [%s], expected u8 [%d, bytes]"):format(checkpoint.path, worlds:dtype(), table.concat(shape, ","), all))
  end
  local bytes, n = shape[2], self.x:size() / (self.T + 1) / self.B
  for b = 0, self.B - 1 do
    self.env:restore(b, ffi.string(worlds:data() + (self.first + b) * bytes, bytes), observations + b * n)
  end
  if self.normaliser then self.normaliser:restored(self) end
  self.finished:restore(checkpoint.counters.episodes, checkpoint.path, checkpoint.tensors.episodes)
  self.step = checkpoint.step
  local told = self.agent.core.as_trained
  if told and ranks.rank == 0 then terminal.note(("mneme: %s: %s"):format(self.cfg.resume, told)) end
end

return M
