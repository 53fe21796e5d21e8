-- next_step.lua -- the last thing that a command prints, on stderr: the commands that one would type next.
local shell_word = require "mneme.base.shell_word"
local terminal = require "mneme.base.terminal"

local next_step = { silent = false }             -- silent: this process is one of several

---Name what comes next.
---@param ... string|string[] commands without "mneme"; a list is words that are quoted where a shell needs it
function next_step.say(...)
  if next_step.silent then return end
  local list = {}
  for i, command in ipairs { ... } do
    if type(command) == "table" then
      local words = {}
      for k, word in ipairs(command) do words[k] = word:find "^[%w_./=:,+-]+$" and word or shell_word(word) end
      command = table.concat(words, " ")
    end
    list[i] = "mneme " .. command
  end
  io.stdout:flush()
  io.stderr:write(terminal.fold("next: " .. table.concat(list, "  or  "), terminal.columns(2)), "\n")
end

return next_step
