-- live_channel.lua -- snapshots of a training for a viewer in another process, through the mapped file RUN/live
-- (engine/io/live_channel.c).  The trainer writes one environment at most twenty times a second and never waits; the viewer
-- reads the newest.  The layout of a snapshot is JSON in the head of the file.
local bit = require "bit"
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local spaces = require "mneme.envs.spaces"
local state_arrays = require "mneme.models.state_arrays"
local format = require "mneme.base.format"
local safetensors = require "mneme.tensor.safetensors"

local C = engine.C
local live_channel = { per_second = 20, history = 1024 }
local SHARE = 1 / 50                         -- of a training's processor time for snapshots, at most

local bytes_of = { f32 = 4, f64 = 8, u8 = 1 }
local pointer = { f32 = ffi.typeof "float *", f64 = ffi.typeof "double *", u8 = ffi.typeof "uint8_t *" }
local counters = { "env_index", "action", "reward", "value", "step", "episode", "ret", "total", "noted" }
local noted = { "step", "value", "reward", "action", "x", "y" }     -- of a step of the history; then gates

-- The heads of the first gate there is, averaged at every step: { kind, probe, first value, how many }.
local function gate_rows(about)
  local rows, n_heads = {}, 1
  for _, array in pairs(about.memory or {}) do n_heads = math.max(n_heads, state_arrays.count(array)) end
  for _, kind in ipairs(state_arrays.gates) do
    local layers, _, by_layer = state_arrays.grid(about.probes or {}, { kind })
    for _, layer in ipairs(layers) do
      local array = by_layer[layer][kind]
      local n, count = state_arrays.size(array.shape), array.shape[1] == n_heads and n_heads or 1
      for head = 0, count - 1 do
        rows[#rows + 1] = { kind = kind, name = array.name, at = head * n / count, n = n / count }
      end
    end
    if #rows > 0 then break end
  end
  return rows
end

-- Fields one after another, each on a multiple of 16 bytes.
local function layout(about, world_bytes, columns)
  local fields, at, env = {}, 0, about.env
  local function add(name, dtype, shape, dims)
    fields[#fields + 1] = { name = name, dtype = dtype, shape = json.array(shape), dims = dims, at = at }
    at = at + math.ceil(state_arrays.size(shape) * bytes_of[dtype] / 16) * 16
  end
  add("counters", "f64", { #counters })
  add("world", "u8", { math.max(1, world_bytes) })
  add("observation", env.observation_space.dtype, env.observation_space.shape)
  add("policy", "f32", { #about.policy })
  if env.action_space.kind ~= "discrete" then add("did", "f32", { env.action_space.size }) end
  add("history", "f32", { live_channel.history, columns })
  for _, group in ipairs { "memory", "probes" } do
    local names = {}
    for name in pairs(about[group] or {}) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local array = about[group][name]
      add(group .. ":" .. name, "f32", array.shape, array.dims)
    end
  end
  return fields, at
end

local names_out, values_out = ffi.new "const char *[1]", ffi.new "const float *[1]"

-- A function that returns an agent's position, x and y of the environment's truth; NaN without one.
local function place_of(vec)
  local at, none = {}, 0 / 0
  local n = vec and C.mn_vec_truth(vec, 0, names_out, values_out) or 0
  for name, place in envs.facts(n > 0 and ffi.string(names_out[0]) or "") do at[name] = place end
  local x, y = at.x or at.position, at.y
  if not x then return function() return none, none end end
  return function(env_index)
    if C.mn_vec_truth(vec, env_index, names_out, values_out) < 0 then return none, none end
    return values_out[0][x], y and values_out[0][y] or none
  end
end

local known = { title = true, env = true, policy = true, memory = true, probes = true, reads = true }
local Writer = {}
Writer.__index = Writer

---Create RUN/live, replacing an older one.
---@param about table title; env = an Env; policy = names of its numbers (nil: those of the actions); reads: as in Frame;
---  memory (see state_arrays.of_core), probes: name -> { shape,
---  dims } of one environment's arrays
function live_channel.writer(path, about)
  for key in pairs(about) do
    if not known[key] then errors.unknown("key of live_channel.writer:", key, tables.keys(known)) end
  end
  local env, space = about.env, about.env.action_space
  about.policy = about.policy or space.names
  local vec = env.world.vec                        -- rules in Lua have none: such an environment is not drawn
  for name, array in pairs(about.probes or {}) do array.name = name end
  local rows, kinds = gate_rows(about), {}
  for i, row in ipairs(rows) do kinds[i] = row.kind end
  local columns = #noted + #rows
  local fields, bytes = layout(about, vec and C.mn_vec_bytes(vec) or 0, columns)
  local schema = json.encode { fields = fields, title = about.title, reads = about.reads, num_envs = env.num_envs,
    env = vec and { id = env.id, settings = env.settings } or nil,
    actions = json.array { unpack(about.policy) }, space = space.kind ~= "discrete" and space:describe() or nil, counters = json.array(counters),
    noted = json.array(noted), gates = json.array(kinds) }
  local self = setmetatable({ fields = fields, vec = vec, num_envs = env.num_envs, rows = rows, wanted = 0, next = 0 }, Writer)
  self.history, self.columns, self.noted = ffi.new("float[?]", live_channel.history * columns), columns, 0
  self.place = place_of(vec)
  self.file = engine.check(C.mn_live_new(engine.ctx, path, schema, bytes))
  return self
end

---Adds a step of the watched environment to the history, so that the viewer can draw the whole episode although it
---receives few of its steps.  Call it at every step, before due().
---@param now table env_index, step, value, reward, action; probes: name -> float pointer
function Writer:note(now)
  if now.step == 0 or now.env_index ~= self.noting or self.noted == live_channel.history then self.noted = 0 end
  local to = self.history + self.noted * self.columns
  self.noting, self.noted = now.env_index, self.noted + 1
  to[0], to[1], to[2], to[3] = now.step, now.value, now.reward, now.action or 0 / 0
  to[4], to[5] = self.place(now.env_index)
  for i, row in ipairs(self.rows) do
    local from, sum = now.probes[row.name] + row.at, 0
    for k = 0, row.n - 1 do sum = sum + from[k] end
    to[#noted - 1 + i] = sum / row.n
  end
end

---The probes that note() reads at every step.
---@return string[] names
function Writer:gate_probes()
  local names, seen = {}, {}
  for _, row in ipairs(self.rows) do
    if not seen[row.name] then names[#names + 1], seen[row.name] = row.name, true end
  end
  return names
end

---Is it time for a snapshot?  Cheap enough to ask at every step: it looks at the wall's clock, and at the processor's where that says so.
function Writer:due()
  if not C.mn_live_due(self.file, live_channel.per_second) or C.mn_clock(false) < self.next then return false end
  local now = os.clock()
  local early = (self.took or 0) / SHARE - (now - (self.written or 0))
  if early > 0 then
    self.next = C.mn_clock(false) + math.min(early, 1 / live_channel.per_second)
    return false
  end
  self.begun = now
  return true
end

---Write a snapshot of one environment.
---@param now table env_index, action, reward, value, step, episode, ret, total: numbers; observation, policy:
---  pointers to this environment's values; memory, probes: name -> float pointer; and what was noted
function Writer:write(now)
  local base = ffi.cast("char *", C.mn_live_begin(self.file))
  for _, field in ipairs(self.fields) do
    local group, name = field.name:match "^(%a+):(.+)$"
    local to, from = base + field.at, now[field.name]
    if group then from = now[group][name] end
    if field.name == "counters" then
      to = ffi.cast(pointer.f64, to)
      for i, counter in ipairs(counters) do to[i - 1] = now[counter] or 0 end
      to[#counters - 1] = self.noted
    elseif field.name == "history" then ffi.copy(to, self.history, self.noted * self.columns * 4)
    elseif field.name == "world" then
      if self.vec then engine.check(C.mn_vec_save(self.vec, now.env_index, to)) end
    elseif from then ffi.copy(to, from, state_arrays.size(field.shape) * bytes_of[field.dtype])
    else errors.raise("live: a snapshot without " .. field.name) end
  end
  C.mn_live_publish(self.file)
  self.wanted = math.max(0, C.mn_live_wanted(self.file)) % self.num_envs         -- what the viewer asks for, from the next step on
  self.written = os.clock()
  self.took = self.begun and self.written - self.begun
end

---Mark the end of training; the file stays, so that a viewer can still show the last snapshot.
function Writer:close()
  if self.file then C.mn_live_free(self.file) end
  self.file = nil
end

local Reader = {}
Reader.__index = Reader

-- An environment to restore snapshots into; nil where it cannot be made.
local function env_of(schema)
  if not schema.env then return nil end
  local settings = {}
  for key, value in pairs(schema.env.settings) do settings[key] = value end
  settings.num_envs = 1
  return envs.known(schema.env.id, settings)
end

local function is_texts(list)
  if type(list) ~= "table" then return false end
  for _, text in ipairs(list) do if type(text) ~= "string" then return false end end
  return true
end

local function is_text(x) return x == nil or type(x) == "string" end
local function equal(a, b) return is_texts(a) and table.concat(a, "\n") == table.concat(b, "\n") end

-- What is wrong with a schema's fields: their names, types, and that they lie one after another in a snapshot.  nil: nothing.
local function fault_of_fields(schema, bytes)
  local need, at, seen = { counters = "f64", observation = "f32 or u8", policy = "f32", world = "u8", history = "f32" }, 0, {}
  local space = schema.space and spaces.of_description(schema.space)
  if schema.space ~= nil and not space then return "the space of its actions is none" end
  if space then need.did = "f32" end
  local count = { counters = #counters, policy = #schema.actions, did = space and space.size, history = live_channel.history * (#noted + #schema.gates) }
  for _, field in ipairs(schema.fields) do
    if type(field) ~= "table" or not is_text(field.name) or not bytes_of[field.dtype] or not state_arrays.is_shape(field.shape, field.dims) then
      return "a field has no shape"
    end
    local name, n = field.name, state_arrays.size(field.shape)
    local dtype = need[name] or tostring(name):find "^memory:." and "f32" or tostring(name):find "^probes:." and "f32"
    if not dtype or not dtype:find(field.dtype, 1, true) or seen[name] then return ("field %s is not one of a snapshot"):format(tostring(name)) end
    if count[name] and n ~= count[name] then return ("field %s has %.0f values, expected %d"):format(name, n, count[name]) end
    if field.at ~= at or at + n * bytes_of[field.dtype] > bytes then return ("field %s lies outside of a snapshot"):format(name) end
    seen[name], at = true, at + math.ceil(n * bytes_of[field.dtype] / 16) * 16
  end
  for name in pairs(need) do if not seen[name] then return "its schema has no " .. name end end
end

-- The schema comes from a file, so everything in it is checked.
local function read_schema(path, text, bytes)
  local schema, why = json.decode(text, path)
  local function refuse(what) errors.fail(path .. " cannot be watched: " .. what) end
  if type(schema) ~= "table" or type(schema.fields) ~= "table" or not is_texts(schema.actions) or #schema.actions == 0
    or not equal(schema.counters, counters) or not equal(schema.noted, noted) then refuse(why or "its schema is not one of Mneme's") end
  if not is_texts(schema.gates) then refuse "its schema names no gates" end
  local n, env = schema.num_envs, schema.env
  if type(n) ~= "number" or n < 1 or n % 1 ~= 0 or n > 2 ^ 31 then refuse "its schema counts no environments" end
  if not is_text(schema.title) or not is_text(schema.reads) then refuse "its title is not a text" end
  if env ~= nil and (type(env) ~= "table" or type(env.id) ~= "string" or type(env.settings) ~= "table") then refuse "its environment has no name" end
  local fault = fault_of_fields(schema, bytes)
  if fault then refuse(fault) end
  return schema
end

---Open RUN/live.  A reader is a source of frames, like a stepper: see timeline.lua.
function live_channel.reader(path)
  local peek = ffi.gc(engine.check(C.mn_live_reader_new(engine.ctx, path)), C.mn_live_reader_free)
  local bytes = C.mn_live_reader_bytes(peek)
  local schema = read_schema(path, ffi.string(C.mn_live_reader_schema(peek)), bytes)
  local self = setmetatable({ path = path, peek = peek, schema = schema, live = true }, Reader)
  self.num_envs, self.space = schema.num_envs, schema.space and spaces.of_description(schema.space) or nil
  self.buffer = ffi.new("uint8_t[?]", bytes)
  self.env = env_of(schema)
  self.nothing = ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  return self
end

---The state of the training: "running", "ended", "gone" (its process died), "replaced".
function Reader:state() return ffi.string(C.mn_live_reader_state(self.peek)) end

---Request the next environment from the trainer.
function Reader:next_env()
  self.env_index = ((self.env_index or 0) + 1) % self.num_envs
  engine.check(C.mn_live_reader_want(self.peek, self.env_index))
end

-- The steps of the history, as entries of a frame; their steps go up.
local function read_history(schema, at, n)
  local history, columns, last = {}, #noted + #schema.gates, -1
  for i = 1, n do
    local step = at[(i - 1) * columns]
    if not (step > last and step < math.huge) then break end
    last = step
    local row, entry = at + (i - 1) * columns, { gates = {} }
    for k, name in ipairs(noted) do
      if row[k - 1] == row[k - 1] then entry[name] = row[k - 1] end
    end
    for k, kind in ipairs(schema.gates) do
      local means = entry.gates[kind] or {}
      entry.gates[kind], means[#means + 1] = means, row[#noted - 1 + k]
    end
    history[i] = entry
  end
  return #history > 0 and history or nil
end

-- Every NaN becomes the plain one: see safetensors.plain_nans.
local function make_plain(schema, buffer)
  for _, field in ipairs(schema.fields) do
    if field.dtype == "f32" then safetensors.plain_nans(buffer + field.at, state_arrays.size(field.shape)) end
    local high = ffi.cast("int32_t *", buffer + field.at)
    for i = 1, field.dtype == "f64" and 2 * #counters or 0, 2 do
      if bit.band(high[i], 0x7ff00000) == 0x7ff00000 then high[i - 1], high[i] = 0, bit.bor(bit.band(high[i], 0x80000000), 0x7ff80000) end
    end
  end
end

local any_number = { value = true, reward = true, ret = true }

-- Counters as a training has them.
local function read_counters(self, at, now)
  local most = { env_index = self.num_envs - 1, action = #self.schema.actions - 1, noted = live_channel.history }
  for i, counter in ipairs(counters) do
    local x = at[i - 1]
    if not any_number[counter] and not (x >= 0 and x <= (most[counter] or 2 ^ 53) and x % 1 == 0) then
      errors.fail(("%s can no longer be watched: its %s is %g"):format(self.path, counter, x))
    end
    now[counter] = x
  end
end

---The newest snapshot, as `now` for frames.lua; nil: nothing new.
function Reader:next()
  if engine.check(C.mn_live_reader_read(self.peek, self.buffer)) == 0 then return nil end
  local schema = self.schema
  make_plain(schema, self.buffer)
  local now = { title = schema.title, reads = schema.reads, run = self.path:match "^(.*)/[^/]+$",
    actions = schema.actions, memory = {}, probes = {}, truth = {} }
  local history
  for _, field in ipairs(schema.fields) do
    local at = ffi.cast(pointer[field.dtype], self.buffer + field.at)
    local group, name = field.name:match "^(%a+):(.+)$"
    if group == "memory" or group == "probes" then
      now[group][name] = { shape = field.shape, dims = field.dims, values = at }
    elseif field.name == "counters" then
      read_counters(self, at, now)
    elseif field.name == "observation" then
      local space = self.env and self.env.observation_space
      now.observation = { shape = field.shape, values = at }
      if space and space.dtype == field.dtype and state_arrays.size(space.shape) == state_arrays.size(field.shape) then now.sight = self.env:sight(at) end
    elseif field.name == "policy" then now.policy = at
    elseif field.name == "did" then now.did, now.space = self.space:read(at, 0), self.space
    elseif field.name == "history" then history = at
    elseif field.name == "world" and self.env then
      self.env:restore(0, ffi.string(at, state_arrays.size(field.shape)))
      now.canvas, now.truth = self.env:draw(0), self.env:truth(0)
    end
  end
  if now.did then now.action = nil end
  now.history = read_history(schema, history, now.noted)
  now.canvas = now.canvas or self.nothing
  now.source = ("live, %s steps, env %d of %d"):format(format.grouped(now.total), now.env_index, self.num_envs)
  return now
end

return live_channel
