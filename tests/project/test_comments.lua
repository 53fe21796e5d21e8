-- test_comments.lua -- what comments and hints name is there: the types of annotations, modules and files, and code that a reader is to copy.
local lfs = require "lfs"
local t = require "tests.harness"
local annotations = require "mneme.commands.annotations"
local files = require "mneme.base.files"
local root = require("mneme.base.registry").root


local function none(list, what) t.ok(#list == 0, what .. ":\n  " .. table.concat(list, "\n  ")) end

-- Every line of the Lua files of some folders: { path, number, text }.
local lines = {}
local function read(folder)
  for _, name in ipairs(files.list(root .. folder)) do
    local path = folder .. "/" .. name
    if files.is_folder(root .. path) then read(path)
    elseif name:find "%.lua$" then
      local n = 0
      for text in (files.read(root .. path) .. "\n"):gmatch "(.-)\n" do
        n = n + 1
        lines[#lines + 1] = { path, n, text }
      end
    end
  end
end
for _, folder in ipairs { "lua", "scenes", "experiments", "tests" } do read(folder) end

t.test("annotations of all files: every type that they name is there", function()
  local known, wrong, seen = {}, {}, 0
  for name in ("nil any boolean string number integer table function fun true false ffi.cdata T self"):gmatch "%S+" do known[name] = true end
  for _, line in ipairs(lines) do
    local kind, name = line[3]:match "^%-%-%-@(%l+) ([%w_.]+)"
    if kind == "class" or kind == "alias" then known[name] = true end
  end
  local typed = { param = "^%S+ (.*)", field = "^%S+ (.*)", type = "(.*)", overload = "(.*)", ["return"] = "(.*)" }
  for _, line in ipairs(lines) do
    local tag, rest = line[3]:match "^%s*%-%-%-@(%l+) (.*)"
    local of = typed[tag] and rest:match(typed[tag])
    if of then
      local kind = annotations.type_of(of):gsub('"[^"]*"', ""):gsub("[%w_]+%??:", "")             -- words, names of arguments
      for name in kind:gmatch "%a[%w_.]*%w" do
        seen = seen + 1
        if not known[name] and not kind:find("fun%([^)]*" .. name) then wrong[#wrong + 1] = ("%s:%d: %s"):format(line[1], line[2], name) end
      end
    end
  end
  none(wrong, "unknown types")
  t.ok(seen > 3000, seen .. " types")
end)

t.test("comments: every module and file of Lua that they name is there", function()
  local wrong, modules, paths = {}, 0, 0
  local function there(path) return lfs.attributes(root .. path, "mode") end
  local function is_module(name)                                   -- mneme.base.files, a room, or what a module holds
    name = name:gsub("%.$", "")
    local path = "lua/mneme/" .. name:gsub("%.", "/")
    local holder = path:match "^(lua/mneme/.+)/[^/]+$"
    return there(path) or there(path .. ".lua") or holder and there(holder .. ".lua") or name == "h" or name == "so"
  end
  for _, line in ipairs(lines) do
    local comment = line[1]:find "^lua/" and line[3]:match "%-%-(.*)" or ""
    for name in comment:gmatch "%f[%w_]mneme%.([%w_.]+)" do
      modules = modules + 1
      if not is_module(name) then wrong[#wrong + 1] = ("%s:%d: mneme.%s"):format(line[1], line[2], name) end
    end
    for path in comment:gmatch "%f[%w_./%-][%w_]+/[%w_/%-]*%.lua" do
      paths = paths + 1
      local example = path:find "^mine/" or path:find "/%u+%.lua$"
      if not (example or there(path) or there("lua/mneme/" .. path)) then wrong[#wrong + 1] = ("%s:%d: %s"):format(line[1], line[2], path) end
    end
  end
  none(wrong, "not there")
  t.ok(modules > 4 and paths > 40, modules .. " modules, " .. paths .. " files")
end)

t.test("calls of mn in comments and hints are Lua", function()
  local wrong, seen = {}, 0
  for _, line in ipairs(lines) do
    local text = line[1]:find "^tests/" and "" or line[3]:gsub('\\"', '"'):gsub("%%[sd]", "NAME")             -- strings of tests hold mistakes
    for _, call in ipairs { "%f[%w]mn%.[%w_.]+%s?%b{}", "%f[%w]mn%.[%w_.]+%b()" } do
      for code in text:gmatch(call) do
        seen = seen + 1
        local plain = code:gsub("%) %.%.%. ", ") ")           -- function(batch) ... return loss end
        if not loadstring("return " .. plain) then wrong[#wrong + 1] = ("%s:%d: %s"):format(line[1], line[2], code) end
      end
    end
  end
  none(wrong, "not Lua")
  t.ok(seen > 100, seen .. " calls")
end)
