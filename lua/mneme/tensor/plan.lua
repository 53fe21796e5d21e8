-- plan.lua -- records a Lua function once and then replays it by one C call, on the same buffers.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local op_binding = require "mneme.tensor.op_binding"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local C, ctx, check, sorted = engine.C, engine.ctx, engine.check, tables.ordered_keys

---@class Plan
---@field by_rows boolean? only rows() will run it: its first call leaves to them what they compute
local Plan = {}
Plan.__index = Plan

-- Can x stand for what was recorded?  A recorded argument that is gone (its plan was recorded again) fits nothing.
local shape, other, dtype = ffi.new("int[?]", C.MN_AXES), ffi.new("int[?]", C.MN_AXES), ffi.new "int[2]"
local function same_shape(x, recorded)
  local n = check(C.mn_tensor_info(ctx, x, dtype, shape))
  if C.mn_tensor_info(ctx, recorded, dtype + 1, other) ~= n or dtype[0] ~= dtype[1] then return false end
  for i = 0, n - 1 do if shape[i] ~= other[i] then return false end end
  return true
end

-- Tensors among the arguments, tables of them included, in a fixed order; and what else was given, constants and
-- keys: where that changes, it is another call.
local function collect(into, constants, ...)
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if tensor.is(x) then into[#into + 1] = x
    elseif type(x) == "table" then
      for _, key in ipairs(sorted(x)) do
        constants[#constants + 1] = key
        collect(into, constants, x[key])
      end
    else constants[#constants + 1] = x == nil and "nil" or x end
  end
  return into, constants
end

-- The arguments with the plan's own leaves in the places that it has, by number in collect's order.
local function with_own(own, at, x)
  if tensor.is(x) then
    at.n = at.n + 1
    return own[at.n] or x, at
  elseif type(x) ~= "table" then return x, at end
  local t = {}
  for _, key in ipairs(sorted(x)) do t[key] = with_own(own, at, x[key]) end
  return t, at
end

local function drawn_once()
  errors.raise("plan: math.random would be drawn once, while ops are recorded, and be the same in every replay", { hint = "mn.rand(1) is drawn again" })
end

local function packed(...) return { n = select("#", ...), ... } end

local function record(self, own, ...)
  local given, at = packed(...), { n = 0 }
  for i = 1, given.n do given[i] = with_own(own, at, given[i]) end
  self.own, self.args, self.constants = own, collect({}, {}, unpack(given, 1, given.n))
  for _, t in ipairs(self.args) do
    if t.slot >= 0 then errors.raise "plan: its arguments must be leaves; mn.keep() makes one of a computed tensor" end
  end
  self.recorded = false
  check(C.mn_plan_begin(self.handle))
  if self.by_rows then C.mn_plan_later(self.handle) end
  self.bodies = {}                                 -- of recurrences that it runs: see recur.lua
  engine.recording = self.bodies
  local random = math.random
  rawset(math, "random", drawn_once)
  local function finish(ok, ...)
    engine.recording = false
    rawset(math, "random", random)
    local ended = C.mn_plan_end(self.handle)
    if not ok then error((...), 0) end
    check(ended)
    self.recorded, self.results = true, packed(...)
    return ...
  end
  local result
  local function call() result = packed(pcall(self.f, unpack(given, 1, given.n))) end
  string.gsub(" ", " ", call)                      -- called from C, it cannot yield, which would leave this open
  return finish(unpack(result, 1, result.n))
end

-- Is t another tensor than the recorded one?
local function differs(t, mine) return t.slot ~= mine.slot or t.gen ~= mine.gen end

---Run it.  The first call records, other shapes or constants record again, and all else replays.  The leaves of
---the first call are used as they are, so that what is written into them is seen by run() and rows().  When
---another leaf is given in place of one, the plan records once more with a leaf of its own, into which all
---that follow are copied.  Between recordings, results are the same tensors every time.
---@param ... any tensors, tables of tensors and constants: the arguments of its function
---@return any ... what its function returns
function Plan:__call(...)
  if not self.recorded then return record(self, {}, ...) end
  local args, constants = collect({}, {}, ...)
  local fits, own, more = #args == #self.args and #constants == #self.constants, self.own, false
  for i = 1, fits and #constants or 0 do fits = fits and constants[i] == self.constants[i] end
  for i = 1, fits and #args or 0 do
    local mine = self.args[i]
    fits = fits and (not differs(args[i], mine) or same_shape(args[i], mine) and not mine:wants_grad())
  end
  if not fits then return record(self, {}, ...) end
  for i, t in ipairs(args) do
    local mine = self.args[i]
    if differs(t, mine) then
      if not own[i] then own[i], more = tensor.like(mine), true end
      own[i]:copy(t)
    end
  end
  if more then return record(self, own, ...) end
  check(C.mn_plan_run(self.handle, 0, -1))
  return unpack(self.results, 1, self.results.n)
end

---Replay as it stands, without looking at arguments: no Lua, no garbage.
function Plan:run()
  if not self.recorded then errors.raise "plan: nothing was recorded: call it first" end
  if C.mn_plan_run(self.handle, 0, -1) ~= 0 then check(-1) end
end

---Replay only rows t0 .. t1-1 of time (counted from 0).  Its sequences are leaves made with time = true;
---recurrent ops go on from where row t0-1 left them.
---@param t0 integer first row
---@param t1 integer one past the last
function Plan:rows(t0, t1)
  if not self.recorded then errors.raise "plan: nothing was recorded: call it first" end
  if type(t0) ~= "number" or type(t1) ~= "number" then
    errors.raise(("plan:rows(%s, %s), expected the first row and one past the last"):format(tostring(t0), tostring(t1)))
  end
  if C.mn_plan_run(self.handle, t0, t1) ~= 0 then check(-1) end
end

---Leaves become the final states of the rows that ran: in place of a copy an op writes over what they were, where it can.  Rows begin
---again, and until they do the final states have no values.
---@param from table<string, Tensor> final states that the plan returned
---@param to table<string, Tensor> leaves by the same names
function Plan:carry(from, to)
  if not self.recorded then errors.raise "plan: nothing was recorded: call it first" end
  for i, what in ipairs { "from", "to" } do
    local states = ({ from, to })[i]
    errors.need("plan:carry: " .. what, states, nil, "tensors by name")
    for name in pairs(from) do
      if not tensor.is(states[name]) then errors.raise(("plan:carry: %s.%s is %s, expected a tensor"):format(what, name, tables.in_words(states[name]))) end
    end
  end
  local names = sorted(from)
  local finals, leaves = ffi.new("mn_tensor[?]", #names), ffi.new("mn_tensor[?]", #names)
  for i, name in ipairs(names) do finals[i - 1], leaves[i - 1] = from[name], to[name] end
  check(C.mn_plan_carry(self.handle, #names, finals, leaves))
end

-- What has none would end the process.
local function handle_of(self) return self.handle or errors.raise "plan: this is no plan" end

---The first op whose numbers are not finite, as text, or nil: what of it, its inputs' shapes and ranges and, where
---debug=nan has noted it, the line of its forward call.
---@return string?
function Plan:find_nan()
  local place = ffi.new "int[1]"
  local found = C.mn_plan_find_nan(handle_of(self), place)
  if found == nil then return nil end
  local where = require("mneme.tensor.op_locations").text(place[0])
  return ffi.string(found) .. (where and "; " .. where or "")
end

---Seconds spent so far in each of its calls; profiling starts at the first use.
---@return { name: string, seconds: number, place: integer }[] place: see tensor/op_locations.lua
function Plan:costs()
  C.mn_plan_set_profile(handle_of(self), true)
  local list, seconds = {}, ffi.new "double[1]"
  for i = 0, C.mn_plan_calls(self.handle) - 1 do
    list[i + 1] = { name = ffi.string(C.mn_plan_profile(self.handle, i, seconds)), seconds = seconds[0], place = C.mn_plan_place(self.handle, i) }
  end
  return list
end

---Seconds spent so far in each kind of call, by name; profiling starts at the first use.
---@return table<string, number>
function Plan:profile()
  local total = {}
  for _, call in ipairs(self:costs()) do total[call.name] = (total[call.name] or 0) + call.seconds end
  return total
end

---A plan of f: its first call records the ops of f, later ones run them again on the same buffers while shapes stay.
---@param f function over tensors, tables of tensors and constants
---@return Plan
local function plan(f)
  if type(f) ~= "function" then errors.raise("plan: " .. tostring(f) .. ", expected a function") end
  return setmetatable({ f = f, handle = op_binding.plan_handle(), recorded = false }, Plan)
end

return plan
