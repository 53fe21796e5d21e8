-- safetensors.lua -- named tensors in a file (github.com/huggingface/safetensors): eight bytes with the
-- length of a JSON header, the header, the values.  The files are compatible with other programs'.
-- A file is checked completely before any offset of its header is used.
local ffi = require "ffi"
local bit = require "bit"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local tensor = require "mneme.tensor.tensor"

local C = engine.C
local safetensors = {}

local dtypes = {
  F32 = { size = 4, pointer = ffi.typeof "float *", array = ffi.typeof "float[?]" },
  I32 = { size = 4, pointer = ffi.typeof "int32_t *", array = ffi.typeof "int32_t[?]" },
  U8 = { size = 1, pointer = ffi.typeof "uint8_t *", array = ffi.typeof "uint8_t[?]" },
  F64 = { size = 8, pointer = ffi.typeof "double *", array = ffi.typeof "double[?]" },
  I64 = { size = 8, pointer = ffi.typeof "int64_t *", array = ffi.typeof "int64_t[?]" },
}
local MAX_HEADER = 100e6          -- as the reference implementation has it

local function count(n) return type(n) == "number" and n >= 0 and n % 1 == 0 and n < 2 ^ 53 end

-- What is wrong with one entry of the header, or nil.
local function fault(entry, data_bytes)
  if type(entry) ~= "table" or json.is_array(entry) then return "its entry is not an object" end
  for key in pairs(entry) do
    if key ~= "dtype" and key ~= "shape" and key ~= "data_offsets" then
      return "unknown key '" .. key .. "'"
    end
  end
  local dtype, shape, offsets = dtypes[entry.dtype], entry.shape, entry.data_offsets
  if not dtype then
    return ("dtype %s, expected F32, I32, U8, F64 or I64"):format(json.encode(entry.dtype or json.null))
  end
  if not json.is_array(shape) then return "no shape" end
  local size = dtype.size
  for axis, n in ipairs(shape) do
    if not count(n) then return ("axis %d of its shape is %s"):format(axis - 1, json.encode(n)) end
    size = size * n
  end
  if not json.is_array(offsets) or #offsets ~= 2 or not count(offsets[1]) or not count(offsets[2]) then
    return "data_offsets is not a pair of whole numbers"
  end
  if offsets[1] > offsets[2] or offsets[2] > data_bytes then
    return ("bytes %.0f..%.0f lie outside of the file's %.0f bytes of data"):format(offsets[1], offsets[2],
      data_bytes)
  end
  if offsets[2] - offsets[1] ~= size then
    return ("has %.0f bytes, but %s of shape [%s] takes %.0f"):format(offsets[2] - offsets[1], entry.dtype,
      table.concat(shape, ","), size)
  end
end

