-- env.lua -- vectorised environments behind one interface, whether its rules are a C
-- file of engine/envs or Lua functions of a script.  Two ways to step: with tensors, for people; and
-- straight into given memory (step_raw), for learners, which leaves no garbage.  Copies are counted
-- from 0.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local native = require "mneme.envs.native"
local scripted = require "mneme.envs.scripted"
local tensor = require "mneme.tensor.tensor"

local need_pointer = tensor.need_pointer
local envs = { list = native.list, facts = native.facts }

---@class Env
---@field id string "tmaze-v0"
---@field num_envs integer
---@field settings table every setting with its value: parameters, num_envs, seed, time_limit
---@field defaults table the values that parameters have where nothing is said
---@field observation_space table of one copy: shape = {...}; dtype = "f32"|"u8"; codes = n where each number of
---  u8 is one of 0 .. n-1, nil where it is an intensity
---@field action_space table { n = how many, names = {...} }
---@field settable table[] facts that `set` changes: { name, words = {...} or lo, hi, whole }; empty where there are none
---@field time_limit integer steps; 0: none
---@field seed integer|integer[] what the random streams began with: of the settings, or of the last reset
---@field ended table FFI pointers, set where an episode ended in the last step:
---  final_obs [num_envs, ...]; score (0..1), ret (undiscounted return), length [num_envs]
local Env = {}
Env.__index = Env

-- ---- environments ----

-- num_envs, seed and time_limit as rebuild.lua wants them, for a script that made its environment with other ones.
local function overridden(settings)
  if not envs.override then return settings end
  local changed = {}
  for _, set in ipairs { settings, envs.override } do
    for key, value in pairs(set) do changed[key] = value end
  end
  return changed
end

---Make an environment.
---  mn.env("tmaze", { corridor = 160, num_envs = 8, seed = 1 })    or  mn.env { "tmaze", ... }
---  mn.env { observation = {16}, actions = 4, reset = f, step = g, ... }    see mneme.lua_env
---@param name string|table "tmaze", or "tmaze-v0" for that version; or a table as above
---@param settings table? its parameters, num_envs = 8, seed = 1, time_limit (0: none; nil: its own)
---@return Env
function envs.new(name, settings)
  local world
  if type(name) == "table" and name[1] == nil then
    world = scripted.new(overridden(name))
  else
    if type(name) == "table" then
      settings = {}
      for key, value in pairs(name) do if key ~= 1 then settings[key] = value end end
      name = name[1]
    end
    if settings ~= nil and type(settings) ~= "table" then
      errors.usage(("env: the settings are a %s, expected a table"):format(type(settings)))
    end
    world = native.new(name, overridden(settings or {}))
  end
  return setmetatable({ world = world, id = world.id, settings = world.settings, defaults = world.defaults or {},
    num_envs = world.settings.num_envs, time_limit = world.settings.time_limit, ended = world.ended,
    seed = world.settings.seed,
    observation_space = { shape = world.shape, dtype = world.dtype, codes = world.codes },
    action_space = { n = world.n_actions, names = world.names }, settable = world.settable }, Env)
end

local function open(env)
  if not env.world then errors.raise(env.id .. ": this environment has been closed") end
  return env.world
end

local function copy_of(env, copy)
  if type(copy) ~= "number" or copy % 1 ~= 0 or copy < 0 or copy >= env.num_envs then
    errors.raise(("%s: copy %s, expected 0..%d"):format(env.id, tostring(copy), env.num_envs - 1))
  end
  return copy
end

local per_copy = { action = "i32", reward = "f32", terminated = "u8", truncated = "u8", score = "f32",
  ret = "f32", length = "i32" }

-- Tensors that every step fills again, made when first asked for; and where their numbers are.
local function buffers(env)
  engine.wait()
  if env.tensors then return env.tensors, env.pointers end
  local n, dtype, t, p = env.num_envs, env.observation_space.dtype, {}, {}
  for key, kind in pairs(per_copy) do t[key] = tensor.new { shape = { n }, dtype = kind } end
  for _, key in ipairs { "obs", "final_obs" } do
    t[key] = tensor.new { shape = { n, unpack(env.observation_space.shape) }, dtype = dtype }
  end
  for key, x in pairs(t) do p[key] = x:data() end
  env.tensors, env.pointers = t, p
  env.obs_bytes = t.obs:size() * (dtype == "u8" and 1 or 4)
  env.info = { ended = 0, final_obs = t.final_obs, score = t.score, ret = t.ret,
    length = t.length }
  return t, p
