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
  read_before = {},            -- path -> true: data files that the stored run has read which is gone on with or looked at
  generation = 0,              -- counts how often a file that was loaded came to mean another text
}
local MOST_DEEP = 64           -- parts of a path of which the ends are looked for

local here = debug.getinfo(1, "S").source:match "^@(.*)base/source_files%.lua$" or "./lua/mneme/"
local noted, order = {}, {}    -- path -> text; paths in the order in which they were loaded
local data = {}                -- path -> true: data files that were read
local written = {}             -- path -> true: files that scripts write are none of their data
local chunks = {}              -- the sources of what was loaded, as debug.getinfo names them
local stored = {}              -- path -> { text, name }: what a run keeps, in place of the file
local stored_data = {}         -- path -> path of the copy that is read in its place
local modules = {}             -- name of a local module that was required -> path

-- The path without links; of one that does not exist, as it is.
local function real(path)
  local p = ffi.C.realpath(path, nil)
  if p == nil then return path end
  local text = ffi.string(p)
  ffi.C.free(p)
  return text
end

local function is_file(path) return require("mneme.base.files").is_file(path) end
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

-- The folder of the study that a run's folder is of, or the folder itself.
local function whole(folder)
  local study = real(folder):match "^(.*)/runs/[^/]+$" or real(folder):match "^(.*)/cells/[^/]+$"
  return study and lfs.attributes(study .. "/study.json", "mode") and study or real(folder)
end

-- The user's own: a script that the user named; what lies in its folder, in the installation, or in the current directory, but in no folder that is read.
local function own(path)
  path = real(path)
  if named[path] == "script" then return true end
  for _, folder in ipairs { source_files.folder, unpack(source_files.others) } do
    if within(path, whole(folder)) then return false end
  end
  for folder in pairs(named) do if within(path, folder) then return true end end
  return within(path, installation) or within(path, real ".")
end

---Would source_files.load run this file?
function source_files.may_load(path) return source_files.trusted or not source_files.folder or stored[plain(path)] ~= nil or own(path) end

---Code that these folders bring is not loaded from now on, unless it is trusted.
---@param folders string[]
function source_files.guard(folders) source_files.folder, source_files.others = folders[1], { unpack(folders, 2) } end

local function text_of(path)
  local f = is_file(path) and io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  return text or nil
end

---A file of the installation, or of the current directory outside the folders that are read: `path`, one whose path ends as it does, or one
---that was renamed, in the folder of `path` or the current one.
---@param path string
---@param wanted fun(text: string): boolean is its content the right one?
---@return string? path nil: there is none
function source_files.find(path, wanted)
  local function same(at)
    local text = own(at) and text_of(at)
    return text and wanted(text) and at
  end
  local tail, found = path:gsub("^/+", ""), same(path)
  for _ = 1, MOST_DEEP do
    if found or not tail then break end
    found = same(tail) or same(installation .. "/" .. tail)
    tail = tail:match "^[^/]*/(.*)$"
  end
  for _, folder in ipairs { ".", path:match "^(.*)/" } do
    if not found and lfs.attributes(folder, "mode") == "directory" and own(folder) then
      for name in lfs.dir(folder) do found = found or name:find "%.lua$" and same(folder .. "/" .. name) end
    end
  end
  return found or nil
end

