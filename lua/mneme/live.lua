-- live.lua -- a trainer's snapshots for a viewer in another process, through the mapped file
-- RUN/live (engine/live.c).  The trainer writes one copy of the task at most twenty times a
-- second and never waits; the viewer reads the newest.  What lies where in a snapshot is JSON in
-- the file's head.
local ffi = require "ffi"
local engine = require "mneme.engine"
local errors = require "mneme.errors"
local json = require "mneme.json"
local heads = require "mneme.heads"

local C = engine.C
local live = { per_second = 20 }

local bytes_of = { f32 = 4, f64 = 8, u8 = 1 }
local pointer = { f32 = ffi.typeof "float *", f64 = ffi.typeof "double *", u8 = ffi.typeof "uint8_t *" }
local counters = { "copy", "action", "reward", "value", "step", "episode", "ret", "total" }

-- Fields one after another, each on a multiple of 16 bytes.
local function layout(about, world_bytes)
  local fields, at, task = {}, 0, about.task
  local function add(name, dtype, shape, dims)
    fields[#fields + 1] = { name = name, dtype = dtype, shape = json.array(shape), dims = dims, at = at }
    at = at + math.ceil(heads.size(shape) * bytes_of[dtype] / 16) * 16
  end
  add("counters", "f64", { #counters })
  add("world", "u8", { math.max(1, world_bytes) })
  add("observation", task.observation_space.dtype, task.observation_space.shape)
  add("policy", "f32", { task.action_space.n })
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

local known = { "title", "task", "memory", "probes" }
local Writer = {}
Writer.__index = Writer

---Create RUN/live, replacing an older one.
---@param path string
---@param about table title; task = a Task; memory (see heads.of_core), probes: name -> { shape, dims } of
---  one copy's arrays
function live.writer(path, about)
  for key in pairs(about) do
    if not (" title task memory probes "):find(" " .. tostring(key) .. " ", 1, true) then
      errors.unknown("key of live.writer:", key, known)
    end
  end
  local task = about.task
  local vec = task.world.vec                        -- rules in Lua have none: such a world is not drawn
  local fields, bytes = layout(about, vec and C.mn_vec_bytes(vec) or 0)
  local schema = json.encode { fields = fields, title = about.title, copies = task.num_envs,
    task = vec and { id = task.id, settings = task.settings } or nil,
    actions = json.array(task.action_space.names), counters = json.array(counters) }
  local self = setmetatable({ fields = fields, vec = vec, copies = task.num_envs }, Writer)
  self.file = engine.check(C.mn_live_new(engine.ctx, path, schema, bytes))
  return self
end

---Is it time for a snapshot?  Cheap enough to ask at every step.
function Writer:due() return C.mn_live_due(self.file, live.per_second) end

---The copy that the viewer asks for; the trainer may follow when it suits it.
function Writer:wanted() return math.max(0, C.mn_live_wanted(self.file)) % self.copies end

---Write a snapshot of one copy, whose world is saved from the task.
---@param now table copy, action, reward, value, step, episode, ret, total: numbers; observation, policy:
---  pointers to this copy's numbers; memory, probes: name -> float pointer
function Writer:write(now)
  local base = ffi.cast("char *", C.mn_live_begin(self.file))
  for _, field in ipairs(self.fields) do
    local group, name = field.name:match "^(%a+):(.+)$"
    local to, from = base + field.at, now[field.name]
    if group then from = now[group][name] end
    if field.name == "counters" then
      to = ffi.cast(pointer.f64, to)
      for i, counter in ipairs(counters) do to[i - 1] = now[counter] or 0 end
    elseif field.name == "world" then
      if self.vec then engine.check(C.mn_vec_save(self.vec, now.copy, to)) end
    elseif from then ffi.copy(to, from, heads.size(field.shape) * bytes_of[field.dtype])
    else errors.raise("live: a snapshot without " .. field.name) end
  end
  C.mn_live_publish(self.file)
end

---Say that training has ended; the file stays, so that a viewer can still show the last snapshot.
function Writer:close()
  if self.file then C.mn_live_free(self.file) end
  self.file = nil
end

local Reader = {}
Reader.__index = Reader

-- A task of one copy to put the snapshots' worlds into; nil where it cannot be made.
local function task_of(schema)
  if type(schema.task) ~= "table" then return nil end
  local settings = {}
  for key, value in pairs(schema.task.settings) do settings[key] = value end
  settings.num_envs = 1
  return require("mneme.env").new(schema.task.id, settings)
end

-- The schema comes from a file, so nothing in it is believed: every field must lie inside a
-- snapshot.
local function read_schema(path, text, bytes)
  local schema, why = json.decode(text, path)
  local function refuse(what) errors.fail(path .. " cannot be watched: " .. what) end
  if type(schema) ~= "table" or type(schema.fields) ~= "table" or type(schema.actions) ~= "table"
    or type(schema.counters) ~= "table" then refuse(why or "its schema is not one of Mneme's") end
  local need = { counters = #schema.counters, observation = 0, policy = #schema.actions, world = 0 }
  for _, field in ipairs(schema.fields) do
    local n = type(field) == "table" and type(field.shape) == "table" and bytes_of[field.dtype]
    if not n then refuse "a field has no shape" end
    for _, length in ipairs(field.shape) do n = n * (tonumber(length) or -1) end
    local inside = type(field.at) == "number" and field.at >= 0 and n > 0 and field.at + n <= bytes
    if type(field.name) ~= "string" or not inside then
      refuse(("field %s lies outside of a snapshot"):format(tostring(field.name)))
    end
    if need[field.name] and need[field.name] <= heads.size(field.shape) then need[field.name] = nil end
  end
  local missing = next(need)
  if missing then refuse("its schema has no " .. missing) end
  return schema
end

---Watch RUN/live.  A reader is a source of frames, as a player is: see mneme.view.
---@param path string
function live.reader(path)
  local peek = ffi.gc(engine.check(C.mn_peek_new(engine.ctx, path)), C.mn_peek_free)
  local bytes = C.mn_peek_bytes(peek)
  local schema = read_schema(path, ffi.string(C.mn_peek_schema(peek)), bytes)
  local self = setmetatable({ path = path, peek = peek, schema = schema, live = true }, Reader)
  self.copies = tonumber(schema.copies) or 1
  self.buffer = ffi.new("uint8_t[?]", bytes)
  self.task = task_of(schema)
  self.nothing = ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  return self
end

---What has become of the training: "running", "ended", "gone" (its process died), "replaced".
function Reader:state() return ffi.string(C.mn_peek_state(self.peek)) end

---Ask the trainer for another copy.
function Reader:next_copy()
  self.copy = ((self.copy or 0) + 1) % self.copies
  engine.check(C.mn_peek_want(self.peek, self.copy))
end

local function grouped(n)
  return (("%.0f"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

---The newest snapshot, as `now` for mneme.recorder; nil: nothing new.
function Reader:next()
  if engine.check(C.mn_peek_read(self.peek, self.buffer)) == 0 then return nil end
  local schema = self.schema
  local now = { title = schema.title, actions = schema.actions, memory = {}, probes = {}, truth = {} }
  for _, field in ipairs(schema.fields) do
    local at = ffi.cast(pointer[field.dtype], self.buffer + field.at)
    local group, name = field.name:match "^(%a+):(.+)$"
    if group == "memory" or group == "probes" then
      now[group][name] = { shape = field.shape, dims = field.dims, values = at }
    elseif field.name == "counters" then
      for i, counter in ipairs(schema.counters) do now[counter] = at[i - 1] end
    elseif field.name == "observation" then now.observation = { shape = field.shape, values = at }
    elseif field.name == "policy" then now.policy = at
    elseif field.name == "world" and self.task then
      self.task:restore(0, ffi.string(at, field.shape[1]))
      now.canvas, now.truth = self.task:draw(0), self.task:truth(0)
    end
  end
  now.canvas = now.canvas or self.nothing
  now.source = ("live, %s steps, copy %d of %d"):format(grouped(now.total), now.copy, self.copies)
  return now
end

live.grouped = grouped

return live
