-- terminal.lua -- the width of the terminal, text cut between words so that no line is wider, and what is typed next.
-- The width is asked for whenever it is needed, so a window that was resized (SIGWINCH) counts from the next line on.
local ffi = require "ffi"
local tables = require "mneme.base.tables"

ffi.cdef [[
typedef struct { unsigned short rows, columns, x, y; } mneme_window_size;
int ioctl(int fd, unsigned long request, ...);
]]
local TIOCGWINSZ = 0x5413          -- Linux
local NARROWEST, OTHERWISE = 20, 100

local terminal = { stdout = io.stdout }           -- the stream itself, also once its lines are folded
local size = ffi.new "mneme_window_size[1]"

---Quotes an argument for the shell, where it has to be.
---@param text string any bytes but zero
---@return string word
function terminal.shell_quote(text) return text:find "^[%w_./=:,+-]+$" and text or "'" .. text:gsub("'", "'\\''") .. "'" end

---Letters of a UTF-8 text, not bytes.
function terminal.letters(text) return select(2, text:gsub("[^\128-\191]", "")) end

---Columns of the terminal that a stream is; nil: it is no terminal, or one that does not know its size.
---@param fd integer 1: standard output, 2: standard error
---@return integer?
function terminal.columns(fd)
  return ffi.C.ioctl(fd, TIOCGWINSZ, size) == 0 and size[0].columns > 0 and math.max(NARROWEST, size[0].columns) or nil
end

---Columns for text on standard output: the terminal's; elsewhere $COLUMNS, or 100.
function terminal.width()
  return terminal.columns(1) or math.max(NARROWEST, tonumber(os.getenv "COLUMNS") or OTHERWISE)
end

-- Bytes that are no UTF-8 letter, and control characters (C0, DEL, C1, and those that turn the direction of a line), as \27: a name that
-- somebody else chose cannot drive the terminal.
local function shown(bytes) return (bytes:gsub(".", function(c) return ("\\%d"):format(c:byte()) end)) end

