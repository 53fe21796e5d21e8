-- attack_values.lua -- calls functions with everything that they do not expect, one after another; before each call says which, so
-- that a crash names it.  For test_attack.lua, in a process and a folder of its own.
--   luajit attack_values.lua ROOT functions|ops|methods NOTE      NOTE: the file that tells of the last call
local root, part, note = arg[1], arg[2], assert(io.open(arg[3], "w"))
package.path = root .. "lua/?.lua;" .. root .. "lua/?/init.lua;" .. root .. "?.lua;" .. package.path
local ffi = require "ffi"
local mn = require "mneme"
local api = require "mneme.commands.api"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

io.stdout = io.stderr                             -- pages of help are not looked at
local print_result = print
print = function() end                            -- luacheck: ignore

-- ---- what no function expects ----

local ring, named_ring = {}, {}
ring[1] = ring
named_ring.shape, named_ring.name, named_ring.env = named_ring, named_ring, named_ring

local names = { "nil", "true", "NaN", "inf", "-inf", "-1", "0.5", "2^31", "2^53", "1e300", "'text'", "''", "a long text", "{}", "{1,2}",
  "{{1},{2,3}}", "{'x'}", "a ring", "a named ring", "a function", "a thread", "a file", "NULL", "an int64", "a leaf", "a leaf of bytes",
  "a leaf of NaN", "a swept tensor", "a freed leaf" }

-- Anew before each call: some are used up.
local function odd(i)
  local name = names[i]
  if name == "a leaf" then return tensor.new { shape = { 2, 3 }, grad = true }
  elseif name == "a leaf of bytes" then return tensor.new { shape = { 2 }, dtype = "u8" }
  elseif name == "a leaf of NaN" then return tensor.new { 0 / 0, 1 / 0 }
  elseif name == "a swept tensor" then
    local y = tensor.ops.add(tensor.new { 1 }, tensor.new { 2 })
    mn.clear_tape()
    return y
  elseif name == "a freed leaf" then
    local leaf = tensor.new { 1, 2 }
    engine.C.mn_leaf_free(engine.ctx, ffi.gc(leaf, nil))
    return leaf
  end
  local plain = { true, 0 / 0, 1 / 0, -1 / 0, -1, 0.5, 2 ^ 31, 2 ^ 53, 1e300, "text", "", ("x"):rep(1e5), {}, { 1, 2 }, { { 1 }, { 2, 3 } },
    { "x" }, ring, named_ring, function() end, coroutine.create(function() end), io.stderr, ffi.cast("void *", 0), 2LL ^ 62 }
  return plain[i - 1]
end

-- ---- calling ----

local calls, own, faults = 0, 0, {}

local function call(name, f, n, ...)
  calls = calls + 1
  local ok, e = pcall(f, unpack({ ... }, 1, n))
  if not ok and not errors.is(e) then faults[#faults + 1] = ("%s: %s"):format(name, tostring(e):gsub("\n.*", "")) end
  if ok or errors.is(e) then own = own + 1 end
  mn.clear_tape()
end

local function tell(name, what)
  note:seek("set")
  note:write(name, " with ", what, (" "):rep(200), "\n")
  note:flush()
end

local fillers = { 3, "gru", {} }

-- Each argument odd in turn, with others that may be right, by turns; and too few, and too many.  first: an object, or nil.
local function attack(name, f, arity, first)
  local function with(list, n, what)
    tell(name, what)
    if first ~= nil then call(name, f, n + 1, first, unpack(list, 1, n)) else call(name, f, n, unpack(list, 1, n)) end
  end
  for i = 1, #names do
    for place = 1, arity do
      local list, filler = {}, fillers[(i + place) % #fillers + 1]
      for k = 1, arity do list[k] = filler end
      list[place] = odd(i)
      with(list, arity, ("%s as argument %d, %s besides"):format(names[i], place, tostring(filler)))
    end
    local all = {}
    for k = 1, arity + 2 do all[k] = odd(i) end
    for n = i == 1 and 0 or 1, arity + 2 do with(all, n, ("%d times %s"):format(n, names[i])) end
  end
end

local function arity_of(arguments)
  local n = 0
  for _ in arguments:gmatch "[^,%s]+" do n = n + 1 end
  return math.min(n, 4)
end

-- ---- what is called ----


local parts = {}

function parts.functions()
  for _, f in ipairs(api.functions()) do
    local value = mn
    for key in f.name:gmatch "[%w_]+" do if key ~= "mn" then value = value[key] end end
    attack(f.name, value, arity_of(f.arguments))
  end
end

function parts.ops()
  for _, op in ipairs(api.ops()) do
    attack("mn." .. op.name, tensor.ops[op.name], math.min(#op.inputs + 1, 3))
    for _, o in ipairs(op.options) do
      for i = 1, #names do
        local given = { [o.name] = odd(i) }
        for k, input in ipairs(op.inputs) do
          given[input.name] = tensor.new { shape = { 2, 2, 2, 2, 2, 2 }, dtype = "f32" }
          if k > 6 then break end
        end
        tell("mn." .. op.name, ("%s = %s"):format(o.name, names[i]))
        call("mn." .. op.name, tensor.ops[op.name], 1, given)
      end
    end
  end
end

-- Everything that an object answers to, its own and what it inherits.
local function methods_of(object)
  local list, at = {}, getmetatable(object)
  while type(at) == "table" and type(rawget(at, "__index")) == "table" do
    at = at.__index
    for key, value in pairs(at) do
      if type(key) == "string" and type(value) == "function" and not key:find "^__" then list[key] = list[key] or value end
    end
    at = getmetatable(at)
  end
  return list
end

local long = { train = true, act = true }         -- work, as long as asked for

function parts.methods()
  local env = mn.env("tmaze", { corridor = 5, num_envs = 2 })
  env:reset(1)
  local sequences = mn.dataset("mqar", { length = 16, pairs = 2, vocab = 16, batch = 2 })
  local core = mn.core("gru", { d_in = 8, d_model = 8 })
  local w = tensor.new { shape = { 2, 2 }, grad = true }
  local objects = { Env = env, SequenceTask = sequences, Core = core, Module = mn.nn.linear(3, 2),
    Agent = mn.agent { env = env, core = { "gru", d_model = 8 } }, SequenceModel = mn.sequence_model { dataset = sequences, core = core },
    Optimiser = mn.adam { w }, Plan = mn.plan(function() return tensor.ops.add(w, w) end) }
  for _, class in ipairs(tables.keys(objects)) do
    local methods = methods_of(objects[class])
    for _, key in ipairs(tables.keys(methods)) do
      if not long[key] then attack(class .. ":" .. key, methods[key], 2, objects[class]) end
    end
  end
  for _, key in ipairs(tables.keys(mn.Tensor)) do
    if not rawget(tensor.ops, key) and type(mn.Tensor[key]) == "function" then
      for i = 1, #names do
        if tensor.is(odd(i)) then attack(("Tensor:%s of %s"):format(key, names[i]), mn.Tensor[key], 1, odd(i)) end
      end
    end
  end
end

parts[part]()
local peak = tonumber(io.open("/proc/self/status"):read("*a"):match "VmHWM:%s*(%d+)") / 1024
print_result(("%d calls, %d answered, %d faults, %.0f MB"):format(calls, own, #faults, peak))
local seen = {}
for _, fault in ipairs(faults) do
  if not seen[fault] then print_result(fault) end
  seen[fault] = true
end
os.exit(0, false)
