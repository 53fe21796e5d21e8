-- episode_recorder.lua -- the episodes that a stepper lives through as files, FOLDER/episode-N.mnt; with `internals` also what the
-- agent saw, valued and remembered at each step.
local files = require "mneme.base.files"
local trajectory_writer = require "mneme.episodes.trajectory_writer"

---@class EpisodeRecorder
local EpisodeRecorder = {}
EpisodeRecorder.__index = EpisodeRecorder

---The fields of a record.
---@param mind table what the stepper has in mind, or a frame of it
local function fields_of(stepper, mind)
  local space = stepper.env.observation_space
  local fields = { observation = { shape = space.shape, dtype = space.dtype }, value = { shape = { 1 } },
    policy = { shape = { stepper.env.action_space.n } } }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(mind[group]) do
      fields[group .. ":" .. name] = { shape = array.shape, dims = array.dims }
    end
  end
  return fields
end

---The numbers of what a stepper has in mind, under the names of the fields.
local function numbers_of(mind)
  local numbers = { observation = mind.observation.values, value = { mind.value }, policy = mind.policy }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(mind[group]) do numbers[group .. ":" .. name] = array.values end
  end
  return numbers
end

---Record the episodes of a stepper: of every copy, the first, and then each every-th of all.
---@param stepper Stepper
---@param options table { folder, every = 1, episodes (the last number that is recorded, and one), internals = false }
---@return EpisodeRecorder
local function new(stepper, options)
  files.make_folder(options.folder)
  return setmetatable({ stepper = stepper, folder = options.folder, every = options.every or 1, episodes = options.episodes,
    internals = options.internals, recordings = {}, round = {}, written = 0 }, EpisodeRecorder)
end

-- The number of the episode that copy b is in: copy 0's first, copy 1's first, ..., copy 0's second, ...
local function number_of(self, b) return (self.round[b] or 0) * self.stepper.num_envs + b end

-- The observation of a copy now.
local function seen(stepper, b) return stepper:observations() + b * stepper.n end

local function begin(self, b)
  local n, stepper = number_of(self, b), self.stepper
  self.recordings[b] = nil
  if n % self.every ~= 0 or n >= self.episodes then return end
  local rec = trajectory_writer.new(stepper.env, b, { fields = self.internals and fields_of(stepper, stepper:snapshot(0)) or nil,
    about = { title = stepper.title, source = stepper.source, reads = stepper.agent.core.reads } })
  rec:begin(seen(stepper, b))
  self.recordings[b] = rec
end

---Between the stepper's forward() and step().
function EpisodeRecorder:before()
  local stepper = self.stepper
  if not self.begun then
    for b = 0, stepper.num_envs - 1 do begin(self, b) end
    self.begun = true
  end
  self.actions = stepper.actions:data() + stepper.row * stepper.num_envs
  if not self.internals then return end
  for b, rec in pairs(self.recordings) do rec:internals(numbers_of(stepper:snapshot(b))) end
end

---After step().
function EpisodeRecorder:after()
  local stepper = self.stepper
  for b = 0, stepper.num_envs - 1 do
    local rec, over = self.recordings[b], stepper.done[b] ~= 0
    if rec then
      rec:add(self.actions[b], stepper.reward[b], stepper.terminated[b] ~= 0, stepper.truncated[b] ~= 0, seen(stepper, b))
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

return { new = new, fields_of = fields_of, numbers_of = numbers_of }
