-- dataset.lua -- supervised data sets: batches of token sequences with answers.  One data set is one file
-- in lua/mneme/datasets (or ./datasets), which returns { doc, source, config = defaults, about = as for mn.config,
-- build = function(cfg, seed) }.  `build` returns
--   tokens, classes   the number of different tokens, and of different answers
--   length            tokens of a sequence, or of the part of a stream in one batch
-- and either, for independent sequences,
--   draw              function(random, token, answer): fills both arrays of `length` elements, which hold zeros and
--                     -1 (nothing is asked); `random` gives the example's random numbers (example_random.lua)
-- or, for a text that continues from batch to batch, where each token asks for the next,
--   stream            function(split) -> int32 array, its length
--   characters        if given: function(split) -> the number of characters of these tokens; nil: unknown
--   vocabulary        if given: a checksum of the tokens' meanings, so that a model is not evaluated with another vocabulary
local ffi = require "ffi"
local example_random = require "mneme.envs.example_random"
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local setting_types = require "mneme.base.setting_types"

local splits = { train = true, valid = true, test = true }
local common = { batch = 32, seed = 1 }
local common_about = { batch = { "sequences at a time", whole = true, range = { 1, 65536 } },
                       seed = { "of what is drawn", whole = true, range = { 0, 2 ^ 31 - 1 } } }

---@class SequenceTask
---@field name string
---@field settings table every setting by name
---@field tokens integer how many different tokens there are
---@field classes integer how many different answers
---@field length integer tokens of a sequence in one batch
---@field batch integer sequences at a time
---@field whole integer of which batch these are a part: see keep
---@field carried boolean a batch continues where the last one ended
local Task = {}
Task.__index = Task

---Leaves that hold one batch, time-major: token and answer [T,B] i32, asked and done [T,B] u8 (1: here something is
---asked; here a sequence begins).
---@return table { token, answer, asked, done }
function Task:buffers()
  local shape = { self.length, self.batch }
  local function leaf(dtype) return tensor.new { shape = shape, dtype = dtype } end
  return { token = leaf "i32", answer = leaf "i32", asked = leaf "u8", done = leaf "u8" }
end

-- Batches and examples are counted from 0, in one of the splits.
local function check_place(split, n)
  if not splits[split] then errors.unknown("split", split, tables.keys(splits)) end
  if type(n) ~= "number" or n % 1 ~= 0 or n < 0 or n >= 2 ^ 32 then
    errors.raise(("dataset: number %s of the %s part, expected a whole number from 0 on"):format(tostring(n), split))
  end
end

---Keep some of the sequences of each batch alone: counted from 0 again, they are what they would have been among the
---others.
---@param first integer from 0
---@param count integer
function Task:keep(first, count)
  if type(first) ~= "number" or type(count) ~= "number" or not (first >= 0 and count >= 1 and first + count <= self.batch) then
    errors.raise(("dataset: keep %s sequences from %s, there are 0..%d"):format(tostring(count), tostring(first), self.batch - 1))
  end
  self.first, self.batch = self.first + first, count
end

---How many batches a split has before it begins again; infinitely many where they are drawn.
---@param split "train"|"valid"|"test"
---@return number
function Task:batches(split)
  check_place(split, 0)
  if not self.carried then return math.huge end
  return math.ceil(math.floor((self.parts[split].count - 1) / self.whole) / self.length)
end

-- One column of the buffers.
local function put(into, b, T, B, token, answer)
  local tokens, answers, asked = tensor.writable(into.token, "dataset:fill") + b, tensor.writable(into.answer, "dataset:fill") + b,
    tensor.writable(into.asked, "dataset:fill") + b
  for t = 0, T - 1 do
    local a = answer[t]
    tokens[t * B] = token[t]
    answers[t * B] = a < 0 and 0 or a
    asked[t * B] = a < 0 and 0 or 1
  end
end

