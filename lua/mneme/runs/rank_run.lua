-- rank_run.lua -- the run of every rank but the first: it gets the folder's path from rank 0, reads the same
-- checkpoint, and writes nothing.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local folder = require "mneme.runs.folder"
local json = require "mneme.base.json"
local ranks = require "mneme.tensor.ranks"

local C = engine.C

---@class Follower with the methods of a Run that the trainer calls
local Follower = {}
Follower.__index = Follower

---What rank 0 sends when it has opened its run; without a run, that there is nothing to do.
---@param run Run?
local function lead(run)
  ranks.tell(json.encode(run and { path = run.path, resumed = run.resumed, step = run.at and run.at.step } or {}))
end

---What the others make of it.
---@return Follower
local function open()
  local told = json.decode(ranks.tell(), "the message of rank 0")
  if not told.path then errors.stop(0) end
  C.mn_watch_signals(true)
  return setmetatable({ path = told.path, resumed = told.resumed, step = told.step, last_step = told.step or 0 }, Follower)
end

function Follower:latest() return self.step and folder.load(self.path):of_step(self.step) end
function Follower.due() return false end
function Follower.log() end
function Follower:checkpoint(step) self.last_step = step end

function Follower.close(_, status)
  C.mn_watch_signals(false)
  if status == 130 or status == 143 then errors.stop(status) end
end

return { lead = lead, open = open }
