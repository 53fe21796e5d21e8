-- action_spaces.lua -- what an agent may do: Gymnasium's Discrete, MultiDiscrete and Box.  An action is `size` numbers of 4 bytes, whole ones or
-- floats: [B] of a discrete space, [B,size] of the others.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local action_spaces = {}
local MOST, MOST_ACTIONS = C.MN_ACTION_SIZE, 2 ^ 16          -- numbers of an action; choices

---@class Space
---@field kind "discrete"|"multi_discrete"|"box"
---@field size integer numbers of an action: 1 of a discrete space
---@field dtype "i32"|"f32" of them
---@field n integer? of a discrete space: how many actions.  Reading it of another one is an error, so that what knows whole numbers alone says so
---@field counts integer[]? of a multi-discrete one: number k is one of 0 .. counts[k]-1
---@field low number[]? of a box, and high: what goes beyond is clipped
---@field names string[] of a discrete space of its actions, of the others of the numbers
local Space = {}
Space.__index = Space

-- What it is called: "Box(2), throttle -1..1, wheel -2..2".
function Space:__tostring()
  if self.kind == "discrete" then return ("Discrete(%d)"):format(self.n) end
  local parts = {}
  for k, name in ipairs(self.names) do
    parts[k] = self.kind == "box" and ("%s %g..%g"):format(name, self.low[k], self.high[k]) or ("%s 0..%d"):format(name, self.counts[k] - 1)
  end
  return ("%s(%d): %s"):format(self.kind == "box" and "Box" or "MultiDiscrete", self.size, table.concat(parts, ", "))
end

---Refuse what one whole number of few alone can do.
---@param what string "mneme where"
---@param id string? of the environment
function Space:need_discrete(what, id)
  if self.kind ~= "discrete" then
    errors.raise(("%s works with one choice of a few at each step; the actions%s are %s"):format(what, id and " of " .. id or "", tostring(self)),
      { status = 2 })
  end
end

