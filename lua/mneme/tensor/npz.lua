-- npz.lua -- writes arrays as NumPy's .npz, an uncompressed zip of .npy files, for other programs:
-- numpy.load(path)["rewards"].
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local zlib = require "mneme.base.zlib"

local kinds = { f32 = { "<f4", 4 }, i32 = { "<i4", 4 }, u8 = { "|u1", 1 } }
local LARGEST = 2 ^ 32 - 1                      -- of one array, and of the file: a zip without extensions

local function number(x, bytes)
  local parts = {}
  for i = 1, bytes do parts[i], x = string.char(x % 256), math.floor(x / 256) end
  return table.concat(parts)
end

-- The header of a .npy, version 1.0, padded so that numbers begin at a multiple of 64.
local function npy_header(dtype, shape)
  local axes = table.concat(shape, ", ") .. (#shape == 1 and "," or "")
  local text = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"):format(kinds[dtype][1], axes)
  text = text .. (" "):rep(-(10 + #text + 1) % 64) .. "\n"
  return "\147NUMPY\1\0" .. number(#text, 2) .. text
end

-- What both headers of a member of a zip have in common: version 2.0, stored, at the oldest time a zip knows.
local function common(crc, size, name)
  return number(20, 2) .. number(0, 2) .. number(0, 2) .. number(0, 2) .. number(33, 2) .. number(crc, 4)
    .. number(size, 4) .. number(size, 4) .. number(#name, 2) .. number(0, 2)
end

local npz = {}

---Write arrays: the whole file or nothing.  Equal arrays give equal bytes.
---@param list table[] { name =, dtype = "f32"|"i32"|"u8", shape = integer[], data = pointer to that many numbers }
function npz.write(path, list)
  local pieces, directory, at = {}, {}, 0
  local function add(data, bytes) pieces[#pieces + 1], at = { data, bytes }, at + bytes end
  for _, array in ipairs(list) do
    local name, size = array.name .. ".npy", kinds[array.dtype][2]
    for _, n in ipairs(array.shape) do size = size * n end
    local head = npy_header(array.dtype, array.shape)
    if at + #head + size > LARGEST - 1e6 then
      errors.fail(("%s: %s has %.1f GB; a .npz holds at most 4"):format(path, array.name, size / 1e9))
    end
    local crc = zlib.crc32(array.data, size, zlib.crc32(head, #head))
    local fields = common(crc, #head + size, name)
    directory[#directory + 1] = "PK\1\2" .. number(20, 2) .. fields .. number(0, 2) .. number(0, 2) .. number(0, 2) .. number(0, 4)
      .. number(at, 4) .. name
    local front = "PK\3\4" .. fields .. name .. head
    add(front, #front)
    add(array.data, size)
  end
  local last = table.concat(directory)
  local begin = at
  add(last, #last)
  local close = "PK\5\6" .. number(0, 4) .. number(#list, 2) .. number(#list, 2) .. number(#last, 4) .. number(begin, 4) .. number(0, 2)
  add(close, #close)
  files.write(path, pieces)
end

return npz
