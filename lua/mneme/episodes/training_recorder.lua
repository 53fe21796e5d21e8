-- training_recorder.lua -- now and then an episode of training goes into RUN/episodes, as a trajectory.  Acting pays nothing for
-- it: a rollout leaves its actions behind, and where copy 0 stood before it is saved once a rollout; what lies in
-- between, a copy of the environment lives through again when an episode is to be written.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local ranks = require "mneme.tensor.mpi"
local trajectory_writer = require "mneme.episodes.trajectory_writer"
local single = require "mneme.envs.single"

local C = engine.C
local MOST_STEPS = 2 ^ 20          -- of an episode: a longer one is not recorded

---@class TrainingRecorder
local TrainingRecorder = {}
TrainingRecorder.__index = TrainingRecorder

---An observer of a training that records an episode every cfg.record_every minutes and at the end; nil where nothing is recorded.
---@param learner table with env, agent, T, and row.played, row.done, row.x: see learn/on_policy.lua
---@param run Run
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
  table.insert(self.rollouts, { start = learner.env:save(0), actions = ffi.new("int32_t[?]", learner.T) })
end

---After it: its actions are kept as long as they belong to the latest whole episode, or to the one that goes on.
---@param step number of training
function TrainingRecorder:after(step)
  if self.silent then return end
  local learner, rollouts = self.learner, self.rollouts
  local rollout, row, T = rollouts[#rollouts], learner.row, learner.T
  rollout.starts = {}
  for t = 0, T - 1 do
    rollout.actions[t] = row.played[t][0]
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

-- Where the latest whole episode begins: the rollout, and the step in it; nil, where none is known.
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

-- Live through the rollouts again from the one where the episode begins; record it; and see that it ends where
-- training stands.
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

-- An episode is not worth a training: say once why none is recorded, and be silent.
local function give_up(self, why)
  io.stderr:write(("mneme: warning: no more episodes are recorded: %s\n"):format(tostring(why)))
  self.silent = true
end

---Training has ended: record its latest episode.
function TrainingRecorder:close(step, ok) if ok then self:write(step) end end

---Write the latest whole episode of copy 0, if there is one: RUN/episodes/step-N.mnt.
---@param step number of training
function TrainingRecorder:write(step)
  self.last = C.mn_clock(false)
  local first, at = self:latest()
  if self.silent or not first then return end
  local ok, why = pcall(function()
    local rec, same = record(self, first, at, step)
    if not same then
      errors.fail(("%s does not repeat itself: what decides must lie in self"):format(self.learner.env.id))
    end
    files.make_folder(self.folder)
    rec:write(("%s/step-%.0f.mnt"):format(self.folder, step))
  end)
  if not ok then give_up(self, why) end
end

return { open = open }
