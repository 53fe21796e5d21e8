-- engine.lua -- the engine's C functions, declared from engine/mneme.h itself, and this process's context.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local tables = require "mneme.base.tables"
local did_you_mean = lazy "mneme.base.did_you_mean"

-- What LuaJIT compiled before its rolling releases is wrong on arm64 (Debian 12: numbers, a crash); its interpreter is right.
if jit.arch == "arm64" and jit.version:find "beta" then jit.off() end

local here = debug.getinfo(1, "S").source:match "^@(.*)base/engine%.lua$" or "./lua/mneme/"

-- The first file that can be opened: a checkout, then an installation.
local function find(candidates)
  for _, path in ipairs(candidates) do
    local f = io.open(path)
    if f then f:close() return path end
  end
  error("mneme: not found: " .. table.concat(candidates, ", ") .. " (run make, or make install)", 0)
end

-- A package holds the engine once for each generation of processors, where the system's own loader looks for them
-- (ld.so(8), glibc-hwcaps); this machine's is the last whose instructions it has.
local generations = {
  { "x86-64-v4", { "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl" } },
  { "x86-64-v3", { "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe" } },
}
local function packaged(folder)
  local flags = (errors.text_of "@/proc/cpuinfo":match "\nflags%s*:([^\n]*)" or "") .. " "
  local list = tables.map(generations, function(generation)
    for _, flag in ipairs(generation[2]) do if not flags:find(" " .. flag .. " ", 1, true) then return nil end end
    return folder .. "/glibc-hwcaps/" .. generation[1] .. "/libmneme.so"
  end)
  list[#list + 1] = folder .. "/libmneme.so"
  return unpack(list)
end

local build = os.getenv "MNEME_BUILD" or here .. "../../build"
local header = find { here .. "../../engine/mneme.h", here .. "../../../../include/mneme/mneme.h" }
local library = find { build .. "/libmneme.so", packaged(here .. "../../../../lib") }

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
-- microseconds were 1.2 times as fast as with 0.3 ms next to one other program, four times next to many, and as fast alone.
ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"
if not os.getenv "OMP_WAIT_POLICY" then ffi.C.setenv("GOMP_SPINCOUNT", "4000", 0) end

local C = ffi.load(library)
local engine = { C = C, library = library, build = library:gsub("/glibc%-hwcaps/[^/]*", ""):match "^(.*)/[^/]*$", declare = declare }

---Turn a C failure (NULL or -1) into an error at the user's line; anything else is handed through.
function engine.check(result)
  if result == nil or result == -1 then
    local message = ffi.string(C.mn_error(engine.ctx))
    local odd = message:find "%] is NaN" or message:find "is %-?nan, expected a number"     -- as debug says it
    errors.raise(message, { status = odd and 3 or nil, hint = message:find " is missing$" and errors.traps.nil_field() or nil })
  end
  return result
end

---Until all work is done that a device was asked for.  To call before pointers are used that were taken earlier;
---`t:data()` itself waits.
function engine.wait()
  if C.mn_wait(engine.ctx) ~= 0 then engine.check(-1) end
end

---Make rows (or columns, whichever are fewer) of normal numbers orthogonal, in place.
---@param p ffi.cdata* float[rows * cols]
---@param gain number the length of each afterwards
function engine.orthogonal(p, rows, cols, gain)
  if C.mn_orthogonal(p, rows, cols, gain) ~= 0 then errors.fail(("no memory to make [%d,%d] weights orthogonal"):format(rows, cols)) end
end

---Open the process's one context, on first use; later calls change its number of threads.
---@param device string? "cpu" or "cuda"
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
  if ctx == nil then errors.usage(ffi.string(C.mn_error(nil)), device and did_you_mean.hint("device =", device)) end
  engine.ctx, engine.device = ctx, device or "cpu"   -- never freed: finalizers of leaves may run until the end
  return ctx
end

---Call f while a signal is a request that f heeds (C.mn_interrupted).
---@param keeps boolean? f keeps what an end at once would lose; else a signal that it does not heed soon ends the process
---@return integer status of the process after the signal that came; 0: none
---@return any what f gives
function engine.heeding(keeps, f, ...)
  C.mn_watch_signals(true)
  if not keeps then C.mn_lose_nothing(true) end
  local ok, result = xpcall(f, errors.handler, ...)
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  if not ok then error(result, 0) end
  return status, result
end

---In a process that was forked: the context that the parent opened is not its own; the next use opens another, on any device.
function engine.forget() rawset(engine, "ctx", nil) end

return setmetatable(engine, { __index = function(_, key) if key == "ctx" then return engine.open() end end })
