-- safetensors.lua -- named tensors in a file (github.com/huggingface/safetensors): eight bytes with the
-- length of a JSON header, the header, the values.  The files are compatible with other programs'.
-- A file is checked completely before any offset of its header is used.
local ffi = require "ffi"
local bit = require "bit"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local tables = require "mneme.base.tables"
local lazy = require "mneme.base.lazy"
local tensor = lazy "mneme.tensor.tensor"          -- checksums of checkpoints need none

local safetensors = {}

local f32, i32, u8 = ffi.typeof "float *", ffi.typeof "int32_t *", ffi.typeof "uint8_t *"
-- Types by their names in files: bytes of an element, what reads one, and whether `write` takes it.
local dtypes = {
  F32 = { size = 4, pointer = f32, written = true }, I32 = { size = 4, pointer = i32, written = true }, U8 = { size = 1, pointer = u8, written = true },
  F64 = { size = 8, pointer = ffi.typeof "double *", written = true }, I64 = { size = 8, pointer = ffi.typeof "int64_t *", written = true },
  U64 = { size = 8, pointer = ffi.typeof "uint64_t *" }, U32 = { size = 4, pointer = ffi.typeof "uint32_t *" },
  U16 = { size = 2, pointer = ffi.typeof "uint16_t *" }, I16 = { size = 2, pointer = ffi.typeof "int16_t *" },
  I8 = { size = 1, pointer = ffi.typeof "int8_t *" },
  F16 = { size = 2, pointer = ffi.typeof "uint16_t *" }, BF16 = { size = 2, pointer = ffi.typeof "uint16_t *" }, BOOL = { size = 1, pointer = u8 },
}
local WRITTEN = "F32, I32, U8, F64 or I64"
local MOST_AXES = 6               -- of a tensor here
local no_type = { pointer = u8 }   -- of a file of a later version
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
  local dtype, shape, offsets = entry.dtype, entry.shape, entry.data_offsets
  if type(dtype) ~= "string" then return ("dtype %s, expected a name such as F32"):format(json.encode(dtype or json.null)) end
  if not json.is_array(shape) then return "no shape" end
  local size = dtypes[dtype] and dtypes[dtype].size
  for axis, n in ipairs(shape) do
    if not count(n) then return ("axis %d of its shape is %s"):format(axis - 1, json.encode(n)) end
    size = size and size * n
  end
  if not json.is_array(offsets) or #offsets ~= 2 or not count(offsets[1]) or not count(offsets[2]) then
    return "data_offsets is not a pair of whole numbers"
  end
  if offsets[1] > offsets[2] or offsets[2] > data_bytes then
    return ("bytes %.0f..%.0f lie outside of the file's %.0f bytes of data"):format(offsets[1], offsets[2],
      data_bytes)
  end
  if size and offsets[2] - offsets[1] ~= size then
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