---Sizes of a tensor of actions, after those that are given.
---@param ... integer
---@return integer[]
function Space:shape(...)
  local shape = { ... }
  if self.kind ~= "discrete" then shape[#shape + 1] = self.size end
  return shape
end

---Nothing was done yet: -1, of floats 0.
---@param p ffi.cdata* actions
---@param i integer which of them, from 0
function Space:clear(p, i)
  for k = i * self.size, (i + 1) * self.size - 1 do p[k] = self.dtype == "f32" and 0 or -1 end
end

---The same as scripts have it.
---@return integer|number[]
function Space:nothing()
  local p = self:room(1)
  self:clear(p, 0)
  return self:read(p, 0)
end

---An action, as scripts have it: a whole number, or a list.
---@param p ffi.cdata* actions
---@param i integer which of them, from 0
---@return integer|number[]
function Space:read(p, i)
  if self.kind == "discrete" then return p[i] end
  local list = {}
  for k = 1, self.size do list[k] = p[i * self.size + k - 1] end
  return list
end

-- The values of number k that keys give: those of a choice, or five from bound to bound; without bounds -1 .. 1.
local function levels(self, k)
  local list = {}
  for a = 0, self.counts and self.counts[k] - 1 or -1 do list[a + 1] = a end
  if self.counts then return list end
  local low, high = math.max(self.low[k], -1e6), math.min(self.high[k], 1e6)
  if high - low > 1e6 then low, high = -1, 1 end
  for a = 0, 4 do list[a + 1] = low + (high - low) * a / 4 end
  return list
end

---What keys can do: each action of a discrete space; of the others each value of one number.
---@return string[] names
---@return { number: integer, value: number }[]? parts of several numbers: which one the key sets, from 1
---@return number[]? rest where each of them is before a key sets it: 0, or the middle
function Space:by_keys()
  if self.kind == "discrete" then return self.names end
  local names, parts, rest = {}, {}, {}
  for k = 1, self.size do
    local values = levels(self, k)
    rest[k] = self.counts and 0 or values[3]
    for _, value in ipairs(values) do
      names[#names + 1], parts[#parts + 1] = ("%s %g"):format(self.names[k], value), { number = k, value = value }
    end
  end
  return names, parts, rest
end

---An action, as frames have it.
---@param p ffi.cdata* actions
---@param i integer
---@return integer? action of a discrete space
---@return number[]? did of the others
function Space:taken(p, i)
  if self.kind == "discrete" then return p[i] end
  return nil, self:read(p, i)
end

---An action for people: its name, or its numbers.
---@param action integer|number[]
---@return string "up", "torque 0.41"
function Space:words(action)
  if self.kind == "discrete" then return self.names[action + 1] end
  return table.concat(tables.map(self.names, function(name, k) return ("%s %.3g"):format(name, action[k]) end), ", ")
end

---The opposite of read.
---@param p ffi.cdata* actions
---@param i integer
---@param action integer|number[]
function Space:put(p, i, action)
  if self.kind == "discrete" then p[i] = action return end
  for k = 1, self.size do p[i * self.size + k - 1] = action[k] end
end

---Where action i is not one of the space, what is wrong with it; floats need only be finite, since environments clip them.
---@param p ffi.cdata* actions
---@param i integer
---@return string? "action[0][1]=7, expected 0..3 (wheel)"
function Space:misfit(p, i)
  for k = 0, self.size - 1 do
    local x, n = p[i * self.size + k], self.kind == "discrete" and self.n or self.counts and self.counts[k + 1]
    if n and (x < 0 or x >= n) or x - x ~= 0 then
      return ("action[%d]%s=%s, expected %s (%s)"):format(i, self.kind == "discrete" and "" or ("[%d]"):format(k), (n and "%d" or "%g"):format(x),
        n and ("0..%d"):format(n - 1) or "a finite number", self.kind == "discrete" and table.concat(self.names, " ") or self.names[k + 1])
    end
  end
end

---Refuse action i where it is not one of the space.
---@param what string the environment
---@param p ffi.cdata* actions
---@param i integer
function Space:need(what, p, i)
  local wrong = self:misfit(p, i)
  if wrong then errors.raise(("%s: %s"):format(what, wrong)) end
end

---A random action of the space; without bounds within -1..1.
---@param p ffi.cdata* actions
---@param i integer which of them, from 0
---@param uniform fun(): number in [0, 1)
function Space:any(p, i, uniform)
  for k = 1, self.size do
    local u, n = uniform(), self.kind == "discrete" and self.n or self.counts and self.counts[k]
    local low, high = self.low and math.max(self.low[k], -3e38), self.high and math.min(self.high[k], 3e38)
    if low and high - low > 1e6 then low, high = -1, 1 end
    p[i * self.size + k - 1] = n and math.floor(u * n) or low + u * (high - low)
  end
end

---Room for n actions.
---@param n integer
---@return ffi.cdata*
function Space:room(n) return ffi.new(self.dtype == "f32" and "float[?]" or "int32_t[?]", n * self.size) end

---Copy an action as an environment takes it: clipped to the bounds of a box.
---@param from ffi.cdata*
---@param i integer which of them, from 0
---@param to ffi.cdata*
function Space:take(from, i, to)
  for k = 0, self.size - 1 do
    local x = from[i * self.size + k]
    to[k] = self.low and math.min(math.max(x, self.low[k + 1]), self.high[k + 1]) or x
  end
end

---Actions of a script as numbers: { 0, 2 }, { { 0.5, -1 }, { 0, 0 } }, or a tensor.
---@param id string of the environment
---@param n integer environments
---@param actions Tensor|table
---@param into ffi.cdata* room for them
---@return ffi.cdata*
function Space:gather(id, n, actions, into)
  local size, discrete = self.size, self.kind == "discrete"
  local expected = discrete and ("a list or %s tensor of %d"):format(self.dtype, n) or ("a list of %d lists of %d, or a %s tensor [%d,%d]"):format(n,
    size, self.dtype, n, size)
  if tensor.is(actions) then
    if actions:dtype() ~= self.dtype or actions:size() ~= n * size then
      errors.raise(("%s: actions are a tensor of %d numbers (%s), expected %d (%s)"):format(id, actions:size(), actions:dtype(), n * size, self.dtype))
    end
    return actions:data()
  end
  if type(actions) ~= "table" or #actions ~= n or actions[0] ~= nil then
    errors.raise(("%s: actions are %s, expected %s"):format(id, tables.in_words(actions), expected))
  end
  for i = 1, n do
    local a = discrete and { actions[i] } or actions[i]
    if type(a) ~= "table" or not discrete and #a ~= size then
      errors.raise(("%s: action[%d] is %s, expected a list of %d numbers"):format(id, i - 1, tables.in_words(a), size))
    end
    for k = 1, size do
      if type(a[k]) ~= "number" or not self.low and (a[k] % 1 ~= 0 or math.abs(a[k]) > 2 ^ 30) then
        errors.raise(("%s: action[%d]%s=%s, expected %s (%s)"):format(id, i - 1, discrete and "" or ("[%d]"):format(k - 1), tostring(a[k]),
          discrete and ("0..%d"):format(self.n - 1) or self.low and "a number" or ("0..%d"):format(self.counts[k] - 1),
          discrete and table.concat(self.names, " ") or self.names[k]))
      end
      into[(i - 1) * size + k - 1] = a[k]
    end
    self:need(id, into, i - 1)
  end
  return into
end

---What files and other programs read of it.
---@return table { kind, size, names, n, counts, low, high }
function Space:describe()
  local about = {}
  for _, key in ipairs { "kind", "size", "names", "n", "counts", "low", "high" } do about[key] = rawget(self, key) end
  return about
end

-- ---- making ----

-- Of several numbers: to read n is an error.
local Several = { __tostring = Space.__tostring, __index = function(self, key)
  if key == "n" then Space.need_discrete(self, "this") end
  return Space[key]
end }

local function make(fields)
  fields.dtype = fields.kind == "box" and "f32" or "i32"
  return setmetatable(fields, fields.kind == "discrete" and Space or Several)
end

-- Names of the numbers, given or counted.
local function names_of(what, given, n)
  if given ~= nil and (type(given) ~= "table" or #given ~= n) then
    errors.usage(("%s: names is %s, expected %d of them"):format(what, tables.in_words(given), n))
  end
  return tables.filled(n, function(k) return tostring(given and given[k] or k - 1) end)
end

local function check_size(what, n)
  if n < 1 or n > MOST then errors.usage(("%s: %d numbers, expected 1..%d"):format(what, n, MOST)) end
end

---A space of actions that have names.
---@param names string[] of each
---@return Space
function action_spaces.discrete(names) return make { kind = "discrete", size = 1, n = #names, names = names } end

---Several choices at once: mn.multi_discrete { 3, 2 }, mn.multi_discrete { 3, 2, names = { "move", "jump" } }.
---@param counts integer[] how many there are of each, and names
---@return Space
function action_spaces.multi_discrete(counts)
  errors.need("multi_discrete", counts, nil, "mn.multi_discrete { 3, 2, names = { \"move\", \"jump\" } }")
  check_size("multi_discrete", #counts)
  for k, n in ipairs(counts) do errors.whole("multi_discrete", ("number %d"):format(k), n, 1) end
  return make { kind = "multi_discrete", size = #counts, counts = { unpack(counts) }, names = names_of("multi_discrete", counts.names, #counts) }
end

---Floats between bounds: mn.box { low = -1, high = 1, shape = { 2 }, names = { "throttle", "wheel" } }, or lists of bounds,
---mn.box { low = { -1, -2 }, high = { 1, 2 } }.  A policy draws without bounds; the environment gets what is clipped to them.
---@param given { low: number|number[], high: number|number[], shape: integer[]?, names: string[]? }
---@return Space
function action_spaces.box(given)
  errors.need("box", given, nil, "mn.box { low = -1, high = 1, shape = { 2 } }")
  errors.members("box", given, "low high shape names")
  local n = 1
  if given.shape ~= nil and type(given.shape) ~= "table" then errors.usage(("box: shape is %s, expected { 2 }"):format(tables.in_words(given.shape))) end
  for k, size in ipairs(given.shape or {}) do n = n * errors.whole("box", ("shape[%d]"):format(k), size, 1) end
  if not given.shape then n = type(given.low) == "table" and #given.low or type(given.high) == "table" and #given.high or given.names and #given.names or 1 end
  check_size("box", n)
  local bounds = {}
  for _, key in ipairs { "low", "high" } do
    local list = {}
    if type(given[key]) == "table" and #given[key] ~= n then errors.usage(("box: %s is %s, expected %d"):format(key, tables.in_words(given[key]), n)) end
    for k = 1, n do
      list[k] = type(given[key]) == "table" and given[key][k] or given[key]
      if type(list[k]) ~= "number" then errors.usage(("box: %s is %s, expected a number or a list of %d"):format(key, tables.in_words(given[key]), n)) end
    end
    bounds[key] = list
  end
  for k = 1, n do
    local low, high = bounds.low[k], bounds.high[k]
    if not (low < high) then errors.usage(("box: low %g, high %g in place %d, expected low < high"):format(low, high, k)) end
  end
  return make { kind = "box", size = n, low = bounds.low, high = bounds.high, names = names_of("box", given.names, n) }
end

---What a script gave as its actions: a space, how many there are, or their names.
---@param what string the environment
---@return Space
function action_spaces.of_script(what, actions)
  if action_spaces.is(actions) then return actions end
  if actions == "continuous"
    or type(actions) == "table" and (type(actions[1]) == "number" or type(actions[1]) == "table" or #actions == 0 and next(actions)) then
    errors.usage(("%s: actions are %s, expected a number of them, a list of their names, mn.box or mn.multi_discrete"):format(what,
      type(actions) == "table" and tables.in_words(actions) or "continuous"),
      "mn.box { low = -1, high = 1 } is continuous, mn.multi_discrete { 3, 2 } several choices (docs/continuous-actions.md)")
  end
  local n = type(actions) == "table" and #actions or errors.whole(what, "actions", actions, 1)
  if n < 1 or n > MOST_ACTIONS then
    errors.usage(("%s: there are %d actions, expected 1..%d"):format(what, n, MOST_ACTIONS))
  end
  local names = {}
  for i = 1, n do
    names[i] = type(actions) == "table" and actions[i] or tostring(i - 1)
    if type(names[i]) ~= "string" then
      errors.usage(("%s: the name of action %d is a %s, expected a text"):format(what, i - 1, type(names[i])))
    end
  end
  return action_spaces.discrete(names)
end

---That of an environment in C.
---@param vec ffi.cdata* mn_vec
---@param words string[] its names of actions
---@return Space
function action_spaces.of_vec(vec, words)
  local s, names = ffi.new "mn_action_space", {}
  C.mn_vec_action_space(vec, s)
  for k = 1, s.kind == C.MN_DISCRETE and s.n[0] or s.size do names[k] = words[k] or tostring(k - 1) end
  if s.kind == C.MN_DISCRETE then return action_spaces.discrete(names) end
  local counts, low, high = { names = names }, {}, {}
  for k = 1, s.size do counts[k], low[k], high[k] = s.n[k - 1], s.low[k - 1], s.high[k - 1] end
  return s.kind == C.MN_BOX and action_spaces.box { low = low, high = high, names = names } or action_spaces.multi_discrete(counts)
end

---The opposite of describe; nothing in a file is believed.
---@return Space? space of several numbers; nil: it is none
function action_spaces.of_description(about)
  if type(about) ~= "table" or about.kind ~= "box" and about.kind ~= "multi_discrete" then return nil end
  local given = about.kind == "box" and { low = about.low, high = about.high, names = about.names } or about.counts
  if about.kind ~= "box" and type(given) == "table" then
    if #given > MOST then return nil end
    given = { names = about.names, unpack(given) }
  end
  local fine, space = pcall(about.kind == "box" and action_spaces.box or action_spaces.multi_discrete, given)
  return fine and space.size == about.size and space or nil
end

function action_spaces.is(x) return getmetatable(x) == Space or getmetatable(x) == Several end

return action_spaces
