-- pty.lua -- a command line on a terminal of a given width, as a person sees it.
local shell = require "tests.support.shell"

local pty = {}

---Is there a program that makes terminals?
function pty.missing() return not shell.has "script" and "there is no script (util-linux), which makes terminals" or nil end

---Run a line of the shell on a terminal.
---@param folder string where
---@param line string
---@param columns integer width of the terminal
---@return string text what was printed, without carriage returns at the ends of lines
---@return integer status
function pty.run(folder, line, columns)
  local inner = ("stty cols %d rows 50; %s"):format(columns, line)
  local text, status = shell.run(folder, ("TERM=xterm NO_COLOR=1 script -qec '%s' /dev/null < /dev/null"):format((inner:gsub("'", "'\\''"))))
  return (text:gsub("\r+\n", "\n")), status
end

---The rows of a terminal after a text was printed, where lines that are too wide would wrap; a row that was rewritten in place
---counts each time: every state of it.
---@param text string
---@return string[]
function pty.rows(text)
  local rows = {}
  for row in text:gsub("\27%[[%d;]*[%a]", ""):gmatch "[^\r\n]+" do rows[#rows + 1] = row end
  return rows
end

return pty