-- Column b is the b-th of all equal parts of the text; the last batch of a pass is filled up with what is not asked.
local function fill_stream(self, into, split, n)
  local T, B = self.length, self.batch
  local ids, part = self.parts[split].ids, math.floor((self.parts[split].count - 1) / self.whole)
  local at = n % math.ceil(part / T) * T
  local rows = math.min(T, part - at)
  for b = 0, B - 1 do
    local from = ids + (self.first + b) * part + at
    for t = 0, T - 1 do
      self.token[t] = t < rows and from[t] or 0
      self.answer[t] = t < rows and from[t + 1] or -1
    end
    put(into, b, T, B, self.token, self.answer)
  end
  return at == 0
end

local function asks(answer, T)
  for t = T - 1, 0, -1 do if answer[t] >= 0 then return true end end
  return false
end

---Fill the buffers with batch n (from 0) of a split.  It depends on nothing but the settings, the split and n.
---@param split "train"|"valid"|"test"
---@param n integer number of the batch, from 0
---@param into table as made by dataset:buffers()
function Task:fill(into, split, n)
  errors.need("dataset: the buffers", into, "token", "dataset:buffers()")
  check_place(split, n)
  local T, B, fresh = self.length, self.batch, true
  if self.carried then
    fresh = fill_stream(self, into, split, n)
  else
    local asked = self.whole > B                   -- another rank's sequences may ask
    for b = 0, B - 1 do
      self:example(split, n * self.whole + self.first + b)
      asked = asked or asks(self.answer, T)
      put(into, b, T, B, self.token, self.answer)
    end
    if not asked then self.refuse "draw asked nothing in a whole batch: no answer is 0 or more" end
  end
  local done = tensor.writable(into.done, "dataset:fill")
  ffi.fill(done, T * B)
  if fresh then ffi.fill(done, B, 1) end
end

-- A row of numbers that `draw` fills: by whole numbers of its range alone, and nowhere else.
ffi.cdef "typedef struct mn_task_row { int32_t n, least, most; int32_t *at; } mn_task_row; typedef struct mn_text { const int32_t *at; } mn_text;"
local function is_whole(x, least, most) return type(x) == "number" and x % 1 == 0 and x >= least and x <= most end
local function check_at(r, t)
  if not is_whole(t, 0, r.n - 1) then
    errors.raise(("dataset: draw: %s %s, expected 0 to %d"):format(r.least < 0 and "answer" or "token", tostring(t), r.n - 1))
  end
end
local row_of = ffi.metatype("mn_task_row", {
  __index = function(r, t)
    check_at(r, t)
    return r.at[t]
  end,
  __newindex = function(r, t, value)
    check_at(r, t)
    if not is_whole(value, r.least, r.most) then
      errors.raise(("dataset: draw: %s %d is %s, expected a whole number from %d to %d"):format(r.least < 0 and "answer" or "token", t,
        tostring(value), r.least, r.most))
    end
    r.at[t] = value
  end,
})

---Example `index` (from 0) of a split of a data set whose examples are drawn.
---@param split "train"|"valid"|"test"
---@param index integer from 0
---@return ffi.cdata* token int32[length]
---@return ffi.cdata* answer int32[length]: -1 where nothing is asked; both good until the next one
function Task:example(split, index)
  check_place(split, index)
  ffi.fill(self.token, 4 * self.length)
  ffi.fill(self.answer, 4 * self.length, 255)
  self.draw(self.random:seek(self.settings.seed, split, index), row_of(self.length, 0, self.tokens - 1, self.token),
    row_of(self.length, -1, self.classes - 1, self.answer))
  return self.token, self.answer
end

-- ---- building ----

local function definition(name) return registry.definition("datasets", name, "a data set", "") end

