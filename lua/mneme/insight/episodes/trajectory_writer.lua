-- trajectory_writer.lua -- records one environment step by step as a Trajectory, which trajectory.lua writes and reads.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local state_arrays = require "mneme.models.state_arrays"
local tensor = require "mneme.tensor.tensor"
local trajectory = require "mneme.insight.episodes.trajectory"

local C = engine.C
local MOST_RECORDS = 2 ^ 31                 -- bytes
local MOST_SEEN = 2 ^ 28                    -- of observations that are recorded without being asked for

---@class Recording
---@field steps integer so far
local Recording = {}
Recording.__index = Recording

-- An array of at least `need` elements, with what it held.
local function grow(self, key, ctype, need)
  local have = self.room[key] or 0
  if need <= have then return self[key] end
  local room = math.max(need, 2 * have, 256)
  local bigger = ffi.new(ctype, room)
  if have > 0 then ffi.copy(bigger, self[key], have * ffi.sizeof(bigger) / room) end
  self[key], self.room[key] = bigger, room
  return bigger
end

---A recording of one environment; begin() starts it.
---@param env Env
---@param copy integer from 0
---@param options table? fields: name -> { shape, dtype = "f32"|"u8", dims }, what forward() is given at each
---  step; about: { title, source, ... }, for people
---@return Recording
local function new(env, copy, options)
  options = options or {}
  errors.need("recording: the environment", env, "observation_space", "mn.env(...)")
  errors.need("recording: the options", options, nil, "{ fields = ..., about = ... }")
  for key in pairs(options) do
    if key ~= "fields" and key ~= "about" then errors.unknown("option of a recording:", key, { "about", "fields" }) end
  end
  local space, wanted = env.observation_space, options.fields or {}
  local sees = env.truncates and not wanted.observation           -- of Gymnasium: they cannot be computed again without Python
  if sees then
    local all = { observation = { shape = space.shape, dtype = space.dtype } }
    for name, field in pairs(wanted) do all[name] = field end
    wanted = all
  end
  local fields, stride = trajectory.layout(wanted)
  return setmetatable({ sees = sees, env = env, copy = copy, room = {}, about = options.about or {}, fields = fields,
    stride = stride, obs_bytes = state_arrays.size(space.shape) * trajectory.dtypes[space.dtype].bytes }, Recording)
end

-- The next observation goes into the running check of its block.
local function see(self, obs)
  tensor.need_pointer("recording: the observation", obs)
  local n, block = self.seen, trajectory.block
  local at = math.floor(n / block)
  self.check_before = n % block == 0 and 0 or self.check
  self.check = C.mn_crc32c(self.check_before, obs, self.obs_bytes)
  grow(self, "checks", "uint32_t[?]", at + 1)[at] = self.check
  self.seen = n + 1
  if self.sees and #self.fields == 1 and (n + 1) * self.stride > MOST_SEEN then self.sees, self.fields, self.stride, self.records = false, {}, 0, nil end
  for _, f in ipairs(self.sees and self.fields or {}) do
    if f.name == "observation" then
      ffi.copy(grow(self, "records", "uint8_t[?]", (n + 1) * self.stride) + n * self.stride + f.at, obs, self.obs_bytes)
    end
  end
end

---Begin, or begin again, at the present state of the environment.
---@param obs ffi.cdata* its present observation
function Recording:begin(obs)
  self.start, self.seed = self.env:save(self.copy), self.env.seed
  self.steps, self.seen, self.check, self.interventions = 0, 0, 0, {}
  see(self, obs)
end

---The agent's internals before it acts: the values of every field.
---@param values table<string, ffi.cdata*|number[]>
function Recording:internals(values)
  local bytes = (self.steps + 1) * self.stride
  if bytes > MOST_RECORDS then
    errors.fail(("recording: %d bytes a step come to more than %.0f MB after %d steps"):format(self.stride,
      MOST_RECORDS / 2 ^ 20, self.steps), "without internals hundreds of millions of steps fit")
  end
  local to = grow(self, "records", "uint8_t[?]", bytes) + self.steps * self.stride
  for _, f in ipairs(self.fields) do
    local from, n = values[f.name], state_arrays.size(f.shape)
    local has = self.sees and f.name == "observation"
    if not from and not has then errors.raise(("recording: nothing is given for %s"):format(f.name)) end
    local kind = trajectory.dtypes[f.dtype]
    if type(from) == "table" then
      local p = ffi.cast(kind.pointer, to + f.at)
      for i = 1, n do p[i - 1] = from[i] end
    elseif not has then ffi.copy(to + f.at, from, n * kind.bytes) end
  end
end

---The environment has made a step.
---@param action integer|number[]
---@param reward number
---@param terminated boolean
---@param truncated boolean
---@param obs ffi.cdata* the observation after it: where an episode ended, the first of the next one
function Recording:add(action, reward, terminated, truncated, obs)
  local t = self.steps
  if not t then errors.raise "recording: add before begin" end
  local space = self.env.action_space
  if type(action) ~= (space.kind == "discrete" and "number" or "table") or type(reward) ~= "number" then
    errors.raise(("recording: action %s and reward %s, expected one of %s and a number"):format(tostring(action), tostring(reward), tostring(space)))
  end
  if t >= trajectory.most_steps then
    errors.fail(("recording: more than %d steps in one trajectory"):format(trajectory.most_steps))
  end
  local actions = grow(self, "actions", space.dtype == "f32" and "float[?]" or "int32_t[?]", (t + 1) * space.size)
  space:put(actions, t, action)
  local wrong = space:misfit(actions, t)
  if wrong then errors.raise("recording: " .. wrong) end
  grow(self, "rewards", "float[?]", t + 1)[t] = reward
  grow(self, "flags", "uint8_t[?]", t + 1)[t] = terminated and 1 or truncated and 2 or 0
  self.steps = t + 1
  see(self, obs)
end

-- The script with the rules of a Lua environment; nil for C.
local function script_of(env)
  local spec = env.world.spec
  return spec and debug.getinfo(spec.reset, "S").short_src or nil
end

---An intervention on the environment or its agent before this step's observation was processed.
---@param what table { kind, what, to, ... }; kind = "set": fact `what` of the environment became `to`; a replay repeats it
---@param obs ffi.cdata* the observation as it is now
function Recording:intervene(what, obs)
  errors.need("recording: what was done", what, "kind", "{ kind = ..., what = ... }")
  local entry = { at = self.steps }
  for key, value in pairs(what) do entry[key] = value end
  table.insert(self.interventions, entry)
  self.seen, self.check = self.seen - 1, self.check_before
  see(self, obs)
end

---The recorded trajectory, as trajectory.read returns it; it shares the recording's arrays.
---@return Trajectory
function Recording:trajectory()
  if (self.steps or 0) == 0 then errors.raise "recording: no step was recorded" end
  local env, settings = self.env, {}
  for key, value in pairs(env.settings) do if key ~= "num_envs" then settings[key] = value end end
  return { env = env.id, settings = settings, names = env.action_space.names, space = env.action_space, copy = self.copy, seed = self.seed,
    observation = { shape = env.observation_space.shape, dtype = env.observation_space.dtype },
    script = script_of(env), start = self.start, steps = self.steps, actions = self.actions,
    rewards = self.rewards, flags = self.flags, checks = self.checks, fields = self.fields, stride = self.stride,
    records = self.records, about = self.about, interventions = self.interventions }
end

---Write the recorded trajectory to a file, atomically.
---@param path string ending in .mnt
function Recording:write(path) trajectory.write(path, self:trajectory()) end

return { new = new }
