-- stopwatch.lua -- times a function, and summarises several measurements.
local C = require("mneme.base.engine").C

local stopwatch = {}
local function wall() return C.mn_clock(false) end

---The median of a list of numbers; of an even number of them the lower of the two in the middle, which is one that was measured.
---@param list number[] stays in its order
function stopwatch.lower_median(list)
  local sorted = {}
  for i, value in ipairs(list) do sorted[i] = value end
  table.sort(sorted)
  return sorted[math.ceil(#sorted / 2)]
end

---Seconds that one call of f takes.
---@param clock (fun(): number)? os.clock: of the processor
function stopwatch.timed(f, clock)
  clock = clock or wall
  local start = clock()
  f()
  return clock() - start
end

---The least of n times of f, after one call that does not count: other programs only slow it down.
function stopwatch.least(n, f)
  f()
  local best = math.huge
  for _ = 1, n do best = math.min(best, stopwatch.timed(f)) end
  return best
end

return stopwatch
