-- live_channel.lua -- snapshots of a training for a viewer in another process, through the mapped file RUN/live
-- (engine/io/live_channel.c).  The trainer writes one environment at most twenty times a second and never waits; the viewer
-- reads the newest.  What a snapshot holds is JSON in the head of the file, the schema; both lay its fields out by that.
local bit = require "bit"
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local action_spaces = require "mneme.envs.action_spaces"
local state_arrays = require "mneme.models.state_arrays"
local format = require "mneme.base.format"
local safetensors = require "mneme.tensor.safetensors"

local C = engine.C
local live_channel = { per_second = 20, history = 1024 }
local SHARE = 1 / 50                         -- of a training's processor time for snapshots, at most
local LAYOUT = 2                             -- of a snapshot, by its counters and fields

local bytes_of = { f32 = 4, f64 = 8, u8 = 1 }
local pointer = { f32 = ffi.typeof "float *", f64 = ffi.typeof "double *", u8 = ffi.typeof "uint8_t *" }
local counters = { "env_index", "action", "reward", "value", "step", "episode", "ret", "total", "noted" }
local noted = { "step", "value", "reward", "action", "x", "y" }     -- of a step of the history; then gates

-- The heads of the first gate there is, averaged at every step: { kind, probe, first value, how many }.
local function gate_rows(about)
  local rows, n_heads = {}, 1
  for name, array in pairs(about.probes or {}) do array.name = name end
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

