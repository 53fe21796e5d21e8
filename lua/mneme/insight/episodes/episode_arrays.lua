-- episode_arrays.lua -- whole episodes as arrays for NumPy, FILE.npz: observations, actions, rewards, terminated and truncated of each step, of an
-- agent also what it had in mind, and about, the bytes of a JSON text.
local ffi = require "ffi"
local dtypes = require "mneme.base.dtypes"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local npz = require "mneme.tensor.npz"
local state_arrays = require "mneme.models.state_arrays"
local tables = require "mneme.base.tables"

local episode_arrays = {}

---@class EpisodeArrays of one environment, from begin() on
---@field steps integer so far
local Episode = {}
Episode.__index = Episode

---@param env Env
---@param b integer its environment, from 0
---@param about table? { title, source, ... } for people
---@return EpisodeArrays
function episode_arrays.new(env, b, about) return setmetatable({ env = env, b = b, about = about or {} }, Episode) end

---Begin, or begin again.
function Episode:begin() self.steps, self.arrays, self.names = 0, {}, {} end

-- Adds a row of n numbers to an array: a pointer, or a list.
local function add(self, name, dtype, shape, values)
  local array, n = self.arrays[name], state_arrays.size(shape)
  if not array then
    array = { dtype = dtype, shape = shape }
    self.arrays[name], self.names[#self.names + 1] = array, name
  end
  if type(values) == "table" then values = ffi.new("float[?]", n, values) end
  array[#array + 1] = ffi.string(ffi.cast("const char *", values), n * (dtypes[dtype] and dtypes[dtype].bytes or 4))
end

---What is there before a step.
---@param observation ffi.cdata*
---@param mind table? a snapshot of the stepper: value, policy, memory and probes are kept, too
function Episode:see(observation, mind)
  local space = self.env.observation_space
  add(self, "observations", space.dtype, space.shape, observation)
  if not mind then return end
  add(self, "value", "f32", {}, { mind.value })
  add(self, "policy", "f32", { ffi.sizeof(mind.policy) / 4 }, mind.policy)
  for _, group in ipairs { "memory", "probes" } do
    for name, array in pairs(mind[group]) do add(self, group .. ":" .. name, "f32", array.shape, array.values) end
  end
end

---What came of it.
---@param actions ffi.cdata* of all environments
function Episode:add(actions, reward, terminated, truncated)
  local space = self.env.action_space
  add(self, "actions", space.dtype, space.kind == "discrete" and {} or { space.size }, actions + self.b * space.size)
  add(self, "rewards", "f32", {}, { reward })
  add(self, "terminated", "u8", {}, ffi.new("uint8_t[1]", terminated and 1 or 0))
  add(self, "truncated", "u8", {}, ffi.new("uint8_t[1]", truncated and 1 or 0))
  self.steps = self.steps + 1
end

---Write it: the whole file or nothing.
---@param path string FILE.npz
function Episode:write(path)
  local env, list = self.env, {}
  local about = { env = env.id, settings = env.settings, actions = json.array { unpack(env.action_space.names) }, seed = env.seed, environment = self.b }
  table.sort(self.names)
  for i, name in ipairs(self.names) do
    local array = self.arrays[name]
    local text = table.concat(array, "", 1, self.steps)
    list[i] = { name = name, dtype = array.dtype, shape = { self.steps, unpack(array.shape) }, data = ffi.cast("const char *", text), owner = text }
  end
  local text = json.encode(tables.merged(about, self.about))
  list[#list + 1] = { name = "about", dtype = "u8", shape = { #text }, data = ffi.cast("const char *", text), owner = text }
  npz.write(path, list)
end

-- ---- the episodes of a stepper ----

---@class EpisodeAlbum
---@field written integer files so far
local Album = {}
Album.__index = Album

-- The next episode of an environment, numbered: first all first episodes, then all second ones ...
local function begin(self, b)
  local n, p = self.first + self.round[b] * self.stepper.num_envs + b, self.stepper
  self.recording[b] = nil
  if n % self.every ~= 0 or n >= self.episodes then return end
  self.recording[b] = episode_arrays.new(p.env, b, tables.merged({ title = p.title, source = p.source, run = p.run, episode = n }, self.about))
  self.recording[b]:begin()
end

---Record the episodes of a stepper from their beginning, as FOLDER/episode-N.npz.
---@param o table { folder, episodes = the last number that is recorded, and one; first = 0: the number of the first; every = 1: every N-th;
---  internals = false: also what the agent has in mind; about: besides what the stepper says of itself }
---@return EpisodeAlbum
function episode_arrays.album(stepper, o)
  files.make_folder(o.folder)
  local self = setmetatable({ stepper = stepper, folder = o.folder, first = o.first or 0, every = o.every or 1, episodes = o.episodes,
    internals = o.internals, about = o.about or {}, recording = {}, round = {}, written = 0 }, Album)
  for b = 0, stepper.num_envs - 1 do
    self.round[b] = 0
    begin(self, b)
  end
  return self
end

---Between the stepper's forward() and step().
function Album:before()
  local p = self.stepper
  self.actions = p:acting()
  for b, rec in pairs(self.recording) do rec:see(p:observations() + b * p.n, self.internals and p:snapshot(b) or nil) end
end

---After step().
function Album:after()
  local p = self.stepper
  for b = 0, p.num_envs - 1 do
    local rec = self.recording[b]
    if rec then rec:add(self.actions, p.reward[b], p.terminated[b] ~= 0, p.truncated[b] ~= 0) end
    if p.done[b] ~= 0 then
      if rec then
        rec:write(("%s/episode-%d.npz"):format(self.folder, rec.about.episode))
        self.written = self.written + 1
      end
      self.round[b] = self.round[b] + 1
      begin(self, b)
    end
  end
end

return episode_arrays
