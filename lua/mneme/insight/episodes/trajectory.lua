-- trajectory.lua -- one environment's episodes as a file (.mnt): the initial state and the actions.  Observations are not stored,
-- because the environment computes them again, bit for bit (trajectory_replay.lua); rewards and ends are stored to detect an
-- environment that has changed.
--   mneme-trajectory 1 HHHHHHHH CCCCCCCC   version; bytes of the header, checksum of all else, in hex
--   { ... }                                the header: JSON, then spaces to a multiple of 16
--   start, actions, rewards, ends, checks, records       sizes follow from the header; each padded to 16
-- An action takes as many bits as distinguish the actions (of several numbers four bytes each), and a reward likewise where few
-- values occur: one step of a T-Maze takes half a byte.  Records hold the agent's internals at each step, where they were recorded.
local ffi = require "ffi"
local bit = require "bit"
local dtypes = require "mneme.base.dtypes"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local spaces = require "mneme.envs.spaces"
local state_arrays = require "mneme.models.state_arrays"
local plain_nans = require("mneme.tensor.safetensors").plain_nans

local C = engine.C
local count_of = state_arrays.size
local trajectory = { block = 256, most_steps = 2 ^ 28 }     -- block: observations under one check
local VERSION, FIRST_LINE, MOST_HEADER = 1, 37, 16e6
local MOST_VALUES = 4096                    -- more different rewards than this are stored as they are

local function round_up(n, to) return math.ceil(n / to) * to end
local function pad(n) return round_up(n, 16) end

-- ---- numbers in as few bits as they need ----

-- How many bits distinguish n values; at least one, so that a file's size bounds its steps.
local function width_of(n)
  local width = 1
  while 2 ^ width < n do width = width + 1 end
  return width
end

local function packed_bytes(n, width) return math.ceil(n * width / 8) end

local function pack(values, n, width)
  local bytes, at = ffi.new("uint8_t[?]", math.max(1, packed_bytes(n, width))), 0
  for i = 0, n - 1 do
    local v = values[i]
    for b = 0, width - 1 do
      local byte = bit.rshift(at, 3)
      bytes[byte] = bit.bor(bytes[byte], bit.lshift(bit.band(bit.rshift(v, b), 1), at % 8))
      at = at + 1
    end
  end
  return bytes
end

local function unpack_bits(bytes, n, width, values)
  local at = 0
  for i = 0, n - 1 do
    local v = 0
    for b = 0, width - 1 do
      v = bit.bor(v, bit.lshift(bit.band(bit.rshift(bytes[bit.rshift(at, 3)], at % 8), 1), b))
      at = at + 1
    end
    values[i] = v
  end
end