-- A part of a text as it is first given, and nothing but tokens.
local function part_of(self, split)
  local ids, count = self.stream(split)
  local room = type(ids) == "cdata" and pcall(ffi.new, "mn_text", ids) and (tostring(ffi.typeof(ids)):find("[", 1, true) and ffi.sizeof(ids) / 4 or 2 ^ 31)
  if not room or not is_whole(count, 0, room) then
    self.refuse('stream gave %s and %s, expected an array such as ffi.new("int32_t[?]", n) and how many of it are tokens', tostring(ids), tostring(count))
  end
  local most = math.min(self.tokens, self.classes) - 1
  for i = 0, count - 1 do
    if ids[i] < 0 or ids[i] > most then self.refuse("token %d of the %s part is %d, expected 0 to %d", i, split, ids[i], most) end
  end
  if count < 2 * self.batch then
    errors.usage(("data set %s: the %s part has %d tokens, expected at least 2 for each of batch=%d sequences"):format(self.name, split, count, self.batch),
      "a longer file, a smaller batch, or another share")
  end
  local characters = self.characters and self.characters(split)
  if characters and not is_whole(characters, 1, 2 ^ 53) then
    self.refuse("characters gave %s for the %s part, expected how many there are, or nil", tostring(characters), split)
  end
  return { ids = ids, count = count, characters = characters }
end

local function resolve(name, d, given)
  local settings = tables.merged(common, d.config)
  for key, value in pairs(given) do
    local default = settings[key]
    if default == nil then errors.unknown("setting of data set " .. name, key, tables.keys(settings)) end
    if type(value) ~= type(default) then
      errors.usage(("data set %s: %s = %s, expected a %s"):format(name, key, tostring(value), type(default)))
    end
    settings[key] = value
  end
  for key, value in pairs(settings) do
    setting_types.check(("data set %s: %s"):format(name, key), value, d.about[key] or common_about[key])
  end
  return settings
end

---A data set by name: mn.dataset("listops", { batch = 16, seed = 1 }), or mn.dataset { "listops", batch = 16 }.
---@param name string|table
---@param settings table? those of the data set, and batch = 32, seed = 1
---@return SequenceTask
local function new(name, settings)
  if settings ~= nil then errors.need("dataset: the settings", settings, nil, "{ batch = 16, ... }") end
  if type(name) == "table" then
    name, settings = name[1], tables.merged(name, settings)
    settings[1] = nil
  end
  if type(name) ~= "string" then errors.raise "dataset: expected a name, as in mn.dataset(\"listops\", { batch = 16 })" end
  local d = definition(name)
  settings = resolve(name, d, settings or {})
  local built = d.build(settings, settings.seed)
  errors.need("data set " .. name .. ": what build gave", built, nil, "{ tokens = ..., classes = ..., length = ..., draw = ... }")
  errors.members("what build of data set " .. name .. " gave", built, "tokens classes length draw:function stream:function characters:function "
    .. "vocabulary:string instead:string", d.build)
  local function refuse(what, ...) errors.raise(("data set %s: " .. what):format(name, ...), { where = errors.position_of(built.draw or d.build) }) end
  for _, key in ipairs { "tokens", "classes", "length" } do
    local n = built[key]
    if not is_whole(n, 1, 2 ^ 28) then refuse("%s = %s, expected a whole number from 1 to 2^28", key, tostring(n)) end
  end
  if (built.draw == nil) == (built.stream == nil) then
    refuse("build gave %s, expected one of them", built.draw and "draw and stream" or "no function draw, and no stream")
  end
  local self = setmetatable(built, Task)
  self.name, self.settings, self.batch, self.carried = name, settings, settings.batch, self.stream ~= nil
  self.first, self.whole, self.refuse = 0, settings.batch, refuse
  self.token, self.answer = ffi.new("int32_t[?]", self.length), ffi.new("int32_t[?]", self.length)
  self.random = example_random.new()
  local function drawn()
    local token, answer = self:example("train", 0)
    return ffi.string(token, 4 * self.length) .. ffi.string(answer, 4 * self.length)
  end
  for _ = 1, self.carried and 0 or 4 do
    if drawn() ~= drawn() then refuse "draw made another example 0 of the same `random`: something else varies, such as math.random" end
  end
  self.parts = self.carried and { train = part_of(self, "train"), valid = part_of(self, "valid"), test = part_of(self, "test") }
  return self
end

return { new = new, definition = definition, common = common, common_about = common_about }
