-- episode_recorder.lua -- the episodes that a player lives through as files, FOLDER/episode-N.mnt; with `internals` also what the
-- agent saw, valued and remembered at each step.
local files = require "mneme.base.files"
local recording = require "mneme.episodes.trajectory_writer"

---@class Album
local Album = {}
Album.__index = Album

---The fields of a record.
---@param mind table what the player has in mind, or a frame of it
local function fields_of(player, mind)
  local space = player.task.observation_space
  local fields = { observation = { shape = space.shape, dtype = space.dtype }, value = { shape = { 1 } },
    policy = { shape = { player.task.action_space.n } } }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(mind[group]) do
      fields[group .. ":" .. name] = { shape = array.shape, dims = array.dims }
    end
  end
  return fields
end

---The numbers of what a player has in mind, under the names of the fields.
local function numbers_of(mind)
  local numbers = { observation = mind.observation.values, value = { mind.value }, policy = mind.policy }
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(mind[group]) do numbers[group .. ":" .. name] = array.values end
  end
  return numbers
end

---Record the episodes of a player: of every copy, the first, and then each every-th of all.
---@param player Player
---@param options table { folder, every = 1, episodes (the last number that is recorded, and one), internals = false }
---@return Album
local function new(player, options)
  files.make_folder(options.folder)
  return setmetatable({ player = player, folder = options.folder, every = options.every or 1, episodes = options.episodes,
    internals = options.internals, recordings = {}, round = {}, written = 0 }, Album)
end

-- The number of the episode that copy b is in: copy 0's first, copy 1's first, ..., copy 0's second, ...
local function number_of(self, b) return (self.round[b] or 0) * self.player.copies + b end

-- The observation of a copy now.
local function seen(player, b) return player:observations() + b * player.n end

local function begin(self, b)
  local n, player = number_of(self, b), self.player
  self.recordings[b] = nil
  if n % self.every ~= 0 or n >= self.episodes then return end
  local rec = recording.new(player.task, b, { fields = self.internals and fields_of(player, player:mind(0)) or nil,
    about = { title = player.title, source = player.source, reads = player.agent.core.reads } })
  rec:begin(seen(player, b))
  self.recordings[b] = rec
end

---Between the player's think() and step().
function Album:before()
  local player = self.player
  if not self.begun then
    for b = 0, player.copies - 1 do begin(self, b) end
    self.begun = true
  end
  self.actions = player.actions:data() + player.row * player.copies
  if not self.internals then return end
  for b, rec in pairs(self.recordings) do rec:think(numbers_of(player:mind(b))) end
end

---After step().
function Album:after()
  local player = self.player
  for b = 0, player.copies - 1 do
    local rec, over = self.recordings[b], player.done[b] ~= 0
    if rec then
      rec:add(self.actions[b], player.reward[b], player.terminated[b] ~= 0, player.truncated[b] ~= 0, seen(player, b))
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
