-- next_step.lua -- the last thing that a command prints, on stderr: the commands that one would type next.
local ffi = require "ffi"
local shell_word = require "mneme.base.lazy" "mneme.base.shell_word"
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

---The same command without a setting.
---@param key string
---@param command string
---@param words string[] what follows the command
---@return string[]
function next_step.without(key, command, words)
  local list = { command }
  for _, word in ipairs(words) do if not word:find("^%-*" .. key .. "=") then list[#list + 1] = word end end
  return list
end

return next_step
