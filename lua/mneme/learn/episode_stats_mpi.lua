-- episode_stats_mpi.lua -- the finished episodes of all ranks, counted on each rank in the order of a single process:
-- by step, then by environment.  So scores, and all that depends on them, are the same on every rank.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local episodes = require "mneme.learn.episode_stats"
local ranks = require "mneme.tensor.ranks"

local C, check = engine.C, engine.check
local Episodes = getmetatable(episodes())
local FIELDS = 4                   -- step, score, return, length

---@class SharedEpisodes: Episodes
local Shared = setmetatable({}, { __index = Episodes })
Shared.__index = Shared

---@param most integer episodes that can end on one rank between two calls of count_waiting
---@return SharedEpisodes
local function new(most)
  local self = setmetatable(episodes(), Shared)
  self.mine, self.waiting = ffi.new("float[?]", most * FIELDS), 0
  return self
end

---An episode of this rank's environments has ended, in step t of the rollout.
function Shared:add(t, score, ret, length)
  local row = self.mine + self.waiting * FIELDS
  row[0], row[1], row[2], row[3] = t, score, ret, length
  self.waiting = self.waiting + 1
end

---After a rollout, on every rank: count the episodes that ended in it.
function Shared:count_waiting()
  local most, size = ranks.most(self.waiting), ranks.size
  if most == 0 then return end
  local all, at = ffi.new("float[?]", size * most * FIELDS), {}
  for i = self.waiting, most - 1 do self.mine[i * FIELDS] = math.huge end          -- none
  check(C.mn_ranks_gather(engine.ctx, self.mine, all, 4 * most * FIELDS, true))
  for r = 0, size - 1 do at[r] = 0 end
  while true do
    local first, when = nil, math.huge
    for r = 0, size - 1 do
      local t = at[r] < most and all[(r * most + at[r]) * FIELDS] or math.huge
      if t < when then first, when = r, t end
    end
    if not first then break end
    local row = all + (first * most + at[first]) * FIELDS
    self:count_in(row[1], row[2], row[3])
    at[first] = at[first] + 1
  end
  self.waiting = 0
end

return new
