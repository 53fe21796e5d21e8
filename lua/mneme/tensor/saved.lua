-- saved.lua -- mn.save and mn.load: a tensor, or tables of tensors, numbers, texts and booleans, in a safetensors file.  A table of
-- tensors by name is a plain file, which other programs read; what else there is stands in the header, as JSON.
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local binding = require "mneme.tensor.op_binding"
local source_files = require "mneme.base.source_files"
local safetensors = require "mneme.tensor.safetensors"
local tensor = require "mneme.tensor.tensor"

local saved = {}

local FORMAT, DEEPEST = "mneme-saved-1", 100

-- ---- writing ----

local function sorted_keys(t, path)
  local keys = {}
  for key in pairs(t) do
    local fine = type(key) == "string" or type(key) == "number" and key % 1 == 0 and math.abs(key) < 2 ^ 53
    if not fine then errors.raise(("save: %s has the key %s, expected texts and whole numbers as keys"):format(path, tostring(key))) end
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  return keys
end

local special = { [math.huge] = "inf", [-math.huge] = "-inf" }

-- What x is, for the header, and its tensors into `list`: { "tensor", name }, { "table", { { key, ... } ... } } or { "value", x }.
local function described(x, path, list, above)
  if tensor.is(x) then
    local name = path == "" and "tensor" or path
    if list[name] then errors.raise(("save: two tensors are named '%s'"):format(name)) end
    list[name], list[#list + 1] = true, { name, x }
    return { "tensor", name }
  elseif type(x) == "table" then
    if getmetatable(x) ~= nil then
      errors.raise(("save: %s is an object, expected tensors, numbers, texts, booleans and tables of them"):format(path == "" and "it" or path),
        { hint = "of a module or an optimiser: x:state_dict()" })
    end
    if above[x] or above.depth == DEEPEST then errors.raise(("save: %s holds itself, or is too deep"):format(path == "" and "it" or path)) end
    above[x], above.depth = true, above.depth + 1
    local items = json.array {}
    for i, key in ipairs(sorted_keys(x, path == "" and "it" or path)) do
      items[i] = { key, described(x[key], path == "" and tostring(key) or path .. "." .. tostring(key), list, above) }
    end
    above[x], above.depth = nil, above.depth - 1
    return { "table", items }
  elseif type(x) == "number" then return { "number", special[x] or x ~= x and "nan" or x }
  elseif type(x) == "string" or type(x) == "boolean" then return { type(x), x } end
  errors.raise(("save: %s is a %s, expected tensors, numbers, texts, booleans and tables of them"):format(path == "" and "it" or path, type(x)))
end

---Write tensors to a file, which appears whole or not at all.  A table of tensors by name, such as net:state_dict(), is a safetensors file
---like any other; tables in tables, and numbers, texts and booleans next to tensors, are kept as well.
---@param path string of the file, "net.safetensors"
---@param x Tensor|table tensors, numbers, texts, booleans, and tables of them by texts or whole numbers
function saved.save(path, x)
  if type(path) == "string" then source_files.note_written(path) end
  if type(path) ~= "string" then errors.raise(("save: the path is %s, expected a text"):format(binding.describe(path))) end
  local list = {}
  local tree = described(x, "", list, { depth = 0 })
  if #list == 0 then errors.raise "save: there is no tensor in it" end
  safetensors.write(path, list, { format = FORMAT, tree = json.encode(tree) })
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
  elseif kind == "string" or kind == "boolean" then
    if type(what) == kind then return what end
  elseif kind == "table" and type(what) == "table" then
    local t = {}
    for _, item in ipairs(what) do
      local key, value = nil, nil
      if type(item) == "table" then key, value = item[1], value_of(item[2], tensors, depth + 1) end
      if value == nil or type(key) ~= "string" and type(key) ~= "number" or key ~= key then return nil end
      t[key] = value
    end
    return t
  end
end

---Read what mn.save wrote, or the tensors by name of any safetensors file.  Nothing in a file is run.
---@param path string
---@return Tensor|table
function saved.load(path)
  if type(path) ~= "string" then errors.raise(("load: the path is %s, expected a text"):format(binding.describe(path))) end
  source_files.note_data(path)
  local file = safetensors.load(source_files.data_at(path))
  if file.metadata.format ~= FORMAT then return file.tensors end
  local tree, problem = json.decode(file.metadata.tree or "", path .. ": tree")
  if problem then errors.raise(problem) end
  local x = value_of(tree, file.tensors, 0)
  if x == nil then errors.raise(path .. ": damaged: its tree does not fit its tensors") end
  return x
end

return saved