---Notes a file that was loaded by other means.
---@param path string
---@param text string its content
function source_files.note(path, text)
  path = plain(path)
  if within(real(path), library) then return end
  if not noted[path] then order[#order + 1] = path end
  noted[path] = text
end

---Where a data file is read: at its path, or at that of a run's copy.
---@param path string
---@return string
function source_files.data_at(path) return stored_data[plain(path)] or path end

---Notes a data file that is read.
---@param path string
function source_files.note_data(path)
  if stored_data[plain(path)] then data[plain(path)] = true end
  local file = is_file(path) and real(path)
  if not file or written[plain(path)] then return end
  if source_files.folder and within(file, real(source_files.folder)) then return end
  data[plain(path)] = true
end

---Notes a file that a script writes.
---@param path string
function source_files.note_written(path) written[plain(path)], data[plain(path)], stored_data[plain(path)] = true, nil, nil end

---How many files were noted.
function source_files.count()
  local n = #order
  for _ in pairs(data) do n = n + 1 end
  return n
end

---The Lua files that were loaded and the data files that were read, in a fixed order.
---@return { path: string, text: string }[] code
---@return string[] data
function source_files.list()
  local code, paths = {}, {}
  for i, path in ipairs(order) do code[i] = { path = path, text = noted[path] } end
  for path in pairs(data) do paths[#paths + 1] = path end
  table.sort(paths)
  return code, paths
end

---From now on code is loaded for this folder, and these texts stand in for files.  What was loaded and means another text now is loaded again.
---@param folder string
---@param copies { path: string, text: string, name: string }[] name: where the text is, for messages
---@param data_copies table<string, string>? of data files: where each is read
function source_files.begin(folder, copies, data_copies)
  local changed = next(stored_data) ~= nil or next(data_copies or {}) ~= nil
  source_files.folder, stored, stored_data = folder, {}, {}
  for _, copy in ipairs(copies) do stored[plain(copy.path)] = copy end
  for path, at in pairs(data_copies or {}) do stored_data[plain(path)] = at end
  for _, path in ipairs(order) do
    local now = stored[path] and stored[path].text or text_of(path)
    if now and now ~= noted[path] then changed = true end
  end
  if not changed then return end
  source_files.generation = source_files.generation + 1
  for name in pairs(modules) do package.loaded[name] = nil end
end

---Is there such a file, or a text that stands in for it?
function source_files.exists(path) return stored[plain(path)] ~= nil or is_file(path) end

---Loads a Lua file.
---@param path string
---@return function? chunk nil: it has an error
---@return string? problem
function source_files.load(path)
  local instead = stored[plain(path)]
  local text, name = instead and instead.text, instead and instead.name or path
  if not instead then
    if not source_files.may_load(path) then
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
  chunks["@" .. name] = true
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

-- What require says of a module that there is not, in one line; a file beside the script is not where require looks.
local function missing_module(name)
  local file, here_is = name:gsub("%.", "/") .. ".lua", real "."
  local said = ("module '%s' is not found: there is no %s in the current directory"):format(name, file)
  for folder, kind in pairs(named) do
    if kind == "folder" and folder ~= here_is and lfs.attributes(folder .. "/" .. file, "mode") == "file" then
      local short = within(folder, here_is) and folder:sub(#here_is + 2) or folder
      said = said .. ("; %s/%s is beside the script: cd %s first"):format(short, file, short)
    end
  end
  error(said, 3)
end

local installed = false

-- Makes io.open and io.lines of scripts note which files they read.
local function watch_files()
  local open, lines = io.open, io.lines
  local function by_script() return chunks[(debug.getinfo(3, "S") or {}).source or ""] end
  rawset(io, "open", function(path, mode)
    if type(path) == "string" and by_script() then
      if not mode or mode == "r" or mode == "rb" then
        source_files.note_data(path)
        path = source_files.data_at(path)
      else source_files.note_written(path) end
    end
    return open(path, mode)
  end)
  rawset(io, "lines", function(path, ...)
    if type(path) == "string" and by_script() then
      source_files.note_data(path)
      path = source_files.data_at(path)
    end
    return lines(path, ...)
  end)
end

---Makes require, loadfile and dofile of scripts note what they load, and io.open and io.lines what they read.
function source_files.install()
  if installed then return end
  installed = true
  watch_files()
  table.insert(package.loaders, 2, function(name)
    local path = local_module(name)
    if not path then return nil end
    local chunk, problem = source_files.load(path)
    if not chunk then error(problem, 0) end
    modules[name] = path
    return chunk
  end)
  table.insert(package.loaders, missing_module)
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
