-- op_binding.lua -- a Lua function for an op of the engine, made from its signature; and the memory of what ops compute.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local renamed = require "mneme.tensor.renamed_arguments"
local C, check, ctx = engine.C, engine.check, engine.ctx

local handle = ffi.typeof "mn_tensor"

local binding = { noting = nil }       -- noting: called before each op, see op_locations.lua

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
  io.stderr:write(("mneme: warning: %s%.1f GB of computed tensors are kept, because variables hold them or graphs whose backward() was not called; "
    .. "x:item() or x:detach() holds no graph, mn.no_grad(f) makes none\n"):format(where and where .. ": " or "", held / 1e9))
end

-- ---- functions of ops ----

local function read_signature(sig)
  local left, right = sig:match "^(.-)%->(.*)$"
  local outs, opts = right:match "^(.-)|(.*)$"
  local s = { inputs = {}, outputs = {}, options = {}, place = {} }
  for name, mark, axes, domain in left:gmatch "([%w_']+)(%??)%[([^%]]*)%]:?([%w<]*)" do
    s.inputs[#s.inputs + 1] = { name = name, optional = mark == "?", axes = axes, domain = domain }
    s.place[name] = #s.inputs
  end
  for hidden, name, axes, domain in (outs or right):gmatch "(~?)([%w_']+)%[([^%]]*)%]:?([%w<]*)" do
    s.outputs[#s.outputs + 1] = { name = name, no_grad = hidden == "~", axes = axes, domain = domain }
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

---The function of an op.
---@param op integer
---@return string name, function apply, table signature
function binding.bind(op)
  local name = ffi.string(C.mn_op_name(op))
  local s = read_signature(ffi.string(C.mn_op_sig(op)))
  local n_in, n_out, n_needed = #s.inputs, #s.outputs, 0
  for i, a in ipairs(s.inputs) do if not a.optional then n_needed = i end end
  local given, options = ffi.new("mn_tensor[?]", C.MN_INPUTS), ffi.new("double[?]", C.MN_OPTIONS)
  local out = ffi.new("mn_tensor[?]", C.MN_OUTPUTS)
  local todays = renamed.of[name]

  local function put(i, t)
    if not ffi.istype(handle, t) then errors.raise(("%s: %s is %s, expected a tensor"):format(name, s.inputs[i].name, describe(t))) end
    given[i - 1].slot, given[i - 1].gen = t.slot, t.gen
  end
  local function named(args)
    if todays then args = todays(args) end
    for key, value in pairs(args) do
      if s.place[key] then put(s.place[key], value)
      elseif type(key) == "string" and s.options[key] then options[s.options[key] - 1] = option_value(name, s.options[s.options[key]], value)
      else errors.raise(("%s: unknown argument '%s'"):format(name, tostring(key)), { hint = usage(name, s) }) end
    end
  end
  local function handles(n)
    if n == 0 then return end
    local t = handle(out[0].slot, out[0].gen)
    if t.slot < 0 then                                 -- a plan's
      if n == 1 then return t end
      local rest = { t }
      for i = 2, n do rest[i] = handle(out[i - 1].slot, out[i - 1].gen) end
      return unpack(rest, 1, n)
    end
    computed[t.slot] = t
    if n == 1 then
      if C.mn_collect_due(ctx) then collect() end
      return t
    end
    local rest = { t }
    for i = 2, n do
      rest[i] = handle(out[i - 1].slot, out[i - 1].gen)
      computed[rest[i].slot] = rest[i]
    end
    if C.mn_collect_due(ctx) then collect() end
    return unpack(rest, 1, n)
  end
  local function apply(first, ...)
    for i = 0, n_in - 1 do given[i].slot, given[i].gen = 0, 0 end
    for i, o in ipairs(s.options) do options[i - 1] = o.default end
    if type(first) == "table" then
      if select("#", ...) > 0 then errors.raise(name .. ": named arguments go in one table", { hint = usage(name, s) }) end
      named(first)
    else
      local n, next_option = select("#", ...), 1
      put(1, first)
      for i = 1, n do
        local x = select(i, ...)
        local plain = type(x) == "number" or type(x) == "string" or type(x) == "boolean"
        if i == n and type(x) == "table" then named(x)
        elseif plain and i >= n_needed and s.options[next_option] then       -- x:reshape(2, -1), x:sum(0)
          options[next_option - 1] = option_value(name, s.options[next_option], x)
          next_option = next_option + 1
        elseif x ~= nil then
          if i + 1 > n_in then errors.raise(name .. ": too many arguments", { hint = usage(name, s) }) end
          put(i + 1, x)
        end
      end
    end
    if binding.noting then binding.noting() end              -- see op_locations.lua
    check(C.mn_apply(ctx, op, given, options, out))
    return handles(n_out)
  end
  return name, apply, s
end

return binding
