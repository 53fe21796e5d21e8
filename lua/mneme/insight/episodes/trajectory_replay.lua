-- trajectory_replay.lua -- replays a trajectory: restores the environment's initial state and repeats its actions.
-- Observations are reproduced bit for bit.  If rewards, ends or observations differ from the recorded ones, the
-- environment is not that of the recording, and `problem` names the first such step.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local canvas = require "mneme.base.canvas"
local envs = require "mneme.envs.env"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local run_folder = require "mneme.runs.folder"
local single = require "mneme.envs.single"
local trajectory = require "mneme.insight.episodes.trajectory"
local setting_types = require "mneme.base.setting_types"
local state_arrays = require "mneme.models.state_arrays"

local C = engine.C
local MOST_TRIED = 1e4             -- steps

---@class Replay: Single a source of frames for mneme.insight.view, besides
---@field trajectory Trajectory
---@field step_number integer steps made
---@field problem string? what first went differently than recorded
---@field marks table<integer, string> what was done to it, by the number of the frame: see timeline.lua
local Replay = {}
Replay.__index = setmetatable(Replay, single)

local function name_of(t) return t.path or "trajectory" end

-- A run of a trajectory's environment: that in whose folder the file lies, or the one that recorded it; nil: it is not there.
local function run_of(t)
  local folder, named = t.path and t.path:match "^(.*)/[^/]*$", t.about.run
  while folder and not files.is_file(folder .. "/config.json") do folder = folder:match "^(.*)/[^/]*$" end
  for _, at in ipairs { folder or false, type(named) == "string" and named or nil } do
    local info = at and files.is_file(at .. "/config.json") and run_folder.read_info(at)
    if info and info.env_of_script and info.env == t.env then return at, info end
  end
end

-- The environment of a trajectory whose rules are Lua functions: made by a run's script, or by a file that the user names.
local function env_of_script(t, from)
  local folder, info = from, nil
  if not from then folder, info = run_of(t) end
  if not folder then
    errors.fail(("%s: the rules of %s are Lua functions of %s: only that file can replay it"):format(name_of(t), t.env, t.script),
      "env=RUN, a run in that environment, or env=FILE.lua, its script or the file of the environment, names it; in Lua: replay.new(trajectory, env)")
  end
  local rebuild, settings = require "mneme.learn.rebuild", { num_envs = 1, time_limit = t.settings.time_limit }
  if folder:find "%.lua$" then return rebuild.script(folder, {}, settings, "env").env end
  info = info or run_folder.read_info(folder)
  if not info.env_of_script then errors.usage(("env=%s: a run in %s, whose rules are not in a script"):format(folder, setting_types.show(info.env))) end
  require("mneme.runs.run_sources").adopt(folder, info)
  return (rebuild.run(folder, info, settings))
end

-- The environment of a trajectory.
local function env_of(t, like)
  if type(like) == "table" then return single.like(like) end
  if t.script then return env_of_script(t, like) end
  local settings = {}
  for key, value in pairs(t.settings) do settings[key] = value end
  settings.num_envs = 1
  return envs.known(t.env, settings)
end

local function shape_text(space) return ("%s [%s]"):format(space.dtype, table.concat(space.shape, ",")) end

-- The frames that show an intervention; the end of an episode has a frame of its own.
local function marks_of(t)
  local marks, ends, k = {}, 0, 0
  for _, x in ipairs(t.interventions) do
    while k < x.at do
      ends, k = ends + (t.flags[k] ~= 0 and 1 or 0), k + 1
    end
    local frame = x.at + 1 + ends
    marks[frame] = (marks[frame] and marks[frame] .. ", " or "") .. x.kind .. " " .. tostring(x.what)
  end
  return marks
end

---A step-by-step replay of a trajectory in its environment, compared with the recording.
---@param t Trajectory
---@param like (Env|string)? where the rules are Lua functions: an environment that has them, or a run's folder or a file (FILE.lua) that makes one
---@return Replay
local function new(t, like)
  errors.need("replay: the trajectory", t, "checks", "mn.trajectory(path)")
  local ok, env = pcall(env_of, t, like)
  if not ok then
    if errors.is(env) then errors.fail(env.message:find(name_of(t), 1, true) and env.message
      or ("%s: cannot be replayed: %s"):format(name_of(t), env.message), env.hint) end
    error(env, 0)
  end
  local space, acts = env.observation_space, env.action_space
  if shape_text(space) ~= shape_text(t.observation) or acts.kind ~= t.space.kind or #acts.names ~= #t.names then
    errors.fail(("%s: recorded with observations %s and actions %s, %s has %s and %s here"):format(name_of(t),
      shape_text(t.observation), tostring(t.space), env.id, shape_text(space), tostring(acts)))
  end
  local self = single.set_up(setmetatable({ trajectory = t, marks = marks_of(t) }, Replay), env)
  self:restart()
  return self
