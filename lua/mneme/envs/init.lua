-- init.lua -- vectorised environments behind one interface: the rules are a C file of engine/envs or Lua functions
-- of a script.  Two ways to step: with tensors (step), for scripts; into buffers of the caller (step_raw), for
-- learners, which allocates nothing.  Environments are numbered from 0.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local native = require "mneme.envs.native"
local lazy = require "mneme.base.lazy"
local gym = lazy "mneme.envs.gym"
local scripted = lazy "mneme.envs.scripted"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local registry = require "mneme.base.registry"

local C, check, ctx, need_pointer = engine.C, engine.check, engine.ctx, tensor.need_pointer
local envs = { list = native.list, facts = native.facts }

-- What this file asks of environments: native.lua has it for rules in C, scripted.lua for rules in Lua.  Arguments are checked here, before it is
-- called; pointers are raw, environments count from 0, and a mistake raises an error that changes nothing.
---@class World
---@field id string "tmaze-v0"
---@field settings table every setting with its value; num_envs, seed and time_limit among them
---@field defaults table? the default values of the parameters
---@field shape integer[] of one observation; dtype, codes, groups and parts as in Env's observation_space
---@field actions Space what an agent may do: action_spaces.lua
---@field settable table[] as Env has it; likewise to_know, outcomes, rules, reference, ended
---@field reset fun(self: World, obs: ffi.cdata*, seed: integer|integer[]|nil) writes num_envs observations; nil: the random streams continue
---@field step fun(self: World, action: ffi.cdata*, obs: ffi.cdata*, reward: ffi.cdata*, terminated: ffi.cdata*, truncated: ffi.cdata*)
---@field roll fun(self: World, rollout: ffi.cdata*, t: integer, action: ffi.cdata*): boolean step t of a rollout; true if the time limit may have cut
---@field rolled fun(self: World) waits until the rollout's buffers may be read
---@field keep fun(self: World, first: integer, count: integer) only these environments remain, with their random numbers
---@field save fun(self: World, i: integer): string
---@field restore fun(self: World, i: integer, bytes: string, obs: ffi.cdata*)
---@field set fun(self: World, i: integer, fact: string, value: number, obs: ffi.cdata*): boolean false: impossible now, nothing has changed
---@field keep_outcomes fun(self: World): ffi.cdata* uint8_t[num_envs][#outcomes]
---@field see fun(self: World, obs: ffi.cdata*): ffi.cdata*? a canvas of one observation; nil: there is no picture
---@field draw fun(self: World, i: integer): ffi.cdata* a canvas of the true state
---@field truth fun(self: World, i: integer): table what the agent does not observe, by name
---@field truth_of fun(self: World, i: integer, name: string): number? one of these
---@field close fun(self: World)

---@class Env
---@field id string "tmaze-v0"
---@field num_envs integer
---@field settings table all settings and their values: parameters, num_envs, seed, time_limit
---@field defaults table the default values of the parameters
---@field observation_space table of one environment: shape = {...}; dtype = "f32"|"u8"; codes = n if each u8 value is
---  one of n codes 0 .. n-1, nil if it is an intensity; groups = ObservationGroup[]: what its numbers are, {} where nothing is declared;
---  parts = ObservationPart[]: the same, where an observation is several arrays in one row (observation_parts.lua); else nil
---@field action_space Space { kind, size, n = number of actions of a discrete one, names = {...} }: see action_spaces.lua
---@field settable table[] facts that `set` can change: { name, words = {...} or lo, hi, whole }; empty if there are none
---@field to_know table[] facts of truth that a memory may know: { name, kind = "class"|"number" }; a class below 0 is not there yet
---@field time_limit integer steps; 0: none
---@field outcomes string[] what an episode can have reached when it ends; empty where none is declared
---@field rules string? one sentence for a person who plays: what is seen, what to do, what pays
---@field reference ReferenceScores? what random actions, no memory and a perfect memory score, where it is known: see reference_scores.lua
---@field seed integer|integer[] the seed of the random streams: from the settings or the last reset
---@field ended table FFI pointers, valid for environments whose episode ended in the last step:
---  final_obs [num_envs, ...]; score (0..1; NaN: a step of Lua gave none), ret (undiscounted return), length [num_envs]
local Env = {}
Env.__index = Env

-- ---- environments ----

-- num_envs, seed and time_limit that script_agent.lua sets in place of those of the script.
local function overridden(settings)
  return envs.override and tables.merged(settings, envs.override) or settings
end

-- Without vector=1 of gym.lua: whoever plays a run asks of single copies what those of a vector cannot do.
local function singly(settings)
  local others = tables.merged(settings)
  others.vector = nil
  return others
end

---An environment of a file, which returns the table that mn.env takes, or a function(settings) that returns it.
---@param own any what the file returned; a table is copied
---@param settings table? what a function of the file reads; num_envs, seed, time_limit
---@return Env
function envs.of_file(path, own, settings)
  local spec, is_table = own, type(own) == "table"
  if type(own) == "function" then spec = own(settings or {}) end
  if type(spec) ~= "table" or getmetatable(spec) == Env then
    errors.fail(("%s returns %s, expected the table that mn.env takes"):format(path, type(spec) == "table" and "an mn.env" or tables.in_words(spec)))
  end
  local copy = tables.merged(spec)
  for key, value in pairs(settings or {}) do
    if key == "num_envs" or key == "seed" or key == "time_limit" then
      copy[key] = key == "seed" and value or errors.whole(path, key, value, key == "num_envs" and 1 or 0)
    elseif is_table then
      errors.usage(("%s: it has no setting '%s', since it returns a table"):format(path, tostring(key)), "return function(settings) ... end reads settings")
    end
  end
  return errors.of_file(path, envs.new, copy)
end

---Make an environment.
---  mn.env("tmaze", { corridor = 160, num_envs = 8, seed = 1 })    or  mn.env { "tmaze", ... }
---  mn.env("mine.lua", { num_envs = 8, seed = 1 })                 a file of your own: it returns what mn.env takes, or a function(settings)
---  mn.env("popgym:BattleshipEasy", { num_envs = 8 })              battleship with level = "easy": POPGym's ids
---  mn.env("gym:CartPole-v1", { num_envs = 8, seed = 1 })          of Gymnasium: see gym.lua
---  mn.env { observation = {16}, actions = 4, reset = f, step = g, ... }    see scripted.lua
---@param name string|table|EnvSpec "tmaze", or "tmaze-v0" for that version; a file of Lua; or a table as above
---@param settings table? its parameters, num_envs = 8, seed = 1, time_limit (0: none; nil: its own)
---@return Env
function envs.new(name, settings)
  local world, of_gym
  if type(name) == "table" and name[1] == nil then
    world = scripted.new(overridden(name))
  else
    if type(name) == "table" then
      settings, name = tables.merged(name), name[1]
      settings[1] = nil
    end
    if settings ~= nil and type(settings) ~= "table" then
      errors.usage(("env: the settings are a %s, expected a table"):format(type(settings)))
    end
    if type(name) == "string" and name:find "%.lua$" then return envs.of_file(name, registry.load(name)(), settings) end
    of_gym = type(name) == "string" and name:find "^gym:"
    settings = overridden(settings or {})
    if of_gym and envs.override then settings = singly(settings) end
    world = (of_gym and gym or native).new(name, settings)
  end
  return setmetatable({ world = world, id = world.id, settings = world.settings, defaults = world.defaults or {},
    num_envs = world.settings.num_envs, time_limit = world.settings.time_limit, ended = world.ended,
    seed = world.settings.seed,
    observation_space = { shape = world.shape, dtype = world.dtype, codes = world.codes, groups = world.groups, parts = world.parts },
    action_space = world.actions, rules = world.rules, reference = world.reference,
    truncates = of_gym and true or nil,                  -- by itself, whatever time_limit is
    skips = settings and settings.vector == 1 and of_gym and true or nil,
    settable = world.settable, to_know = world.to_know, needs = world.needs, outcomes = world.outcomes or {} }, Env)
end

---The environment of that name, which a file says; of a vector of Gymnasium single copies: one of Mneme's, no file of Lua.
---@param settings table?
---@return Env
function envs.known(name, settings)
  if type(name) ~= "string" or name:find "%.lua$" then return native.new(tostring(name), {}) end          -- an error
  return envs.new(name, name:find "^gym:" and singly(settings) or settings)
end

---Another environment of the same kind and settings, but for these.
---@param changed table num_envs, seed
---@return Env
function Env:again(changed)
  local settings = tables.merged(self.world.spec or self.settings, { time_limit = self.time_limit }, changed)
  return self.world.spec and envs.new(settings) or envs.known(self.id, settings)
end

---What it is called, with the settings that differ from their defaults: "tmaze-v0, corridor 20".
---@return string
function Env:title()
  local parts, keys = { self.id }, {}
  for key, value in pairs(self.settings) do
    local text = type(value) == "string" and value or "-"
    local said = key ~= "num_envs" and key ~= "seed" and key ~= "time_limit" and value ~= self.defaults[key]
    if said and text ~= "" and not text:find "\n" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  for _, key in ipairs(keys) do parts[#parts + 1] = ("%s %s"):format(key, tostring(self.settings[key])) end
  return table.concat(parts, ", ")
end

---The steps between an observation and its last use.
---@return integer? steps nil: the settings do not determine it
---@return string? words "the corridor is 200"
function Env:horizon()
  if self.world.vec ~= nil then return native.horizon(self.id, self.settings) end
end

local function open(env)
  if not env.world then errors.raise(env.id .. ": this environment has been closed") end
  return env.world
end

local function index_of(env, i)
  if type(i) ~= "number" or i % 1 ~= 0 or i < 0 or i >= env.num_envs then
    errors.raise(("%s: environment %s, expected 0..%d"):format(env.id, tostring(i), env.num_envs - 1))
  end
  return i
end

local per_env = { reward = "f32", terminated = "u8", truncated = "u8", score = "f32",
  ret = "f32", length = "i32" }

-- The tensors that every step overwrites, made at first use, and pointers to their data.
local function buffers(env)
  engine.wait()
  if env.tensors then return env.tensors, env.pointers end
  local n, dtype, t, p = env.num_envs, env.observation_space.dtype, {}, {}
  for key, kind in pairs(per_env) do t[key] = tensor.new { shape = { n }, dtype = kind } end
  t.action = tensor.new { shape = env.action_space:shape(n), dtype = env.action_space.dtype }
  for _, key in ipairs { "obs", "final_obs" } do
    t[key] = tensor.new { shape = { n, unpack(env.observation_space.shape) }, dtype = dtype }
  end
  for key, x in pairs(t) do p[key] = x:data() end
  env.tensors, env.pointers, env.overwritten = t, p, { t.obs, t.reward, t.terminated, t.truncated, t.final_obs, t.score, t.ret, t.length }
  env.obs_bytes = t.obs:size() * (dtype == "u8" and 1 or 4)
  env.info = { ended = 0, final_obs = t.final_obs, score = t.score, ret = t.ret,
    length = t.length }
  return t, p
end

-- The tensors that the caller may hold, of which the first `n` change now.
local function overwrite(env, what, n)
  for i = 1, n do check(C.mn_tensor_changes(ctx, env.overwritten[i], what)) end
end

---Reset every environment.
---@param seed integer|integer[]? 0..2^53; a list has one seed for each: environment i then equals environment 0 of an
---  `Env` with that seed; nil: the random streams continue
---@return Tensor obs [num_envs, ...], overwritten by every step
---@return table info
function Env:reset(seed)
  local t, p = buffers(self)
  overwrite(self, "env:reset", 1)
  self:reset_raw(p.obs, seed)
  self.info.ended = 0
  return t.obs, self.info
end

---Reset every environment and write the observations to a buffer.
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

---Keep only some of the environments, before the first reset.  They are numbered from 0 again and draw the same random
---numbers as before.
---@param first integer from 0
---@param count integer
function Env:keep(first, count)
  open(self):keep(first, count)
  self.num_envs = count
end

---Step every environment.  Where an episode ends, obs is the first observation of the next one.
---@param actions Tensor|integer[]|number[][] [num_envs], each 0 .. n - 1; of several numbers [num_envs, size]
---@return Tensor obs [num_envs, ...]
---@return Tensor reward [num_envs]
---@return Tensor terminated [num_envs], u8: 1 where the environment ended
---@return Tensor truncated [num_envs], u8: 1 where the time limit ended it
---@return table info `ended`: the number of episodes that ended in this step; for those (terminated or
---  truncated): `final_obs` [num_envs, ...] the last observation; `score` (0..1), `ret` (undiscounted
---  return), `length` [num_envs]
function Env:step(actions)
  local world, t, p = open(self), buffers(self)
  actions = self.action_space:gather(self.id, self.num_envs, actions, p.action)
  overwrite(self, "env:step", 4)
  world:step(actions, p.obs, p.reward, p.terminated, p.truncated)
  local n, ended = self.num_envs, 0
  for i = 0, n - 1 do ended = ended + (p.terminated[i] + p.truncated[i] > 0 and 1 or 0) end
  self.info.ended = ended
  if ended > 0 then
    overwrite(self, "env:step", 8)
    ffi.copy(p.final_obs, self.ended.final_obs, self.obs_bytes)
    for _, key in ipairs { "score", "ret", "length" } do
      ffi.copy(p[key], self.ended[key], n * 4)
    end
  end
  return t.obs, t.reward, t.terminated, t.truncated, self.info
end

---Step every environment, with buffers of the caller; `env.ended` has the outcomes.  Allocates nothing.
---@param action ffi.cdata* int32_t[num_envs], or int32_t or float [num_envs, size]
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

---Step t of a rollout (mn_rollout of engine/mneme.h), counted from 0; on a GPU this returns before the step is done.
---@param rollout ffi.cdata* its buffers, in the memory of leaf tensors
---@param t integer
---@param action ffi.cdata* as for step_raw, of a leaf tensor or computed by a plan
---@return boolean cut true if the time limit may have ended an episode
function Env:roll(rollout, t, action) return open(self):roll(rollout, t, action) end

---After a rollout: wait until its buffers may be read.
function Env:rolled() open(self):rolled() end

---What else its ended episodes told since the last call, for the log: see infos of gym.lua.
---@param m table receives "env/NAME"
function Env:metrics(m) if self.world and self.world.metrics then self.world:metrics(m) end end

---What the episode of environment i came to that ended in the last step.
---@param i integer
---@return table outcome { score = nil where the environment gives none, ret, length }
function Env:outcome(i)
  local e = self.ended
  local score = e.score[i]
  return { score = score == score and score or nil, ret = e.ret[i], length = e.length[i] }
end

---Refuse what goes by the score, which this environment does not give.
---@param what string
function Env:refuse_score(what)
  local step = self.world and self.world.spec and self.world.spec.step
  errors.raise(("%s: %s declares no score: step returns observation, reward, over and, where the episode ends, a score from 0 to 1"):format(what,
    self.id), { status = 2, where = step and errors.position_of(step) or nil })
end

---Save one environment as a string: its state, random stream and current episode.
---@param i integer the environment, from 0
---@param near boolean|string? to be restored soon: an environment of Gymnasium then keeps a copy of itself, where it can; true: by this Env, "apart":
---  by any of this program
---@return string bytes
function Env:save(i, near) return open(self):save(index_of(self, i), near) end

---How an environment of Gymnasium can be copied: see save.
---@return string? "state": as it declares, by get_state() and set_state(state); "pickle"; "deepcopy"; nil: not at all
function Env:copied() return self.truncates and open(self):copied() or nil end

---A rollout begins, in the middle of which its environments may fail.
---@return boolean may they; environments in C do not
function Env:mark()
  local world = open(self)
  if world.mark then world:mark() end
  return world.stopped ~= nil
end

---Has an environment failed for good in the middle of a rollout?  Then `save` gives what was when that began.
---@return boolean
function Env:stopped() return self.world ~= nil and self.world.stopped ~= nil and self.world:stopped() end

---Restore a saved environment, in its own place or another: it continues bit for bit.  Bytes of another environment,
---another version or other parameters raise an error.
---@param i integer the environment, from 0
---@param bytes string of env:save
---@param obs ffi.cdata*? receives the observation; nil: row i of the tensor that `step` returns
---@return Tensor? obs that tensor
function Env:restore(i, bytes, obs)
  local world = open(self)
  if type(bytes) ~= "string" then
    errors.raise(("%s: restore: a %s, expected the string of save"):format(self.id, type(bytes)))
  end
  if obs ~= nil then need_pointer("restore: obs", obs) return world:restore(index_of(self, i), bytes, obs) end
  local t, p = buffers(self)
  overwrite(self, "env:restore", 1)
  world:restore(index_of(self, i), bytes, p.obs + i * (t.obs:size() / self.num_envs))
  return t.obs
end

---Restore for a training that goes on: where the environment cannot be played again, it begins a new episode.
---@param i integer the environment, from 0
---@param bytes string of env:save
---@param obs ffi.cdata* receives the observation
---@return string? anew why it begins a new episode
function Env:resume(i, bytes, obs)
  local world = open(self)
  if not world.resume then self:restore(i, bytes, obs) return nil end
  if type(bytes) ~= "string" then errors.raise(("%s: resume: a %s, expected the string of save"):format(self.id, type(bytes))) end
  need_pointer("resume: obs", obs)
  return world:resume(index_of(self, i), bytes, obs)
end

---Copy one environment over another: state, random stream and current episode.  With the same actions both then stay
---equal.
---@param from integer
---@param to integer
---@param obs ffi.cdata*? as for restore
---@return Tensor? obs
function Env:clone(from, to, obs) return self:restore(to, self:save(from), obs) end

---From now on, what each episode has reached when it ends.
---@return ffi.cdata* reached uint8_t[num_envs][#outcomes]: 1 where an episode that ended in the last step had reached it
function Env:keep_outcomes()
  local world = open(self)
  if #self.outcomes == 0 then errors.raise(self.id .. ": it declares no outcomes") end
  return world:keep_outcomes()
end

---A fact that can be set.
---@param name string one of `settable`
---@return table { name, words or nil, lo, hi, whole }
function Env:fact(name)
  local names = {}
  for i, f in ipairs(self.settable) do
    if f.name == name then return f end
    names[i] = f.name
  end
  if #names == 0 then errors.usage(self.id .. ": no fact of this environment can be changed") end
  errors.unknown("fact of " .. self.id .. " that can be changed:", name, names)
end

---Convert a value of a fact to a number.
---@param fact table
---@param value number|string a number of its range, or one of its words
---@return number
function Env:fact_value(fact, value)
  errors.need(self.id .. ": the fact", fact, "lo", "what env:fact(name) gives")
  if fact.words and type(value) == "string" then return native.number_of(self.id, fact, value) end
  if type(value) ~= "number" or not (value >= fact.lo and value <= fact.hi) or (fact.whole and value % 1 ~= 0) then
    errors.usage(("%s: %s=%s, expected %s"):format(self.id, fact.name, tostring(value), fact.words and table.concat(fact.words, " or ")
      or ("a %snumber from %g to %g"):format(fact.whole and "whole " or "", fact.lo, fact.hi)))
  end
  return value
end

---Change a fact of one environment between two steps; `settable` lists the facts and their ranges.
---@param i integer the environment, from 0
---@param name string a name in `truth`
---@param value number|string see fact_value
---@param obs ffi.cdata*? receives the environment's new observation; nil: as for restore
---@return boolean done false: the value is impossible in the current state, and nothing has changed
function Env:set(i, name, value, obs)
  local world = open(self)
  value = self:fact_value(self:fact(name), value)
  if not obs then
    local t, p = buffers(self)
    overwrite(self, "env:set", 1)
    obs = p.obs + index_of(self, i) * (t.obs:size() / self.num_envs)
  end
  return world:set(index_of(self, i), name, value, obs)
end

---Is an action allowed where this is observed?
---@param obs ffi.cdata* one observation
---@param action integer|number[]
---@return boolean
function Env:allows(obs, action)
  local mask = (self.observation_space.parts or {}).mask
  return not mask or type(action) ~= "number" or obs[mask.from + action] > 0
end

---Draw one environment, in its own units.
---@param i integer the environment, from 0
---@return ffi.cdata* canvas mn_canvas *, valid until the next draw
function Env:draw(i) return open(self):draw(index_of(self, i)) end

---Draw an observation as a person reads it, with nothing that it does not hold.
---@param obs ffi.cdata* one observation
---@return ffi.cdata*? canvas mn_canvas *, valid until the next draw; nil: the environment has no picture of its observations
function Env:see(obs)
  need_pointer("see: obs", obs)
  return open(self):see(obs)
end

---How to draw an observation of codes, which say nothing by themselves: nil where its numbers are no codes.
---@param obs ffi.cdata* one observation
---@return (fun(): ffi.cdata*?)? see as Env.see of it
function Env:sight(obs) return self.observation_space.codes and function() return self:see(obs) end or nil end

---The hidden state, for probes and scenes: { cue = 0, position = 3, ... }.
---@param i integer the environment, from 0
---@return table<string, number|number[]>
function Env:truth(i) return open(self):truth(index_of(self, i)) end

---One of those facts, where it is a number.
---@param i integer
---@param name string
---@return number? value
function Env:truth_of(i, name) return open(self):truth_of(index_of(self, i), name) end

---Free the environments now, without waiting for the garbage collector.
function Env:close()
  open(self):close()
  self.world, self.ended = nil, nil
end

return envs
