-- lazy.lua -- a module that is loaded when it is first used: `local stats = lazy "mneme.stats"` in place of require.  A command's declaration
-- can then be read, for help and completion, without what the command needs when it runs.

---@param name string of a module that returns a table or a function
---@return any module stands for it: its fields can be read and set, it can be called
return function(name)
  local link = {}
  local function load()
    local module = require(name)
    if type(module) == "table" then link.__index, link.__newindex = module, module end
    return module
  end
  function link.__index(_, key) return load()[key] end
  function link.__newindex(_, key, value) load()[key] = value end
  function link.__call(_, ...) return load()(...) end
  return setmetatable({}, link)
end
