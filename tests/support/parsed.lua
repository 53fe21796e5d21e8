-- parsed.lua -- what a command reads from a line, whether or not the runs are there that it names.
local arguments = require "mneme.commands.arguments"

---@param command Command
---@param words string[]
---@return table o of arguments.read
return function(command, words)
  local list = {}
  for i, argument in ipairs(command.arguments or {}) do list[i] = setmetatable({ [2] = "THING" }, { __index = argument }) end
  return arguments.read(setmetatable({ arguments = list }, { __index = command }), words)
end
