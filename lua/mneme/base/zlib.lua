-- zlib.lua -- checksums and compression as other programs read them: zip, PNG, NumPy, Python.
local ffi = require "ffi"
local errors = require "mneme.base.errors"

ffi.cdef [[
unsigned long crc32(unsigned long crc, const void *data, unsigned int bytes);
unsigned long compressBound(unsigned long bytes);
int compress2(uint8_t *out, unsigned long *size, const char *data, unsigned long bytes, int level);
]]
local C = ffi.load "libz.so.1"
local zlib = {}

---CRC-32 of some bytes.
---@param data string|ffi.cdata*
---@param before number? of what comes before them
---@return number crc 0 to 2^32 - 1
function zlib.crc32(data, bytes, before) return tonumber(C.crc32(before or 0, data, bytes)) end

---@param level integer 0 to 9
---@return string
function zlib.compress(text, level)
  local size = ffi.new("unsigned long[1]", C.compressBound(#text))
  local out = ffi.new("uint8_t[?]", size[0])
  if C.compress2(out, size, text, #text, level) ~= 0 then errors.fail "no memory to compress" end
  return ffi.string(out, size[0])
end

return zlib