end

-- Repeats the interventions on the environment before this step's observation.
local function intervene(self)
  local list = self.trajectory.interventions
  while list[self.intervened + 1] and list[self.intervened + 1].at == self.step_number do
    self.intervened = self.intervened + 1
    local x = list[self.intervened]
    if x.kind == "set" then
      local ok, done = pcall(self.env.set, self.env, 0, x.what, x.to, self.obs)
      if not ok and not errors.is(done) then error(done, 0) end
      if not (ok and done) and not self.problem then
        self.problem = ("step %d: %s cannot be set to %g%s"):format(x.at, x.what, x.to, ok and "" or ": " .. done.message)
      end
    end
  end
end

-- Adds an observation to the checksum of its block; at the end of a block both must be equal.
local function see(self)
  local t, n, block = self.trajectory, self.step_number, trajectory.block
  self.check = C.mn_crc32c(n % block == 0 and 0 or self.check, self.obs, self.obs_bytes)
  if self.problem or (n % block ~= block - 1 and n < t.steps) then return end
  local at = math.floor(n / block)
  if self.check ~= t.checks[at] then
    self.problem = ("the observations of steps %d to %d are not the recorded ones"):format(at * block, n)
  end
end

---Restart.
function Replay:restart()
  local ok, why = pcall(self.env.restore, self.env, 0, self.trajectory.start, self.obs)
  if not ok then errors.fail(("%s: cannot be replayed: %s"):format(name_of(self.trajectory), tostring(why))) end
  self.step_number, self.step, self.ret, self.episode, self.shown = 0, 0, 0, 0, false
  self.reward[0], self.problem, self.intervened = 0, nil, 0
  intervene(self)
  see(self)
end

local kept = { "step_number", "step", "ret", "episode", "check", "problem", "intervened" }

---The state of the replay, for restore().
---@return table moment
---@return integer bytes
function Replay:save()
  local moment = { world = self.env:save(0), reward = self.reward[0] }
  for _, key in ipairs(kept) do moment[key] = self[key] end
  return moment, #moment.world + 256
end

---Go back: next() shows that moment again.
---@param moment table from save
function Replay:restore(moment)
  self.env:restore(0, moment.world, self.obs)
  for _, key in ipairs(kept) do self[key] = moment[key] end
  self.reward[0], self.shown = moment.reward, false
end

local bits = ffi.new "union { float f; int32_t i; }"
local function bits_of(x) bits.f = x return bits.i end

local function flags_of(terminated, truncated) return terminated ~= 0 and 1 or truncated ~= 0 and 2 or 0 end
local flag_words = { [0] = "goes on", "terminates", "is truncated" }

---Take the next recorded action.
---@return boolean made false: there is none left
function Replay:advance()
  local t, k = self.trajectory, self.step_number
  if k >= t.steps then return false end
  self:act(t.space:read(t.actions, k))
  local flags = flags_of(self.terminated[0], self.truncated[0])
  if not self.problem and bits_of(self.reward[0]) ~= bits_of(t.rewards[k]) then
    self.problem = ("step %d: reward %.9g, recorded %.9g"):format(k, self.reward[0], t.rewards[k])
  elseif not self.problem and flags ~= t.flags[k] then
    self.problem = ("step %d: the episode %s, recorded: %s"):format(k, flag_words[flags], flag_words[t.flags[k]])
  end
  self.step_number = k + 1
  if self.ended then self.step, self.ret, self.episode = 0, 0, self.episode + 1
  else self.step, self.ret = self.step + 1, self.ret + self.reward[0] end
  intervene(self)
  see(self)
  return true
end

---Replay everything that is left.
---@return string? problem
function Replay:verify()
  while self:advance() do end
  return self.problem
end

-- The records of this step as a snapshot's arrays.
local function add_records(now, t, step)
  for _, f in ipairs(t.fields) do
    local values = ffi.cast(trajectory.dtypes[f.dtype].pointer, t.records + step * t.stride + f.at)
    local group, name = f.name:match "^(%a+):(.+)$"
    if group == "memory" or group == "probes" then
      now[group][name] = { shape = f.shape, dims = f.dims, values = values }
    elseif f.name == "value" then now.value = values[0]
    elseif f.name == "policy" then now.policy = values end
  end
end