---A text of lines in which control characters are shown: ESC as \27.
---@param ends boolean? ends of lines, too: it is a name
function terminal.plain(text, ends)
  text = text:gsub("[%z\1-\8\11-\31\127]", shown)
  if ends then text = text:gsub("\n", shown) end
  if not text:find "[\128-\255]" then return text end
  return (text:gsub("[\128-\255]+", function(bytes)
    local out, at = {}, 1
    while at <= #bytes do
      local letter = bytes:match("^[\194-\223][\128-\191]", at) or bytes:match("^[\224-\239][\128-\191][\128-\191]", at)
        or bytes:match("^[\240-\244][\128-\191][\128-\191][\128-\191]", at)
      local bad = not letter or letter:find "^\194[\128-\159]" or letter:find "^\224[\128-\159]" or letter:find "^\237[\160-\191]"
        or letter:find "^\240[\128-\143]" or letter:find "^\244[\144-\191]" or letter:find "^\226\128[\168-\174]" or letter:find "^\226\129[\166-\169]"
      letter = letter or bytes:sub(at, at)
      out[#out + 1], at = bad and shown(letter) or letter, at + #letter
    end
    return table.concat(out)
  end))
end

-- A word that is wider than a line, in pieces that end with | or a comma; others stay whole: the terminal cuts them, and a
-- path can still be copied.
local function pieces(word, width)
  if terminal.letters(word) <= width then return { word } end
  local list, piece = {}, ""
  for part in word:gmatch "[^|,]*[|,]?" do
    if piece ~= "" and terminal.letters(piece .. part) > width then list[#list + 1], piece = piece, "" end
    piece = piece .. part
  end
  list[#list + 1] = piece
  return list
end

---A text in lines of at most `width` letters, cut between words; commands as they have to be typed.
function terminal.wrap(text, width)
  local lines, line = {}, ""
  for word in terminal.pasted(text):gmatch "%S+" do
    for i, piece in ipairs(pieces(word, width)) do
      local longer = line == "" and piece or line .. (i > 1 and "" or " ") .. piece
      if terminal.letters(longer) > width and line ~= "" then lines[#lines + 1], line = line, piece else line = longer end
    end
  end
  lines[#lines + 1] = line
  return lines
end

-- One line that is too wide; what follows its first part is indented further.
local function fold_line(line, width)
  if terminal.letters(line) <= width then return line end
  local indent = line:match "^%s*"
  if #indent > width / 2 then indent = "" end
  local lines, first, text = {}, nil, line:gsub("^%s+", "")
  -- Blanks inside a line are kept where they do not end it: they part columns.
  local column = indent
  for blanks, word in text:gmatch "(%s*)(%S+)" do
    for i, piece in ipairs(pieces(word, width - #indent - 2)) do
      local longer = column .. ((first and i == 1) and blanks or "") .. piece
      if first and terminal.letters(longer) > width and column:find "%S" then
        lines[#lines + 1], column = column, indent .. "  " .. piece
      else column = longer end
      first = true
    end
  end
  lines[#lines + 1] = column
  return table.concat(lines, "\n")
end

---A text whose lines are at most `width` letters wide, with control characters shown.  Lines that fit stay as they are.
---@param width integer? nil: no limit
function terminal.fold(text, width)
  text = terminal.plain(terminal.pasted(text))
  return width and (text:gsub("[^\n]+", function(line) return #line > width and fold_line(line, width) or nil end)) or text
end

local program                                     -- as it was called, where that is not "mneme"

---The program was called by this name: commands in messages are printed with it, so that they can be pasted.
---@param name string? argv[0]
function terminal.called(name)
  if name and name ~= "mneme" then program = terminal.shell_quote(name) end
end

---"mneme run x" as it has to be typed here; "mneme: ..." and other words stay.
function terminal.pasted(text)
  if not program then return text end
  return (text:gsub("%f[%w_/.-]mneme(%s+%l+)", function(command) return program .. command end))
end

---A line for the person on stderr, folded where that is a terminal.
---@param text string without the end of its last line
function terminal.note(text) io.stderr:write(terminal.fold(terminal.plain(terminal.pasted(text), true), terminal.columns(2)) .. "\n") end

---From here on, whole lines that this process prints to a terminal are folded at its width, and commands in what it prints begin as the program
---was called.
function terminal.fold_output()
  local real, rest = terminal.stdout, ""
  if io.stdout ~= real then return end           -- it is done
  local folded = {}
  function folded.write(self, ...)
    local width = terminal.columns(1)
    local text = rest .. table.concat({ ... })
    if not width and rest == "" then real:write(terminal.plain(terminal.pasted(text))) return self end
    local whole, after = text:match "^(.*\n)(.-)$"
    rest = after or text
    if whole then real:write(terminal.fold(whole, width)) end
    return self
  end
  function folded.flush()
    if rest ~= "" then
      real:write(terminal.plain(rest))
      rest = ""
    end
    return real:flush()
  end
  function folded.setvbuf(_, ...) return real:setvbuf(...) end
  function folded.close() return real:close() end
  io.stdout = folded                             -- luacheck: ignore
  function print(...)                            -- luacheck: ignore
    local list = {}
    for i = 1, select("#", ...) do list[i] = tostring((select(i, ...))) end
    io.stdout:write(table.concat(list, "\t"), "\n")
  end
end

ffi.cdef "int isatty(int fd);"
-- The last thing that a command prints, on stderr: the commands that one would type next.
local next_step = { silent = false }             -- silent: this process is one of several

local function typed(word) return terminal.shell_quote((word:gsub("^%-", "./-"))) end             -- a run called -x is no option

---Name what comes next, also in a log.
---@param ... string|string[] commands without "mneme"; a list is words that are quoted where a shell needs it
function next_step.note(...)
  if next_step.silent then return end
  local list = tables.map({ ... }, function(command)
    return "mneme " .. (type(command) == "table" and table.concat(tables.map(command, typed), " ") or command)
  end)
  io.stdout:flush()
  terminal.note("next: " .. table.concat(list, "  or  "))
end

---Name what comes next, to somebody at a terminal.
---@param ... string|string[] as in note
function next_step.say(...)
  if ffi.C.isatty(2) == 1 then next_step.note(...) end
end

terminal.next_step = next_step

return terminal
