-- resources.lua -- what a run used: wall-clock and processor time, peak memory, energy if the machine reports
-- it; in RUN/resources.json, summed over all its resumes.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local ffi = require "ffi"

local ENERGY = "/sys/class/powercap/intel-rapl:0/energy_uj"       -- of the whole first package, other programs included

local resources = {}
local ADDED = { "wall_s", "cpu_s", "energy_j" }                   -- summed over resumes; memory is the peak
local written = { wall_s = 0, cpu_s = 0, energy_j = 0 }           -- by this process, into whichever run
local Account = {}
Account.__index = Account

local function read(path) return errors.text_of("@" .. path) end

-- Microjoules since some time, and where that begins again; nil where nobody may read it.
local function energy()
  return tonumber(read(ENERGY)), tonumber(read((ENERGY:gsub("energy_uj$", "max_energy_range_uj"))))
end

---The process's peak memory, in MiB.
function resources.peak() return (tonumber(read "/proc/self/status":match "VmHWM:%s*(%d+)") or 0) / 1024 end

local function start(account)
  account.wall, account.cpu, account.joules, account.written = C.mn_clock(false), os.clock(), energy(), {}
  for _, key in ipairs(ADDED) do account.written[key] = written[key] end
  return account
end

---Begin to count.
---@return table account
function resources.begin() return start(setmetatable({}, Account)) end

---Joules from one reading of the meter to a later one; nil where it began again between them, at nobody knows what.
---@param before number microjoules
---@param range number? where the meter begins again
function resources.joules(before, now, range)
  if range then return (now - before) % range / 1e6 end
  return now >= before and (now - before) / 1e6 or nil
end

---What was used since.
---@return table { wall_s, cpu_s, peak_mib, energy_j = nil where it cannot be read }
function Account:sum()
  local used = { wall_s = C.mn_clock(false) - self.wall, cpu_s = os.clock() - self.cpu, peak_mib = resources.peak() }
  local now, range = energy()
  if now and self.joules then used.energy_j = resources.joules(self.joules, now, range) end
  return used
end

---What a run has used so far; nil: nothing is known.
---@return table?
function resources.read(folder)
  local path = folder .. "/resources.json"
  if not files.is_file(path) then return nil end
  local used = json.decode((files.read(path)), path)
  if type(used) ~= "table" then return nil end
  used.checksum, used.of = nil, nil
  return used
end

---Add to what RUN/resources.json holds what no other account has written meanwhile, and count again: a study's account has
---what was done before and after the training, whose own wrote the rest.
---@return table used in all
function Account:write(folder)
  local used, before = self:sum(), resources.read(folder) or {}
  for _, key in ipairs(ADDED) do
    if used[key] then
      local mine = math.max(0, used[key] - (written[key] - self.written[key]))
      written[key], used[key] = written[key] + mine, mine + (tonumber(before[key]) or 0)
    end
  end
  used.peak_mib = math.max(used.peak_mib, tonumber(before.peak_mib) or 0)
  files.write(folder .. "/resources.json", { json.sealed.encode(used) })
  start(self)
  return used
end

-- ---- the machine: times mean nothing without it, and another compiler or BLAS rounds differently ----

-- What a pattern finds in a file; nil where there is no such file or nothing is found.
local function found(path, pattern) return (read(path) or ""):match(pattern) end

---The name of this machine in its network; nil: unknown.
---@return string?
function resources.host() return found("/proc/sys/kernel/hostname", "[^\n]+") end

---Describes this machine; fields that it does not report are missing.
---@return table { processor, cores = processors that this process may use, memory_gib, system, compiler, blas, vectors, lua }
function resources.machine()
  local kb = tonumber(found("/proc/meminfo", "MemTotal:%s*(%d+)"))
  local name, kernel = found("/etc/os-release", 'PRETTY_NAME="([^"\n]*)"'), found("/proc/sys/kernel/osrelease", "[^\n]+")
  return { processor = found("/proc/cpuinfo", "model name%s*:%s*([^\n]*)") or jit.arch, cores = C.mn_cores(),
    memory_gib = kb and math.floor(kb / 2 ^ 20 * 10 + 0.5) / 10, system = (name and name .. ", " or "") .. jit.os .. (kernel and " " .. kernel or ""),
    compiler = ffi.string(C.mn_compiler()), blas = ffi.string(C.mn_blas()), vectors = ffi.string(C.mn_simd()), lua = jit.version }
end

return resources
