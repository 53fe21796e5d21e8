-- next_step.lua -- the last thing that a command prints, on stderr: the commands that one would type next.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local shell_word = lazy "mneme.base.shell_word"
local terminal = require "mneme.base.terminal"

ffi.cdef "int isatty(int fd);"
local next_step = { silent = false }             -- silent: this process is one of several

---Name what comes next, also in a log.
---@param ... string|string[] commands without "mneme"; a list is words that are quoted where a shell needs it
function next_step.note(...)
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
  terminal.note("next: " .. table.concat(list, "  or  "))
end

---Name what comes next, to somebody at a terminal.
---@param ... string|string[] as in note
function next_step.say(...)
  if ffi.C.isatty(2) == 1 then next_step.note(...) end
end

return next_step