-- The fields of a snapshot as a schema says, one after another, each on a multiple of 16 bytes; and how many bytes they take.
local function layout(schema, space)
  local fields, at = {}, 0
  local function add(group, name, dtype, shape, dims)
    fields[#fields + 1] = { group = group, name = name, dtype = dtype, shape = shape, dims = dims, n = state_arrays.size(shape), at = at }
    at = at + math.ceil(fields[#fields].n * bytes_of[dtype] / 16) * 16
  end
  add("now", "counters", "f64", { #counters })
  add("now", "world", "u8", { schema.world })
  add("now", "observation", schema.observation.dtype, schema.observation.shape)
  add("now", "policy", "f32", { #schema.actions })
  if space and space.kind ~= "discrete" then add("now", "did", "f32", { space.size }) end
  add("now", "history", "f32", { live_channel.history, #noted + #schema.gates })
  for _, group in ipairs { "memory", "probes" } do
    for _, name in ipairs(tables.keys(schema[group])) do add(group, name, "f32", schema[group][name].shape, schema[group][name].dims) end
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

local Writer = {}
Writer.__index = Writer

---Create RUN/live, replacing an older one.
---@param about table title; env = an Env; policy = names of its numbers (nil: those of the actions); reads: as in Frame;
---  memory (see state_arrays.of_core), probes: name -> { shape,
---  dims } of one environment's arrays
function live_channel.writer(path, about)
  local env, space, vec = about.env, about.env.action_space, about.env.world.vec      -- rules in Lua have no vec: such an environment is not drawn
  local rows, kinds, groups = gate_rows(about), {}, { memory = {}, probes = {} }
  for i, row in ipairs(rows) do kinds[i] = row.kind end
  for group, arrays in pairs(groups) do
    for name, array in pairs(about[group] or {}) do arrays[name] = { shape = json.array(array.shape), dims = array.dims } end
  end
  local schema = { layout = LAYOUT, title = about.title, reads = about.reads, num_envs = env.num_envs,
    env = vec and { id = env.id, settings = env.settings } or nil, world = math.max(1, vec and C.mn_vec_bytes(vec) or 0),
    observation = { dtype = env.observation_space.dtype, shape = json.array(env.observation_space.shape) },
    actions = json.array { unpack(about.policy or space.names) }, space = space.kind ~= "discrete" and space:describe() or nil,
    gates = json.array(kinds), memory = groups.memory, probes = groups.probes }
  local fields, bytes = layout(schema, space)
  local columns = #noted + #rows
  local self = setmetatable({ fields = fields, vec = vec, num_envs = env.num_envs, rows = rows, wanted = 0, next = 0 }, Writer)
  self.history, self.columns, self.noted = ffi.new("float[?]", live_channel.history * columns), columns, 0
  self.place = place_of(vec)
  self.file = engine.check(C.mn_live_new(engine.ctx, path, json.encode(schema), bytes))
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
    local to, own = base + field.at, field.group == "now" and field.name or nil
    local from = own and now[own] or not own and now[field.group][field.name]
    if own == "counters" then
      to = ffi.cast(pointer.f64, to)
      for i, counter in ipairs(counters) do to[i - 1] = now[counter] or 0 end
      to[#counters - 1] = self.noted
    elseif own == "history" then ffi.copy(to, self.history, self.noted * self.columns * 4)
    elseif own == "world" then
      if self.vec then engine.check(C.mn_vec_save(self.vec, now.env_index, to)) end
    elseif from then ffi.copy(to, from, field.n * bytes_of[field.dtype])
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
  return envs.known(schema.env.id, tables.merged(schema.env.settings, { num_envs = 1 }))
end

local function is_texts(list)
  if type(list) ~= "table" then return false end
  for _, text in ipairs(list) do if type(text) ~= "string" then return false end end
  return true
end

local function is_text(x) return x == nil or type(x) == "string" end

-- Are these arrays by their names, each with a shape?
local function are_arrays(list)
  if type(list) ~= "table" then return false end
  for name, array in pairs(list) do
    if type(name) ~= "string" or type(array) ~= "table" or not state_arrays.is_shape(array.shape, array.dims) then return false end
  end
  return true
end

-- What is wrong with a schema, which comes from a file; nil: nothing.
local function fault_of(schema)
  if type(schema) ~= "table" or schema.layout ~= LAYOUT or not is_texts(schema.actions) or #schema.actions == 0 then
    return "its schema is not one of Mneme's"
  end
  local n, env, seen = schema.num_envs, schema.env, schema.observation
  if not is_texts(schema.gates) then return "its schema names no gates" end
  if type(n) ~= "number" or n < 1 or n % 1 ~= 0 or n > 2 ^ 31 then return "its schema counts no environments" end
  if not is_text(schema.title) or not is_text(schema.reads) then return "its title is not a text" end
  if env ~= nil and (type(env) ~= "table" or type(env.id) ~= "string" or type(env.settings) ~= "table") then return "its environment has no name" end
  if schema.space ~= nil and not action_spaces.of_description(schema.space) then return "the space of its actions is none" end
  if not (are_arrays(schema.memory) and are_arrays(schema.probes) and type(seen) == "table" and are_arrays { seen = seen }
    and (seen.dtype == "f32" or seen.dtype == "u8") and state_arrays.is_shape { schema.world }) then return "a field has no shape" end
end

-- The schema, the space of the actions, the fields and their bytes.
local function read_schema(path, text, bytes)
  local schema, why = json.decode(text, path)
  local fault = why or fault_of(schema)
  if fault then errors.fail(path .. " cannot be watched: " .. fault) end
  local space = schema.space and action_spaces.of_description(schema.space) or nil
  local fields, n = layout(schema, space)
  if n ~= bytes then errors.fail(("%s cannot be watched: its fields take %.0f bytes, a snapshot has %.0f"):format(path, n, bytes)) end
  return schema, space, fields
end

---Open RUN/live.  A reader is a source of frames, like a stepper: see timeline.lua.
function live_channel.reader(path)
  local peek = ffi.gc(engine.check(C.mn_live_reader_new(engine.ctx, path)), C.mn_live_reader_free)
  local bytes = C.mn_live_reader_bytes(peek)
  local schema, space, fields = read_schema(path, ffi.string(C.mn_live_reader_schema(peek)), bytes)
  local self = setmetatable({ path = path, peek = peek, schema = schema, fields = fields, num_envs = schema.num_envs, space = space, live = true,
    now = {}, memory = {}, probes = {} }, Reader)
  self.buffer = ffi.new("uint8_t[?]", bytes)
  for _, field in ipairs(fields) do                -- where each lies, in every snapshot
    self[field.group][field.name] = { shape = field.shape, dims = field.dims, values = ffi.cast(pointer[field.dtype], self.buffer + field.at) }
  end
  self.env = env_of(schema)
  local seen = self.env and self.env.observation_space
  self.draws = seen and seen.dtype == schema.observation.dtype and state_arrays.size(seen.shape) == state_arrays.size(schema.observation.shape)
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
local function make_plain(fields, buffer)
  for _, field in ipairs(fields) do
    if field.dtype == "f32" then safetensors.plain_nans(buffer + field.at, field.n) end
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
  make_plain(self.fields, self.buffer)
  local schema, at, env = self.schema, self.now, self.env
  local now = { title = schema.title, reads = schema.reads, run = self.path:match "^(.*)/[^/]+$", actions = schema.actions, memory = self.memory,
    probes = self.probes, truth = {}, observation = at.observation, policy = at.policy.values, sight = self.draws and env:sight(at.observation.values) }
  read_counters(self, at.counters.values, now)
  if at.did then now.did, now.space, now.action = self.space:read(at.did.values, 0), self.space, nil end
  if env then
    env:restore(0, ffi.string(at.world.values, schema.world))
    now.canvas, now.truth = env:draw(0), env:truth(0)
  end
  now.history = read_history(schema, at.history.values, now.noted)
  now.canvas = now.canvas or self.nothing
  now.source = ("live, %s steps, env %d of %d"):format(format.grouped(now.total), now.env_index, self.num_envs)
  return now
end

return live_channel
