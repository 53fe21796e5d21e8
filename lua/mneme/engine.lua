-- engine.lua -- the engine's C functions, declared from engine/mneme.h itself, and this process's context.
local ffi = require "ffi"
local errors = require "mneme.errors"

local here = debug.getinfo(1, "S").source:match "^@(.*)engine%.lua$" or "./lua/mneme/"

-- The first file that can be opened: a checkout, then an installation.
local function find(candidates)
  for _, path in ipairs(candidates) do
    local f = io.open(path)
    if f then f:close() return path end
  end
  error("mneme: not found: " .. table.concat(candidates, ", ") .. " (run make, or make install)", 0)
end

local build = os.getenv "MNEME_BUILD" or here .. "../../build"
local header = find { here .. "../../engine/mneme.h", here .. "../../../../include/mneme/mneme.h" }
local library = find { build .. "/libmneme.so", here .. "../../../../lib/libmneme.so" }

---Declare a C header's part below its ffi mark.
local function declare(path)
  local f = assert(io.open(path))
  local text = f:read "*a"
  f:close()
  ffi.cdef((text:match "/%* %-%-%-%- ffi from here %-%-%-%- %*/(.*)":gsub("\n#[^\n]*", "")))
end
declare(header)

-- OpenMP's threads wait by spinning, for milliseconds, unless told otherwise before the library loads.  On a
-- busy machine that keeps the thread that is waited for from running: two threads that spin for some forty
-- microseconds were 1.2 times as fast as with 0.3 ms beside one other program, four times beside many, and as fast alone.
ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"
if not os.getenv "OMP_WAIT_POLICY" then ffi.C.setenv("GOMP_SPINCOUNT", "4000", 0) end

local C = ffi.load(library)
local engine = { C = C, library = library, build = library:match "^(.*)/[^/]*$", declare = declare }

---Turn a C failure (NULL or -1) into an error at the user's line; anything else is handed through.
function engine.check(result)
  if result == nil or result == -1 then errors.raise(ffi.string(C.mn_error(engine.ctx))) end
  return result
end

---Open the process's one context, on first use; later calls change its number of threads.
---@param device string? "cpu"
---@param threads integer? 0 or nil: as many as the machine has
function engine.open(device, threads)
  local ctx = rawget(engine, "ctx")
  if ctx then
    if device and device ~= engine.device then
      errors.usage(("device=%s: this process computes on %s already"):format(device, engine.device))
    end
    if threads then engine.check(C.mn_set_threads(ctx, threads)) end
    return ctx
  end
  ctx = C.mn_ctx_new(device or "cpu", threads or 0)
  if ctx == nil then errors.usage(ffi.string(C.mn_error(nil))) end
  engine.ctx, engine.device = ctx, device or "cpu"   -- never freed: finalizers of leaves may run until the end
  return ctx
end

return setmetatable(engine, { __index = function(_, key) if key == "ctx" then return engine.open() end end })
