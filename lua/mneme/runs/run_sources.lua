-- run_sources.lua -- what a run was made by: RUN/source/ keeps the script and every Lua file of the user's that it loaded, config.json
-- their checksums, those of data files and of the program.  Whoever evaluates or resumes the run gets the same code, or reads what changed.
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local source_files = require "mneme.base.source_files"

local C = engine.C
local run_sources = {
  choice = nil,                 -- "stored" or "now": which code a changed run is to use (the command line's use=)
}

---A checksum as text: CRC-32C in hexadecimal digits.
---@param text string
---@param before number? of the text before it
function run_sources.checksum(text, before) return ("%08x"):format(C.mn_crc32c(before or 0, text, #text)) end

-- Where a file's copy lies in RUN/source: its path, without what leads out of there.
local function place(path) return (path:gsub("^/+", ""):gsub("%.%.", "up")) end

local program

---A checksum of the program: the engine's library and all files of lua/mneme.
---@return string
function run_sources.program()
  if program then return program end
  local crc = 0
  local function add(path)
    local text = files.read(path)
    crc = C.mn_crc32c(crc, text, #text)
  end
  local function walk(folder)
    for _, name in ipairs(files.list(folder)) do
      local path = folder .. "/" .. name
      if lfs.attributes(path, "mode") == "directory" then walk(path) elseif name:find "%.lua$" then add(path) end
    end
  end
  if files.is_file(engine.build .. "/libmneme.so") then add(engine.build .. "/libmneme.so") end
  walk(registry.root .. "lua/mneme")
  program = ("%08x"):format(crc)
  return program
end

---Writes RUN/source.
---@param folder string of the run
---@return { path: string, checksum: string }[] code for config.json
---@return { path: string, checksum: string, bytes: integer }[] data
function run_sources.write(folder)
  local code, data = source_files.list()
  local about, about_data = {}, {}
  for i, file in ipairs(code) do
    local to = folder .. "/source/" .. place(file.path)
    files.make_folder(to:match "^(.*)/")
    files.write(to, { file.text })
    about[i] = { path = file.path, checksum = run_sources.checksum(file.text) }
  end
  for i, file in ipairs(data) do about_data[i] = { path = file.path, checksum = run_sources.checksum(file.text), bytes = #file.text } end
  return about, about_data
end

-- The first line in which two texts differ.
local function first_difference(a, b)
  local line, next_a, next_b = 0, (a .. "\n"):gmatch "(.-)\n", (b .. "\n"):gmatch "(.-)\n"
  repeat
    line = line + 1
    local x, y = next_a(), next_b()
    if x ~= y then return line end
  until not x
  return line
end

-- A file of a run's list, checked: config.json may be anybody's.
local function entries(info, key)
  local list = {}
  for i, entry in ipairs(type(info[key]) == "table" and info[key] or {}) do
    if type(entry) ~= "table" or type(entry.path) ~= "string" or type(entry.checksum) ~= "string" then
      errors.fail(("config.json: damaged: entry %d of %s has no path and checksum"):format(i, key))
    end
    list[i] = entry
  end
  return list
end

-- Read without the engine, whose device the command line has yet to choose.
local function text_of(path)
  local f = files.is_file(path) and io.open(path, "rb")
  local text = f and f:read "*a"
  if f then f:close() end
  return text or nil
end

---How the code and data of a run differ from what is there now.
---@param folder string of the run
---@param info table its config.json
---@return { path: string, kind: string, gone: boolean?, line: integer?, copy: string? }[] changes kind: "code" or "data"
function run_sources.changes(folder, info)
  local list = {}
  for _, entry in ipairs(entries(info, "source")) do
    local copy = folder .. "/source/" .. place(entry.path)
    local now, before = text_of(entry.path), text_of(copy)
    if not now then list[#list + 1] = { path = entry.path, kind = "code", gone = true, copy = copy }
    elseif run_sources.checksum(now) ~= entry.checksum then
      list[#list + 1] = { path = entry.path, kind = "code", line = before and first_difference(before, now), copy = copy }
    end
  end
  for _, entry in ipairs(entries(info, "data")) do
    local now = text_of(entry.path)
    if not now or run_sources.checksum(now) ~= entry.checksum then
      list[#list + 1] = { path = entry.path, kind = "data", gone = not now }
    end
  end
  return list
end

---What is wrong with the copies that a run keeps.
---@param folder string of the run
---@param info table its config.json
---@return string[] problems
function run_sources.damaged(folder, info)
  local list = {}
  for _, entry in ipairs(entries(info, "source")) do
    local copy = "source/" .. place(entry.path)
    local text = text_of(folder .. "/" .. copy)
    if not text then list[#list + 1] = copy .. ": is not there"
    elseif run_sources.checksum(text) ~= entry.checksum then list[#list + 1] = copy .. ": was changed after the run wrote it" end
  end
  return list
end

-- The copies of a run stand in for its files.
local function use_stored(folder, info)
  for _, entry in ipairs(entries(info, "source")) do
    local copy = folder .. "/source/" .. place(entry.path)
    local text = text_of(copy)
    if not text then errors.fail(("%s is not there, and use=stored needs it"):format(copy)) end
    if run_sources.checksum(text) ~= entry.checksum then errors.fail(("%s was changed after the run wrote it"):format(copy)) end
    source_files.replace(entry.path, text, copy)
  end
end

---Decides which code a run's folder means from here on, before any of it is loaded: what lies at its place where that is unchanged; the
---run's copies with use=stored, or where a file is gone and trust=1; else an error that says what changed.
---@param folder string of the run
---@param info table its config.json
function run_sources.adopt(folder, info)
  folder = folder:gsub("(.)/+$", "%1")
  source_files.folder = folder
  if run_sources.choice == "now" then return end
  if run_sources.choice == "stored" then return use_stored(folder, info) end
  local gone, changed
  for _, change in ipairs(run_sources.changes(folder, info)) do
    if change.gone and change.kind == "code" then gone = gone or change else changed = changed or change end
  end
  if changed then
    local stored = changed.kind == "code" and "use=stored runs " .. changed.copy .. "; " or ""
    errors.usage(("%s: %s %s since the run began%s"):format(folder, changed.path, changed.gone and "is gone" or "has changed",
      changed.line and (" (line %d)"):format(changed.line) or ""), stored .. "use=now takes what is there now")
  end
  if gone and not source_files.trusted then
    errors.usage(("%s: %s is not here"):format(folder, gone.path), "trust=1 runs the copy that the run keeps, " .. gone.copy)
  end
  if gone then use_stored(folder, info) end
end

---The command line without the words that choose the code of stored runs: use=stored, use=now, trust=1.
---@param words string[]
---@return string[]
function run_sources.take(words)
  local rest = {}
  for _, word in ipairs(words) do
    local use, trust = word:match "^%-*use=(.*)$", word:match "^%-*trust=(.*)$"
    if use then
      if use ~= "stored" and use ~= "now" then errors.usage(("use=%s, expected stored or now"):format(use)) end
      run_sources.choice = use
      source_files.trusted = source_files.trusted or use == "stored"
    elseif trust then
      if trust ~= "1" and trust ~= "0" then errors.usage(("trust=%s, expected 0 or 1"):format(trust)) end
      source_files.trusted = trust == "1"
    else rest[#rest + 1] = word end
  end
  return rest
end

return run_sources
