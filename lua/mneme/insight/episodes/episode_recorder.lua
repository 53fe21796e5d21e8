-- episode_recorder.lua -- records the episodes of a stepper as files, FOLDER/episode-N.mnt; with `internals` also the agent's
-- observation, value, policy, memory and probes at each step.  And the episode of a timeline, with them, the interventions, and the actions taken by
-- hand: it is replayed from its first step to its end.
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"
local trajectory_replay = require "mneme.insight.episodes.trajectory_replay"
local reading = require "mneme.models.reading"

local C = engine.C
local MOST_BYTES, MOST_STEPS = 2 ^ 29, 2 ^ 17        -- of internals of an exported episode; so that the window stays responsive

---@class EpisodeRecorder
local EpisodeRecorder = {}
EpisodeRecorder.__index = EpisodeRecorder

-- The fields of a record, of a snapshot of the stepper, or a frame of it.
local function fields_of(stepper, snapshot)
  local space = stepper.env.observation_space
  local fields = { observation = { shape = space.shape, dtype = space.dtype }, value = { shape = { 1 } },
    policy = { shape = { stepper.agent.actions } } }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(snapshot[group]) do
      fields[group .. ":" .. name] = { shape = array.shape, dims = array.dims }
    end
  end
  return fields
end

-- The values of a snapshot, under the names of the fields.
local function values_of(snapshot)
  local values = { observation = snapshot.observation.values, value = { snapshot.value }, policy = snapshot.policy }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(snapshot[group]) do values[group .. ":" .. name] = array.values end
  end
  return values
end

---Record episodes of a stepper: of every environment the first, then every `every`-th.
---@param options table { folder, every = 1, episodes (the last number that is recorded, and one), internals = false }
---@return EpisodeRecorder
local function new(stepper, options)
  files.make_folder(options.folder)
  return setmetatable({ stepper = stepper, folder = options.folder, every = options.every or 1, episodes = options.episodes,
    internals = options.internals, recordings = {}, round = {}, written = 0 }, EpisodeRecorder)
end

-- The number of the current episode of environment b: first all first episodes, then all second ones ...
local function number_of(self, b) return (self.round[b] or 0) * self.stepper.num_envs + b end

-- The present observation of an environment.
local function observation_of(stepper, b) return stepper:observations() + b * stepper.n end

local function begin(self, b)
  local n, stepper = number_of(self, b), self.stepper
  self.recordings[b] = nil
  if n % self.every ~= 0 or n >= self.episodes then return end
  local rec = trajectory_writer.new(stepper.env, b, { fields = self.internals and fields_of(stepper, stepper:snapshot(0)) or nil,
    about = { title = stepper.title, source = stepper.source, run = stepper.run, reads = reading(stepper.agent.core) } })
  rec:begin(observation_of(stepper, b))
  self.recordings[b] = rec
end

---Between the stepper's forward() and step().
function EpisodeRecorder:before()
  local stepper = self.stepper
  if not self.begun then
    for b = 0, stepper.num_envs - 1 do begin(self, b) end
    self.begun = true
  end
  self.actions = stepper:acting()
  if not self.internals then return end
  for b, rec in pairs(self.recordings) do rec:internals(values_of(stepper:snapshot(b))) end
end

---After step().
function EpisodeRecorder:after()
  local stepper = self.stepper
  for b = 0, stepper.num_envs - 1 do
    local rec, over = self.recordings[b], stepper.done[b] ~= 0
    if rec then
      local action = stepper.env.action_space:read(self.actions, b)
      rec:add(action, stepper.reward[b], stepper.terminated[b] ~= 0, stepper.truncated[b] ~= 0, observation_of(stepper, b))
    end
    if over then
      if rec then
        rec:write(("%s/episode-%d.mnt"):format(self.folder, number_of(self, b)))
        self.written = self.written + 1
      end
      self.round[b] = (self.round[b] or 0) + 1
      begin(self, b)
    end
  end
end

---Export the episode of a frame.
---@param line Timeline of a Stepper
---@param i integer a frame of the episode
---@return Recording? recording nil: its beginning cannot be restored
---@return boolean whole it reaches the end of the episode: not if the user stops, or where it takes too much room
---@return string? problem why a replay differs: the environment is not deterministic
local function export(line, i)
  local p = line.source
  local like = line:frame(i)
  local first = p.observations and like and line:stand_before(i)
  if not first then return nil, false end
  local space, fields = p.env.action_space, fields_of(p, like)
  local rec = trajectory_writer.new(p.env, 0, { fields = fields,
    about = { title = p.title, source = p.source, run = p.run, reads = reading(p.agent.core) } })
  rec:begin(p:observations())
  local over = false
  while not over and (rec.steps + 1) * rec.stride < MOST_BYTES and rec.steps < MOST_STEPS and C.mn_interrupted() == 0 do
    local at = first + rec.steps
    for _, note in ipairs(line:intervene(at)) do rec:intervene(note, p:observations()) end
    p:forward()
    local actions, hand = p:acting(), line.actions[at]
    if hand then
      space:put(actions, 0, hand)
      rec:intervene({ kind = "take", what = space:words(hand) }, p:observations())
    end
    rec:internals(values_of(p:snapshot(0)))
    local action = space:read(actions, 0)
    p:step()
    over = p.done[0] ~= 0
    rec:add(action, p.reward[0], p.terminated[0] ~= 0, p.truncated[0] ~= 0, p:observations())
  end
  if rec.steps == 0 then return nil, false end
  return rec, over, trajectory_replay.new(rec:trajectory(), p.env):verify()
end

return { new = new, export = export }
