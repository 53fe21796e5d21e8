-- eager.lua -- `mneme bench eager`.
local lazy = require "mneme.base.lazy"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local mn = lazy "mneme"
local stopwatch = lazy "mneme.insight.measure.stopwatch"
local progress = require "mneme.base.progress"

local options = require "mneme.commands.options"
local eager = { name = "bench eager", doc = "what a call from Lua costs, for tensors of 64 floats: without a tape, and with tape and backward", about = [[
With tape and backward: the time of a chain of eight ops with its backward pass, over the number of ops.  Both compiled by LuaJIT and
interpreted.]], options = { options.bench.threads } }
local N, CALLS, ROUNDS, CHAIN = 64, 2000, 25, 8

-- name, an op of x and y, whether it has a gradient
local list = {
  { "x + y", function(x, y) return x + y end, true },
  { "x * y", function(x, y) return x * y end, true },
  { "x * 2", function(x) return x * 2 end, true },
  { "1 / x", function(x) return 1 / x end, true },
  { "x ^ 2", function(x) return x ^ 2 end, true },
  { "x:maximum(0)", function(x) return x:maximum(0) end, true },
  { "x:tanh()", function(x) return x:tanh() end, true },
  { "x:lt(0)", function(x) return x:lt(0) end },
  { "x:sum()", function(x) return x:sum() end },
  { "mn.zeros(64)", function() return mn.zeros(N) end },
}

-- Microseconds of processor time of a call: the median of rounds.
local function cost(f)
  local times = {}
  for i = 1, ROUNDS do
    collectgarbage()
    mn.clear_tape()
    local start = os.clock()
    for _ = 1, CALLS do f() end
    times[i] = (os.clock() - start) / CALLS * 1e6
  end
  return stopwatch.lower_median(times)
end

local function measure(entry)
  local x, y = mn.full(N, 0.5), mn.full(N, 0.25)
  local w = mn.full(N, 0.5, { grad = true })
  local op = entry[2]
  local plain, taped = cost(function() return op(x, y) end), nil
  if entry[3] then
    taped = cost(function()
      local z = w
      for _ = 1, CHAIN do z = op(z, y) end
      z:sum():backward()
    end) / (CHAIN + 1)
  end
  return plain, taped
end

---@return integer status
function eager.run(o)
  engine.open(nil, o.threads)
  print(("a call from Lua, %d floats, us of processor time: compiled, with tape and backward; interpreted, with tape and backward"):format(N))
  for _, entry in progress.each(list, "ops") do
    published_agents.progress(entry[1])
    local plain, taped = measure(entry)
    jit.off()
    jit.flush()
    local slow, slow_taped = measure(entry)
    jit.on()
    local function text(us) return us and ("%7.2f"):format(us) or "      -" end
    print(("%-14s %s %s   %s %s"):format(entry[1], text(plain), text(taped), text(slow), text(slow_taped)))
  end
  return 0
end

return eager
