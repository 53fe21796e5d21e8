-- api.lua -- everything that a script may call: arguments and comments read from the sources of the functions, and the
-- signatures of ops.  As a page (`mneme help api`); annotations.lua makes of it what editors read.
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local lazy = require "mneme.base.lazy"
local tensor = lazy "mneme.tensor.tensor"

local api = {}

-- ---- reading source files ----

local sources = {}

local function source(path)
  sources[path] = sources[path] or tables.found(files.text(path) .. "\n", "(.-)\n")
  return sources[path]
end

-- A comment with one line for each tag: what a tag says in further lines is appended to its own.
local function joined(lines)
  local list, tag = {}, false
  for _, line in ipairs(lines) do
    if line:find "^@" then tag = true end
    if tag and not line:find "^@" then list[#list] = list[#list] .. " " .. line:gsub("^%s+", "") else list[#list + 1] = line end
  end
  return list
end

-- The lines right above a line that begin with ---, without the dashes.
local function comment_above(lines, at)
  local first = at
  while first > 1 and lines[first - 1]:find "^%s*%-%-%-" do first = first - 1 end
  return joined(tables.map({ unpack(lines, first, at - 1) }, function(line) return line:match "^%s*%-%-%- ?(.*)" end))
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

-- The method of a class that a line defines: `function Class:name(a)`, or with a comment above it `Class.name = room.function`.
local function read_method(lines, at, holder)
  local line, comment = lines[at], comment_above(lines, at)
  local name, arguments = line:match("^function " .. holder .. ":([%w_]+)%((.-)%)")
  if not name and #comment > 0 then
    name, arguments = line:match("^" .. holder .. "%.([%w_]+) = [%w_]+%.[%w_]+$"), {}
    for _, tag in ipairs(comment) do arguments[#arguments + 1] = tag:match "^@param ([%w_.]+)" end
    arguments = table.concat(arguments, ", ")
  end
  return name and { name = name, arguments = arguments, comment = comment, line = at }
end

-- A class from the line that declares it: the rest of its comment, then the table that holds its methods.
local function read_class(lines, at)
  local name, rest = lines[at]:match "^%-%-%-@class ([%w_]+)(.*)"
  local parent, doc = rest:match "^:%s*([%w_]+)%s*(.*)"
  local class, comment = { name = name, parent = parent, fields = {}, operators = {}, methods = {} }, { doc or rest:gsub("^%s+", "") }
  at = at + 1
  while lines[at] and lines[at]:find "^%-%-%-" do
    comment[#comment + 1] = lines[at]:match "^%-%-%- ?(.*)"
    at = at + 1
  end
  comment = joined(comment)
  local text = {}
  for _, line in ipairs(comment) do
    if line:find "^@field" then class.fields[#class.fields + 1] = line
    elseif line:find "^@overload" then class.overload = line
    elseif line:find "^@operator" then class.operators[#class.operators + 1] = line
    elseif line ~= "" then text[#text + 1] = line end
  end
  class.doc = table.concat(text, " ")
  local holder = lines[at] and lines[at]:match "^local ([%w_]+) ="
  for k = at, holder and #lines or 0 do
    local entry = read_method(lines, k, holder)
    if entry and entry.name == "__call" then class.call = entry
    elseif entry and not entry.name:find "^__" then class.methods[#class.methods + 1] = entry end
  end
  return class
end

-- The classes that a file declares: { name, parent, doc, fields, operators, call or overload, methods = { name, arguments, comment } }.
local function classes_of(path)
  local lines = source(path)
  return tables.map(lines, function(line, i) return line:find "^%-%-%-@class [%w_]" and read_class(lines, i) or nil end)
end

-- ---- what there is ----

-- f(name, value, called) for everything public in mn, or in one entry of it: functions, tables that may be called, data; "mn.stats.iqm".
local function each(f, only)
  local mn = require "mneme"
  local function look(name, value)
    local meta = type(value) == "table" and getmetatable(value)
    if type(value) ~= "table" or meta and not (meta.called or meta.group or meta.guarded) then return f(name, value) end
    if meta and meta.called then f(name, meta.called, true) end
    local keys, functions, others = tables.keys(meta and meta.group or value), 0, 0
    for _, key in ipairs(keys) do
      if type(value[key]) == "function" then functions = functions + 1 else others = others + 1 end
    end
    if functions == 0 and not (meta and (meta.called or meta.group)) then return f(name, value) end                             -- data
    for _, key in ipairs(keys) do look(name .. "." .. key, value[key]) end
  end
  for _, name in ipairs(mn.names()) do
    if name ~= "Tensor" and (not only or name == only) then look("mn." .. name, mn[name]) end                                -- a class: below
  end
  for _, name in ipairs(tables.keys(tensor.functions)) do                                     -- that take more than their op
    local more = (not only or name == only) and rawget(tensor.ops, name) and #definition(tensor.functions[name]).comment > 0
    if more then f("mn." .. name, tensor.functions[name]) end
  end
end

-- Functions made of ops are methods, too: their first argument is the tensor.
local function methods_of_functions()
  return tables.map(tables.keys(tensor.functions), function(name)
    local f = tensor.functions[name]
    local entry = rawget(tensor.Tensor, name) == f and definition(f)
    if not entry or #entry.comment == 0 then return nil end
    entry.name, entry.arguments = name, entry.arguments:gsub("^[%w_]+,? ?", "")
    for i, line in ipairs(entry.comment) do
      if line:find "^@param" then table.remove(entry.comment, i) break end
    end
    return entry
  end)
end

---Every public function: name as a script writes it ("mn.env", "mn.stats.iqm"), its arguments, the lines of its
---comment, its file and line.  `called`: it is a table that is called, and has fields.  Ops are listed by api.ops;
---here are those that take more than their signature says (mn.pad).
---@param only string? those of one entry of mn: "stats"
---@return { name: string, arguments: string, comment: string[], path: string, line: integer, called: boolean? }[]
function api.functions(only)
  local list = {}
  each(function(name, value, called)
    local entry = type(value) == "function" and definition(value)
    if entry then entry.name, entry.called, list[#list + 1] = name, called, entry end
  end, only)
  return list
end

-- The comment above `M.KEY = ` in the module that has the value.
local function comment_of_value(key, value)
  for _, module in ipairs(tables.keys(package.loaded)) do
    local t = module:find "^mneme%." and package.loaded[module]
    local path = type(t) == "table" and rawget(t, key) == value and package.searchpath(module, package.path)
    for i, line in ipairs(path and source(path) or {}) do
      if line:find("^[%w_]+%." .. key .. " =") or line:find("^local " .. key .. " =") then return comment_above(source(path), i) end
    end
  end
end

---Every public value that is no function: name, type as an annotation, comment.
---@return { name: string, type: string, comment: string[] }[]
function api.values()
  local list = {}
  each(function(name, value)
    if type(value) == "function" then return end
    local comment, kind = {}, type(value)
    for _, line in ipairs(comment_of_value(name:match "[^.]+$", value) or {}) do
      if line:find "^@type" then kind = line:match "^@type%s+(.*)" else comment[#comment + 1] = line end
    end
    list[#list + 1] = { name = name, type = kind, comment = comment }
  end)
  return list
end

-- A class whose methods are in several files: each declares it.
local function add_to(class, part)
  for _, key in ipairs { "parent", "call", "overload" } do class[key] = class[key] or part[key] end
  if class.doc == "" then class.doc = part.doc end
  for _, key in ipairs { "fields", "operators", "methods" } do
    for _, entry in ipairs(part[key]) do table.insert(class[key], entry) end
  end
end

-- The classes by name, or the one of a name.
local function known_classes(only)
  local known = {}
  local function read(folder)
    for _, name in ipairs(files.list(folder)) do
      local path = folder .. "/" .. name
      if files.is_folder(path) then read(path) end
      local wanted = name:find "%.lua$" and (not only or files.read(path):find("%-%-%-@class " .. only .. "%f[^%w_]"))
      for _, class in ipairs(wanted and classes_of(path) or {}) do
        known[class.name] = known[class.name] or class
        if known[class.name] ~= class then add_to(known[class.name], class) end
      end
    end
  end
  read(registry.root .. "lua/mneme")
  for _, method in ipairs(known.Tensor and methods_of_functions() or {}) do table.insert(known.Tensor.methods, method) end
  for _, setting in ipairs(known.Config and require("mneme.runs.config").standard or {}) do
    local kind = setting[1] == "size" and "any" or setting[3].whole and "integer" or type(setting[2])
    table.insert(known.Config.fields, ("@field %s %s %s"):format(setting[1], kind, setting[3][1]))
  end
  return known
end

---Every class whose objects a script may hold, with its parents: what functions take and return, and what these classes name.
---@return { name: string, parent: string?, doc: string, fields: string[], operators: string[], overload: string?, call: table?, methods: table[] }[]
function api.classes()
  local known, wanted = known_classes(), {}
  local want
  local function want_all(comment)
    for _, line in ipairs(comment) do
      if line:find "^@" then for word in line:gmatch "%f[%w]%u[%w_]*" do want(word) end end
    end
  end
  function want(name)
    local class = known[name]
    if not class or wanted[name] then return end
    wanted[name] = class
    want(class.parent)
    for _, comment in ipairs { class.fields, class.operators, { class.overload }, (class.call or { comment = {} }).comment } do want_all(comment) end
    for _, method in ipairs(class.methods) do want_all(method.comment) end
  end
  for _, f in ipairs(api.functions()) do want_all(f.comment) end
  for _, v in ipairs(api.values()) do want_all { "@type " .. v.type } end
  return tables.map(tables.keys(wanted), function(name) return wanted[name] end)
end

---Every op: its name, doc line and signature, as it is written and as op_binding.lua reads it.
---@return { name: string, doc: string, signature: string, inputs: table[], outputs: table[], options: table[] }[]
function api.ops()
  return tables.map(require("mneme.base.catalogue").list "ops", function(op)
    local s = tensor.signatures[op.name]
    return { name = op.name, doc = op.doc, inputs = s.inputs, outputs = s.outputs, options = s.options,
      signature = require("ffi").string(require("mneme.base.engine").C.mn_op_sig(op.index)) }
  end)
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

api.prose = prose

---A function of mn: how it is called, and its comment.
---@param name string "mn.adam"
---@return string?
function api.text(name)
  for _, f in ipairs(api.functions(name:match "^mn%.([%w_]+)")) do
    if f.name == name then return ("%s(%s)\n\n%s\n"):format(f.name, f.arguments, prose(f.comment)) end
  end
end

---A class of objects that a script holds: what it is, its fields, and a line for each method.
---@param name string "Tensor"
---@return string?
function api.class_text(name)
  local class = name:find "^%u[%w_]*$" and known_classes(name)[name]
  if not class then return nil end
  local out = { name .. (class.doc ~= "" and ": " .. class.doc or "") .. "\n" }
  for _, field in ipairs(class.fields) do out[#out + 1] = "  " .. field:gsub("^@field%s+", "") end
  for _, m in ipairs(class.methods) do
    out[#out + 1] = ("  :%s(%s)  %s"):format(m.name, m.arguments, (table.concat(m.comment, " "):gsub("%s*@.*$", ""):match "^(.-%.)%s" or
      table.concat(m.comment, " "):gsub("%s*@.*$", "")))
  end
  return table.concat(out, "\n") .. "\n"
end

---All of it as Markdown.
function api.page()
  local out = { "# What a script may call\n\nMade by `mneme help api` from the source. `local mn = require \"mneme\"` comes first." }
  local function add(...) out[#out + 1] = (...):format(select(2, ...)) end
  add "## Functions"
  for _, f in ipairs(api.functions()) do add("### `%s(%s)`\n\n%s", f.name, f.arguments, prose(f.comment)) end
  add "## Values"
  for _, v in ipairs(api.values()) do add("- `%s` `%s` %s", v.name, v.type, table.concat(v.comment, " ")) end
  add "## Objects"
  for _, class in ipairs(api.classes()) do
    add("### %s%s\n\n%s", class.name, class.parent and " (extends " .. class.parent .. ")" or "", class.doc)
    for _, field in ipairs(class.fields) do add("- `%s` %s", field:match "^@field (%S+)%s*(.*)") end
    for _, line in ipairs(class.operators) do add("- operator `%s`", line:match "^@operator%s+(.*)") end
    if class.overload then add("- called: `%s`", class.overload:match "^@overload%s+(.*)") end
    if class.call then add("#### `%s(%s)`\n\n%s", class.name:lower(), class.call.arguments, prose(class.call.comment)) end
    for _, m in ipairs(class.methods) do
      add("#### `%s:%s(%s)`\n\n%s", class.name, m.name, m.arguments, prose(m.comment))
    end
  end
  add "## Ops\n\nEach is `mn.NAME(x, ...)`, and a method `x:NAME(...)` of its first input; options go by name into a last table."
  for _, op in ipairs(api.ops()) do add("### `mn.%s`\n\n%s\n\n`%s`", op.name, op.doc, op.signature) end
  return table.concat(out, "\n\n") .. "\n"
end

return api
