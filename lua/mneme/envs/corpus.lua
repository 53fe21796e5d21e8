-- corpus.lua -- reads a text: that of a Debian package, the one that is here, or the user's file; checks that it is UTF-8.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local trusted_code = require "mneme.base.trusted_code"

local corpus = {}

-- English prose among the fortune files, some 1.4 MB.  The last one is what is validated and tested on.
local FOLDER = "/usr/share/games/fortunes/"
local names = { "computers", "cookie", "definitions", "education", "humorists", "law", "miscellaneous", "science",
  "wisdom", "work", "people" }
-- Where that package is not: Shakespeare's Coriolanus, 154 kB, the first play of Karpathy's "tiny Shakespeare" (2015).
local HERE = debug.getinfo(1, "S").source:match "^@(.*)corpus%.lua$" .. "shakespeare.txt"

-- Bytes that follow the first of a character: how many, and between what the second one lies.  No character is
-- written longer than needed, and none is half a pair of UTF-16 or beyond U+10FFFF (RFC 3629).
local function follow(first)
  if first < 0x80 then return 0 end
  if first < 0xC2 then return nil end
  if first < 0xE0 then return 1, 0x80, 0xBF end
  if first < 0xF0 then return 2, first == 0xE0 and 0xA0 or 0x80, first == 0xED and 0x9F or 0xBF end
  if first < 0xF5 then return 3, first == 0xF0 and 0x90 or 0x80, first == 0xF4 and 0x8F or 0xBF end
end

---The code points of UTF-8 text.
---@param data ffi.cdata* uint8_t[bytes]
---@return ffi.cdata*? code int32[count], or nil
---@return number count; where it is no UTF-8, the offset of the first byte (from 0) that cannot be
function corpus.decode(data, bytes)
  local code, count, at = ffi.new("int32_t[?]", math.max(1, bytes)), 0, 0
  while at < bytes do
    local first = data[at]
    local more, low, high = follow(first)
    if not more then return nil, at end
    local value = more == 0 and first or first % 2 ^ (6 - more)
    for i = 1, more do
      if at + i >= bytes then return nil, at end
      local byte = data[at + i]
      if byte < low or byte > high then return nil, at + i end
      value, low, high = value * 64 + byte % 64, 0x80, 0xBF
    end
    code[count], count, at = value, count + 1, at + 1 + more
  end
  return code, count
end

-- The files of a path; "": those of the package, or else the text that is here; of a stored run the one that it has read.
local function files_of(path)
  if path ~= "" then return { path } end
  for stored in pairs(trusted_code.read_before) do if stored:match "[^/]*$" == HERE:match "[^/]*$" then return { HERE } end end
  local list = {}
  for i, name in ipairs(names) do list[i] = FOLDER .. name end
  for _, file in ipairs(list) do if not files.is_file(file) then return { HERE } end end
  return list
end

---Read a text; an empty one and one that is not UTF-8 are errors that name the file and the byte.
---@param path string "": the text of Debian's package fortunes, or Coriolanus where that is not installed
---@return string? instead the file that is read in place of the package's
function corpus.read(path)
  local parts, list = {}, files_of(path)
  for i, file in ipairs(list) do
    local text = files.read(#list == 1 and trusted_code.note_data(file) or trusted_code.data_at(file))
    if text == "" then errors.usage(file .. ": is empty", "expected a text in UTF-8") end
    local data = ffi.cast("const uint8_t *", text)
    local code, at = corpus.decode(data, #text)
    if not code then
      errors.usage(("%s: byte %d (%02x) is not UTF-8"):format(file, at, data[at]), "iconv -f latin1 -t utf8 may convert it")
    end
    parts[i] = text
  end
  return table.concat(parts), list[1] == HERE and HERE or nil
end

-- ---- cutting a text into units ----

local SPACE, WORD, OTHER = 1, 2, 3
local class = ffi.new "uint8_t[256]"
for c = 0, 255 do class[c] = OTHER end
for c in (" \t\r\n\v\f"):gmatch "." do class[c:byte()] = SPACE end
for c in ("0123456789'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"):gmatch "." do class[c:byte()] = WORD end
for c = 0x80, 0xFF do class[c] = WORD end

---The words of a text, each sign and each new line on its own; other spaces only divide.
---@param f fun(word: string)
function corpus.words(text, f)
  local at, n = 1, #text
  while at <= n do
    local kind, from = class[text:byte(at)], at
    at = at + 1
    if kind == WORD then
      while at <= n and class[text:byte(at)] == WORD do at = at + 1 end
    end
    if kind ~= SPACE or text:byte(from) == 10 then f(text:sub(from, at - 1)) end
  end
end

return corpus
