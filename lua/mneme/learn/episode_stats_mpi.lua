-- episode_stats_mpi.lua -- the finished episodes of all ranks, counted on each rank in the order of a single process.
-- So scores, and all that depends on them, are the same on every rank.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local episode_stats = require "mneme.learn.episode_stats"
local ranks = require "mneme.tensor.ranks"

local C, check = engine.C, engine.check
local Episodes = getmetatable(episode_stats(1))
local FIELDS = 5                   -- step, environment, score, return, length

---@class SharedEpisodes: Episodes
local Shared = setmetatable({}, { __index = Episodes })
Shared.__index = Shared

---@param num_envs integer of all ranks
---@param most integer episodes that can end on one rank between two calls of settle
---@return SharedEpisodes
local function new(num_envs, most)
  local self = setmetatable(episode_stats(num_envs), Shared)
  self.mine, self.ended = ffi.new("float[?]", most * FIELDS), 0
  return self
end

---An episode of this rank's environment b has ended, in step t of the rollout.
function Shared:add(t, b, score, ret, length)
  local row = self.mine + self.ended * FIELDS
  row[0], row[1], row[2], row[3], row[4] = t, b, score, ret, length
  self.ended = self.ended + 1
end

---After a rollout, on every rank.
function Shared:settle(steps)
  local most, size = ranks.most(self.ended), ranks.size
  if most > 0 then
    local all = ffi.new("float[?]", size * most * FIELDS)
    for i = self.ended, most - 1 do self.mine[i * FIELDS] = math.huge end          -- none
    check(C.mn_ranks_gather(engine.ctx, self.mine, all, 4 * most * FIELDS, true))
    for i = 0, size * most - 1 do
      local row, first = all + i * FIELDS, math.floor(i / most) * self.num_envs / size
      if row[0] < math.huge then Episodes.add(self, row[0], first + row[1], row[2], row[3], row[4]) end
    end
    self.ended = 0
  end
  Episodes.settle(self, steps)
end

return new
