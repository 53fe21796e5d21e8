-- layout.lua -- text for a terminal: columns, tables, lists and paragraphs that fit its width.
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local layout = { width = terminal.width, wrap = terminal.wrap }
local letters, wrap = terminal.letters, terminal.wrap

-- A line without blanks at its end; gsub("%s+$", "") takes time with the square of a run of blanks.
local function trimmed(line) return line:match "^(.*%S)" or "" end

-- Lines of a text, with what stands before the first and before the others.
local function indented(lines, text, first, others, right)
  for i, part in ipairs(wrap(text, right - math.max(letters(first), letters(others)))) do
    lines[#lines + 1] = trimmed((i == 1 and first or others) .. part)
  end
end

-- The widest text of each column; of texts that are no wider than `most`.
local function widths(rows, most)
  local width = {}
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do
      local n = letters(text)
      if n <= (most or n) then width[i] = math.max(width[i] or 0, n) end
    end
  end
  return width
end

-- The columns `from` to `to` of rows, after the first one.
local function block(lines, rows, width, from, to)
  for _, row in ipairs(rows) do
    local cells = {}
    local function add(i) if row[i] then cells[#cells + 1] = row[i] .. (" "):rep(width[i] - letters(row[i])) end end
    if from > 1 then add(1) end
    for i = from, to do add(i) end
    lines[#lines + 1] = trimmed("  " .. table.concat(cells, "  "))
  end
end

---Rows of texts as columns, as wide as they are.  On a terminal that is too narrow the table goes on below, with its first column
---again.
---@param rows string[][]
---@param right integer? columns that there are (the terminal's; as many as are needed elsewhere)
function layout.table(rows, right)
  rows = tables.map(rows, function(row) return tables.map(row, function(text) return terminal.plain(tostring(text), true) end) end)
  local width, lines = widths(rows), {}
  right = right or terminal.columns(1) or math.huge
  local from, used = 1, 0
  for i = 1, #width do
    if used + 2 + width[i] > right and i > from and i > 2 then
      block(lines, rows, width, from, i - 1)
      lines[#lines + 1] = ""
      from, used = i, 2 + width[1]
    end
    used = used + 2 + width[i]
  end
  block(lines, rows, width, from, #width)
  return table.concat(lines, "\n") .. "\n"
end

---Rows of texts as columns; the last text of a row is wrapped.  Where little room is left for it, it stands below the others.
---@param rows string[][]
---@param most integer? letters of a column but the last: a longer text has the rest of its row in the next line
function layout.columns(rows, most)
  rows = tables.map(rows, function(row) return tables.map(row, terminal.pasted) end)
  local width, lines, right = widths(tables.map(rows, function(row) return { unpack(row, 1, #row - 1) } end), most), {}, layout.width()
  local used = 2
  for _, w in pairs(width) do used = used + 2 + w end
  local stacked = right - used < math.min(30, 0.45 * right)
  for _, row in ipairs(rows) do
    local line, last = "", row[#row]
    if stacked and #row > 1 then
      for i = 1, #row - 1 do if row[i] ~= "" then line = line .. "  " .. row[i] end end
      indented(lines, line, "  ", "    ", right)
      if last ~= "" then indented(lines, last, "      ", "      ", right) end
    else
      for i = 1, #row - 1 do
        line = line .. "  " .. row[i] .. (" "):rep((width[i] or 0) - letters(row[i]))
        if letters(row[i]) > (width[i] or 0) then
          indented(lines, line, "  ", "    ", right)
          line = (" "):rep(letters(line) - letters(row[i]) + (width[i] or 0))
        end
      end
      indented(lines, last, line .. "  ", (" "):rep(letters(line) + 2), right)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

---Names and what they are, a line each: the first sentence (dots in a row end none), cut at the terminal's width; what ends it in brackets,
---such as whose it is, is kept.
---@param rows string[][] { name, text }
function layout.list(rows)
  local width, lines, right = 0, {}, layout.width()
  for _, row in ipairs(rows) do width = math.max(width, letters(row[1])) end
  local below = right - width - 8 < 24              -- too little room beside the names
  for _, row in ipairs(rows) do
    local text = row[2]:match "^(.-[^%.])%.%s+%u" or row[2]
    local room = below and right - 10 or right - width - 8
    local fitting, whose = wrap(text, room), text:match "%([^()]*%)$"
    local shown = fitting[1] .. (fitting[2] and " ..." or "")
    if fitting[2] and whose and 3 * letters(whose) <= 2 * room then shown = wrap(text, room - letters(whose) - 1)[1] .. " ... " .. whose end
    if below then
      lines[#lines + 1] = "  " .. row[1]
      if shown ~= "" then lines[#lines + 1] = "      " .. shown end
    else lines[#lines + 1] = ("  %s%s  %s"):format(row[1], (" "):rep(width - letters(row[1])), shown):gsub("%s+$", "") end
  end
  return table.concat(lines, "\n") .. "\n"
end

---Prose: lines that follow each other without an indent are one paragraph, wrapped; indented lines stay, folded where they are too wide.
function layout.prose(text)
  local lines, paragraph, right = {}, {}, layout.width()
  local function close()
    if paragraph[1] then indented(lines, table.concat(paragraph, " "), "", "", right) end
    paragraph = {}
  end
  for line in text:gmatch "([^\n]*)\n?" do
    if not line:find "^%S" then close() end
    if line == "" then lines[#lines + 1] = ""
    elseif line:find "^%S.-%s%s%s+%S" then         -- a sentence, and a command that shows it
      local sentence, command = line:match "^(%S.-)%s%s%s+(%S.*)$"
      paragraph[#paragraph + 1] = sentence
      close()
      lines[#lines + 1] = terminal.fold("  " .. command, right)
    elseif line:find "^%S" then paragraph[#paragraph + 1] = line
    else lines[#lines + 1] = terminal.fold(line, right) end
  end
  close()
  return (table.concat(lines, "\n"):gsub("%s+$", "")) .. "\n"
end

return layout
