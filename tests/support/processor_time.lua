-- processor_time.lua -- the seconds of processor time that this process took so far, and its children that have ended.
local ffi = require "ffi"
ffi.cdef [[
  typedef struct { long user_s, user_us, system_s, system_us, rest[14]; } mn_test_usage;
  int getrusage(int who, mn_test_usage *usage);
]]
local usage = ffi.new "mn_test_usage"

return function()
  local sum = 0
  for who = -1, 0 do                               -- RUSAGE_CHILDREN, RUSAGE_SELF
    ffi.C.getrusage(who, usage)
    sum = sum + tonumber(usage.user_s + usage.system_s) + tonumber(usage.user_us + usage.system_us) / 1e6
  end
  return sum
end
