-- machine.lua -- describes the machine of a run: processor, memory, system, compiler and libraries.  Runs write it
-- into config.json, because times mean nothing without it, and another compiler or BLAS rounds differently.
local ffi = require "ffi"
local engine = require "mneme.base.engine"

local C = engine.C
local machine = {}

-- What a pattern finds in a file; nil where there is no such file or nothing is found.
local function found(path, pattern)
  local f = io.open(path)
  if not f then return nil end
  local text = f:read "*a"
  f:close()
  return text and text:match(pattern)
end

---Describes this machine; fields that it does not report are missing.
---@return table { processor, cores = processors that this process may use, memory_gib, system, compiler, blas, vectors, lua }
function machine.about()
  local kb = tonumber(found("/proc/meminfo", "MemTotal:%s*(%d+)"))
  local name, kernel = found("/etc/os-release", 'PRETTY_NAME="([^"\n]*)"'), found("/proc/sys/kernel/osrelease", "[^\n]+")
  return { processor = found("/proc/cpuinfo", "model name%s*:%s*([^\n]*)") or jit.arch, cores = C.mn_cores(),
    memory_gib = kb and math.floor(kb / 2 ^ 20 * 10 + 0.5) / 10, system = (name and name .. ", " or "") .. jit.os .. (kernel and " " .. kernel or ""),
    compiler = ffi.string(C.mn_compiler()), blas = ffi.string(C.mn_blas()), vectors = ffi.string(C.mn_simd()), lua = jit.version }
end

return machine
