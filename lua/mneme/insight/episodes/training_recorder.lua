-- training_recorder.lua -- records an episode of training as a trajectory in RUN/episodes from time to time.  It costs nothing while
-- acting: environment 0 is saved once per rollout, and its actions are kept; a second environment replays them when an
-- episode is written.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local ranks = require "mneme.tensor.ranks"
local terminal = require "mneme.base.terminal"
local lazy = require "mneme.base.lazy"
local trajectory_writer = lazy "mneme.insight.episodes.trajectory_writer"
local single = lazy "mneme.envs.single"

local C = engine.C
local MOST_STEPS = 2 ^ 20          -- of an episode: a longer one is not recorded

---@class TrainingRecorder
local TrainingRecorder = {}
TrainingRecorder.__index = TrainingRecorder

---An observer of a training that records an episode every cfg.record_every minutes and at the end; nil where nothing is recorded.
---@param learner table with env, agent, T, and row.played, row.done, row.x: see learn/on_policy.lua
---@return TrainingRecorder?
local function open(learner, run)
  local minutes = learner.cfg.record_every
  if ranks.rank ~= 0 or not learner.row or minutes == 0 then return nil end
  return setmetatable({ learner = learner, folder = run.path .. "/episodes", period = 60 * minutes, last = C.mn_clock(false),
    rollouts = {}, steps = 0 }, TrainingRecorder)
end

---Before a rollout.
function TrainingRecorder:before()
  if self.silent then return end
  local learner = self.learner
  table.insert(self.rollouts, { start = learner.env:save(0), actions = {} })
end

---After it: its actions are kept while they belong to the latest complete episode or to the current one.
---@param step number of training
function TrainingRecorder:after(step)
  if self.silent then return end
  local learner, rollouts = self.learner, self.rollouts
  local rollout, row, T = rollouts[#rollouts], learner.row, learner.T
  rollout.starts = {}
  for t = 0, T - 1 do
    rollout.actions[t] = learner.env.action_space:read(row.played[t], 0)
    if row.done[t + 1][0] ~= 0 then table.insert(rollout.starts, t + 1) end
  end
  self.steps = self.steps + T
  local first, whole = self:latest()
  for _ = 2, whole and first or (self.steps > MOST_STEPS and #rollouts or 1) do
    table.remove(rollouts, 1)
    self.steps = self.steps - T
  end
  if C.mn_clock(false) - self.last >= self.period then self:write(step) end
end

-- The rollout and step at which the latest complete episode begins; nil: none is known.
function TrainingRecorder:latest()
  local starts = {}
  for i = math.max(1, #self.rollouts), 1, -1 do
    local list = self.rollouts[i] and self.rollouts[i].starts or {}
    for k = #list, 1, -1 do
      starts[#starts + 1] = { i, list[k] }
      if #starts == 2 then return starts[2][1], starts[2][2] end
    end
  end
end

-- Replays the rollouts from the one where the episode begins, records it, and checks that it ends in the state of
-- the training environment.
local function record(self, first, at, step)
  local learner, T = self.learner, self.learner.T
  local env = learner.env
  self.again = self.again or single.new(single.like(env))
  local again = self.again
  again.env:restore(0, self.rollouts[first].start, again.obs)
  local rec = trajectory_writer.new(again.env, 0, { about = { title = learner.agent:title(env),
    source = ("training, %.0f steps"):format(step) } })
  local begun, ended = false, false
  for i = first, #self.rollouts do
    for t = 0, T - 1 do
      if i == first and t == at then begun = true rec:begin(again.obs) end
      local action = self.rollouts[i].actions[t]
      again:act(action, begun and not ended and rec or nil)
      ended = ended or begun and again.ended
    end
    if i == first and at == T then begun = true rec:begin(again.obs) end
  end
  return rec, ended and ffi.string(again.obs, again.obs_bytes) == ffi.string(learner.row.x[T], again.obs_bytes)
end

-- A recording that fails must not stop a training: warn once, then do nothing.
local function give_up(self, why)
  terminal.note(("mneme: warning: episodes are no longer recorded: %s"):format(tostring(why)))
  self.silent = true
end

---Training has ended: record its latest episode.
function TrainingRecorder:close(step, ok) if ok then self:write(step) end end

---Write the latest complete episode of environment 0, if there is one: RUN/episodes/step-N.mnt.
---@param step number of training
function TrainingRecorder:write(step)
  self.last = C.mn_clock(false)
  local first, at = self:latest()
  if self.silent or not first then return end
  local ok, why = pcall(function()
    local rec, same = record(self, first, at, step)
    if not same then
      errors.fail(("%s is not deterministic: its state must lie in self"):format(self.learner.env.id))
    end
    files.make_folder(self.folder)
    rec:write(("%s/step-%.0f.mnt"):format(self.folder, step))
  end)
  if not ok then give_up(self, why) end
end

return { open = open }
