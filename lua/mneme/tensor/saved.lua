-- saved.lua -- mn.save and mn.load: tensors, numbers, texts and booleans, and tables of them, in a safetensors file.  A table of
-- tensors by name is a plain file, which other programs read; what else there is stands in the header, as JSON.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local op_binding = require "mneme.tensor.op_binding"
local trusted_code = require "mneme.base.trusted_code"
local safetensors = require "mneme.tensor.safetensors"
local tensor = require "mneme.tensor.tensor"
local terminal = require "mneme.base.terminal"

local saved = {}

local FORMAT, DEEPEST = "mneme-saved-1", 100

-- ---- texts ----

-- Does JSON give this text back?  Letters of ASCII, and short UTF-8 without a zero; bytes, and long texts, become tensors.
local function is_plain(s)
  if #s > 65536 then return false end
  return not s:find "[^ -~]" or json.decode(json.encode(s)) == s
end

-- Adds a tensor to what is written, `out` = { list, taken = names }; one without a name that a header can have is numbered.
local function add(out, name, t)
  if not name then
    repeat
      name, out.numbered = "bytes:" .. out.numbered, out.numbered + 1
    until not out.taken[name]
  elseif out.taken[name] then errors.raise(("save: two tensors are named '%s'"):format(name)) end
  out.taken[name], out.list[#out.list + 1] = true, { name, t }
  return name
end

-- A text for the header: itself, or { "bytes", name of a u8 tensor }.
local function text_of(s, out)
  if is_plain(s) then return s end
  local t = tensor.new { shape = { #s }, dtype = "u8" }
  ffi.copy(t:data(), s, #s)
  return { "bytes", add(out, nil, t) }
end

local function text_from(d, tensors)
  if type(d) ~= "table" then return type(d) == "string" and d or nil end
  local t = d[1] == "bytes" and tensors[d[2]]
  return t and t:dtype() == "u8" and ffi.string(t:data(), t:size()) or nil
end

-- ---- writing ----

local function sorted_keys(t, path)
  local function odd(key) errors.raise(("save: %s has the key %s, expected texts and whole numbers as keys"):format(path, tostring(key))) end
  local keys = tables.ordered_keys(t, odd)
  for _, key in ipairs(keys) do if type(key) == "number" and (key % 1 ~= 0 or math.abs(key) >= 2 ^ 53) then odd(key) end end
  return keys
end

local special = { [math.huge] = "inf", [-math.huge] = "-inf" }

-- What x is, for the header, and its tensors into `out`: { "tensor", name }, { "table", { { key, ... } ... } } or { "value", x }.
local function described(x, path, out, above)
  if tensor.is(x) then return { "tensor", add(out, path == "" and "tensor" or is_plain(path) and path or nil, x) }
  elseif type(x) == "table" then
    if getmetatable(x) ~= nil then
      errors.raise(("save: %s is an object, expected tensors, numbers, texts, booleans and tables of them"):format(path == "" and "it" or path),
        { hint = "of a module or an optimiser: x:state_dict()" })
    end
    if above[x] or above.depth == DEEPEST then errors.raise(("save: %s holds itself, or is too deep"):format(path == "" and "it" or path)) end
    above[x], above.depth = true, above.depth + 1
    local items = json.array {}
    for i, key in ipairs(sorted_keys(x, path == "" and "it" or path)) do
      local name = type(key) == "string" and key or ("%.0f"):format(key)
      items[i] = { type(key) == "string" and text_of(key, out) or key, described(x[key], path == "" and name or path .. "." .. name, out, above) }
    end
    above[x], above.depth = nil, above.depth - 1
    return { "table", items }
  elseif type(x) == "number" then return { "number", special[x] or x ~= x and "nan" or x }
  elseif type(x) == "string" then return { "string", text_of(x, out) }
  elseif type(x) == "boolean" then return { "boolean", x } end
  errors.raise(("save: %s is a %s, expected tensors, numbers, texts, booleans and tables of them"):format(path == "" and "it" or path, type(x)))
end

---Write tensors to a file, which appears whole or not at all.  A table of tensors by name, such as net:state_dict(), is a safetensors file
---like any other; tables in tables, and numbers, texts of any bytes and booleans next to tensors, are kept as well, and mn.load gives back the
---same; anything else is refused.  Texts that are not short UTF-8 are in the file as u8 tensors bytes:0, bytes:1 ...
---@param path string of the file, "net.safetensors"
---@param x Tensor|table tensors, numbers, texts, booleans, and tables of them by texts or whole numbers
function saved.save(path, x)
  if type(path) == "string" then trusted_code.note_written(path) end
  if type(path) ~= "string" then errors.raise(("save: the path is %s, expected a text"):format(op_binding.describe(path))) end
  local out = { list = {}, taken = {}, numbered = 0 }
  local tree = described(x, "", out, { depth = 0 })
  safetensors.write(path, out.list, { format = FORMAT, tree = json.encode(tree) })
end

-- ---- reading ----

local numbers = { inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 }

-- The value that a description in a header stands for; nil: it is damaged.
local function value_of(d, tensors, depth)
  if type(d) ~= "table" or depth > DEEPEST then return nil end
  local kind, what = d[1], d[2]
  if kind == "tensor" then return tensors[what]
  elseif kind == "number" then
    if type(what) == "string" then return numbers[what] end
    return type(what) == "number" and what or nil
  elseif kind == "string" then return text_from(what, tensors)
  elseif kind == "boolean" then
    if type(what) == kind then return what end
  elseif kind == "table" and type(what) == "table" then
    local t = {}
    for _, item in ipairs(what) do
      local key, value = nil, nil
      if type(item) == "table" then key, value = item[1], value_of(item[2], tensors, depth + 1) end
      if type(key) ~= "number" then key = text_from(key, tensors) end
      if value == nil or key == nil or key ~= key then return nil end
      t[key] = value
    end
    return t
  end
end

---Read what mn.save wrote, or the tensors by name of any safetensors file.  Nothing in a file is run.  F32, I32 and U8 are read as they are;
---F16, BF16 and F64 become f32, BOOL u8, and other integers i32, where that is exact.  What has no such tensor (other types, values that do not
---fit, empty ones, more than six axes) is left out with a warning.
---@param path string
---@return Tensor|table
---@return table<string, string> skipped names of what was left out, and why
function saved.load(path)
  if type(path) ~= "string" then errors.raise(("load: the path is %s, expected a text"):format(op_binding.describe(path))) end
  local file = safetensors.load(trusted_code.note_data(path))
  local warning = safetensors.warning(path, file.skipped)
  if warning then terminal.note(warning) end
  if file.metadata.format ~= FORMAT then return file.tensors, file.skipped end
  local tree, problem = json.decode(file.metadata.tree or "", path .. ": tree")
  if problem then errors.raise(problem) end
  local x = value_of(tree, file.tensors, 0)
  if x == nil then errors.raise(path .. ": damaged: its tree does not fit its tensors") end
  return x, file.skipped
end

return saved
