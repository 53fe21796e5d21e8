-- gym.lua -- environments of Gymnasium: mn.env("gym:CartPole-v1").  They step in worker processes of Python (gym_worker.py), which write
-- observations, rewards and ends straight into memory that both sides see (engine/io/workers.c).  An episode that ends is reset in the same
-- step.  Each episode has a seed of its own, so that it is known by its seed and its actions: save, restore and draw play it again.  The bits
-- do not depend on the number of workers.
local ffi = require "ffi"
local dtypes = require "mneme.base.dtypes"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local native = require "mneme.envs.native"
local observation_parts = require "mneme.envs.observation_parts"
local scripted = require "mneme.envs.scripted"
local action_spaces = require "mneme.envs.action_spaces"
local trusted_code = require "mneme.base.trusted_code"
local tables = require "mneme.base.tables"
local lazy = require "mneme.base.lazy"
local terminal = require "mneme.base.terminal"
local zlib = lazy "mneme.base.zlib"

local C = engine.C
local WORKER = debug.getinfo(1, "S").source:match "^@(.*)gym%.lua$" .. "gym_worker.py"
local PATIENCE, TIMEOUT = 120, 60                -- seconds in which a worker makes its environments; in which it steps
local ALIGN = 64                                 -- of the shared arrays, in bytes
local MOST_ENVS = 2 ^ 16
local TRIAL = 200                                -- steps that a worker may take to see whether an environment can be copied
local ROOM = 256                                 -- actions of an episode that there is room for at first

local world = { rolled = scripted.rolled, streams_of = scripted.streams_of, draw_row = scripted.draw_row }
world.__index = world
local noted = {}                                 -- notes that were printed
local states = { first = 1, last = 0 }           -- of environments, by number: for the workers of another one of this program, never in a file
local HERE = tostring(states):match "0x%x+" or tostring(states)

-- The settings of the bridge; any other is a keyword argument of the environment.
local own = { num_envs = "number", seed = "number", time_limit = "number", workers = "number", timeout = "number", score = "string", mask = "string",
  vector = "number", infos = "string", codes = "number", keys = "string", channels = "string", kwargs = "table" }

-- The settings, and the keyword arguments among them.
local function read_settings(what, given)
  local settings, kwargs = { num_envs = 8, seed = 1 }, {}
  for key, value in pairs(given) do
    settings[key] = value
    if not own[key] then kwargs[key] = value
    elseif type(value) ~= own[key] then
      errors.usage(("%s: %s is a %s, expected a %s"):format(what, key, type(value), own[key]))
    end
  end
  for key, value in pairs(settings.kwargs or {}) do kwargs[key] = value end
  errors.whole(what, "num_envs", settings.num_envs, 1)
  if settings.num_envs > MOST_ENVS then errors.usage(("%s: num_envs=%d, expected at most %d"):format(what, settings.num_envs, MOST_ENVS)) end
  for _, key in ipairs { "workers", "codes" } do
    if settings[key] then errors.whole(what, key, settings[key], 1) end
  end
  local function refuse(...) errors.usage(what .. ": " .. (...):format(select(2, ...))) end
  if settings.vector ~= nil and settings.vector ~= 1 then refuse("vector=%s, expected 1", tostring(settings.vector)) end
  if settings.vector and (settings.workers or 1) > 1 then refuse("workers=%d, expected 1 with vector=1", settings.workers) end
  if settings.vector and settings.time_limit then refuse "time_limit, expected none with vector=1, which counts its steps itself" end
  if settings.codes and settings.codes > 256 then refuse("codes=%d, expected 1..256", settings.codes) end
  if settings.time_limit then errors.whole(what, "time_limit", settings.time_limit, 0) end
  if settings.timeout and not (settings.timeout > 0) then refuse("timeout=%s, expected seconds", tostring(settings.timeout)) end
  return settings, kwargs
end

