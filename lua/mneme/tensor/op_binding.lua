-- op_binding.lua -- a Lua function for an op of the engine, made from its signature; and the memory of what ops compute.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local terminal = require "mneme.base.terminal"
local tables = require "mneme.base.tables"
local lazy = require "mneme.base.lazy"
local torch_names = lazy "mneme.tensor.torch_names"
local C, check, ctx = engine.C, engine.check, engine.ctx

local handle = ffi.typeof "mn_tensor"

local binding = { noting = nil, tracing = nil }      -- called before each op, see op_locations.lua; after it, see portable/step_graph.lua

---A value in words, for errors.
local function describe(x)
  if ffi.istype(handle, x) then
    local ok, shape = pcall(x.shape, x)
    return ok and "a tensor [" .. table.concat(shape, ",") .. "]" or "a tensor that is gone"
  end
  return type(x) == "string" and '"' .. x .. '"' or tostring(x)
end
binding.describe = describe

-- ---- memory of computed tensors ----

-- Handles of computed tensors by slot.  Those that the collector has left are what a script still holds.
local computed = setmetatable({}, { __mode = "v" })
local HELD = 1e9                   -- bytes that a script may hold before it is told
local warned = false

-- Free the computed tensors, and their graphs, that the script does not hold any more.
local function collect()
  collectgarbage()
  local list = {}
  for slot, t in pairs(computed) do
    if t.slot == slot then list[#list + 1] = t end
  end
  local alive = ffi.new("mn_tensor[?]", #list + 1)
  for i, t in ipairs(list) do alive[i - 1].slot, alive[i - 1].gen = t.slot, t.gen end
  check(C.mn_collect(ctx, #list, alive))
  for slot in pairs(computed) do computed[slot] = nil end
  for i, t in ipairs(list) do
    if alive[i - 1].gen ~= 0 then
      t.slot = alive[i - 1].slot
      computed[t.slot] = t
    end
  end
  local held = C.mn_bytes(ctx, "arena")
  if warned or held < HELD then return end
  warned = true
  local where = errors.position()
  terminal.note(("mneme: warning: %s%.1f GB of computed tensors are kept, because variables hold them or graphs whose backward() was not called; "
    .. "x:item() or x:detach() holds no graph, mn.no_grad(f) makes none"):format(where and where .. ": " or "", held / 1e9))
end

-- A new handle of a computed tensor; of one of a plan's, which stays (slot < 0), nothing is noted.
local function hold(t)
  local held = handle(t.slot, t.gen)
  if held.slot >= 0 then computed[held.slot] = held end
  return held
end

---Free at once what no variable holds, memory of C included.
function binding.free() collectgarbage() collectgarbage() end

-- The collector does not see C memory: prod it when plans have doubled.
local plans, most_plans = 0, 16

local function free_plan(p)
  plans = plans - 1
  C.mn_plan_free(p)
end

---A new plan of the engine, which the collector frees.
---@return ffi.cdata* mn_plan *
function binding.plan_handle()
  if plans >= most_plans then
    binding.free()
    most_plans = math.max(16, 2 * plans)
  end
  local new = check(C.mn_plan_new(ctx))
  plans = plans + 1
  return ffi.gc(new, free_plan)
end

-- ---- bodies: what Lua records once and the engine runs within an op, a recurrence or a way back ----

local recent, at, RECENT = {}, 0, 256                        -- entries that graphs outside of plans may still need

---Record ops into a new plan, which an op then runs by its number.
---@param begin fun(plan: ffi.cdata*): integer of the engine
---@param f fun(entry: table) applies the ops
---@return table entry { plan, id, version, bodies = of recurrences inside of it }
function binding.record_body(begin, f)
  local entry, before, id = { plan = binding.plan_handle(), bodies = {} }, engine.recording, ffi.new "int[1]"
  check(begin(entry.plan))
  engine.recording = entry.bodies
  local ok, problem = pcall(f, entry)
  engine.recording = before
  local ended = C.mn_plan_end(entry.plan)
  if not ok then error(problem, 0) end
  check(ended)
  entry.version = C.mn_plan_version(entry.plan, id)
  entry.id = id[0]
  return entry
end

---An entry of record_body is used now: the plan that records keeps it, else it stays while it is one of the last.
function binding.keep_body(entry)
  if engine.recording then
    engine.recording[entry], engine.recording.draws = true, engine.recording.draws or entry.bodies.draws
  elseif recent[at] ~= entry then
    at = at % RECENT + 1
    recent[at] = entry
  end
end

---An axis of n, counted from 0; nil: the default.
function binding.axis_of(name, axis, n, default, what)
  if axis == nil then axis = default end
  if type(axis) ~= "number" or axis % 1 ~= 0 or axis < -n or axis >= n then
    errors.raise(("%s: %s is %s, %s"):format(name, what or "axis", binding.describe(axis),
      n == 0 and "and x has no axis: it is one number" or ("expected a whole number from %d to %d"):format(-n, n - 1)))
  end
  return axis < 0 and axis + n or axis
end

-- ---- numbers in place of tensors ----

local type_buffer, shape_buffer = ffi.new "int[1]", ffi.new("int[?]", C.MN_AXES)
local types = {
  [C.MN_F32] = { name = "f32", pointer = ffi.typeof "float *" },
  [C.MN_I32] = { name = "i32", pointer = ffi.typeof "int32_t *", lowest = -2 ^ 31, highest = 2 ^ 31 - 1 },
  [C.MN_U8] = { name = "u8", pointer = ffi.typeof "uint8_t *", lowest = 0, highest = 255 },
}
for _, t in pairs(types) do t.leaves = setmetatable({}, { __mode = "v" }) end
binding.types = types

local function free_leaf(t) C.mn_leaf_free(ctx, t) end
---A handle of a leaf, whose memory goes with it.
function binding.owned(leaf) return ffi.gc(leaf, free_leaf) end

-- A leaf without axes that holds a number: the same for every call with that number, until the collector takes it.
local function constant(value, dtype)
  local t = types[dtype]
  local leaf = t.leaves[value]
  if leaf then return leaf end
  leaf = handle()
  check(C.mn_leaf_new(ctx, dtype, 0, shape_buffer, false, leaf))
  binding.owned(leaf)
  ffi.cast(t.pointer, check(C.mn_tensor_data(ctx, leaf)))[0] = value
  if value == value then t.leaves[value] = leaf end
  return leaf
end

-- ---- functions of ops ----

local function read_signature(sig)
  local left, right = sig:match "^(.-)%->(.*)$"
  local outs, opts = right:match "^(.-)|(.*)$"
  local s = { inputs = {}, outputs = {}, options = {}, place = {} }
  for hidden, name, mark, axes, domain in left:gmatch "(~?)([%w_']+)(%??)%[([^%]]*)%]:?([%w<]*)" do
    s.inputs[#s.inputs + 1] = { name = name, no_grad = hidden ~= "", optional = mark == "?", axes = axes, domain = domain }
    s.place[name] = #s.inputs
  end
  for hidden, name, axes, domain in (outs or right):gmatch "(~*)([%w_']+)%[([^%]]*)%]:?([%w<]*)" do
    s.outputs[#s.outputs + 1] = { name = name, no_grad = hidden ~= "", work_space = hidden == "~~", axes = axes, domain = domain }
  end
  for name, value in (opts or ""):gmatch "([%w_]+)=(%S+)" do
    local o = { name = name, default = tonumber(value), words = nil }
    if not o.default then
      o.default, o.words = 0, {}
      for word in value:gmatch "[^|]+" do o.words[#o.words + 1] = word end
    end
    s.options[#s.options + 1] = o
    s.options[name] = #s.options
  end
  return s
end

local function usage(name, s)
  local parts = {}
  for _, a in ipairs(s.inputs) do parts[#parts + 1] = a.name .. (a.optional and "?" or "") end
  for _, o in ipairs(s.options) do parts[#parts + 1] = o.name .. "=" .. (o.words and table.concat(o.words, "|") or tostring(o.default)) end
  return name .. "{ " .. table.concat(parts, ", ") .. " }"
end

local function option_value(name, o, value)
  if o.words then
    for i, word in ipairs(o.words) do if word == value then return i - 1 end end
    errors.raise(("%s: %s = %s, expected one of %s"):format(name, o.name, describe(value), table.concat(o.words, ", ")))
  end
  if type(value) == "boolean" then return value and 1 or 0 end
  if type(value) ~= "number" or value ~= value then errors.raise(("%s: %s = %s, expected a number"):format(name, o.name, describe(value))) end
  return value
end

---The function of an op.  It has no loops where most calls pass: LuaJIT gives up on short loops that many traces enter, and with
---them on every trace that calls an op.
---@return string name, function apply, table signature
function binding.bind(op)
  local name = ffi.string(C.mn_op_name(op))
  local s = read_signature(ffi.string(C.mn_op_sig(op)))
  local n_in, n_out, n_options, n_needed = #s.inputs, #s.outputs, #s.options, 0
  for i, a in ipairs(s.inputs) do if not a.optional then n_needed = i end end
  local given, options, defaults = ffi.new("mn_tensor[?]", C.MN_INPUTS), ffi.new("double[?]", C.MN_OPTIONS), ffi.new("double[?]", C.MN_OPTIONS)
  local out = ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  for i, o in ipairs(s.options) do defaults[i - 1] = o.default end
  local given_bytes, options_bytes = n_in * ffi.sizeof(handle), n_options * ffi.sizeof "double"

  -- Numbers in place of tensors, by input; then their leaves, which must last as long as the call.
  local broadcasts, n_numbers, numbers = C.mn_op_broadcasts(op), 0, {}
  -- The type that an input has if it is a number; nil: that of the tensors beside it.
  local type_of_number, any = {}, {}
  for i, a in ipairs(s.inputs) do
    if a.domain == "any" then any[#any + 1] = i
    else type_of_number[i] = a.domain == "bit" and C.MN_U8 or C.MN_F32 end
  end

  local function put(i, t)
    if type(t) == "number" and broadcasts then numbers[i], n_numbers = t, n_numbers + 1 return end
    if not ffi.istype(handle, t) then errors.raise(("%s: %s is %s, expected a tensor"):format(name, s.inputs[i].name, describe(t))) end
    given[i - 1] = t
  end
  local function type_beside(i)
    local k = any[1] ~= i and any[1] or any[2]
    if not k or given[k - 1].gen == 0 then return C.MN_F32 end
    check(C.mn_tensor_info(ctx, given + (k - 1), type_buffer, shape_buffer))
    return type_buffer[0]
  end
  local function put_number(i)
    local value = numbers[i]
    if not value then return end
    local dtype = type_of_number[i] or type_beside(i)
    local t = types[dtype]
    if dtype ~= C.MN_F32 and not (value % 1 == 0 and value >= t.lowest and value <= t.highest) then
      errors.raise(("%s: %s is %.16g, which %s does not hold"):format(name, s.inputs[i].name, value, t.name))
    end
    local leaf = constant(value, dtype)
    numbers[i], given[i - 1] = leaf, leaf
  end

  local function named(args)
    for key, value in pairs(args) do
      if key == "keepdims" and s.options.keepdim then key = "keepdim" end          -- numpy's word
      if s.place[key] then put(s.place[key], value)
      elseif type(key) == "string" and s.options[key] then options[s.options[key] - 1] = option_value(name, s.options[s.options[key]], value)
      else errors.raise(("%s: unknown argument '%s'"):format(name, tostring(key)), { hint = usage(name, s) }) end
    end
  end
  -- The options of a list, where the first is called d0 or a0: sizes or axes.
  local function listed(list)
    for i = 1, #list do
      if not s.options[i] then errors.raise(("%s: a list of %d, expected at most %d"):format(name, #list, #s.options)) end
      options[i - 1] = option_value(name, s.options[i], list[i])
    end
  end
  local takes_list = s.options[1] and s.options[1].name:find "^%l0$" ~= nil

  -- Argument i after the first; `last`: none follows.
  local next_option
  local function give(i, x, last)
    local kind = type(x)
    if kind == "table" and last then
      if takes_list and #x > 0 then listed(x) else named(x) end
    elseif (kind == "number" or kind == "string" or kind == "boolean") and i >= n_needed and s.options[next_option] then
      options[next_option - 1] = option_value(name, s.options[next_option], x)       -- x:reshape(2, -1), x:sum(0)
      next_option = next_option + 1
    elseif x == nil then
      if i >= n_in then next_option = next_option + 1 end                            -- x:sum(nil, true)
    else
      if i + 1 > n_in then errors.raise(name .. ": too many arguments", { hint = usage(name, s) }) end
      put(i + 1, x)
    end
  end
  local function give_all(...)
    local n = select("#", ...)
    for i = 1, n do give(i, (select(i, ...)), i == n) end
  end

  local function handles()
    if n_out == 0 then return end
    local t = hold(out[0])
    if n_out == 1 then
      if C.mn_collect_due(ctx) then collect() end
      return t
    elseif n_out == 2 then
      local second = hold(out[1])
      if C.mn_collect_due(ctx) then collect() end
      return t, second
    end
    local all = { t }
    for i = 2, n_out do all[i] = hold(out[i - 1]) end
    if C.mn_collect_due(ctx) then collect() end
    return unpack(all, 1, n_out)
  end

  local function apply(first, a, b, c, ...)
    ffi.fill(given, given_bytes)
    ffi.copy(options, defaults, options_bytes)
    if n_numbers > 0 then numbers[1], numbers[2], numbers[3], n_numbers = nil, nil, nil, 0 end      -- of the call before
    local more = select("#", ...) > 0
    if type(first) == "table" then
      if more or a ~= nil or b ~= nil or c ~= nil then
        errors.raise(name .. ": named arguments go in one table", { hint = name == "concat" and "mn.cat(list, axis) joins a list" or usage(name, s) })
      end
      named(first)
    else
      next_option = 1
      put(1, first)
      if more then give_all(a, b, c, ...)
      elseif c ~= nil then
        give(1, a, false)
        give(2, b, false)
        give(3, c, true)
      elseif b ~= nil then
        give(1, a, false)
        give(2, b, true)
      elseif a ~= nil then give(1, a, true) end
    end
    if n_numbers > 0 then
      put_number(1)
      put_number(2)
      put_number(3)
    end
    if binding.noting then binding.noting(s, given) end      -- see op_locations.lua, costs.counted
    check(C.mn_apply(ctx, op, given, options, out))
    if binding.tracing then binding.tracing(name, s, given, options, out) end
    return handles()
  end
  return name, apply, s
end

-- What an unknown name of mn, mn.nn or a tensor is answered with: what to write for a name of PyTorch (torch_names.lua),
-- else the nearest names.
local suggest = {}

local MOST = 10
-- The members of a table that have most pairs of letters in common with a name.
local function members(name, known)
  local list, rank = {}, {}
  for i, other in ipairs(known) do
    list[i], rank[other] = other, 0
    for k = 1, #name - 1 do if other:lower():find(name:sub(k, k + 1):lower(), 1, true) then rank[other] = rank[other] + 1 end end
  end
  table.sort(list, function(a, b) if rank[a] ~= rank[b] then return rank[a] > rank[b] end return a < b end)
  return ("known: %s%s"):format(table.concat(list, " ", 1, math.min(MOST, #list)), #list > MOST and (", %d more"):format(#list - MOST) or "")
end

---Raise the error for an unknown name.
---@param whose string "mn.", "mn.nn." or "x:", which stands before the name
---@param list table<string, table> of torch_names.lua
---@param known string[] the names that there are
function suggest.unknown(whose, name, list, known)
  name = tostring(name)
  local entry = list[name]
  if entry and entry[1] then errors.usage(("there is no %s%s; write %s"):format(whose, name, entry[1]), entry[2]) end
  if entry then errors.usage(("there is no %s%s; %s"):format(whose, name, entry[2])) end
  local near = errors.closest(name, known, 3)
  for i, other in ipairs(near) do near[i] = ("'%s%s'"):format(whose == "x:" and "" or whose, other) end
  local last = table.remove(near)
  local guess = last and ("; did you mean %s?"):format(#near > 0 and table.concat(near, ", ") .. " or " .. last or last) or ""
  local what = whose == "x:" and "method or op '" or "name '" .. whose
  local where = whose:find "^mn%.%w" and whose ~= "mn.ops." and members(name, known) or "mneme list ops, mneme help api"
  errors.usage(("unknown %s%s'%s"):format(what, name, guess), not last and where or nil)
end

---Give a table of public functions an error for every name that it does not have: nil would be a default somewhere.
---@param whose string "mn.nn."
---@param t table whose metatable, if it has one, stays
---@param list table<string, table>? of torch_names.lua
---@return table t
function suggest.guard(whose, t, list)
  local meta = getmetatable(t) or {}
  meta.guarded, meta.__index = true, function(_, key) suggest.unknown(whose, key, list or {}, tables.keys(t)) end
  return setmetatable(t, meta)
end

for _, names in ipairs { "functions", "nn", "init" } do
  suggest[names] = setmetatable({}, { __index = function(_, name) return torch_names[names][name] end })
end

binding.suggest = suggest

return binding
