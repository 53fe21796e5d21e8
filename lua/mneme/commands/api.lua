-- api.lua -- everything that a script may call: arguments and comments read from the sources of the functions, and the
-- signatures of ops.  As a page (`mneme help api`), and as annotations with which an editor completes `mn.`
-- (`mneme help annotations`, for lua-language-server).
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"

local api = {}

-- ---- reading source files ----

local sources = {}

local function source(path)
  if not sources[path] then
    local lines = {}
    for line in io.lines(path) do lines[#lines + 1] = line end
    sources[path] = lines
  end
  return sources[path]
end

-- The lines right above a line that begin with ---, without the dashes.
local function comment_above(lines, at)
  local first = at
  while first > 1 and lines[first - 1]:find "^%s*%-%-%-" do first = first - 1 end
  local comment = {}
  for i = first, at - 1 do comment[#comment + 1] = lines[i]:match "^%s*%-%-%- ?(.*)" end
  return comment
end

-- A function's own line and the comment above it, or nil if it is not written in Lua.
local function definition(f)
  local info = debug.getinfo(f, "S")
  local path = info.source:match "^@(.*)"
  if not path or info.linedefined < 1 then return nil end
  local lines = source(path)
  local arguments = lines[info.linedefined]:match "function%s*[%w_.:]*%s*%((.-)%)"
  return { arguments = arguments or "...", comment = comment_above(lines, info.linedefined), path = path, line = info.linedefined }
end

-- The classes that a file declares: { name, parent, doc, fields, methods = { name, arguments, comment } }.
local function classes_of(path)
  local list, lines = {}, source(path)
  for i, line in ipairs(lines) do
    local name, rest = line:match "^%-%-%-@class ([%w_]+)(.*)"
    if name then
      local parent, doc = rest:match "^:%s*([%w_]+)%s*(.*)"
      local class = { name = name, parent = parent, doc = doc or rest:gsub("^%s+", ""), fields = {}, methods = {} }
      local at = i + 1
      while lines[at] and lines[at]:find "^%-%-%-@field" do
        class.fields[#class.fields + 1] = lines[at]:match "^%-%-%-(.*)"
        at = at + 1
      end
      local holder = lines[at] and lines[at]:match "^local ([%w_]+) ="
      for k = at, holder and #lines or 0 do
        local method, arguments = lines[k]:match("^function " .. holder .. ":([%w_]+)%((.-)%)")
        if method and not method:find "^__" then
          class.methods[#class.methods + 1] = { name = method, arguments = arguments, comment = comment_above(lines, k) }
        end
      end
      list[#list + 1] = class
    end
  end
  return list
end

-- ---- what there is ----

---Every public function: name as a script writes it ("mn.env", "mn.stats.iqm"), its arguments, the lines of its
---comment, its file and line.  Ops are listed by api.ops.
---@return { name: string, arguments: string, comment: string[], path: string, line: integer }[]
function api.functions()
  local mn, list = require "mneme", {}
  local function add(name, value)
    if type(value) == "function" then
      local entry = definition(value)
      if entry then entry.name, list[#list + 1] = name, entry end
    elseif type(value) == "table" then
      local meta = getmetatable(value)
      if meta and not (meta.called or meta.group or meta.guarded) then return end                            -- an object
      if meta and meta.called then add(name, meta.called) end
      for _, key in ipairs(tables.keys(value)) do
        if type(value[key]) == "function" or meta and meta.group then add(name .. "." .. key, value[key]) end
      end
    end
  end
  for _, name in ipairs(mn.names()) do
    if name ~= "Tensor" then add("mn." .. name, mn[name]) end                                -- a class: below
  end
  return list
end

---Every class whose objects a script may hold, with its parents.
---@return { name: string, parent: string?, doc: string, fields: string[], methods: table[] }[]
function api.classes()
  local known, wanted, list = {}, {}, {}
  local function read(folder)
    for _, name in ipairs(files.list(folder)) do
      local path = folder .. "/" .. name
      if files.is_folder(path) then read(path) end
      for _, class in ipairs(name:find "%.lua$" and classes_of(path) or {}) do
        class.path = path
        known[class.name] = known[class.name] or class
      end
    end
  end
  read(registry.root .. "lua/mneme")
  local function want(name)
    local class = known[name]
    if not class or wanted[name] then return end
    wanted[name] = class
    if class.parent then want(class.parent) end
    for _, field in ipairs(class.fields) do for word in field:gmatch "[%a_][%w_]*" do want(word) end end
    for _, method in ipairs(class.methods) do
      for _, line in ipairs(method.comment) do
        if line:find "^@" then for word in line:gmatch "%u[%w_]*" do want(word) end end
      end
    end
  end
  for _, f in ipairs(api.functions()) do
    for _, line in ipairs(f.comment) do
      if line:find "^@" then for word in line:gmatch "%u[%w_]*" do want(word) end end
    end
  end
  for _, name in ipairs(tables.keys(wanted)) do list[#list + 1] = wanted[name] end
  return list
end

---Every op: its name, doc line and signature.
---@return { name: string, doc: string, signature: string }[]
function api.ops()
  local list = {}
  for _, op in ipairs(require("mneme.base.catalogue").list "ops") do
    list[#list + 1] = { name = op.name, doc = op.doc, inputs = tensor.signatures[op.name].inputs, options = tensor.signatures[op.name].options,
      signature = require("ffi").string(require("mneme.base.engine").C.mn_op_sig(op.index)) }
  end
  return list
end

-- ---- as a page ----

-- A comment as Markdown: prose, then a list of parameters and results.
local function prose(comment)
  local text, list = {}, {}
  for _, line in ipairs(comment) do
    local kind, rest = line:match "^@(%l+)%s*(.*)"
    if kind == "param" then list[#list + 1] = ("- `%s` %s"):format(rest:match "^(%S+)%s*(.*)")
    elseif kind == "return" then list[#list + 1] = "- returns " .. rest
    elseif not kind then
      if #list > 0 then list[#list] = list[#list] .. " " .. line:gsub("^%s+", "") else text[#text + 1] = line end
    end
  end
  return table.concat(text, "\n") .. (#list > 0 and "\n\n" .. table.concat(list, "\n") or "")
end

---A function of mn: how it is called, and its comment.
---@param name string "mn.adam"
---@return string?
function api.text(name)
  for _, f in ipairs(api.functions()) do
    if f.name == name then return ("%s(%s)\n\n%s\n"):format(f.name, f.arguments, prose(f.comment)) end
  end
end

---All of it as Markdown.
---@return string
function api.page()
  local out = { "# What a script may call\n\nMade by `mneme help api` from the source. `local mn = require \"mneme\"` comes first." }
  local function add(...) out[#out + 1] = (...):format(select(2, ...)) end
  add "## Functions"
  for _, f in ipairs(api.functions()) do add("### `%s(%s)`\n\n%s", f.name, f.arguments, prose(f.comment)) end
  add "## Objects"
  for _, class in ipairs(api.classes()) do
    add("### %s%s\n\n%s", class.name, class.parent and " (extends " .. class.parent .. ")" or "", class.doc)
    for _, field in ipairs(class.fields) do add("- `%s` %s", field:match "^@field (%S+)%s*(.*)") end
    for _, m in ipairs(class.methods) do
      add("#### `%s:%s(%s)`\n\n%s", class.name, m.name, m.arguments, prose(m.comment))
    end
  end
  add "## Ops\n\nEach is `mn.NAME(x, ...)`, and a method `x:NAME(...)` of its first input; options go by name into a last table."
  for _, op in ipairs(api.ops()) do add("### `mn.%s`\n\n%s\n\n`%s`", op.name, op.doc, op.signature) end
  return table.concat(out, "\n\n") .. "\n"
end

-- ---- as annotations ----

local function stub(out, name, arguments, comment)
  for _, line in ipairs(comment) do out[#out + 1] = "---" .. line end
  out[#out + 1] = ("function %s(%s) end\n"):format(name, arguments)
end

---All of it as a file of stubs for lua-language-server.
---@return string
function api.annotations()
  local out = { "---@meta mneme\n\n---@class mn", "local mn = {}\n" }
  for _, class in ipairs(api.classes()) do
    out[#out + 1] = ("---@class %s%s %s"):format(class.name, class.parent and ": " .. class.parent or "", class.doc)
    for _, field in ipairs(class.fields) do out[#out + 1] = "---" .. field end
    out[#out + 1] = "local " .. class.name .. " = {}\n"
    for _, m in ipairs(class.methods) do stub(out, class.name .. ":" .. m.name, m.arguments, m.comment) end
  end
  local parts = {}
  for _, f in ipairs(api.functions()) do
    for at in f.name:gmatch "()%." do
      local part = f.name:sub(1, at - 1)
      if part ~= "mn" and not parts[part] then parts[part], out[#out + 1] = true, part .. " = {}\n" end
    end
    stub(out, f.name, f.arguments, f.comment)
  end
  for _, op in ipairs(api.ops()) do
    local arguments = {}
    for i, input in ipairs(op.inputs) do arguments[i] = input.name end
    stub(out, "mn." .. op.name, table.concat(arguments, ", ") .. ", options", { op.doc, op.signature, "@return Tensor ..." })
  end
  out[#out + 1] = "return mn"
  return table.concat(out, "\n") .. "\n"
end

return api
