-- single.lua -- one environment (num_envs = 1) with the buffers of its last step: for playing by hand and replaying
-- another's episode.
local ffi = require "ffi"
local dtypes = require "mneme.base.dtypes"
local envs = require "mneme.envs.env"
local state_arrays = require "mneme.models.state_arrays"

---@class Single
---@field env Env with num_envs = 1
---@field obs ffi.cdata* the current observation, of obs_bytes bytes; after the end of an episode, the first of the next one
---@field reward ffi.cdata* float[1]; terminated, truncated: uint8_t[1]: of the last step
---@field ended boolean? the last step ended an episode
local Single = {}
Single.__index = Single

---Give an object the fields of a Single.
---@param env Env with num_envs = 1
---@return Single itself
function Single:set_up(env)
  local space = env.observation_space
  local kind = dtypes[space.dtype]
  self.env, self.obs_bytes = env, state_arrays.size(space.shape) * kind.bytes
  self.reward, self.action = ffi.new "float[1]", env.action_space:room(1)
  self.terminated, self.truncated = ffi.new "uint8_t[1]", ffi.new "uint8_t[1]"
  self.room = ffi.new("char[?]", self.obs_bytes)
  self.obs = ffi.cast(kind.pointer, self.room)
  return self
end

---A new environment with the same rules and settings, and num_envs = 1.
---@param env Env
---@return Env
function Single.like(env)
  local settings, spec = {}, env.world.spec
  for key, value in pairs(spec or env.settings) do settings[key] = value end
  settings.num_envs, settings.time_limit = 1, env.time_limit
  if spec then return envs.new(settings) end
  return envs.known(env.id, settings)
end

---@param env Env with num_envs = 1
---@return Single
function Single.new(env) return Single.set_up(setmetatable({}, Single), env) end

---Step with an action.
---@param action integer|number[]
function Single:act(action)
  self.env.action_space:put(self.action, 0, action)
  self.env:step_raw(self.action, self.obs, self.reward, self.terminated, self.truncated)
  self.ended = self.terminated[0] ~= 0 or self.truncated[0] ~= 0
end

---The outcome of the episode that has just ended: { score, ret, length }.
---@return table
function Single:outcome()
  return self.env:outcome(0)
end

return Single
