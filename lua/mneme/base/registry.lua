-- registry.lua -- finds cores, attentions, data sets, learners, scenes and experiments by folder: Mneme's, then the user's.
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local files = require("mneme.base.lazy") "mneme.base.files"
local setting_types = require("mneme.base.lazy") "mneme.base.setting_types"
local tables = require "mneme.base.tables"
local trusted_code = require "mneme.base.trusted_code"

local here = debug.getinfo(1, "S").source:match "^@(.*)base/registry%.lua$" or "./lua/mneme/"
local registry = { root = here .. "../../", library = here }           -- library: lua/mneme/ itself

-- Kinds whose folder is in lua/mneme.
local inside = { cores = true, attentions = true, datasets = true, learners = true }

---The folders searched for one kind: the checkout's or the installation's, then the user's.
local function folders(kind)
  local ours = inside[kind] and here .. kind or here .. "../../" .. kind
  return { ours, "./" .. kind }
end

---Names of every file NAME.lua of a kind ("cores", "attentions", "datasets", "learners", "scenes", "experiments"), sorted; those of a run's
---copies, too, where they are in use.
---@param usable boolean? without those that may not run
function registry.names(kind, usable)
  local seen, names = {}, {}
  local function add(folder, file)
    local name = file:match "^([^./][^/]*)%.lua$"
    if name and not seen[name] and (not usable or trusted_code.may_load(folder .. "/" .. file)) then seen[name] = true names[#names + 1] = name end
  end
  for _, folder in ipairs(folders(kind)) do for _, file in ipairs(files.list(folder)) do add(folder, file) end end
  for path in pairs(trusted_code.stored) do if path:sub(1, #kind + 1) == kind .. "/" then add(kind, path:sub(#kind + 2)) end end
  table.sort(names)
  return names
end

---The text of a file of the library's own.
---@param path string below lua/mneme: "commands/manual_page.txt"
function registry.text(path) return files.text(here .. path) or errors.fail(("%s%s, a file of Mneme's own, cannot be read"):format(here, path)) end

---Is there one of this name among Mneme's own?
function registry.is_ours(kind, name)
  return lfs.attributes((inside[kind] and here or registry.root) .. kind .. "/" .. name .. ".lua", "mode") == "file"
end

---The benchmarks of `mneme bench`: one for each file of commands/bench.
---@return string[] names, sorted
function registry.benchmarks()
  local names = {}
  for file in lfs.dir(here .. "commands/bench") do
    local name = file:match "^(%w+)%.lua$"
    if name and name ~= "init" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

---The path of one, or an error that lists what there is.
function registry.file(kind, name, word)
  if type(name) ~= "string" or name:find "[^%w_.-]" then errors.usage(("%s '%s' is not a name"):format(word, tostring(name))) end
  local found = {}
  for _, folder in ipairs(folders(kind)) do
    local path = folder .. "/" .. name .. ".lua"
    local about = lfs.attributes(path)
    if about and about.mode == "file" and not (found[1] and about.ino == found[1].ino and about.dev == found[1].dev) then
      found[#found + 1] = { path = path, ino = about.ino, dev = about.dev }
    elseif not about and trusted_code.exists(path) then found[#found + 1] = { path = path } end
  end
  if found[2] then
    errors.usage(("%s '%s' is there twice: %s and %s"):format(word, name, found[1].path, found[2].path), "give yours a name of its own, or its path")
  end
  if found[1] then return found[1].path end
  errors.unknown(word, name, registry.names(kind))
end

-- ---- a user's file: a script, a core, a scene ----

local loaded = {}                                  -- sources of chunks
local may_be_absent = { arg = true, _ENV = true, utf8 = true, bit32 = true }       -- how programs ask which Lua this is

-- Reads of globals that are there never come here.
local function absent(_, name)
  local info = debug.getinfo(2, "S")
  if not info or not loaded[info.source] or may_be_absent[name] then return nil end
  errors.raise(("there is no variable '%s'"):format(tostring(name)), { hint = errors.traps.global(tostring(name), 2) })
end

---The file as a function.  A global variable that is not there is an error when it is read, not nil.
---@param by string? as what the file that asks for it may run: see trusted_code.caller
---@return function run
function registry.load(path, by)
  local chunk, problem = trusted_code.load(path, by)
  if not chunk then errors.fail(problem, problem:find "^[^:]+:%d+:" and "a syntax error: on this line or shortly before" or nil) end
  loaded[debug.getinfo(chunk, "S").source] = true
  if not getmetatable(_G) then setmetatable(_G, { __index = absent }) end
  return function(...) return errors.call(chunk, ...) end
end

---What the file of a data set or of an attention returns.
---@param words string its members: see errors.members
function registry.definition(kind, name, what, words)
  local path = registry.file(kind, name, kind:sub(1, -2))
  local d = registry.load(path)()
  if type(d) ~= "table" or type(d.build) ~= "function" then
    errors.raise(("%s: %s's file returns { config = { ... }, build = function(cfg) ... end }"):format(path, what), { where = false })
  end
  what = ("%s %s"):format(what:match "%S+ (.*)", name)
  errors.members(what, d, "doc:string source:string config:table about:table build:function " .. words, d.build)
  local config, about, where = d.config or {}, d.about or {}, errors.position_of(d.build)
  for key in pairs(about) do if config[key] == nil then errors.unknown(("setting in about of %s:"):format(what), key, tables.keys(config), nil, where) end end
  d.config, d.about = config, tables.each(config, function(default, key) return setting_types.declared(what, key, default, about[key], where) end)
  return d
end

return registry
