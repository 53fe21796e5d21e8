-- user_file.lua -- loads a user's Lua file: a script, a core, a scene.  A syntax error says what Lua writes instead, and a global
-- variable that is not there is an error when it is read, not nil.
local errors = require "mneme.base.errors"
local source_files = require "mneme.base.source_files"
local traps = require "mneme.base.lua_traps"

local user_file = {}
local loaded = {}                                  -- sources of chunks
local may_be_absent = { arg = true, _ENV = true, utf8 = true, bit32 = true }       -- how programs ask which Lua this is

-- Reads of globals that are there never come here.
local function absent(_, name)
  local info = debug.getinfo(2, "S")
  if not info or not loaded[info.source] or may_be_absent[name] then return nil end
  errors.raise(("there is no variable '%s'"):format(tostring(name)), { hint = traps.global(tostring(name), 2) })
end

---The file as a function.
---@param path string
---@return function run
function user_file.load(path)
  local chunk, problem = source_files.load(path)
  if not chunk then errors.fail(problem, problem:find "^[^:]+:%d+:" and traps.syntax(problem) or nil) end
  loaded[debug.getinfo(chunk, "S").source] = true
  if not getmetatable(_G) then setmetatable(_G, { __index = absent }) end
  return function(...) return errors.call(chunk, ...) end
end

return user_file
