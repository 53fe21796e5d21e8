-- annotations.lua -- `mneme help annotations`: everything that a script may call, as stubs with LuaCATS comments, from which
-- an editor with lua-language-server completes names, shows what they are and reports what does not fit.  Made from the same
-- sources as `mneme help api`: comments, and the signatures of ops.
local lazy = require "mneme.base.lazy"
local api = lazy "mneme.commands.api"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"

local annotations = { name = "help annotations", doc = "everything that a script may call, for editors",
  options = { { "to", "write it there, and a .luarc.json that names the folder where there is none", type = "folder", example = ".mneme" } } }

-- ---- comments ----

local closing = { ["("] = ")", ["{"] = "}", ["["] = "]", ["<"] = ">" }

---The type at the beginning of a text, and what follows it: 'fun(x: Tensor): Tensor? gives y' -> the function's type, "gives y".
---@return string type
---@return string rest
function annotations.type_of(text)
  local depth, quoted, at = 0, false, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == '"' then quoted = not quoted
    elseif not quoted then
      if closing[c] then depth = depth + 1
      elseif c == ")" or c == "}" or c == "]" or c == ">" then depth = depth - 1
      elseif c == " " and depth == 0 and text:sub(at - 1, at - 1) ~= ":" and text:sub(at - 1, at - 1) ~= "," then break end
    end
    at = at + 1
  end
  return text:sub(1, at - 1), text:sub(at + 1)
end

