-- crc32.lua -- CRC-32 as zlib has it, for pictures that another program recorded.
local bit = require "bit"

local table_of = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0xEDB88320 or 0) end
  table_of[i] = c
end

---@param bytes ffi.cdata* uint8_t[n]
---@return number crc 0 to 2^32 - 1
return function(bytes, n)
  local c = bit.tobit(0xFFFFFFFF)
  for i = 0, n - 1 do c = bit.bxor(bit.rshift(c, 8), table_of[bit.band(bit.bxor(c, bytes[i]), 255)]) end
  return bit.bnot(c) % 2 ^ 32
end
