-- run_sources.lua -- what a run was made by: RUN/source/ keeps the script and every Lua file of the user's that it loaded, and
-- RUN/source-from-STEP/ those of a resume that ran other code or read other data, with small data files; config.json has all checksums, and the program's.
-- What evaluates or resumes the run gets the same code, or an error that says what changed.
local bit = require "bit"
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local registry = lazy "mneme.base.registry"
local tables = require "mneme.base.tables"
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"

ffi.cdef "int chmod(const char *path, unsigned mode);"
local MOST_DATA, MOST_OF_ALL = 2 ^ 20, 2 ^ 24      -- bytes of a data file that is kept, of all of them
local run_sources = { choice = nil }               -- "stored" or "now": which code a changed run is to use (the command line's use=)

-- Where a file's copy lies in RUN/source: its path, without what leads out of there.
local function place(path)
  return (path:gsub("^/+", ""):gsub("[^/]+", function(part) return part:find "^up_*$" and part .. "_" or (part:gsub("%.%.", "up")) end))
end

local program

---A checksum of the program: the engine's library and all code of lua/mneme (CRC-32C in hexadecimal digits).
function run_sources.program()
  if program then return program end
  local crc = ffi.new "uint32_t[1]"
  local library, code = engine.build .. "/libmneme.so", registry.root .. "lua/mneme"
  if engine.C.mn_code_sum(library, true, crc) < 0 or engine.C.mn_code_sum(code, false, crc) < 1 then
    errors.fail(("the program's own files cannot be read: %s, %s"):format(library, code))
  end
  program = ("%08x"):format(crc[0])
  return program
end

-- The files of a list of config.json, which may be anybody's.
local function entries(list)
  list = type(list) == "table" and list or {}
  for i, entry in ipairs(list) do
    if type(entry) ~= "table" or type(entry.path) ~= "string" or type(entry.checksum) ~= "string" then
      errors.fail(("config.json: damaged: entry %d of its code or data has no path and checksum"):format(i))
    end
  end
  return list
end

---@class CodeVersion what a run was made by from a step on
---@field folder string of its copies, in the run's folder
---@field from_step number
---@field source { path: string, checksum: string }[]
---@field data { path: string, checksum: string, bytes: integer?, kept: boolean? }[]

---The versions of a run's code and data, oldest first; none: it kept none.
---@return CodeVersion[]
function run_sources.versions(info)
  local list = {}
  for i, start in ipairs(type(info.history) == "table" and info.history or {}) do
    if i == 1 and info.source then start = { source_folder = "source", source = info.source, data = info.data } end          -- an earlier version's
    local folder, last = type(start) == "table" and start.source_folder, list[#list]
    if folder and not tostring(folder):find "^source[%w-]*$" then errors.fail(("config.json: damaged: '%s' is no folder of code"):format(tostring(folder))) end
    local again = last and last.folder == folder
    if folder then
      list[again and #list or #list + 1] = { folder = folder, from_step = again and last.from_step or tonumber(start.from_step) or 0,
        source = entries(start.source), data = entries(start.data) }
    end
  end
  return list
end

---What a run was made by last; empty where it kept nothing.
---@return CodeVersion
function run_sources.latest(info)
  local list = run_sources.versions(info)
  return list[#list] or { folder = "source", from_step = 0, source = {}, data = {} }
end

-- The copy of a file of a version, below `root`: of code by its path, of data by its content; nil: none is kept.
local function copy_of(root, version, entry, is_data)
  if not is_data then return ("%s/%s/%s"):format(root, version.folder, place(entry.path)) end
  if entry.kept ~= true or not entry.checksum:find "^%x+$" then return nil end
  return ("%s/%s/data/%s-%s"):format(root, version.folder, entry.checksum, entry.path:match "[^/]*$")
end

local function is_private(path) return (lfs.attributes(path, "permissions") or ""):sub(4) == "------" end

-- What this process has loaded, and what a version has besides: a resume does not load what only the start needed, such as the script's own
-- core, for whose size another one was made.  Has the version all of it?
local function with_rest(about, version)
  local all, of, same = {}, {}, true
  for _, entry in ipairs(version or {}) do of[entry.path] = entry end
  for i, entry in ipairs(about) do
    same = same and (of[entry.path] or {}).checksum == entry.checksum
    all[i], of[entry.path] = entry, nil
  end
  for _, entry in pairs(of) do all[#all + 1] = entry end
  table.sort(all, function(x, y) return x.path < y.path end)
  return all, same
end

-- A kept copy as text; an error, where it is not as the run wrote it.
local function kept(copy, entry)
  local text = files.text(copy)
  local problem = not text and "is not there, and its run needs it" or files.crc(text) ~= entry.checksum and "was changed after the run wrote it"
  if problem then errors.fail(copy .. " " .. problem, ("use=now takes %s as it is now"):format(entry.path)) end
  return text
end

-- Is what was loaded of a version, and are its copies of code there?
local function same(folder, version, code, data)
  for _, entry in ipairs(version.source) do if not pcall(kept, copy_of(folder, version, entry), entry) then return false end end
  return version.source[1] and select(2, with_rest(code, version.source)) and select(2, with_rest(data, version.data))
end

-- Writes a copy, for those who may read the file.
local function keep(copy, text, from)
  if files.text(copy) == text then return end
  files.make_folder(copy:match "^(.*)/")
  files.write(copy, { text })
  local bits = 0
  for what in (lfs.attributes(from, "permissions") or ""):gmatch "." do bits = 2 * bits + (what == "-" and 0 or 1) end
  if bits > 0 then ffi.C.chmod(copy, bit.band(bits, 0x1b6)) end                 -- not executable
end

---Keeps what this process has loaded: in RUN/source, in RUN/source-from-STEP where a resume runs other code or reads other data than the run
---before, or in the folder that this start has already.
---@param start table entry of `history`, which gets source_folder, source and data
---@param before table? config.json as it was, of a resume
function run_sources.write(folder, start, before)
  local code, paths = trusted_code.list()
  local about, about_data, all = tables.map(code, function(file) return { path = file.path, checksum = files.crc(file.text) } end), {}, 0
  for _, path in ipairs(paths) do
    local at = trusted_code.data_at(path)
    local checksum, bytes = files.sum(path:sub(1, #folder + 1) ~= folder .. "/" and at or "")          -- what the run wrote is none of its data
    local may = checksum and bytes <= MOST_DATA and all + bytes <= MOST_OF_ALL and (at ~= path or not is_private(at)) or nil
    all = all + (may and bytes or 0)
    if checksum then about_data[#about_data + 1] = { path = path, checksum = checksum, bytes = bytes, kept = may } end
  end
  local latest = before and run_sources.latest(before)
  if latest and same(folder, latest, about, about_data) then start.source_folder = latest.folder end
  if not start.source_folder then
    start.source_folder = before and files.free_name(("%s/source-from-%.0f"):format(folder, start.from_step)):match "[^/]*$" or "source"
  end
  for i, file in ipairs(code) do keep(copy_of(folder, { folder = start.source_folder }, about[i]), file.text, file.path) end
  trusted_code.remember(code)
  for _, entry in ipairs(about_data) do
    local copy, from = copy_of(folder, { folder = start.source_folder }, entry, true), trusted_code.data_at(entry.path)
    local text = copy and files.text(from) or ""
    entry.kept = copy and files.crc(text) == entry.checksum or nil              -- nil: it has just changed
    if entry.kept then keep(copy, text, from) end
  end
  local rest = latest and start.source_folder == latest.folder and latest or start
  start.source, start.data = with_rest(about, rest.source), with_rest(about_data, rest.data)
end

-- The first line in which two texts differ.
local function first_difference(a, b)
  local line, next_b = 1, (b .. "\n"):gmatch "(.-)\n"
  for text in (a .. "\n"):gmatch "(.-)\n" do if text == next_b() then line = line + 1 else break end end
  return line
end

---@class Change how a file differs from what a run was made by
---@field path string
---@field kind string "code" or "data"
---@field gone boolean?
---@field copy string? in the run's folder
---@field text string as a sentence

---How the code and data that a run was last made by differ from what is there now.
---@return Change[]
function run_sources.changes(folder, info)
  local list, version = {}, run_sources.latest(info)
  local since = version.from_step > 0 and ("the run was resumed at step %.0f"):format(version.from_step) or "the run began"
  for _, kind in ipairs { "code", "data" } do
    for _, entry in ipairs(kind == "code" and version.source or version.data) do
      local now, bytes = files.sum(entry.path)
      if now ~= entry.checksum then
        local copy = copy_of(folder, version, entry, kind == "data")
        local before, where = kind == "code" and now and files.text(copy), ""
        if before then where = (" (line %d)"):format(first_difference(before, files.text(entry.path)))
        elseif kind == "data" and now and entry.bytes ~= bytes then where = (" (%d bytes, then %d)"):format(bytes, tonumber(entry.bytes) or 0) end
        list[#list + 1] = { path = entry.path, kind = kind, gone = not now, copy = copy,
          text = ("%s %s since %s%s"):format(entry.path, now and "has changed" or "is gone", since, where) }
      end
    end
  end
  return list
end

---The texts of all code that a run keeps and that was not changed, by path.
---@return table<string, string>
function run_sources.texts(folder, info)
  local version, texts = run_sources.latest(info), {}
  for _, entry in ipairs(version.source) do
    local ok, text = pcall(kept, copy_of(folder, version, entry), entry)
    texts[entry.path] = ok and text or nil
  end
  return texts
end

local warned = {}              -- warnings are written once

local function warn(text)
  if not warned[text] then terminal.note("mneme: warning: " .. text) end
  warned[text] = true
end

local KEEPS = "a run keeps the checksums of data files beyond 1 MiB and of private ones, not the data"

---Decides which code and data a run's folder means from here on, before any of it is loaded: what lies at its place where that is unchanged;
---the run's copies with use=stored, or where a file is gone; else an error that says what changed.
---@param options table? { data = false: its data files are not read, code = false: no code of its own is run }
function run_sources.adopt(folder, info, options)
  folder = folder:gsub("(.)/+$", "%1")
  trusted_code.begin(folder, {})
  errors.beside = nil
  trusted_code.edited = {}
  local version, choice, skip, gone = run_sources.latest(info), run_sources.choice, options or {}, {}
  trusted_code.read_before = tables.set(tables.map(version.data, function(entry) return entry.path end))
  for _, change in ipairs(run_sources.changes(folder, info)) do
    local data, said, copy = change.kind == "data", ("%s: %s"):format(folder, change.text), change.copy
    if not data and not change.gone then trusted_code.note_edited(change.path, files.text(copy)) end
    if skip[change.kind] == false then
      if not data and not change.gone then warn(said .. "; nothing of it is run here") end
    elseif choice == "now" then
      warn(said .. "; use=now takes what is there now")
      errors.beside = said .. (copy and "; use=stored takes " .. copy or "")
    elseif change.gone and copy then gone[data and change.path or "code"] = true
    elseif choice and not copy then warn(("%s; %s: use=stored cannot bring them back, and what is there now is read"):format(said, KEEPS))
    elseif not choice then
      errors.usage(said, (copy and ("use=stored %s %s; "):format(data and "reads" or "runs", copy) or KEEPS .. "; ") .. "use=now takes what is there now")
    end
  end
  if choice == "now" then return end
  local instead, copies = {}, tables.map(skip.code ~= false and (gone.code or choice == "stored") and version.source or {}, function(entry)
    local copy = copy_of(folder, version, entry)
    return { path = entry.path, text = kept(copy, entry), name = copy }
  end)
  for _, entry in ipairs(skip.data ~= false and version.data or {}) do
    local copy = (choice == "stored" or gone[entry.path]) and copy_of(folder, version, entry, true)
    if copy then kept(copy, entry) end
    instead[entry.path] = copy or nil
  end
  trusted_code.begin(folder, copies, instead)
end

return run_sources