---The metadata of a file, of which no more than the header is read.
---@return table<string, string>
function safetensors.metadata(path)
  local begin = files.pieces(path, 0, 8, 8)() or ""
  local bytes = 8
  for i = 1, #begin do bytes = bytes + begin:byte(i) * 256 ^ (i - 1) end
  local text = bytes <= MAX_HEADER and files.pieces(path, 0, bytes, bytes)() or begin
  local metadata = read_header(path, ffi.cast("const uint8_t *", text), #text).__metadata__ or {}
  check_metadata(path, metadata)
  return metadata
end

---@class StoredTensor
---@field dtype string "F32" ..., as in the file
---@field shape integer[]
---@field count integer how many values; of a type that is not known here how many bytes
---@field bytes integer
---@field data ffi.cdata* their first; valid as long as this table exists
---@field owner ffi.cdata*

---Read and check a whole file.
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
    local dtype, size = dtypes[entry.dtype] or no_type, entry.data_offsets[2] - entry.data_offsets[1]
    local data, keeper = ffi.cast("uint8_t *", block) + at + entry.data_offsets[1], owner
    if (at + entry.data_offsets[1]) % (dtype.size or 1) ~= 0 then      -- another program's file: align
      keeper = ffi.new("int64_t[?]", math.ceil(size / 8))
      ffi.copy(keeper, data, size)
      data = keeper
    end
    tensors[name] = { dtype = entry.dtype, shape = entry.shape, count = size / (dtype.size or 1), bytes = size,
      data = ffi.cast(dtype.pointer, data), owner = keeper }
  end
  metadata.crc32c = nil
  return { metadata = metadata, tensors = tensors, names = names }
end

---LuaJIT keeps its own types in NaNs below zero: one that a file made up would be read as a string, or a table, at any
---address.  So every such NaN among n floats becomes the one that processors make, 0xffc00000; others stay as they are.
function safetensors.plain_nans(data, n)
  local bits = ffi.cast(i32, data)
  for i = 0, n - 1 do
    if bits[i] < 0 and bit.band(bits[i], 0x7fffffff) > 0x7f800000 then bits[i] = 0xffc00000 - 2 ^ 32 end
  end
end

-- The 16 bits of a float of half precision as those of a float.
local function widened(h)
  local sign, exponent, rest = bit.lshift(bit.band(h, 0x8000), 16), bit.band(bit.rshift(h, 10), 31), bit.band(h, 0x3ff)
  if exponent == 31 then exponent = 255
  elseif exponent > 0 then exponent = exponent + 112
  elseif rest > 0 then             -- below the normal ones of half precision, a normal float
    exponent = 113
    while rest < 0x400 do exponent, rest = exponent - 1, rest * 2 end
    rest = rest - 0x400
  end
  return bit.bor(sign, bit.lshift(exponent, 23), bit.lshift(rest, 13))
end

-- Values of types that tensors do not have: { dtype of the tensor, function(from, to, n) -> true, or nil where one of them does not fit }.
local function each(f)
  return function(from, to, n)
    for i = 0, n - 1 do to[i] = f(from[i]) end
    return true
  end
end
local function floats_of(f)
  local all = each(f)
  return { "f32", function(from, to, n) return all(from, ffi.cast(i32, to), n) end }
end
local function same(x) return x end
local small = { "i32", each(same) }
-- Of 64 bits, as two of 32: `above` gives what the upper must be where the lower alone is the number.
local function narrow(words, above)
  return { "i32", function(from, to, n)
    local p = ffi.cast(i32, from)
    for i = 0, n - 1 do
      local low = p[words * i]
      if words == 1 and low < 0 or words == 2 and p[2 * i + 1] ~= above(low) then return nil end
      to[i] = low
    end
    return true
  end }
end
local conversions = {
  BF16 = floats_of(function(h) return bit.lshift(h, 16) end), F16 = floats_of(widened), BOOL = { "u8", each(function(x) return x ~= 0 and 1 or 0 end) },
  I8 = small, I16 = small, U16 = small, U32 = narrow(1), I64 = narrow(2, function(low) return bit.arshift(low, 31) end),
  U64 = narrow(2, function(low) return low < 0 and 1 or 0 end),
  F64 = { "f32", function(from, to, n)
    local p, out = ffi.cast(i32, from), ffi.cast(i32, to)
    for i = 0, n - 1 do
      local low, high = p[2 * i], bit.band(p[2 * i + 1], 0x7fffffff)
      if high > 0x7ff00000 or high == 0x7ff00000 and low ~= 0 then out[i] = p[2 * i + 1] < 0 and 0xffc00000 - 2 ^ 32 or 0x7fc00000
      else
        to[i] = from[i]
        if to[i] ~= from[i] then return nil end
      end
    end
    return true
  end },
}

-- A leaf with the values of a stored tensor; or nil and why there is none.
local function leaf_of(stored)
  local dtype, how = stored.dtype:lower(), conversions[stored.dtype]
  if not dtypes[stored.dtype] then return nil, "a type that tensors do not have" end
  if stored.count == 0 then return nil, "it is empty" end
  if #stored.shape > MOST_AXES then return nil, ("%d axes, tensors have at most %d"):format(#stored.shape, MOST_AXES) end
  for _, n in ipairs(stored.shape) do if n >= 2 ^ 31 then return nil, "an axis of 2^31 or more" end end
  local leaf = tensor.new { shape = stored.shape, dtype = how and how[1] or dtype }
  if not how then ffi.copy(leaf:data(), stored.data, stored.bytes)
  elseif not how[2](stored.data, leaf:data(), stored.count) then return nil, ("a value that %s does not hold exactly"):format(how[1]) end
  if leaf:dtype() == "f32" then safetensors.plain_nans(leaf:data(), stored.count) end
  return leaf
end

---Read a file's tensors as leaves: F32, I32 and U8 as they are; F16, BF16 and F64 become f32, BOOL u8, and other integers i32, where that is exact.
---What has no such tensor (other types, values that do not fit, empty ones, more than six axes) is left out, and `skipped` says why.
---@return { metadata: table<string, string>, tensors: table<string, Tensor>, names: string[], skipped: table<string, string> }
function safetensors.load(path)
  local file, tensors, skipped = safetensors.read(path), {}, {}
  for name, stored in pairs(file.tensors) do
    local leaf, why = leaf_of(stored)
    tensors[name], skipped[name] = leaf, why and ("%s [%s]: %s"):format(stored.dtype, table.concat(stored.shape, ","), why)
  end
  file.tensors, file.skipped = tensors, skipped
  return file
end

---What `load` left out as a warning; nil: nothing.
---@param skipped table<string, string>
---@return string?
function safetensors.warning(path, skipped)
  local names, lines = tables.keys(skipped), {}
  for i = 1, math.min(#names, 8) do lines[i] = ("'%s' (%s)"):format(names[i], skipped[names[i]]) end
  if #names > 8 then lines[9] = ("%d more"):format(#names - 8) end
  return #names > 0 and ("mneme: warning: %s: left out %s"):format(path, table.concat(lines, ", ")) or nil
end

-- One tensor to write as { name, dtype, shape, data, bytes }.
local function entry_of(item, index)
  local name, t = item.name or item[1], item[2]
  local dtype = tostring(t and t:dtype() or item.dtype):upper()
  local shape, data = t and t:shape() or item.shape, t and t:data() or item.data
  if type(name) ~= "string" or name == "__metadata__" then
    errors.raise(("safetensors: tensor %d is named %s"):format(index - 1, tostring(name)))
  elseif not (dtypes[dtype] and dtypes[dtype].written) then
    errors.raise(("safetensors: %s: dtype %s, expected %s"):format(name, dtype, WRITTEN))
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
---@param list table[] { name, Tensor } or { name = , dtype = , shape = , data = pointer }
---@param metadata table<string, string>?
---@param after string[]? as in files.write
function safetensors.write(path, list, metadata, after)
  local header, entries, pieces = { __metadata__ = tables.merged(metadata) }, {}, {}
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
  if #text > MAX_HEADER then
    errors.raise(("%s: its names and what is not a tensor take %.0f bytes, a safetensors file has room for %.0f"):format(path, #text, MAX_HEADER))
  end
  local length, bytes = #text, {}
  for i = 1, 8 do bytes[i], length = string.char(length % 256), math.floor(length / 256) end
  text = table.concat(bytes) .. text
  table.insert(pieces, 1, text)
  files.write(path, pieces, after)
end

return safetensors
