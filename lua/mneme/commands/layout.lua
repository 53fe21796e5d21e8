-- layout.lua -- text for a terminal: columns whose last one is wrapped at the terminal's width, and first sentences.
local ffi = require "ffi"

ffi.cdef [[
typedef struct { unsigned short rows, columns, x, y; } mneme_window_size;
int ioctl(int fd, unsigned long request, ...);
]]
local TIOCGWINSZ = 0x5413          -- Linux
local NARROWEST, OTHERWISE = 80, 100

local layout = {}

---Letters of a UTF-8 text, not bytes.
local function letters(text) return select(2, text:gsub("[^\128-\191]", "")) end

---Columns of the terminal that standard output is, at least 80; 100 where it is no terminal.
---@return integer
function layout.width()
  local size = ffi.new "mneme_window_size[1]"
  local found = ffi.C.ioctl(1, TIOCGWINSZ, size) == 0 and size[0].columns > 0 and size[0].columns
  return found and math.max(NARROWEST, found) or OTHERWISE
end

---A text in lines of at most `width` letters, cut between words.
---@return string[]
function layout.wrap(text, width)
  local lines, line = {}, ""
  for word in text:gmatch "%S+" do
    local longer = line == "" and word or line .. " " .. word
    if letters(longer) > width and line ~= "" then lines[#lines + 1], line = line, word else line = longer end
  end
  lines[#lines + 1] = line
  return lines
end

---Rows of texts as columns, as wide as they are.
---@param rows string[][]
---@return string
function layout.table(rows)
  local width, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do width[i] = math.max(width[i] or 0, letters(text)) end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, text in ipairs(row) do cells[i] = i < #row and text .. (" "):rep(width[i] - letters(text)) or text end
    lines[#lines + 1] = ("  " .. table.concat(cells, "  ")):gsub("%s+$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end

---Rows of texts as columns; the last text of a row is wrapped.
---@param rows string[][]
---@param most integer? letters of a column but the last: a longer text has the rest of its row in the next line
---@return string
function layout.columns(rows, most)
  local width, lines, right = {}, {}, layout.width()
  for _, row in ipairs(rows) do
    for i = 1, #row - 1 do
      local n = letters(row[i])
      if n <= (most or n) then width[i] = math.max(width[i] or 0, n) end
    end
  end
  for _, row in ipairs(rows) do
    local line = ""
    for i = 1, #row - 1 do
      line = line .. "  " .. row[i] .. (" "):rep((width[i] or 0) - letters(row[i]))
      if letters(row[i]) > (width[i] or 0) then
        lines[#lines + 1], line = line, (" "):rep(letters(line) - letters(row[i]) + (width[i] or 0))
      end
    end
    local indent = (" "):rep(letters(line) + 2)
    for i, part in ipairs(layout.wrap(row[#row], math.max(30, right - #indent))) do
      lines[#lines + 1] = ((i == 1 and line .. "  " or indent) .. part):gsub("%s+$", "")
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

---Names and what they are, a line each: the first sentence, cut at the terminal's width.
---@param rows string[][] { name, text }
---@return string
function layout.list(rows)
  local width, lines, right = 0, {}, layout.width()
  for _, row in ipairs(rows) do width = math.max(width, letters(row[1])) end
  for i, row in ipairs(rows) do
    local text = row[2]:match "^(.-)%.%s+%u" or row[2]
    local fitting = layout.wrap(text, right - width - 8)
    lines[i] = ("  %s%s  %s%s"):format(row[1], (" "):rep(width - letters(row[1])), fitting[1], fitting[2] and " ..." or ""):gsub("%s+$", "")
  end
  return table.concat(lines, "\n") .. "\n"
end

return layout