-- A function's comment as the type of a function: "fun(x: Tensor, n: integer?): Tensor".
local function function_type(comment)
  local arguments = tables.map(comment, function(line)
    local name, about = line:match "^@param ([%w_.]+)%s+(.*)"
    return name and name .. ": " .. annotations.type_of(about)
  end)
  local results = tables.map(comment, function(line)
    local result = line:match "^@return (.*)"
    return result and (annotations.type_of(result))
  end)
  return ("fun(%s)%s"):format(table.concat(arguments, ", "), #results > 0 and ": " .. table.concat(results, ", ") or "")
end

-- ---- stubs ----

local function put_comment(out, comment)
  for _, line in ipairs(comment) do out[#out + 1] = ("---" .. line):gsub("%s+$", "") end
end

local function put_function(out, name, arguments, comment)
  put_comment(out, comment)
  out[#out + 1] = ("function %s(%s) end\n"):format(name, arguments)
end

local function put_class(out, class)
  if class.doc ~= "" then out[#out + 1] = "---" .. class.doc end
  out[#out + 1] = ("---@class %s%s"):format(class.name, class.parent and ": " .. class.parent or "")
  put_comment(out, class.fields)
  put_comment(out, class.operators)
  put_comment(out, { class.overload })
  if class.call then out[#out + 1] = "---@overload " .. function_type(class.call.comment) end
  out[#out + 1] = ("local %s = {}\n"):format(class.name)
  for _, m in ipairs(class.methods) do put_function(out, class.name .. ":" .. m.name, m.arguments, m.comment) end
end

-- An op takes tensors and then options, by place or in a last table; or all of them by name, in one table.
local function option_type(o)
  if not o.words then return (o.default == 0 or o.default == 1) and "number|boolean" or "number", tostring(o.default) end
  local words = tables.map(o.words, function(word) return '"' .. word .. '"' end)
  return table.concat(words, "|"), words[o.default + 1]
end

local function put_op(out, op)
  local options, named, needed = "mn.options." .. op.name, "mn.arguments." .. op.name, 0
  if #op.options > 0 then
    out[#out + 1] = "---@class " .. options
    for _, o in ipairs(op.options) do put_comment(out, { ("@field %s? %s default %s"):format(o.name, option_type(o)) }) end
    out[#out + 1] = ""
  end
  out[#out + 1] = ("---@class %s%s"):format(named, #op.options > 0 and ": " .. options or "")
  local arguments, comment = {}, { op.doc, "", "`" .. op.signature .. "`" }
  for i, input in ipairs(op.inputs) do
    if not input.optional then needed = i end
    put_comment(out, { ("@field %s%s Tensor [%s] %s"):format(input.name, input.optional and "?" or "", input.axes, input.domain) })
  end
  out[#out + 1] = ""
  local function argument(name, kinds, about)
    arguments[#arguments + 1] = name
    comment[#comment + 1] = ("@param %s %s %s"):format(name .. (#arguments > needed and "?" or ""), table.concat(kinds, "|"), about)
  end
  for i, input in ipairs(op.inputs) do
    local kinds = { "Tensor" }
    if i > needed and #op.options > 0 then kinds = { "Tensor", options, (option_type(op.options[1])) } end
    argument(input.name, kinds, ("[%s] %s"):format(input.axes, input.domain))
  end
  for _, o in ipairs(op.options) do
    local kind, default = option_type(o)
    argument(o.name, { kind, options }, "default " .. default)
  end
  for _, output in ipairs(op.outputs) do comment[#comment + 1] = ("@return Tensor %s [%s] %s"):format(output.name, output.axes, output.domain) end
  local outputs = tables.map(op.outputs, function() return "Tensor" end)
  local list = table.concat(arguments, ", ")
  local as_method = { unpack(comment) }
  table.remove(as_method, 4)                                       -- its first input is self
  comment[#comment + 1] = ("@overload fun(arguments: %s)%s"):format(named, #outputs > 0 and ": " .. table.concat(outputs, ", ") or "")
  put_function(out, "ops." .. op.name, list, comment)
  return as_method, list:gsub("^[%w_']+,? ?", "")
end

---All of it as one Lua file.
function annotations.text()
  local out = { "---@meta mneme\n\n-- Made by `mneme help annotations`; do not edit.\n" }
  local methods, named = {}, {}
  out[#out + 1] = "---@class mn.ops every op\nlocal ops = {}\n"
  for _, op in ipairs(api.ops()) do
    local comment, arguments = put_op(out, op)
    methods[#methods + 1], named["mn." .. op.name] = { name = op.name, arguments = arguments, comment = comment }, op.name
  end
  for _, class in ipairs(api.classes()) do
    local own = tables.set(tables.map(class.methods, function(m) return m.name end))
    for _, m in ipairs(class.name == "Tensor" and methods or {}) do if not own[m.name] then table.insert(class.methods, m) end end
    put_class(out, class)
  end
  out[#out + 1] = "---@class mn: mn.ops\n---@field Tensor Tensor the class of tensors\nlocal mn = { ops = ops, Tensor = Tensor }\n"
  local parts = {}
  local function put_parts(name)
    for at in name:gmatch "()%." do
      local part = name:sub(1, at - 1)
      if part ~= "mn" and not parts[part] then parts[part], out[#out + 1] = true, part .. " = {}\n" end
    end
  end
  for _, f in ipairs(api.functions()) do
    put_parts(f.name)
    if f.called then
      parts[f.name] = true
      put_comment(out, { (api.prose(f.comment):gsub("\n", "\n---")) })
      out[#out + 1] = ("---@class %s\n---@overload %s\n%s = {}\n"):format(f.name, function_type(f.comment), f.name)
    else
      local op = named[f.name]
      if op then f.comment[#f.comment + 1] = ("@overload fun(arguments: mn.arguments.%s): Tensor"):format(op) end
      put_function(out, f.name, f.arguments, f.comment)
    end
  end
  for _, v in ipairs(api.values()) do
    put_parts(v.name)
    put_comment(out, v.comment)
    out[#out + 1] = ("---@type %s\n%s = nil\n"):format(v.type, v.name)
  end
  out[#out + 1] = "return mn"
  return table.concat(out, "\n") .. "\n"
end

---`mneme help annotations` prints the file; to=FOLDER writes it there, and a .luarc.json that names the folder where there is none.
function annotations.run(o)
  local folder = o.to
  if not folder then return io.stdout:write(annotations.text()) end
  files.make_folder(folder)
  files.write(folder .. "/mneme.lua", { annotations.text() })
  local settings = ('"runtime.version": "LuaJIT",\n  "workspace.library": ["%s"],\n  "workspace.checkThirdParty": false'):format(folder)
  io.stdout:write(folder, "/mneme.lua\n")
  if files.is_file ".luarc.json" then return io.stdout:write(".luarc.json is there; it needs:\n  ", settings, "\n") end
  files.write(".luarc.json", { "{\n  ", settings, "\n}\n" })
  io.stdout:write ".luarc.json\n"
end

return annotations
