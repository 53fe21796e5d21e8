-- cores.lua -- `mneme bench cores`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local cores = lazy "mneme.models.cores"
local engine = require "mneme.base.engine"
local registry = require "mneme.base.registry"
local kernels = lazy "mneme.commands.bench.parts.kernels"
local timing = lazy "mneme.insight.measure.timing"
local mn = lazy "mneme"
local plan = lazy "mneme.tensor.plan"
local stopwatch = lazy "mneme.insight.measure.stopwatch"
local tensor = lazy "mneme.tensor.tensor"
local progress = require "mneme.base.progress"
local options = require "mneme.commands.options"
local C = engine.C

local command = { name = "bench cores", doc = "every core in one run: its kernels, its training, and one acting step against the steps before it", about = [[
Training is forward and backward of 8 environments x 256 steps.  Bounds are measured in the same run:
  arithmetic   the rate of a large matrix product; half of it is the rate of lane operations
  memory       the rate of an environment that no cache holds]],
  arguments = { { "names", "NAME", "cores", noun = "core", several = true, optional = true } },
  options = {
    { "part", "what is measured", type = "choice", choices = { "all", "kernels", "step", "train" }, default = "all" },
    options.bench.threads, options.bench.torch,
  } }
local T, B, D_IN = 256, 8, 16
local CONTEXTS = { 128, 256, 512, 1024, 2048, 4096 }

-- ---- the machine ----

-- Rates per second.  Other programs only lower them, and only for a while: the best rate so far counts, and it is
-- measured again before every figure.
local function look(machine)
  engine.open("cpu", 1)
  machine.flops = math.max(machine.flops, 1e9 * machine.threads * math.max(published_agents.gemm_rates(1)))
  machine.lanes = machine.flops / 2
  machine.bytes = math.max(machine.bytes, 2 * machine.n / stopwatch.least(2, function() ffi.copy(machine.to, machine.from, machine.n) end))
  engine.open("cpu", machine.threads)
end

---@return table { flops, lanes, bytes, look = measure again }, of all threads
function command.machine(threads)
  local n = 2 ^ 26
  local machine = { flops = 0, bytes = 0, threads = threads, look = look, n = n,
    from = ffi.new("uint8_t[?]", n, 1), to = ffi.new("uint8_t[?]", n) }
  for _ = 1, 9 do machine:look() end
  return machine
end

-- ---- training ----

local function some_done(...)
  local done = tensor.new { shape = { ... }, dtype = "u8" }
  for i = 0, done:size() - 1 do done:data()[i] = i % 97 == 13 and 1 or 0 end
  return done
end

-- Operations of forward and backward through T steps of one environment, as describe() counts them.
local function operations(c)
  local about = c:describe(T)
  local products = 2 * about.weights * 3 * T
  if c.cost then return products + (about.cost.forward + about.cost.backward) * T end
  return products + (2 + 5) * about.sequence.macs
end

---Seconds of forward and backward of one core, and of its bound.
local function train(name, config, machine)
  mn.manual_seed(1)
  local c = cores.new(name, config)
  local x, done, state = timing.fill(tensor.new { shape = { T, B, c.config.d_in } }, 1, 1), some_done(T, B), c:initial(B)
  local forward = plan(function() return (c(x, done, state)) end)
  local y = forward()
  local backward = plan(function() tensor.ops.mean({ x = y }):backward() end)
  backward()
  local ahead, back = stopwatch.least(7, function() forward:run() end), stopwatch.least(7, function() backward:run() end)
  machine:look()
  local bound = operations(c) * B / machine.flops
  tensor.clear_tape()
  return { forward = ahead, backward = back, bound = bound, share = bound / (ahead + back), parameters = c.module:count() }
end

-- ---- one step ----

---Seconds of one step of one environment after CONTEXTS[i] steps: the means, and the last median.
local function latency(name, config)
  local result, typical, self = {}, nil, nil
  for i, N in ipairs(CONTEXTS) do
    published_agents.progress(("%s, a step after %d"):format(name, N))
    if not self or self.bounded then self = timing.stepper(name, config, N) end
    while self.seen < N - timing.ROWS do self.step() end
    result[i], typical = timing.one_step(self)
    tensor.clear_tape()
    collectgarbage()
  end
  return result, typical
end

-- ---- what is printed and written ----

---Every registered core in its published sizes, and gtrxl with two memories: { label, name, config }.
local function chosen(names)
  local list = {}
  for _, name in ipairs(#names > 0 and names or registry.names("cores", true)) do
    registry.file("cores", name, "core")
    local sized = cores.definition(name).config.d_in ~= nil
    for _, memory in ipairs(not sized and {} or name == "gtrxl" and { 128, 256 } or { false }) do
      list[#list + 1] = { memory and ("gtrxl M=%d"):format(memory) or name, name, { d_in = D_IN, memory = memory or nil } }
    end
  end
  return list
end

local function train_all(list, machine)
  print(("\ntraining, published sizes, T=%d B=%d, forward + backward (bound: all products and the memory's own operations):"):format(T, B))
  print(("%-18s %11s %8s %9s %8s %6s %14s"):format("", "parameters", "forward", "backward", "bound", "share", "steps/s"))
  for _, entry in progress.each(list, "cores") do
    published_agents.progress(entry[1])
    local r = train(entry[2], entry[3], machine)
    print(("%-18s %11d %5.0f ms %6.0f ms %5.0f ms %4.0f %% %14.0f"):format(entry[1], r.parameters, 1e3 * r.forward, 1e3 * r.backward,
      1e3 * r.bound, 100 * r.share, T * B / (r.forward + r.backward)))
    collectgarbage()
  end
end

local function step_all(list)
  local head = ("%-18s"):format "steps seen"
  for _, N in ipairs(CONTEXTS) do head = head .. ("%9d"):format(N) end
  print("\none step, one environment, from Lua, microseconds, mean (and median after the most):\n" .. head)
  local seen = {}
  for _, entry in progress.each(list, "cores") do
    if not seen[entry[2]] then               -- a memory's size is the abscissa here
      seen[entry[2]] = true
      local times, typical = latency(entry[2], entry[3])
      local line = ("%-18s"):format(entry[2])
      for _, t in ipairs(times) do line = line .. ("%9.0f"):format(1e6 * t) end
      print(("%s  (%.0f)"):format(line, 1e6 * typical))
    end
  end
end

function command.run(o)
  local names = o.names
  local function wanted(part) return o.part == "all" or o.part == part end
  local list = chosen(names)
  published_agents.progress "speed of the machine"
  local machine = command.machine(o.threads)
  print(("%d thread%s: products %.0f GFLOP/s, lane operations %.0f G/s, copying %.0f GB/s; vectors: %s\n"):format(o.threads,
    o.threads > 1 and "s" or "", machine.flops / 1e9, machine.lanes / 1e9, machine.bytes / 1e9, ffi.string(C.mn_simd())))
  local torch = wanted "kernels" and o.torch and kernels.torch(o.torch, o.threads, "bench_torch.py") or nil
  if wanted "kernels" and #names == 0 then kernels.run(machine, torch) end
  if wanted "train" then train_all(list, machine) end
  if wanted "step" then step_all(list) end
  return 0
end

return command
