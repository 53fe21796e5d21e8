-- source_files.lua -- loads the Lua files of users, and notes each: a run keeps what it was made by (runs/run_sources.lua).  Files that a
-- run or study folder brings are programs of somebody else: they are loaded only where that is asked for.  Text only, no bytecode.
local ffi = require "ffi"
local lfs = require "lfs"
local errors = require "mneme.base.errors"

ffi.cdef "char *realpath(const char *path, char *resolved);  void free(void *p);"

local source_files = {
  folder = nil,                -- the run or study folder that code is loaded for, and
  others = {},                 -- more folders, where a command reads several
  trusted = false,             -- whether code that they bring may run
}

local here = debug.getinfo(1, "S").source:match "^@(.*)base/source_files%.lua$" or "./lua/mneme/"
local noted, order = {}, {}    -- path -> text; paths in the order in which they were loaded
local data = {}                -- path -> text of data files that were read
local stored = {}              -- path -> { text, name }: what a run keeps, in place of the file

-- The path without links; of one that does not exist, as it is.
local function real(path)
  local p = ffi.C.realpath(path, nil)
  if p == nil then return path end
  local text = ffi.string(p)
  ffi.C.free(p)
  return text
end

local function plain(path) return (path:gsub("^%./+", "")) end
local function within(path, folder) return path == folder or path:sub(1, #folder + 1) == folder .. "/" end
local library, installation = real(here:gsub("/$", "")), real(here .. "../..")

local named = {}               -- folders of scripts that the command line names, and their paths

---The user named this script: it may run, and what lies beside it, wherever that is.
---@param path string
function source_files.name(path)
  path = real(path)
  named[path], named[path:match "^(.*)/"] = "script", "folder"
end

-- A script that the user named; what lies in its folder, in the installation, or in the current directory but in no folder that is read.
local function own(path)
  path = real(path)
  if named[path] == "script" then return true end
  for _, folder in ipairs { source_files.folder, unpack(source_files.others) } do
    if within(path, real(folder)) then return false end
  end
  for folder in pairs(named) do if within(path, folder) then return true end end
  return within(path, installation) or within(path, real ".")
end

---Code that these folders bring is not loaded from now on, unless it is trusted.
---@param folders string[]
function source_files.guard(folders) source_files.folder, source_files.others = folders[1], { unpack(folders, 2) } end

---Notes a file that was loaded by other means.
---@param path string
---@param text string its content
function source_files.note(path, text)
  path = plain(path)
  if not noted[path] and not within(real(path), library) then
    noted[path] = text
    order[#order + 1] = path
  end
end

---Notes a data file that was read.
function source_files.note_data(path, text) data[plain(path)] = text end

---The Lua files that were loaded and the data files that were read, in a fixed order.
---@return { path: string, text: string }[] code
---@return { path: string, text: string }[] data
function source_files.list()
  local code, read, paths = {}, {}, {}
  for i, path in ipairs(order) do code[i] = { path = path, text = noted[path] } end
  for path in pairs(data) do paths[#paths + 1] = path end
  table.sort(paths)
  for i, path in ipairs(paths) do read[i] = { path = path, text = data[path] } end
  return code, read
end

---From now on `text` stands in for the file `path`.
---@param path string
---@param text string
---@param name string where the text is, for messages
function source_files.replace(path, text, name) stored[plain(path)] = { text = text, name = name } end

---Is there such a file, or a text that stands in for it?
function source_files.exists(path) return stored[plain(path)] ~= nil or lfs.attributes(path, "mode") == "file" end

---Loads a Lua file.
---@param path string
---@return function? chunk nil: it has an error
---@return string? problem
function source_files.load(path)
  local instead = stored[plain(path)]
  local text, name = instead and instead.text, instead and instead.name or path
  if not instead then
    if source_files.folder and not source_files.trusted and not own(path) then
      errors.usage(("%s brings its own code, %s, which was not run"):format(source_files.folder, path), "trust=1 runs it")
    end
    local file, problem = io.open(path, "rb")
    if not file then return nil, "cannot open " .. problem end
    text = file:read "*a"
    file:close()
    if not text then return nil, "cannot read " .. path end
  end
  if text:sub(1, 1) == "\27" then return nil, path .. ": is compiled Lua, expected text" end
  source_files.note(path, text)
  return load((text:gsub("^#[^\n]*", "")), "@" .. name, "t")
end

-- The file that require(name) means, if it is a local one: not the library's, nor one that the system has installed.
local function local_module(name)
  if name == "mneme" or name:find "^mneme%." then return nil end
  for template in package.path:gmatch "[^;]+" do
    local path = template:gsub("%?", (name:gsub("%.", "/")))
    if source_files.exists(path) then
      return (stored[plain(path)] or path:sub(1, 1) ~= "/" or within(real(path), real ".")) and path or nil
    end
  end
end

local installed = false

---Makes require, loadfile and dofile of scripts note what they load.
function source_files.install()
  if installed then return end
  installed = true
  table.insert(package.loaders, 2, function(name)
    local path = local_module(name)
    if not path then return nil end
    local chunk, problem = source_files.load(path)
    if not chunk then error(problem, 0) end
    return chunk
  end)
  local lua_loadfile = loadfile
  rawset(_G, "loadfile", function(path, ...)
    if type(path) ~= "string" or select("#", ...) > 0 then return lua_loadfile(path, ...) end
    return source_files.load(path)
  end)
  rawset(_G, "dofile", function(path)
    local chunk, problem = loadfile(path)
    if not chunk then error(problem, 2) end
    return chunk()
  end)
end

return source_files
