-- dtypes.lua -- element types of arrays outside of tensors: bytes per element, and the C pointer type to read them.
local ffi = require "ffi"

return {
  f32 = { bytes = 4, pointer = ffi.typeof "float *" }, u8 = { bytes = 1, pointer = ffi.typeof "uint8_t *" },
}
