-- command_table.lua -- the commands of mneme, in the order of help; each is declared in a file of its name in commands/ (see options.lua).
local commands = { names = { "run", "eval", "view", "play", "diff", "intervene", "credit", "probe", "where", "sweep", "tune", "report", "compare",
  "export", "check", "bench", "list", "repl", "doctor", "help", "complete" } }
local known = {}
for _, name in ipairs(commands.names) do known[name] = true end

---@param name string
---@return Command? nil: there is none
function commands.find(name) return known[name] and require("mneme.commands." .. name) or nil end

---@param parts boolean? benchmarks, too, and what else is a part of a command
---@return Command[]
function commands.all(parts)
  local list = {}
  for _, name in ipairs(commands.names) do
    local command = commands.find(name)
    list[#list + 1] = command
    for _, part in ipairs(parts and command.parts and command.parts() or {}) do list[#list + 1] = part end
  end
  return list
end

return commands