---One step on, as `now` for frames.lua; nil: the trajectory is over.  After the last step `over` is set.
---@param before fun(replay: Replay, ended: table?)? called where all has been done and nothing is shown yet
---@return table? now
function Replay:next(before)
  local t, ended = self.trajectory, nil
  if self.shown then
    if not self:advance() then return nil end
    ended = self.ended and self:outcome() or nil
  end
  self.shown = true
  if before then before(self, ended) end
  local now = { title = t.about.title or t.env, source = self.problem or t.about.source or t.path,
    canvas = self.env:draw(0), truth = self.env:truth(0), actions = t.names, space = t.space, memory = {}, probes = {}, policy = {},
    observation = { shape = t.observation.shape, values = self.obs }, sight = self.env:sight(self.obs), reward = self.reward[0], step = self.step,
    episode = self.episode, ret = self.ret, reads = t.about.reads, ended = ended, over = self.step_number == t.steps }
  if not now.over then
    now.action, now.did = t.space:taken(t.actions, self.step_number)
    add_records(now, t, self.step_number)
  end
  return now
end

-- ---- an episode as it was recorded, where it cannot be replayed ----

-- What it takes of an environment: its spaces, and a picture of the last observation.
local Stand_in = { truth = function() return {} end, sight = function() end }
Stand_in.__index = Stand_in

function Stand_in:draw()
  local shape, obs = self.observation_space.shape, self.of.obs
  self.canvas = self.canvas or ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  C.mn_canvas_clear(self.canvas)
  if self.observation_space.dtype == "u8" and shape[3] == 3 then
    engine.check(C.mn_canvas_image(self.canvas, 0, 0, shape[2], shape[1], shape[1], shape[2], obs))
    return self.canvas
  end
  local n = state_arrays.size(shape)
  local seen, lo, hi = ffi.new("float[?]", n), 0, 1
  for k = 0, n - 1 do
    seen[k] = obs[k]
    lo, hi = math.min(lo, seen[k]), math.max(hi, seen[k])
  end
  engine.check(C.mn_canvas_heat(self.canvas, 0, 0, n, 1, 1, n, seen, lo, hi, canvas.SEQUENTIAL))
  return self.canvas
end

local Recorded = setmetatable({}, { __index = Replay })
Recorded.__index = Recorded

-- The observation of this step; after the last one none was recorded.
local function recall(self)
  local t = self.trajectory
  if self.step_number < t.steps then ffi.copy(self.obs, trajectory.recorded(t, self.step_number, "observation"), self.obs_bytes) end
end

function Recorded:restart()
  self.step_number, self.step, self.ret, self.episode, self.shown, self.reward[0] = 0, 0, 0, 0, false, 0
  recall(self)
end

function Recorded:save() return { self.step_number, self.step, self.ret, self.episode, self.reward[0] }, 64 end

function Recorded:restore(moment)
  self.step_number, self.step, self.ret, self.episode, self.reward[0] = unpack(moment)
  self.shown = false
  recall(self)
end

function Recorded:outcome() return { ret = self.over_with, length = self.over_after } end

function Recorded:advance()
  local t, k = self.trajectory, self.step_number
  if k >= t.steps then return false end
  self.reward[0], self.terminated[0], self.truncated[0] = t.rewards[k], t.flags[k] == 1 and 1 or 0, t.flags[k] == 2 and 1 or 0
  self.step_number, self.ended, self.step, self.ret = k + 1, t.flags[k] ~= 0, self.step + 1, self.ret + t.rewards[k]
  if self.ended then
    self.over_with, self.over_after = self.ret, self.step
    self.step, self.ret, self.episode = 0, 0, self.episode + 1
  end
  recall(self)
  return true
end

---To look at: a replay, or, where there is none and the trajectory holds what was observed, the episode as it was recorded.
---@param t Trajectory
---@param like (Env|string)?
---@return Replay
local function open(t, like)
  local ok, made = pcall(new, t, like)
  local seen, why = trajectory.recorded(t, 0, "observation"), not ok and errors.is(made) and made.message
  if ok and seen and made.env.truncates and t.steps <= MOST_TRIED then
    why = made:verify()                                      -- of Gymnasium: does it go as it went?
    if not why then made:restart() end
  end
  if ok and not why then return made elseif not (seen and why) then error(made, 0) end
  local env = setmetatable({ id = t.env, num_envs = 1, time_limit = 0, action_space = t.space, settable = {}, to_know = {}, outcomes = {},
    settings = t.settings, observation_space = { shape = t.observation.shape, dtype = t.observation.dtype, groups = {} } }, Stand_in)
  local self = single.set_up(setmetatable({ trajectory = t, marks = marks_of(t), problem = "as recorded: " .. why }, Recorded), env)
  env.of = self
  self:restart()
  return self
end

return { new = new, open = open }