local function fail(self, problem, hint) errors.raise(("%s: %s"):format(self.id, problem), { hint = hint }) end
-- A worker has gone or is late: what the others say is of no use.
local function lost(self)
  self.failed, self.begun = true, nil
  local why = ffi.string(C.mn_error(engine.ctx))
  fail(self, why, why:find "not answered in time" and ("timeout=%g: seconds that a step may take"):format(self.timeout) or nil)
end

local function tell(self, w, request)
  if self.failed then fail(self, "its workers have failed: make the environment again") end
  local line = json.encode(request)
  if C.mn_workers_tell(engine.ctx, self.workers, w, line, #line) ~= 0 then lost(self) end
end

-- What worker w answers; an error of its own is raised.
local function hear(self, w, seconds)
  local heard = C.mn_workers_hear(engine.ctx, self.workers, w, seconds or self.timeout)
  if heard == nil then lost(self) end
  local answer = json.decode(ffi.string(heard)) or { error = "its worker gave no answer" }
  if answer.error then fail(self, answer.error, type(answer.hint) == "string" and answer.hint or nil) end
  for _, note in ipairs(answer.notes or {}) do
    note = ("%s: %s"):format(self.id, note)
    if not noted[note] then terminal.note(note) end
    noted[note] = true
  end
  return answer
end

-- Ask the worker of environment i, which counts its own from 0; it may have to play `steps` steps for the answer.
local function ask(self, i, steps, name, ...)
  local w = 0
  while i >= self.begins[w + 1] do w = w + 1 end
  tell(self, w, { [name] = json.array { i - self.begins[w], ... } })
  return hear(self, w, self.timeout * (1 + steps))
end

-- ---- the workers ----

local function words(text) return json.array(tables.found(text, "[^,%s]+")) end

-- The modules that a file of Python imports from its own folder, and they in turn: name -> where its text is.
local function beside(file, at, found)
  for line in files.text(at):gmatch "[^\n]+" do
    local names = line:match "^%s*import%s+(.*)$" or line:match "^%s*from%s+([%w_]+)%s" or ""
    for part in names:gmatch "[^,]+" do
      local name = part:match "^%s*([%a_][%w_]*)"
      local path = name and not found[name] and (file:match "^.*/" or "") .. name .. ".py"
      local place = path and path ~= file and trusted_code.place(path, file)
      if place then
        found[name] = place
        beside(path, place, found)
      end
    end
  end
  return found
end

-- Start them; what the first says of its environments.
local function start(self)
  local s = self.settings
  local n = s.vector or math.min(s.workers or C.mn_threads(engine.ctx), s.num_envs)
  local argv = ffi.new("const char *[4]", { os.getenv "PYTHON" or "python3", "-u", WORKER })
  self.workers = C.mn_workers_new(engine.ctx, n, argv)
  if self.workers == nil then lost(self) end
  ffi.gc(self.workers, C.mn_workers_free)
  self.n_workers, self.begins = n, { [n] = s.num_envs }
  for w = 0, n - 1 do self.begins[w] = math.floor(w * s.num_envs / n) end
  for w = 0, n - 1 do
    tell(self, w, { make = { id = self.id:match "^gym:(.*)$", file = self.file, modules = self.modules, kwargs = self.kwargs,
      num_envs = self.begins[w + 1] - self.begins[w],
      first = self.begins[w], all = s.num_envs,
      vector = s.vector, time_limit = s.time_limit, score = s.score, mask = s.mask, infos = self.infos, codes = s.codes,
      channels = s.channels, keys = s.keys and words(s.keys) or nil } })
  end
  local about
  for w = 0, n - 1 do
    local said = hear(self, w, PATIENCE)
    about = about or said
  end
  return about
end

-- The arrays that both sides see, one after another.
local function share(self)
  local n, at, places = self.settings.num_envs, 0, {}
  local kind = dtypes[self.dtype]
  local function place(key, bytes)
    places[key], at = at, at + math.ceil(bytes / ALIGN) * ALIGN
  end
  for _, key in ipairs { "obs", "final_obs" } do place(key, n * self.size * kind.bytes) end
  place("action", 4 * n * self.actions.size)
  for _, key in ipairs { "reward", "score", "ret", "length" } do place(key, 4 * n) end
  place("info", 4 * n * #self.infos)
  for _, key in ipairs { "terminated", "truncated" } do place(key, n) end
  local memory = C.mn_workers_memory(engine.ctx, self.workers, at)
  if memory == nil then lost(self) end
  local base = ffi.cast("char *", memory)
  local function view(key, pointer) return ffi.cast(pointer, base + places[key]) end
  self.at = { obs = view("obs", kind.pointer), action = view("action", self.actions.dtype == "f32" and "float *" or "int32_t *"),
    reward = view("reward", "float *"), terminated = view("terminated", "uint8_t *"), truncated = view("truncated", "uint8_t *") }
  self.ended = { final_obs = view("final_obs", kind.pointer), score = view("score", "float *"), ret = view("ret", "float *"),
    length = view("length", "int32_t *") }
  self.told, self.sums = view("info", "float *"), {}
  for w = 0, self.n_workers - 1 do tell(self, w, { share = json.array { at, places, w, self.n_workers } }) end
  for w = 0, self.n_workers - 1 do hear(self, w) end
end

-- ---- the episodes: each is known by its seed and its actions, which are noted here, since a worker may die ----

-- Each environment's stream of seeds, its episode, and its actions: those from `first` on of n are the present episode's.
local function begin_notes(self)
  self.notes = {}
  for i = 0, self.settings.num_envs - 1 do self.notes[i] = { stream = { 0, 0 }, episode = self.settings.vector and 0 or -1, first = 0, n = 0, room = 0 } end
end

local function note_episode(note, stream, episode)
  note.stream, note.episode, note.first, note.n = stream or note.stream, episode, 0, 0
end

local function note_action(self, note, from)
  local size = self.actions.size
  if note.n == note.room then
    local room = math.max(ROOM, 2 * note.room)
    local more = ffi.new(ffi.typeof("$[?]", self.number), room * size)
    if note.actions then ffi.copy(more, note.actions, 4 * note.n * size) end
    note.actions, note.room = more, room
  end
  for k = 0, size - 1 do note.actions[note.n * size + k] = from[k] end
  note.n = note.n + 1
end

-- An environment was brought to a place, or to the beginning of the episode after it.
local function note_place(self, note, place, anew)
  note_episode(note, place.stream, anew and place.episode + 1 or place.episode)
  for _, action in ipairs(anew and {} or place.actions) do
    note_action(self, note, ffi.new(ffi.typeof("$[?]", self.number), self.actions.size, action))
  end
end

-- A rollout begins: where its environments are is kept until the next one does.
local function mark(self, obs)
  self.marked = obs
  local size = self.actions.size
  for i = 0, self.settings.num_envs - 1 do
    local note = self.notes[i]
    for k = 0, note.first > 0 and (note.n - note.first) * size - 1 or -1 do note.actions[k] = note.actions[note.first * size + k] end
    note.first, note.n = 0, note.n - note.first
    note.then_episode, note.then_n = note.episode, note.n
  end
end

-- What names the place of environment i: where it is, or where the rollout began in which a worker failed.
local function place_here(self, i)
  local note, actions, size = self.notes[i], json.array {}, self.actions.size
  local first, n, episode, obs = note.first, note.n, note.episode, self.at.obs
  if self.failed then first, n, episode, obs = 0, note.then_n, note.then_episode, self.marked end
  if self.settings.vector then return { id = self.id, stream = json.array(note.stream), episode = episode, actions = actions, seen = 0, whole = true } end
  for t = first, n - 1 do
    local one = note.actions[t * size]
    if self.actions.kind ~= "discrete" then
      one = json.array {}
      for k = 0, size - 1 do one[k + 1] = note.actions[t * size + k] end
    end
    actions[t - first + 1] = one
  end
  return { id = self.id, stream = json.array(note.stream), episode = episode, actions = actions, seen = zlib.crc32(obs + i * self.size, self.obs_bytes) }
end

---An environment of Gymnasium.  Its observation is one array: a picture (u8, [y, x, channels]), or numbers (f32): Discrete as one-hots, Dict by
---sorted key and Tuple in order, one after another; or with codes = n integers below n (u8).  A picture with other parts beside it is several
---arrays (observation_parts.lua), Discrete and MultiDiscrete as codes.  Actions are discrete, several whole numbers
---(MultiDiscrete, MultiBinary), or floats (Box), also those of a Dict or Tuple of one kind.
---@param name string "gym:ID" of gymnasium.make, "gym:MODULE:ID" imports the module first, "gym:MODULE:CLASS", "gym:FILE.py:CLASS"
---@param given table num_envs = 8, seed = 1, time_limit (steps; 0: none; nil: its own), workers (processes; the processors), timeout = 60 seconds
---  for a step, score = "NAME" of the info that is an episode's score (0..1), infos = "NAME,NAME" that are logged,
---  mask = "NAME" of a part of the observation, of an info, or of a method, that says which actions are allowed,
---  keys = "NAME,NAME" of a Dict, codes, channels = "first"|"last";
---  every other setting is a keyword argument, and kwargs = { ... } holds those of these names
---@return World
local function new(name, given)
  local settings, kwargs = read_settings(name, given)
  local file = name:match "^gym:(.*%.py):[^:]*$"
  if name:match "^gym:(.*)$" == "" or name:find "%.py$" then
    errors.usage(name .. ": which environment? expected gym:ID, gym:MODULE:ID, gym:MODULE:CLASS or gym:FILE.py:CLASS")
  end
  local at = file and trusted_code.place(file)
  if file and not at then errors.usage(("%s: there is no file %s"):format(name, file)) end
  local self = setmetatable({ id = name, what = name, settings = settings, kwargs = next(kwargs) and kwargs or nil, file = at, defaults = {},
    first = 0, infos = words(settings.infos or ""),
    timeout = settings.timeout or TIMEOUT, settable = {}, to_know = {}, outcomes = {} }, world)
  self.modules = file and beside(file, at, {}) or nil
  local about = start(self)
  self.shape, self.dtype, self.packages, self.draws, self.pointer = about.shape, about.dtype, about.packages, about.draws, dtypes[about.dtype].pointer
  self.actions = about.actions.kind == "discrete" and action_spaces.discrete(about.actions.names) or about.actions.kind == "box"
    and action_spaces.box { low = about.actions.low, high = about.actions.high, names = about.actions.names }
    or action_spaces.multi_discrete { names = about.actions.names, unpack(about.actions.counts) }
  self.number = ffi.typeof(self.actions.dtype == "f32" and "float" or "int32_t")
  self.words, self.took = ffi.typeof(self.actions.dtype == "f32" and "const float *" or "const int32_t *"), self.actions:room(1)
  self.codes = type(about.codes) == "number" and about.codes or nil
  self.size, settings.time_limit = tables.product(self.shape), about.time_limit
  self.obs_bytes = self.size * dtypes[self.dtype].bytes
  self.parts = about.arrays[1] and observation_parts.place(about.arrays) or nil
  self.groups = self.parts or native.groups(name, about.observes ~= "" and about.observes or nil, self, settings)
  share(self)
  begin_notes(self)
  self:seed(settings.seed)
  return self
end

function world:seed(seed)
  self.streams, self.seeded = self:streams_of(seed), false
end

function world:reset(obs, seed)
  if seed then self:seed(seed) end
  for w = 0, self.n_workers - 1 do
    local streams = json.array {}
    for i = self.begins[w], self.seeded and -1 or self.begins[w + 1] - 1 do streams[#streams + 1] = json.array(self.streams[i + 1]) end
    tell(self, w, { reset = json.array { streams } })
  end
  for w = 0, self.n_workers - 1 do hear(self, w, PATIENCE) end
  for i = 0, self.settings.num_envs - 1 do
    note_episode(self.notes[i], not self.seeded and self.streams[i + 1], not self.seeded and not self.settings.vector and 0 or self.notes[i].episode + 1)
  end
  self.seeded, self.begun, self.marked = true, true, nil
  ffi.copy(obs, self.at.obs, self.settings.num_envs * self.obs_bytes)
end

function world:step(action, obs, reward, terminated, truncated)
  local n, at = self.settings.num_envs, self.at
  if not self.begun then fail(self, self.failed and "its workers have failed: make the environment again" or "step before reset") end
  local space, took = self.actions, self.took
  action = ffi.cast(self.words, action)
  for i = 0, n - 1 do
    space:need(self.id, action, i)
    space:take(action, i, took)
    for k = 0, space.size - 1 do at.action[i * space.size + k] = took[k] end
  end
  local other = C.mn_workers_round(engine.ctx, self.workers, self.timeout)
  if other < 0 then lost(self) end
  if other > 0 then
    self.failed, self.begun = true, nil
    hear(self, other - 1)
  end
  ffi.copy(obs, at.obs, n * self.obs_bytes)
  ffi.copy(reward, at.reward, 4 * n)
  ffi.copy(terminated, at.terminated, n)
  ffi.copy(truncated, at.truncated, n)
  for i = 0, self.settings.vector and -1 or n - 1 do
    local note = self.notes[i]
    note_action(self, note, at.action + i * space.size)
    if at.terminated[i] + at.truncated[i] > 0 then
      note.episode, note.first = note.episode + 1, self.marked and note.n or 0
      note.n = note.first
    end
  end
  for i = 0, #self.infos > 0 and n - 1 or -1 do
    if at.terminated[i] + at.truncated[i] > 0 then self:note_infos(self.told + i * #self.infos) end
  end
end

function world:roll(r, t, action)
  if t == 0 then
    engine.wait()
    mark(self, ffi.cast(self.pointer, r.obs))
  end
  return scripted.roll(self, r, t, action)
end

---Have its workers failed in a rollout?  Then `save` gives what they were at where it began.
---@return boolean
function world:stopped() return self.failed and self.marked ~= nil or false end

-- Of an episode that has ended.
function world:note_infos(told)
  for k, name in ipairs(self.infos) do
    local x = told[k - 1]
    local sum = self.sums[name] or { 0, 0 }
    if x == x then sum[1], sum[2], self.sums[name] = sum[1] + x, sum[2] + 1, sum end
  end
end

---Means of infos = "NAME,NAME" over the episodes that have ended since the last call, as logged: env/NAME.
function world:metrics(m)
  for name, sum in pairs(self.sums) do m["env/" .. name] = sum[1] / sum[2] end
  self.sums = {}
end

function world:keep(first, count)
  self:close()
  self.first, self.settings.num_envs = self.first + first, count
  start(self)
  share(self)
  begin_notes(self)
  self:seed(self.settings.seed)
end

-- ---- played again ----

function world:need_reset(what)
  if not self.begun then errors.raise(("%s: %s before reset"):format(self.id, what)) end
end

-- What names a place in an episode: its seed, its actions, and a checksum of what was observed; with a copy of the environment, where that can be had:
-- `near` its worker keeps one, "apart" this program has its state, which another one of this environment can take.
function world:save(i, near)
  if not self:stopped() then self:need_reset "save" end
  local place = place_here(self, i)
  local copied = self.failed and {} or ask(self, i, near and TRIAL or 0, "copy", near == "apart" and near or near and "near" or "")
  place.copy = copied.copy
  if type(copied.state) == "string" then
    states.last = states.last + 1
    states[states.last], place.state = copied.state, HERE .. ":" .. states.last
    while states.last - states.first >= 2 * self.settings.num_envs do states[states.first], states.first = nil, states.first + 1 end
  end
  return json.encode(place)
end

---In which form can its environments be copied?
---@return string? "state": get_state and set_state that it declares; "pickle", "deepcopy"; nil: in none
function world:copied()
  local form = ask(self, 0, TRIAL, "forms").form
  return form ~= "" and form or nil
end

local function place_of(self, bytes)
  local place = json.decode((bytes:gsub("%z+$", "")))
  if type(place) ~= "table" or type(place.actions) ~= "table" or type(place.stream) ~= "table" then
    errors.raise(("%s: restore: these %d bytes are not a saved environment, or damaged"):format(self.id, #bytes))
  end
  if place.id ~= self.id then errors.raise(("%s: restore: the bytes are of %s"):format(self.id, tostring(place.id))) end
  if place.whole and not self.settings.vector then
    fail(self, "this place is of a vector (env.vector=1), whose environments cannot be played again one by one")
  end
  return { stream = json.array(place.stream), episode = place.episode, actions = json.array(place.actions), seen = place.seen,
    copy = type(place.copy) == "table" and json.array(place.copy) or nil,
    state = type(place.state) == "string" and states[tonumber(place.state:match("^" .. HERE .. ":(%d+)$"))] or nil }
end

function world:restore(i, bytes, obs) self:bring(i, bytes, obs, "restore") end
function world:resume(i, bytes, obs) return self:bring(i, bytes, obs, "resume").anew end

function world:bring(i, bytes, obs, how)
  local place = place_of(self, bytes)
  local answer = ask(self, i, #place.actions, how, place)
  self.begun = true
  for k = 0, self.settings.vector and self.settings.num_envs - 1 or -1 do
    if i == 0 then note_episode(self.notes[k], place.stream, place.episode + 1) end
  end
  if not self.settings.vector then note_place(self, self.notes[i], place, answer.anew) end
  ffi.copy(obs, self.at.obs + i * self.size, self.obs_bytes)
  return answer
end

local digit = {}
for i, c in ipairs { ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):byte(1, -1) } do digit[c] = i - 1 end

-- Bytes of a text in base64, without its end's padding.
local function decoded(text, n)
  local out, k = ffi.new("uint8_t[?]", n + 3), 0
  for i = 1, #text, 4 do
    local a, b, c, d = text:byte(i, i + 3)
    local x = digit[a] * 262144 + digit[b] * 4096 + (digit[c] or 0) * 64 + (digit[d] or 0)
    out[k], out[k + 1], out[k + 2], k = math.floor(x / 65536), math.floor(x / 256) % 256, x % 256, k + 3
  end
  return out
end

function world.see() return nil end

-- Its own picture, where render_mode="rgb_array" is one of its modes; else the observation as a row of colours.
function world:draw(i)
  self:need_reset "draw"
  if self.draws then
    local p = ask(self, i, self.settings.time_limit > 0 and self.settings.time_limit or 1e6, "draw")
    if p.rgb then
      self.canvas = self.canvas or ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
      C.mn_canvas_clear(self.canvas)
      engine.check(C.mn_canvas_image(self.canvas, 0, 0, p.cols, p.rows, p.rows, p.cols, decoded(p.rgb, p.rows * p.cols * 3)))
      return self.canvas
    end
    self.draws = false
    terminal.note(("%s: no picture of its own (%s)"):format(self.id, p.none))
  end
  return self:draw_row(self.at.obs + i * self.size)
end

function world.truth() return {} end
function world.truth_of() return nil end

function world:close()
  if self.workers then C.mn_workers_free(ffi.gc(self.workers, nil)) end
  self.workers, self.begun = nil, nil
end

return { new = new }
