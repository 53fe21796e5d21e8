-- device.lua -- the GPU that tests/gpu/ works on: the emulated one, or with GPU=cuda a real one.
local t = require "tests.harness"

local name = os.getenv "GPU" or "emu"
if name == "emu" then t.need_built("libmneme_emu.so", "g++") end

return { name = name, emulated = name == "emu" }
