-- command_table.lua -- the commands of mneme, in the order of help; each is declared in a file of its name in commands/ (see options.lua).
local commands = { names = { "run", "eval", "view", "play", "diff", "intervene", "credit", "probe", "where", "sweep", "tune", "report", "compare",
  "export", "check", "bench", "list", "repl", "doctor", "help", "complete" } }
local known = {}
for _, name in ipairs(commands.names) do known[name] = true end

---@param name string
---@return Command? nil: there is none
function commands.find(name) return known[name] and (require("mneme.commands.late")[name] or require("mneme.commands." .. name)) or nil end

---@return Command[]
function commands.all()
  local list = {}
  for i, name in ipairs(commands.names) do list[i] = commands.find(name) end
  return list
end

return commands