-- The checksum covers the header, without itself, and the data.
local function checksum(header, pieces)
  local kept = header.__metadata__.crc32c
  header.__metadata__.crc32c = nil
  local text = json.encode(header)
  header.__metadata__.crc32c = kept
  local crc = C.mn_crc32c(0, text, #text)
  for _, piece in ipairs(pieces) do crc = C.mn_crc32c(crc, piece[1], piece[2]) end
  return bit.tohex(crc)
end

local function check_metadata(path, metadata)
  if type(metadata) ~= "table" or json.is_array(metadata) then
    errors.raise(path .. ": damaged: __metadata__ is not an object")
  end
  for key, value in pairs(metadata) do
    if type(value) ~= "string" then
      errors.raise(("%s: damaged: __metadata__.%s is not a string"):format(path, key))
    end
  end
end

-- Names in the order of their data, which must follow each other without a gap.
local function in_order(path, header, data_bytes)
  local names = {}
  for name, entry in pairs(header) do
    if name ~= "__metadata__" then
      local problem = fault(entry, data_bytes)
      if problem then errors.raise(("%s: damaged: tensor '%s': %s"):format(path, name, problem)) end
      names[#names + 1] = name
    end
  end
  table.sort(names, function(a, b)
    local p, q = header[a].data_offsets, header[b].data_offsets
    if p[1] ~= q[1] then return p[1] < q[1] end
    if p[2] ~= q[2] then return p[2] < q[2] end
    return a < b
  end)
  local at = 0
  for _, name in ipairs(names) do
    local offsets = header[name].data_offsets
    if offsets[1] ~= at then
      errors.raise(("%s: damaged: tensor '%s' begins at byte %.0f of the data, expected %.0f (%s)"):format(path,
        name, offsets[1], at, offsets[1] < at and "it overlaps another" or "there is a gap"))
    end
    at = offsets[2]
  end
  if at ~= data_bytes then
    errors.raise(("%s: damaged: %.0f bytes of data, but its tensors take %.0f"):format(path, data_bytes, at))
  end
  return names
end

local function read_header(path, data, bytes)
  if bytes < 8 then errors.raise(("%s: not a safetensors file: it has %.0f bytes"):format(path, bytes)) end
  local header_bytes = 0
  for i = 7, 0, -1 do header_bytes = header_bytes * 256 + data[i] end
  if header_bytes > bytes - 8 or header_bytes > MAX_HEADER then
    errors.raise(("%s: not a safetensors file, or cut short: a header of %.0f bytes in a file of %.0f"):format(
      path, header_bytes, bytes))
  end
  local header, problem = json.decode(ffi.string(data + 8, header_bytes), path .. ": header")
  if problem then errors.raise(problem) end
  if type(header) ~= "table" or json.is_array(header) or header == json.null then
    errors.raise(path .. ": damaged: the header is not a JSON object")
  end
  return header, 8 + header_bytes
end

---@class StoredTensor
---@field dtype "F32"|"I32"|"U8"|"F64"|"I64"
---@field shape integer[]
---@field count integer how many numbers
---@field bytes integer
---@field data ffi.cdata* their first; valid as long as this table exists
---@field owner ffi.cdata*

---Read and check a whole file.
---@param path string
---@return { metadata: table<string, string>, tensors: table<string, StoredTensor>, names: string[] }
---  names: in the order of the data
function safetensors.read(path)
  local block, bytes, owner = files.block(path)
  local header, at = read_header(path, block, bytes)
  local metadata = header.__metadata__ or {}
  check_metadata(path, metadata)
  local names = in_order(path, header, bytes - at)
  if metadata.crc32c and checksum(header, { { block + at, bytes - at } }) ~= metadata.crc32c then
    errors.raise(path .. ": damaged: its checksum is not that of its contents")
  end
  local tensors = {}
  for _, name in ipairs(names) do
    local entry = header[name]
    local dtype, size = dtypes[entry.dtype], entry.data_offsets[2] - entry.data_offsets[1]
    local data, keeper = ffi.cast("uint8_t *", block) + at + entry.data_offsets[1], owner
    if at % 8 ~= 0 or entry.data_offsets[1] % dtype.size ~= 0 then      -- another program's file: align
      keeper = dtype.array(size / dtype.size)
      ffi.copy(keeper, data, size)
      data = keeper
    end
    tensors[name] = { dtype = entry.dtype, shape = entry.shape, count = size / dtype.size, bytes = size,
      data = ffi.cast(dtype.pointer, data), owner = keeper }
  end
  metadata.crc32c = nil
  return { metadata = metadata, tensors = tensors, names = names }
end

---LuaJIT keeps its own types in NaNs: one that a file made up would be read as a string, or a table, at any
---address.  So every NaN among n floats becomes the plain one.
function safetensors.plain_nans(data, n)
  local bits = ffi.cast("int32_t *", data)
  for i = 0, n - 1 do
    if bit.band(bits[i], 0x7fffffff) > 0x7f800000 then bits[i] = 0x7fc00000 end
  end
end

---Read a file's tensors as leaves.
---@param path string
---@return { metadata: table<string, string>, tensors: table<string, Tensor>, names: string[] }
function safetensors.load(path)
  local file, tensors = safetensors.read(path), {}
  for name, stored in pairs(file.tensors) do
    local dtype = stored.dtype:lower()
    if dtype:find "64" or stored.count == 0 then
      errors.raise(("%s: tensor '%s' is %s with %.0f numbers, expected F32, I32 or U8, and at least one"):format(
        path, name, stored.dtype, stored.count))
    end
    local leaf = tensor.new { shape = stored.shape, dtype = dtype }
    ffi.copy(leaf:data(), stored.data, stored.bytes)
    if dtype == "f32" then safetensors.plain_nans(leaf:data(), stored.count) end
    tensors[name] = leaf
  end
  file.tensors = tensors
  return file
end

-- One tensor to write as { name, dtype, shape, data, bytes }.
local function entry_of(item, index)
  local name, t = item.name or item[1], item[2]
  local dtype = tostring(t and t:dtype() or item.dtype):upper()
  local shape, data = t and t:shape() or item.shape, t and t:data() or item.data
  if type(name) ~= "string" or name == "__metadata__" then
    errors.raise(("safetensors: tensor %d is named %s"):format(index - 1, tostring(name)))
  elseif not dtypes[dtype] then
    errors.raise(("safetensors: %s: dtype %s, expected F32, I32, U8, F64 or I64"):format(name, dtype))
  elseif type(shape) ~= "table" or type(data) ~= "cdata" then
    errors.raise(("safetensors: %s: expected a tensor, or shape and data"):format(name))
  end
  local bytes = dtypes[dtype].size
  for axis, n in ipairs(shape) do
    if not count(n) then
      errors.raise(("safetensors: %s: axis %d is %s"):format(name, axis - 1, tostring(n)))
    end
    bytes = bytes * n
  end
  return { name = name, dtype = dtype, shape = shape, data = data, bytes = bytes, index = index,
    size = dtypes[dtype].size }
end

---Write a file, whole or not at all.  Equal contents give equal bytes.  Wide types come first, so that all
---numbers are aligned; a checksum is added to the metadata.
---@param path string
---@param list table[] { name, Tensor } or { name = , dtype = , shape = , data = pointer }
---@param metadata table<string, string>?
---@param after string[]? as in files.write
function safetensors.write(path, list, metadata, after)
  local header, entries, pieces = { __metadata__ = {} }, {}, {}
  for key, value in pairs(metadata or {}) do header.__metadata__[key] = value end
  check_metadata(path, header.__metadata__)
  if not list[1] and next(list) ~= nil then errors.raise(path .. ": expected a list of { name, tensor }, not a table of tensors by name") end
  for i, item in ipairs(list) do entries[i] = entry_of(item, i) end
  table.sort(entries, function(a, b)
    if a.size ~= b.size then return a.size > b.size end
    return a.index < b.index
  end)
  local at = 0
  for i, entry in ipairs(entries) do
    if header[entry.name] then errors.raise(("%s: two tensors are named '%s'"):format(path, entry.name)) end
    header[entry.name] = { dtype = entry.dtype, shape = json.array { unpack(entry.shape) },
      data_offsets = { at, at + entry.bytes } }
    pieces[i] = { entry.data, entry.bytes }
    at = at + entry.bytes
  end
  header.__metadata__.crc32c = checksum(header, pieces)
  local text = json.encode(header)
  text = text .. (" "):rep(-#text % 8)
  local length, bytes = #text, {}
  for i = 1, 8 do bytes[i], length = string.char(length % 256), math.floor(length / 256) end
  table.insert(pieces, 1, table.concat(bytes) .. text)
  files.write(path, pieces, after)
end

return safetensors
