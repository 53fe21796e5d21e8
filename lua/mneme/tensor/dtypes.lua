-- dtypes.lua -- the element types of arrays outside of tensors: bytes of an element, and the C pointer to read them by.
local ffi = require "ffi"

return {
  f32 = { bytes = 4, pointer = ffi.typeof "float *" }, u8 = { bytes = 1, pointer = ffi.typeof "uint8_t *" },
}
