-- torsos.lua -- `mneme bench torsos`.
local lazy = require "mneme.base.lazy"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local cores = lazy "mneme.commands.bench.cores"
local errors = require "mneme.base.errors"
local kernels = lazy "mneme.commands.bench.parts.kernels"
local mn = lazy "mneme"
local plan = lazy "mneme.tensor.plan"
local stopwatch = lazy "mneme.insight.measure.stopwatch"
local tensor = lazy "mneme.tensor.tensor"
local torso = lazy "mneme.models.torso"
local progress = require "mneme.base.progress"
local options = require "mneme.commands.options"

local torsos = { name = "bench torsos", doc = "the torsos for pictures, acting in 8 environments and learning from a batch", about = [[
Learning is forward and backward; next to the rate of a large matrix product and to PyTorch with the same number of threads.]],
  arguments = { { "names", "NAME", "conv, impala", noun = "torso", several = true, optional = true } },
  options = {
    { "images", "pictures of a batch", type = "whole", range = { 8 }, multiple = 8, unless = "2048, of impala 256", example = "256" },
    options.bench.threads, options.bench.torch,
  } }
local SIDES, B, ROWS = { 64, 84 }, 8, 64
local BATCH = { conv = 2048, impala = 256 }        -- as in tests/reference/bench_images.py

local function pictures(T, side)
  local x = tensor.new { shape = { T, B, side, side, 3 }, dtype = "u8", time = true }
  for i = 0, x:size() - 1 do x:data()[i] = i * 7919 % 251 end
  return x
end

-- Seconds of one step of B environments: a row of a plan, the mean of a round, whose first row packs the weights.
local function acting(m, side)
  local best, sum = {}, 0
  local act = plan(function(x) return tensor.off_tape(m, x) end)
  act(pictures(ROWS, side))
  for _ = 1, 6 do
    for i = 1, ROWS do best[i] = math.min(best[i] or math.huge, stopwatch.timed(function() act:rows(i - 1, i) end)) end
  end
  for i = 1, ROWS do sum = sum + best[i] end
  return sum / ROWS
end

-- Seconds of forward and of backward for a batch.
local function learning(m, side, images)
  local x = pictures(images / B, side)
  local forward = plan(function() return m(x) end)
  local y = forward()
  local backward = plan(function() tensor.ops.mean({ x = y }):backward() end)
  backward()
  return stopwatch.least(3, function() forward:run() end), stopwatch.least(3, function() backward:run() end)
end

local function one(name, side, images, machine, torch)
  published_agents.progress(("%s, %d pixels"):format(name, side))
  mn.manual_seed(1)
  local m = torso.new(name, { space = { shape = { side, side, 3 }, dtype = "u8" } })
  machine:look()
  local act = acting(m, side)
  local ahead, back = learning(m, side, images)
  machine:look()
  local function line(what, seconds, n, passes, key)
    local other = torch and torch[name .. side .. key]
    print(("%-7s %dx%d  %-14s %8.2f ms  %8.0f pictures/s %4.0f %%%s"):format(name, side, side, what, 1e3 * seconds, n / seconds,
      100 * passes * 2 * m.products * n / seconds / machine.flops,
      other and ("   PyTorch (%s) %8.2f ms: %.1f x"):format(other.form, other.ms, other.ms / (1e3 * seconds)) or ""))
  end
  line("acting, 8", act, B, 1, "act")
  line(("learning, %d"):format(images), ahead + back, images, 3, "train")
  tensor.clear_tape()
  collectgarbage()
end

---@return integer status
function torsos.run(o)
  local names = #o.names > 0 and o.names or { "conv", "impala" }
  for _, name in ipairs(names) do if not BATCH[name] then errors.unknown("torso for pictures", name, { "conv", "impala" }) end end
  if o.torch and o.images then errors.usage "images= and torch=: the batches of torch= are fixed, expected one of them" end
  published_agents.progress "speed of the machine"
  local machine = cores.machine(o.threads)
  local torch = o.torch and kernels.torch(o.torch, o.threads, "bench_images.py")
  print(("%d thread%s; shares are of the rate of a large product, %.0f GFLOP/s\n"):format(o.threads, o.threads > 1 and "s" or "",
    machine.flops / 1e9))
  for _, name in progress.each(names, "torsos") do
    for _, side in ipairs(SIDES) do one(name, side, o.images or BATCH[name], machine, torch) end
  end
  return 0
end

return torsos