end

---Start every copy anew.
---@param seed integer|integer[]? 0..2^53; a list: one for each copy, and copy i does what copy 0 of an environment with
---  that seed does; nil: go on with the random streams there are
---@return Tensor obs [num_envs, ...], filled again by every step
---@return table info
function Env:reset(seed)
  local t, p = buffers(self)
  self:reset_raw(p.obs, seed)
  self.info.ended = 0
  return t.obs, self.info
end

---Start every copy anew, writing the observations to a given place.
---@param obs ffi.cdata* pointer to num_envs observations
---@param seed integer|integer[]? as for reset
function Env:reset_raw(obs, seed)
  local world = open(self)
  need_pointer("reset_raw: obs", obs)
  if type(seed) == "table" then
    if #seed ~= self.num_envs then
      errors.usage(("%s: a list of %d seeds, expected one for each of %d environments"):format(self.id, #seed, self.num_envs))
    end
    for i, s in ipairs(seed) do
      if type(s) ~= "number" then errors.usage(("%s: seed[%d] is a %s, expected a number"):format(self.id, i - 1, type(s))) end
    end
  elseif seed ~= nil and type(seed) ~= "number" then
    errors.usage(("%s: seed is a %s, expected a number or a list of %d"):format(self.id, type(seed), self.num_envs))
  end
  world:reset(obs, seed)
  self.seed = seed or self.seed
end

local function read_actions(env, actions, into)
  local n = env.num_envs
  if tensor.is(actions) then
    if actions:dtype() ~= "i32" or actions:size() ~= n then
      errors.raise(("%s: actions are a tensor of %d numbers (%s), expected %d (i32)"):format(
        env.id, actions:size(), actions:dtype(), n))
    end
    return actions:data()
  end
  if type(actions) ~= "table" or #actions ~= n then
    errors.raise(("%s: actions are %s, expected a list or i32 tensor of %d"):format(env.id,
      type(actions) == "table" and "a list of " .. #actions or "a " .. type(actions), n))
  end
  for i = 1, n do
    local a = actions[i]
    if type(a) ~= "number" or a % 1 ~= 0 or a < 0 or a >= env.action_space.n then
      errors.raise(("%s: action[%d]=%s, expected 0..%d (%s)"):format(env.id, i - 1, tostring(a),
        env.action_space.n - 1, table.concat(env.action_space.names, " ")))
    end
    into[i - 1] = a
  end
  return into
end

---Keep some of the copies alone, before the first reset: counted from 0 again, they draw the random numbers that they
---would have drawn among the others.
---@param first integer from 0
---@param count integer
function Env:keep(first, count)
  open(self):keep(first, count)
  self.num_envs = count
end

---Act in every copy.  Where an episode ends, obs is the first observation of the next one.
---@param actions Tensor|integer[] one for each copy, counted from 0
---@return Tensor obs [num_envs, ...]
---@return Tensor reward [num_envs]
---@return Tensor terminated [num_envs], u8: 1 where the environment ended
---@return Tensor truncated [num_envs], u8: 1 where the time limit ended it
---@return table info `ended`: how many episodes ended in this step; and where one did (terminated or
---  truncated): `final_obs` [num_envs, ...] its last observation; `score` (0..1), `ret` (undiscounted
---  return), `length` [num_envs]
function Env:step(actions)
  local world, t, p = open(self), buffers(self)
  world:step(read_actions(self, actions, p.action), p.obs, p.reward, p.terminated, p.truncated)
  local n, ended = self.num_envs, 0
  for i = 0, n - 1 do ended = ended + (p.terminated[i] + p.truncated[i] > 0 and 1 or 0) end
  self.info.ended = ended
  if ended > 0 then
    ffi.copy(p.final_obs, self.ended.final_obs, self.obs_bytes)
    for _, key in ipairs { "score", "ret", "length" } do
      ffi.copy(p[key], self.ended[key], n * 4)
    end
  end
  return t.obs, t.reward, t.terminated, t.truncated, self.info
end

---Act in every copy, from and to given places; `env.ended` tells what ended.  Leaves no garbage.
---@param action ffi.cdata* int32_t[num_envs]
---@param obs ffi.cdata* num_envs observations
---@param reward ffi.cdata* float[num_envs]
---@param terminated ffi.cdata* uint8_t[num_envs]
---@param truncated ffi.cdata* uint8_t[num_envs]
function Env:step_raw(action, obs, reward, terminated, truncated)
  local world = open(self)
  need_pointer("step_raw: action", action)
  need_pointer("step_raw: obs", obs)
  need_pointer("step_raw: reward", reward)
  need_pointer("step_raw: terminated", terminated)
  need_pointer("step_raw: truncated", truncated)
  world:step(action, obs, reward, terminated, truncated)
end

---Step t of a rollout (mn_rollout of engine/mneme.h), counted from 0; on a GPU nobody waits for it.
---@param rollout ffi.cdata* its buffers, in memory of leaves
---@param t integer
---@param action ffi.cdata* int32_t[num_envs], of a leaf or what a plan computed
---@return boolean cut a time limit may have cut an episode off
function Env:roll(rollout, t, action) return open(self):roll(rollout, t, action) end

---After a rollout: wait until its buffers may be read.
function Env:rolled() open(self):rolled() end

---One copy as a string: its state, random stream and running episode.
---@param copy integer from 0
---@return string bytes
function Env:save(copy) return open(self):save(copy_of(self, copy)) end

---Put a saved copy back, here or in another copy: from there it goes on bit for bit.  Bytes of
---another environment, version or other parameters are refused.
---@param copy integer from 0
---@param bytes string of env:save
---@param obs ffi.cdata*? where its observation goes; nil: its row of the tensor that step gives
---@return Tensor? obs that tensor
function Env:restore(copy, bytes, obs)
  local world = open(self)
  if type(bytes) ~= "string" then
    errors.raise(("%s: restore: a %s, expected the string of save"):format(self.id, type(bytes)))
  end
  if obs ~= nil then need_pointer("restore: obs", obs) return world:restore(copy_of(self, copy), bytes, obs) end
  local t, p = buffers(self)
  world:restore(copy_of(self, copy), bytes, p.obs + copy * (t.obs:size() / self.num_envs))
  return t.obs
end

---Make one copy what another is: world, random stream, running episode.  With the same actions both go on
---alike.
---@param from integer
---@param to integer
---@param obs ffi.cdata*? as for restore
---@return Tensor? obs
function Env:clone(from, to, obs) return self:restore(to, self:save(from), obs) end

---A fact that can be set.
---@param name string one of `settable`
---@return table { name, words or nil, lo, hi, whole }
function Env:fact(name)
  local names = {}
  for i, f in ipairs(self.settable) do
    if f.name == name then return f end
    names[i] = f.name
  end
  if #names == 0 then errors.usage(self.id .. ": nothing of this world can be changed from outside") end
  errors.unknown("fact of " .. self.id .. " that can be changed:", name, names)
end

---A value of such a fact as a number.
---@param fact table
---@param value number|string a number of its range, or one of its words
function Env:fact_value(fact, value)
  errors.need(self.id .. ": the fact", fact, "lo", "what env:fact(name) gives")
  if fact.words and type(value) == "string" then return native.number_of(self.id, fact, value) end
  if type(value) ~= "number" or not (value >= fact.lo and value <= fact.hi) or (fact.whole and value % 1 ~= 0) then
    errors.usage(("%s: %s=%s, expected %s"):format(self.id, fact.name, tostring(value), fact.words and table.concat(fact.words, " or ")
      or ("a %snumber from %g to %g"):format(fact.whole and "whole " or "", fact.lo, fact.hi)))
  end
  return value
end

---Change a fact of one copy's world between two steps: `settable` tells which, and what they may be.
---@param copy integer from 0
---@param name string one of truth's
---@param value number|string see fact_value
---@param obs ffi.cdata*? where the copy's observation goes, which is made again; nil: as for restore
---@return boolean done false: the world cannot be so now, and nothing has changed
function Env:set(copy, name, value, obs)
  local world = open(self)
  value = self:fact_value(self:fact(name), value)
  if not obs then
    local t, p = buffers(self)
    obs = p.obs + copy_of(self, copy) * (t.obs:size() / self.num_envs)
  end
  return world:set(copy_of(self, copy), name, value, obs)
end

---A picture of one copy, in the environment's own units.
---@return ffi.cdata* canvas mn_canvas *, good until the next draw
function Env:draw(copy) return open(self):draw(copy_of(self, copy)) end

---What the agent may not know: { cue = 0, position = 3, ... }, for probes and scenes.
---@return table<string, number|number[]>
function Env:truth(copy) return open(self):truth(copy_of(self, copy)) end

---Free the copies now rather than when the garbage collector gets to them.
function Env:close()
  open(self):close()
  self.world, self.ended = nil, nil
end

return envs