-- Different values in the order in which they come, as bits; and each one's number.  nil: too many.
local function different(bits, n)
  local values, number, codes = {}, {}, ffi.new("int32_t[?]", math.max(1, n))
  for i = 0, n - 1 do
    local v = bits[i]
    if not number[v] then
      if #values == MOST_VALUES then return nil end
      values[#values + 1] = v
      number[v] = #values - 1
    end
    codes[i] = number[v]
  end
  return values, codes
end

-- A list of one's own that JSON writes as an array; of many actions and interventions unpack would not make one.
local function array_of(list)
  local copy = {}
  for i, item in ipairs(list) do copy[i] = item end
  return json.array(copy)
end

-- ---- records ----

---The bytes of a number of an element type, and what points to one: { bytes, pointer }.
trajectory.dtypes = dtypes

---Fields of a record one after another, each on a multiple of four bytes.
---@param fields table<string, table> name -> { shape, dtype = "f32"|"u8", dims }
---@return table[] list { name, shape, dtype, dims, at }, by name
---@return integer stride bytes of a record
function trajectory.layout(fields)
  local list, at = {}, 0
  errors.need("trajectory: the fields of its records", fields, nil, "{ name = { shape = {...}, dtype = \"f32\" }, ... }")
  for _, name in ipairs(tables.keys(fields)) do
    local f = fields[name]
    errors.need("trajectory: field " .. name, f, "shape", "{ shape = {...}, dtype = \"f32\" }")
    if not dtypes[f.dtype or "f32"] then errors.unknown(("trajectory: field %s: dtype"):format(name), f.dtype, tables.keys(dtypes)) end
    list[#list + 1] = { name = name, shape = array_of(f.shape), dtype = f.dtype or "f32",
      dims = f.dims, at = at }
    at = at + round_up(count_of(f.shape) * dtypes[f.dtype or "f32"].bytes, 4)
  end
  return list, at
end

-- ---- writing ----

---@class Trajectory
---@field env string "tmaze-v0"
---@field settings table of the environment, with its seed and time limit
---@field names string[] of the actions, of several numbers of each
---@field space Space of the actions
---@field observation table { shape, dtype }
---@field copy integer the index of the recorded environment
---@field seed integer? what the environment was reset with
---@field script string? whose functions are the rules; nil for environments in C
---@field start string the environment's state, from env:save
---@field steps integer
---@field actions ffi.cdata* int32_t[steps], or int32_t or float [steps * space.size]
---@field rewards ffi.cdata* float[steps]
---@field flags ffi.cdata* uint8_t[steps]: 1 where the step terminated an episode, 2 where it truncated one
---@field checks ffi.cdata* uint32_t[steps / block + 1]: CRC-32C of the steps + 1 observations, block by block
---@field fields table[] of a record: see trajectory.layout
---@field stride integer bytes of a record
---@field records ffi.cdata*? uint8_t[steps * stride]: what the agent had in mind when it chose each action
---@field about table { title, source, ... } for people
---@field interventions table[] { at, kind, what, to, ... } in order: what was done to it before the observation of
---  step `at` was taken in; kind = "set" changed the world, and a replay does it again

local function blocks_of(steps) return math.floor(steps / trajectory.block) + 1 end

-- Where episodes ended: 2 * step, + 1 where it was truncated.
local function ends_of(flags, steps)
  local list = {}
  for t = 0, steps - 1 do
    if flags[t] ~= 0 then list[#list + 1] = 2 * t + (flags[t] == 2 and 1 or 0) end
  end
  return list
end

local function contents(t)
  local space = t.space or spaces.discrete(t.names)
  local n, bits = t.steps, ffi.cast("const int32_t *", t.rewards)
  local values, codes = different(bits, n)
  local kept, ends, width = #t.start:gsub("%z+$", ""), ends_of(t.flags, n), width_of(#t.names)
  local header = { env = t.env, settings = t.settings, copy = t.copy, seed = t.seed, steps = n, script = t.script,
    actions = array_of(t.names), space = space.kind ~= "discrete" and space:describe() or nil, start = json.array { kept, #t.start }, ends = #ends,
    rewards = values and #values or 0, fields = json.array(t.fields), about = t.about,
    observation = { shape = array_of(t.observation.shape), dtype = t.observation.dtype },
    interventions = #t.interventions > 0 and array_of(t.interventions) or nil }
  local packed = space.kind == "discrete" and { pack(t.actions, n, width), packed_bytes(n, width) }
  local sections = { { t.start, kept }, packed or { t.actions, 4 * n * space.size } }
  if values then
    local narrow = width_of(#values)
    sections[3] = { ffi.new("int32_t[?]", #values, values), 4 * #values }
    sections[4] = { pack(codes, n, narrow), packed_bytes(n, narrow) }
  else
    sections[3], sections[4] = { bits, 4 * n }, { "", 0 }
  end
  sections[5] = { #ends > 0 and ffi.new("uint32_t[?]", #ends, ends) or "", 4 * #ends }
  sections[6] = { t.checks, 4 * blocks_of(n) }
  sections[7] = { t.records or "", t.stride * n }
  return header, sections
end

---Write a trajectory of at least one step: the whole file or nothing.  Equal ones give equal bytes.
function trajectory.write(path, t)
  local header, sections = contents(t)
  local text = json.encode(header)
  text = text .. (" "):rep(pad(FIRST_LINE + #text + 1) - FIRST_LINE - #text - 1) .. "\n"
  local first = ("mneme-trajectory %d %08x "):format(VERSION, #text)
  local pieces = { text }
  for _, section in ipairs(sections) do
    if section[2] > 0 then
      local from = type(section[1]) == "string" and ffi.cast("const char *", section[1]) or section[1]
      pieces[#pieces + 1] = { from, section[2] }
      pieces[#pieces + 1] = ("\0"):rep(pad(section[2]) - section[2])
    end
  end
  local crc = C.mn_crc32c(0, first, #first)
  for _, piece in ipairs(pieces) do
    if type(piece) == "string" then crc = C.mn_crc32c(crc, piece, #piece)
    else crc = C.mn_crc32c(crc, piece[1], piece[2]) end
  end
  table.insert(pieces, 1, first .. bit.tohex(crc) .. "\n")
  files.write(path, pieces)
end

-- ---- reading: nothing in a file is believed ----

-- The header's text and where the sections begin.
local function read_first_line(path, data, bytes)
  local function refuse(what, ...) errors.fail(path .. ": " .. what:format(...)) end
  local line = ffi.string(data, math.min(bytes, FIRST_LINE))
  if line:sub(1, 17) ~= ("mneme-trajectory "):sub(1, #line) or #line == 0 then
    refuse("byte 0: not a trajectory: it does not begin with 'mneme-trajectory'")
  elseif bytes < FIRST_LINE then refuse("cut short: %.0f bytes, its first line has %d", bytes, FIRST_LINE) end
  local version, size, crc = line:match "^mneme%-trajectory (%d) (%x%x%x%x%x%x%x%x) (%x%x%x%x%x%x%x%x)\n$"
  if not version then refuse("bytes 17..36: damaged: expected a version, a size and a checksum") end
  if tonumber(version) ~= VERSION then
    refuse("byte 17: version %s, this program reads version %d", version, VERSION)
  end
  size = tonumber(size, 16)
  if size > bytes - FIRST_LINE or size > MOST_HEADER then
    refuse("byte 19: cut short or damaged: a header of %.0f bytes in a file of %.0f", size, bytes)
  end
  local sum = C.mn_crc32c(C.mn_crc32c(0, data, 28), data + FIRST_LINE, bytes - FIRST_LINE)
  if bit.tohex(sum) ~= crc then
    refuse("byte 28: damaged or cut short: checksum %s, the contents have %s", crc, bit.tohex(sum))
  end
  return ffi.string(data + FIRST_LINE, size), FIRST_LINE + size
end

local function whole(x, lo, hi) return type(x) == "number" and x % 1 == 0 and x >= lo and x <= hi end

-- What is wrong with a header that is JSON; nil: nothing.
local function fault(h)
  if type(h) ~= "table" or json.is_array(h) then return "the header is not an object" end
  for key, kind in pairs { env = "string", settings = "table", actions = "table", start = "table", fields = "table",
    observation = "table", about = "table" } do
    if type(h[key]) ~= kind then return ("%s is a %s, expected a %s"):format(key, type(h[key]), kind) end
  end
  for key, most in pairs { steps = trajectory.most_steps, ends = h.steps, rewards = MOST_VALUES, copy = 2 ^ 31 } do
    if not whole(h[key], key == "steps" and 1 or 0, type(most) == "number" and most or 0) then
      return ("%s is %s, expected a whole number up to %s"):format(key, tostring(h[key]), tostring(most))
    end
  end
  local kept, size = h.start[1], h.start[2]
  if not whole(kept, 0, 2 ^ 31) or not whole(size, kept, kept + 2 ^ 24) then return "start is not a pair of sizes" end
  if #h.actions == 0 then return "there are no actions" end
  for _, name in ipairs(h.actions) do if type(name) ~= "string" then return "the name of an action is no text" end end
  if h.space ~= nil and not spaces.of_description(h.space) then return "the space of its actions is none" end
  if h.script and type(h.script) ~= "string" then return "script is no text" end
  if not state_arrays.is_shape(h.observation.shape) or not dtypes[h.observation.dtype] then return "observation has no shape or type" end
  local at = 0
  for _, f in ipairs(h.fields) do
    if type(f) ~= "table" or type(f.name) ~= "string" or not state_arrays.is_shape(f.shape, f.dims) or not dtypes[f.dtype] or f.at ~= at then
      return "the fields of its records are not one after another"
    end
    at = at + round_up(count_of(f.shape) * dtypes[f.dtype].bytes, 4)
  end
end

-- What is wrong with a list of interventions; nil: nothing.
local function fault_of_interventions(list, steps)
  local last = 0
  if not json.is_array(list) then return "interventions are no list" end
  for i, x in ipairs(list) do
    if type(x) ~= "table" or type(x.kind) ~= "string" or type(x.what) ~= "string" or not whole(x.at, last, steps)
      or (x.kind == "set" and type(x.to) ~= "number") then return ("intervention %d is none"):format(i - 1) end
    last = x.at
  end
end

-- A function that gives the section of that many bytes that comes next, and how many bytes there were.
local function sections_from(path, data, at, bytes)
  return function(what, n)
    if at + pad(n) > bytes then
      errors.fail(("%s: byte %.0f: damaged: %s needs %.0f bytes, the file has %.0f more"):format(path, at, what, n,
        bytes - at))
    end
    local here = at
    at = at + pad(n)
    return data + here, here
  end, function()
    if at ~= bytes then
      errors.fail(("%s: byte %.0f: damaged: %.0f bytes more than its header declares"):format(path, at, bytes - at))
    end
  end
end

local function read_rewards(path, h, section)
  local n, rewards = h.steps, ffi.new("float[?]", h.steps)
  local bits = ffi.cast("int32_t *", rewards)
  if h.rewards == 0 then ffi.copy(rewards, section("rewards", 4 * n), 4 * n)
  else
    local values = ffi.cast("const int32_t *", section("rewards", 4 * h.rewards))
    local width = width_of(h.rewards)
    local packed, at = section("rewards", packed_bytes(n, width))
    unpack_bits(packed, n, width, bits)
    for i = 0, n - 1 do
      if bits[i] >= h.rewards then
        errors.fail(("%s: byte %.0f: damaged: step %d has reward number %d of %d"):format(path, at, i, bits[i], h.rewards))
      end
      bits[i] = values[bits[i]]
    end
  end
  plain_nans(rewards, n)
  return rewards
end

local function read_flags(path, h, section)
  local flags, last = ffi.new("uint8_t[?]", h.steps), -1
  local data, at = section("ends", 4 * h.ends)
  local ends = ffi.cast("const uint32_t *", data)
  for i = 0, h.ends - 1 do
    local step = math.floor(ends[i] / 2)
    if step <= last or step >= h.steps then
      errors.fail(("%s: byte %.0f: damaged: an episode ends at step %d of %d"):format(path, at + 4 * i, step, h.steps))
    end
    flags[step], last = 1 + ends[i] % 2, step
  end
  return flags
end

---Read and check a whole file.  What is wrong is an error with the path, the byte and what was expected.
---@param path string
---@return Trajectory
function trajectory.read(path)
  local data, bytes, owner = files.block(path)
  data = ffi.cast("uint8_t *", data)
  local text, at = read_first_line(path, data, bytes)
  local h, problem = json.decode(text, path .. ": header")
  problem = problem or fault(h) or (h.interventions and fault_of_interventions(h.interventions, h.steps))
  if problem then errors.fail(("%s: byte %d: damaged: %s"):format(path, FIRST_LINE, problem)) end
  local section, finish = sections_from(path, data, at, bytes)
  local n, width, _ = h.steps, width_of(#h.actions), nil
  local t = { env = h.env, settings = h.settings, copy = h.copy, seed = h.seed, steps = n, script = h.script,
    names = h.actions, observation = h.observation, fields = h.fields, about = h.about, owner = owner, path = path,
    interventions = h.interventions or {} }
  t.start = ffi.string(section("start", h.start[1]), h.start[1]) .. ("\0"):rep(h.start[2] - h.start[1])
  t.space = h.space and spaces.of_description(h.space) or spaces.discrete(t.names)
  t.actions = t.space:room(n)
  local bytes_of = h.space and 4 * n * t.space.size or packed_bytes(n, width)
  local packed, actions_at = section("actions", bytes_of)
  if h.space then ffi.copy(t.actions, packed, bytes_of) else unpack_bits(packed, n, width, t.actions) end
  for i = 0, n - 1 do
    local wrong = t.space:misfit(t.actions, i)
    if wrong then errors.fail(("%s: byte %.0f: damaged: step %d: %s"):format(path, actions_at, i, wrong)) end
  end
  t.rewards = read_rewards(path, h, section)
  t.flags = read_flags(path, h, section)
  t.checks = ffi.cast("const uint32_t *", (section("checks", 4 * blocks_of(n))))
  _, t.stride = trajectory.layout({})
  for _, f in ipairs(t.fields) do t.stride = f.at + round_up(count_of(f.shape) * dtypes[f.dtype].bytes, 4) end
  t.records = section("records", t.stride * n)
  finish()
  for _, f in ipairs(t.fields) do
    for step = 0, f.dtype == "f32" and n - 1 or -1 do
      plain_nans(t.records + step * t.stride + f.at, count_of(f.shape))
    end
  end
  return t
end

---A field of one step's record: a pointer to its numbers; nil where there is no such field.
---@return ffi.cdata*?
function trajectory.recorded(t, step, name)
  for _, f in ipairs(t.fields) do
    if f.name == name then return ffi.cast(dtypes[f.dtype].pointer, t.records + step * t.stride + f.at) end
  end
end

return trajectory
