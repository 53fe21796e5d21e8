-- trusted_code.lua -- may a Lua file run?  Loads those of users, and notes each: a run keeps what it was made by (runs/run_sources.lua).  Code runs
-- if it comes with Mneme, if the command line names it, if a run that the user started on this machine was made by it (checksums in the user's state folder),
-- or with trust=1; wherever it lies, other code is a program of somebody else.  Text only, no bytecode.
local ffi = require "ffi"
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local luajit = require "mneme.base.luajit"
local tables = require "mneme.base.tables"

ffi.cdef "char *realpath(const char *path, char *resolved);  void free(void *p);"

local trusted_code = {
  folder = nil,                -- the run or study folder that code is loaded for: what it names, the user did not
  free = true,                 -- code runs that the script of the command line, or plain luajit, loads
  trusted = false,             -- trust=1: any code runs
  edited = {},                 -- path -> true: code that has changed since the stored run, in which it was the user's
  read_before = {},            -- path -> true: data files that the stored run has read which is gone on with or looked at
  stored = {},                 -- path -> { text, name }: what a run keeps, in place of the file
  generation = 0,              -- counts how often a file that was loaded came to mean another text
}
local MOST_DEEP = 64           -- parts of a path of which the ends are looked for

local here = debug.getinfo(1, "S").source:match "^@(.*)base/trusted_code%.lua$" or "./lua/mneme/"
local noted, order = {}, {}    -- path -> text; paths in the order in which they were loaded
local data = {}                -- path -> true: data files that were read
local written = {}             -- path -> true: files that scripts write are none of their data
local chunks = {}              -- the sources of what was loaded, as debug.getinfo names them
local stored_data = {}         -- path -> path of the copy that is read in its place
local modules = {}             -- name of a local module that was required -> path
local assigned = {}            -- globals that users' files assign, which stay among them: a `type = "maze"` without `local` is none of the library's

-- The path without links; of one that does not exist, as it is.
local function real(path)
  local p = ffi.C.realpath(path, nil)
  if p == nil then return path end
  local text = ffi.string(p)
  ffi.C.free(p)
  return text
end

-- Late: what files.lua needs is not loaded for a script that asks for none of it.
local function is_file(path) return require("mneme.base.files").is_file(path) end
local function text_of(path) return require("mneme.base.files").text(path) end
local function plain(path) return (path:gsub("^%./+", "")) end
local function within(path, folder) return path == folder or path:sub(1, #folder + 1) == folder .. "/" end

local library, installation = real(here:gsub("/$", "")), real(here .. "../..")

-- ---- whose code it is ----

local named, words = {}, {}    -- real paths of files, and other words, that the command line names
local known                    -- digests of the user's code: true, those in the user's state folder; "here", in this process alone

-- The list of the code that runs of the user's own were made by, one digest and path a line; nil: there is no place for it.
local function list_file()
  local state, home = (os.getenv "XDG_STATE_HOME" or ""):match "^/.*", (os.getenv "HOME" or ""):match "^/.*"
  return state and state .. "/mneme/trusted" or home and home .. "/.local/state/mneme/trusted"
end

-- Is it the user's code?  Its digest, too.
local function known_as(text)
  local digits = ffi.new "char[65]"
  require("mneme.base.engine").C.mn_sha256(text, #text, digits)
  if not known then
    known = {}
    for line in (text_of(list_file() or "") or ""):gmatch "[^\n]+" do known[line:match "^%x+" or ""] = true end
  end
  return known[ffi.string(digits)], ffi.string(digits)
end

---Notes that code has changed since the stored run.
---@param before string? its text then
function trusted_code.note_edited(path, before) trusted_code.edited[plain(path)] = before and known_as(before) ~= nil end

---A run of the user's own is made by this code: it is the user's from now on, wherever it lies.
---@param code { path: string, text: string }[]
---@return string? problem why it is so for this process alone
function trusted_code.remember(code)
  local path, lines = list_file(), {}
  for _, file in ipairs(code) do
    local as, name = known_as(file.text)
    if as ~= true then lines[#lines + 1], known[name] = ("%s  %s\n"):format(name, (file.path:gsub("%c", "?"))), "here" end
  end
  if not path then return "HOME is not set" end
  for folder in path:gmatch "()/" do lfs.mkdir(path:sub(1, folder - 1)) end
  local f, problem = io.open(path, "a")
  if not f then return problem end
  f:write(table.concat(lines))
  f:close()
  for _, line in ipairs(lines) do known[line:match "^%x+"] = true end
end

local function shipped(path)
  return within(path, installation) and tables.has({ "lua", "experiments", "scenes" }, path:sub(#installation + 2):match "^[^/]*")
end

---The user named this file: it may run, and what it requires.
---@param script boolean? it is the script of the command line: so may all that is loaded for it
function trusted_code.name(path, script)
  path = real(path)
  named[path] = true
  trusted_code.free = trusted_code.free or script == true and not shipped(path)
end

---Code runs from now on only where it comes with Mneme, the user has run it before, or these words name it.
---@param list string[] of the command line
function trusted_code.only_named(list)
  trusted_code.free = false
  for _, word in ipairs(list) do
    local key, value = require("mneme.base.setting_types").pair(word)
    for _, pattern in ipairs { ".+", "%s*([^,{}\"]+)", "[^,{}%s\"']+" } do         -- the whole, which may hold blanks; items of a list; words
      for part in (value or word):gmatch(pattern) do
        local python = part:match "^gym:(.*%.py):"
        if python or part:find "%.lua$" then trusted_code.name(python or part) elseif value or not lfs.attributes(part) then
          words[part] = words[part] or key or true
        end
      end
    end
  end
end

---A file that is here: `path`, or one of the installation whose path ends as it does.
---@param wanted fun(text: string): boolean is its content the right one?
---@param only_shipped boolean?
function trusted_code.find(path, wanted, only_shipped)
  local text, tail, deep = not only_shipped and text_of(path), path:gsub("^/+", ""), 0
  while not (text and wanted(text)) do
    deep = deep + 1
    if not tail or deep > MOST_DEEP then return false end
    local at = installation .. "/" .. tail
    text, tail = shipped(real(at)) and text_of(at), tail:match "^[^/]*/(.*)$"
  end
  return true
end

-- May code run?  "named": the command line names it, or what requires it; "known": it comes with Mneme, or the user has run it; nil: it may not.
-- `copy`: it is a run's copy of the file; `by`: as what the file that requires it may.
local function allowed(path, text, copy, by)
  local at, free = not copy and real(path), trusted_code.free
  local word = at and words[path:match "([^/]*)%.lua$"]
  if free and not trusted_code.folder or named[at] or by == "named" or at and free and trusted_code.edited[plain(path)]
    or word and (not trusted_code.folder or word .. "s" == at:match "([^/]*)/[^/]*$") then return "named" end
  if trusted_code.trusted or at and shipped(at) or known_as(text)
    or trusted_code.find(path, function(other) return other == text end, true) then return "known" end
end

-- What stands at a path, the file or a run's copy of it: its text (nil: there is none), where that lies, and as what it may run.
local function text_at(path, by)
  local copy = trusted_code.stored[plain(path)]
  local text = copy and copy.text or text_of(path)
  return text, copy and copy.name or path, text and allowed(path, text, copy, by)
end

-- The same; an error, if it may not run.
local function allowed_text(path, by)
  local text, name, as = text_at(path, by)
  if as or not text then return text, name, as end
  local problem, folder = trusted_code.remember {}, trusted_code.folder
  errors.usage((folder and "%s brings its own code, %s, which was not run" or "%s%s is not known as yours, and was not run"):format(folder or "", name),
    "trust=1 runs it" .. (problem and "; Mneme cannot note which code is yours: " .. problem or ""))
end

---Would trusted_code.load run this file?
---@return string? as what: "named" on the command line, or "known" as Mneme's or the user's
function trusted_code.may_load(path)
  local text, _, as = text_at(path)
  return not text and "known" or as
end

---Where code of another language stands that may run and is noted as loaded: at its path, or a run's copy that stands in for it.
---@param by string? the file that imports it
---@return string? at nil: there is no such file
function trusted_code.place(path, by)
  local text, name = allowed_text(path, by and trusted_code.may_load(by))
  if text then trusted_code.note(path, text) end
  return text and name
end

---Notes a file that was loaded by other means.
---@param text string its content
function trusted_code.note(path, text)
  path = plain(path)
  if within(real(path), library) then return end
  if not noted[path] then order[#order + 1] = path end
  noted[path] = text
end

---Where a data file is read: at its path, or at that of a run's copy.
function trusted_code.data_at(path) return stored_data[plain(path)] or path end

---Notes a data file that is read.
---@return string at where it is read: see trusted_code.data_at
function trusted_code.note_data(path)
  local short, own = plain(path), trusted_code.folder
  if stored_data[short] or is_file(path) and not written[short] and not (own and within(real(path), real(own))) then data[short] = true end
  return trusted_code.data_at(path)
end

---Notes a file that a script writes.
function trusted_code.note_written(path) written[plain(path)], data[plain(path)], stored_data[plain(path)] = true, nil, nil end

---The Lua files that were loaded and the data files that were read, in a fixed order.
---@return { path: string, text: string }[] code
---@return string[] data
function trusted_code.list()
  return tables.map(order, function(path) return { path = path, text = noted[path] } end), tables.keys(data)
end

---How many files were noted.
function trusted_code.count() return #order + #tables.keys(data) end

---From now on code is loaded for this folder, and these texts stand in for files.  What was loaded and means another text now is loaded again.
---@param copies { path: string, text: string, name: string }[] name: where the text is, for messages
---@param data_copies table<string, string>? of data files: where each is read
function trusted_code.begin(folder, copies, data_copies)
  local changed = next(stored_data) ~= nil or next(data_copies or {}) ~= nil
  trusted_code.folder, trusted_code.stored, stored_data = folder, {}, {}
  for _, copy in ipairs(copies) do trusted_code.stored[plain(copy.path)] = copy end
  for path, at in pairs(data_copies or {}) do stored_data[plain(path)] = at end
  for _, path in ipairs(order) do changed = changed or ((trusted_code.stored[path] or {}).text or text_of(path) or noted[path]) ~= noted[path] end
  if not changed then return end
  trusted_code.generation = trusted_code.generation + 1
  for name in pairs(modules) do package.loaded[name] = nil end
end

---Is there such a file, or a text that stands in for it?
function trusted_code.exists(path) return trusted_code.stored[plain(path)] ~= nil or is_file(path) end

---Loads a Lua file.
---@param by string? as what the file that requires it may run: see trusted_code.may_load
---@return function? chunk nil: it has an error
---@return string? problem
function trusted_code.load(path, by)
  local text, name, as = allowed_text(path, by)
  if not text then
    local _, problem = io.open(path, "rb")
    return nil, problem and "cannot open " .. problem or "cannot read " .. path
  end
  if text:sub(1, 1) == "\27" then return nil, path .. ": is compiled Lua, expected text" end
  trusted_code.note(path, text)
  chunks["@" .. name] = as
  local before, key = known_as(text)
  if as == "named" then known[key] = before or "here" end
  local chunk, problem = load((text:gsub("^#[^\n]*", "")), "@" .. name, "t")
  return chunk and setfenv(chunk, shipped(real(name)) and trusted_code.globals or assigned), problem
end

---As what the nearest file of the user's on the stack may run.
function trusted_code.caller()
  for level = 3, math.huge do
    local about = debug.getinfo(level, "S")
    if not about or chunks[about.source] then return about and chunks[about.source] or trusted_code.free and "named" or nil end
  end
end
local caller = trusted_code.caller

local ours = { mneme = true, lfs = true, bit = true, ffi = true, jit = true }          -- modules that no file here stands in for

-- The file that require(name) means, if it is a local one: not the library's, nor one that the system has installed.
local function local_module(name)
  if ours[name:match "^[^.]*"] then return nil end
  for template in ("./?.lua;" .. package.path):gmatch "[^;]+" do
    local path = template:gsub("%?", (name:gsub("%.", "/")))
    if trusted_code.exists(path) then
      return (trusted_code.stored[plain(path)] or path:sub(1, 1) ~= "/" or within(real(path), real ".")) and path or nil
    end
  end
end

-- What require says of a module that there is not, in one line; a file beside the script is not where require looks.
local function missing_module(name)
  local file, here_is = name:gsub("%.", "/") .. ".lua", real "."
  local said = ("module '%s' is not found: there is no %s in the current directory"):format(name, file)
  for script in pairs(named) do
    local folder = script:match "^(.*)/"
    if folder ~= here_is and is_file(folder .. "/" .. file) then
      local short = within(folder, here_is) and folder:sub(#here_is + 2) or folder
      said = said .. ("; %s/%s is beside the script: cd %s first"):format(short, file, short)
    end
  end
  error(said, 3)
end

local function reads(path) return type(path) == "string" and trusted_code.note_data(path) or path end

-- Globals of users' files: the process's, besides those that note what is loaded and read, and a pairs() without fault.
local globals = { pairs = luajit.pairs, next = luajit.next, os = setmetatable({ exit = errors.exit }, { __index = os }) }
globals.io = setmetatable({
  open = function(path, mode)
    if not mode or mode == "r" or mode == "rb" then path = reads(path)
    elseif type(path) == "string" then trusted_code.note_written(path) end
    return io.open(path, mode)
  end,
  lines = function(path, ...) return io.lines(reads(path), ...) end }, { __index = io })
function globals.loadfile(path, ...)
  if type(path) ~= "string" or select("#", ...) > 0 then return loadfile(path, ...) end
  return trusted_code.load(path, caller())
end
function globals.dofile(path)
  local chunk, problem = globals.loadfile(path)
  return (chunk or error(problem, 2))()
end
trusted_code.globals = setmetatable(globals, { __index = _G, __newindex = _G })
setmetatable(assigned, { __index = globals })

---Makes require of scripts note what it loads.
function trusted_code.install()
  table.insert(package.loaders, 2, function(name)
    local path = local_module(name)
    if not path then return nil end
    local chunk, problem = trusted_code.load(path, caller())
    if not chunk then error(problem, 0) end
    modules[name] = path
    return chunk
  end)
  table.insert(package.loaders, missing_module)
end

return trusted_code
