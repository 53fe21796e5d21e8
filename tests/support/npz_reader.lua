-- npz_reader.lua -- the arrays of a .npz that tensor/npz.lua wrote: name -> { shape, values = pointer }; `about` decoded.
local ffi = require "ffi"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local kinds = { ["<f4"] = "float *", ["<i4"] = "int32_t *", ["|u1"] = "uint8_t *" }

return function(path)
  local text, at, arrays = files.read(path), 1, {}
  local function number(from, bytes)
    local x = 0
    for i = bytes - 1, 0, -1 do x = 256 * x + text:byte(from + i) end
    return x
  end
  while text:sub(at, at + 3) == "PK\3\4" do
    local size, named = number(at + 18, 4), number(at + 26, 2)
    local name, begin = text:sub(at + 30, at + 29 + named):gsub("%.npy$", ""), at + 30 + named
    local head = number(begin + 8, 2)
    local kind, axes = text:sub(begin + 10, begin + 9 + head):match "'descr': '(..?.)'.-'shape': %((.-)%)"
    local data, shape = text:sub(begin + 10 + head, begin + size - 1), {}
    for n in axes:gmatch "%d+" do shape[#shape + 1] = tonumber(n) end
    arrays[name] = { shape = shape, values = ffi.cast(kinds[kind], ffi.cast("char *", data)), owner = data }
    if name == "about" then arrays.about = json.decode(data) end
    at = begin + size
  end
  return arrays
end
