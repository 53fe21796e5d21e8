-- train.lua -- how fast agents of the published sizes train and act here, next to the bound of their matrix products.
--   bound of training: 4 x the products of one step (act, update's forward, backward twice) plus the
--   recurrence (two forward, one backward), at the rate of a large matrix product measured here
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local mn = require "mneme"
local progress = require "mneme.base.progress"
local stopwatch = require "mneme.measure.stopwatch"
local C = engine.C

local bench = {}
local median, timed = stopwatch.lower_median, stopwatch.timed

-- The published configurations (T-Maze, corridor 160, 8 environments x 256 steps, heads 128).
local published = {
  { "agalite", core = { "agalite", eta = 4, r = 2 }, lr = 1e-4 },
  { "galite", core = { "galite", eta = 4 }, lr = 1e-4 },
  { "galite_released", core = { "galite_released", eta = 2 }, lr = 1e-4 },
  { "gtrxl", label = "gtrxl M=128", core = { "gtrxl", memory = 128 }, lr = 5e-4 },
  { "gtrxl256", label = "gtrxl M=256", core = { "gtrxl", memory = 256 }, lr = 5e-4 },
  { "gru", core = { "gru" }, lr = 5e-4 },
  { "lstm", core = { "lstm" }, lr = 1e-4 },
}
bench.published = published

ffi.cdef "int isatty(int fd);"
local watched = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb"

---Print on a terminal what is being measured; the next result overwrites it.
function bench.progress(what)
  if watched then io.stderr:write("\r", what, " ...\27[K\r") end
end

-- ---- speed of the machine ----

---GFLOP/s of one large product on one thread, medians of `runs` (9): ours, and OpenBLAS's.
function bench.gemm_rates(runs)
  local n = 1024
  local a, b, c = ffi.new("float[?]", n * n, 1), ffi.new("float[?]", n * n, 1), ffi.new("float[?]", n * n)
  local own, blas = {}, {}
  for i = 1, runs or 9 do
    own[i] = timed(function() engine.check(C.mn_gemm_rate(engine.ctx, false, n, a, b, c)) end)
    blas[i] = timed(function() engine.check(C.mn_gemm_rate(engine.ctx, true, n, a, b, c)) end)
  end
  return 2e-9 * n ^ 3 / median(own), 2e-9 * n ^ 3 / median(blas)
end

---A learner of a published configuration, not begun, and its agent.
function bench.learner(setup)
  mn.manual_seed(1)
  local env = mn.env("tmaze", { corridor = 160, num_envs = 8, seed = 1 })
  local core = mn.core(setup.core)
  local agent = mn.agent { env = env, core = core, hidden = 128 }
  return mn.a2c({ seed = 1, lr = setup.lr, bootstrap_truncated = 0 }, env, agent), agent
end

-- Operations of one environment step of training, by the bound's convention.
local function operations(agent)
  local cost = agent.core:describe().cost
  local heads = 2 * (agent.core.d_out * 2 * 128 + 128 * 5)
  return 4 * (cost.products + heads) + 2 * cost.forward + cost.backward
end

-- Times of rollouts and updates, in seconds.
local function rate_of(l, act, update)
  local both = {}
  for i = 1, #act do both[i] = act[i] + update[i] end
  local r = { act = median(act), update = median(update), updates = #act }
  r.rate, r.least = l.T * l.B / (r.act + r.update), math.min(unpack(both))
  return r
end

-- Consecutive updates with one number of threads.  An idle thread wakes slowly, on a cold core, so the first update does not
-- count: alternating after every update, two threads of agalite took 166 ms instead of 153.
local IN_A_ROW = 6

---Training speed of an on-policy learner: medians over at least five updates, after three that are not counted.
---@param l table an A2C or a PPO
---@param seconds number about how long
---@param counts integer[]? numbers of threads, which alternate: returns a list
---@return table { rate = environment steps a second, act = seconds of a rollout, update = seconds of an update, updates,
--- least = seconds of the fastest of both }
function bench.learning(l, seconds, counts)
  l:begin()
  for _ = 1, 3 do l:rollout() l:update() end
  local act, update, started = {}, {}, C.mn_clock(false)
  local turns = counts and #counts or 1
  for k = 1, turns do act[k], update[k] = {}, {} end
  repeat
    for k = 1, turns do
      if counts then
        engine.check(C.mn_set_threads(engine.ctx, counts[k]))
        l:rollout()
        l:update()
      end
      for _ = 1, counts and IN_A_ROW or 1 do
        table.insert(act[k], timed(function() l:rollout() end))
        table.insert(update[k], timed(function() l:update() end))
      end
    end
  until C.mn_clock(false) - started > seconds and #act[1] >= 5
  local list = {}
  for k = 1, turns do list[k] = rate_of(l, act[k], update[k]) end
  return counts and list or list[1]
end

local function find(name)
  for _, setup in ipairs(published) do if setup[1] == name then return setup end end
end

---A learner of a published configuration by its name, not begun.
function bench.published_learner(name) return (bench.learner(find(name))) end

-- ---- sections ----

-- One configuration in a separate process, with its own memory; one thread and two alternate every second or two, since the
-- machine's speed drifts.
function bench.one(name)
  local counts = C.mn_threads(engine.ctx) > 1 and { 1, 2 } or { 1 }
  engine.open("cpu", 1)
  local gemm, l, agent = math.max(bench.gemm_rates()), bench.learner(find(name))
  local list = bench.learning(l, 9 * #counts, counts)
  local resident = C.mn_bytes(engine.ctx, "resident") / 1e6
  engine.open("cpu", 1)
  gemm = (gemm + math.max(bench.gemm_rates())) / 2
  for k, r in ipairs(list) do
    local bound = gemm * 1e9 / operations(agent) * counts[k]
    print(("%-16s %d thread%s %8.0f steps/s  bound %8.0f (%.2f MFLOP/step at %.0f GFLOP/s)  %3.0f %%  act %.0f ms, update %.0f ms  %s"):format(
      find(name).label or name, counts[k], k > 1 and "s" or " ", r.rate, bound, operations(agent) / 1e6, gemm, 100 * r.rate / bound,
      1e3 * r.act, 1e3 * r.update, k == 1 and ("%.0f MB resident"):format(resident)
        or ("%.2f x one thread (the fastest of %d each %.2f)"):format(r.rate / list[1].rate, r.updates, list[1].least / r.least)))
  end
end

function bench.train()
  print "training, A2C on T-Maze, published sizes (corridor 160, 8 environments x 256 steps):"
  io.stdout:flush()
  local program = ffi.new("char[4096]")
  ffi.cdef "long readlink(const char *path, char *to, size_t size);"
  local n = ffi.C.readlink("/proc/self/exe", program, 4095)
  if n <= 0 or not ffi.string(program, n):find "mneme$" then errors.usage "bench train: run it as build/mneme bench train" end
  for _, setup in progress.each(published, "agents") do              -- bound: each thread stays on its own processor
    os.execute(("OMP_PROC_BIND=true '%s' bench one %s"):format(ffi.string(program, n), setup[1]))
  end
end

local TURN, PAIRS, SECONDS = 2, 9, 20     -- updates of a turn that count; pairs of turns at least, and seconds, of an agent

local function quartiles(list)
  table.sort(list)
  return list[math.ceil(#list / 2)], list[math.ceil(#list / 4)], list[math.ceil(3 * #list / 4)]
end

---Training in fp32 and in bf16 by turns in one process, on one thread: medians of pairs, in processor time, since other programs slow
---both turns of a pair, and slow processor time less.
---@param names string[] of published configurations; empty: agalite, galite, gtrxl, gru
function bench.precisions(names)
  engine.open("cpu", 1)
  engine.check(C.mn_set_precision(engine.ctx, "bf16", "0"))          -- a CPU without it is refused here
  print(("training in fp32 and bf16 by turns (%s), A2C on T-Maze, published sizes, one thread, processor time:"):format(ffi.string(C.mn_bf16_name "0")))
  for _, name in ipairs(#names > 0 and names or { "agalite", "galite", "gtrxl", "gru" }) do
    local setup, known = find(name), {}
    for i, s in ipairs(published) do known[i] = s[1] end
    if not setup then errors.unknown("agent", name, known) end
    local l = bench.learner(setup)
    l:begin()
    -- The first update after a change packs the weights again and does not count.
    local function turn(precision)
      engine.check(C.mn_set_precision(engine.ctx, precision, "0"))
      l:rollout()
      l:update()
      local act, update = 0, 0
      for _ = 1, TURN do
        local start = os.clock()
        l:rollout()
        local middle = os.clock()
        l:update()
        act, update = act + (middle - start) / TURN, update + (os.clock() - middle) / TURN
      end
      return act, update
    end
    turn "bf16"                       -- first: attention makes room for bfloat16 keys where it is recorded in bf16
    turn "fp32"
    local all, acting, learning, rates, began = {}, {}, {}, { {}, {} }, C.mn_clock(false)
    repeat
      bench.progress(("%s, pair %d"):format(name, #all + 1))
      local act, update = turn "fp32"
      local act2, update2 = turn "bf16"
      all[#all + 1], acting[#acting + 1], learning[#learning + 1] = (act + update) / (act2 + update2), act / act2, update / update2
      table.insert(rates[1], l.T * l.B / (act + update))
      table.insert(rates[2], l.T * l.B / (act2 + update2))
    until #all >= PAIRS and C.mn_clock(false) - began > SECONDS
    local middle, low, high = quartiles(all)
    print(("%-16s fp32 %6.0f steps/s, bf16 %6.0f: %.2f x (%.2f - %.2f, %d pairs); acting %.2f x, update %.2f x"):format(setup.label or name,
      median(rates[1]), median(rates[2]), middle, low, high, #all, median(acting), median(learning)))
    io.stdout:flush()
  end
end

function bench.act()
  print "acting, one environment, one thread (median of one step, from Lua):"
  engine.open("cpu", 1)
  for _, setup in progress.each(published, "agents") do
    local stepper = require "mneme.episodes.stepper"
    local env = mn.env("tmaze", { corridor = 160, num_envs = 1, seed = 1 })
    local p = stepper.new(env, mn.agent { env = env, core = mn.core(setup.core), hidden = 128 })
    local times = {}
    for i = 1, 2000 do
      times[i] = timed(function() p:forward() end)
      p:step()
    end
    print(("%-16s %7.1f us"):format(setup.label or setup[1], 1e6 * median(times)))
  end
end

function bench.gemm()
  local own, blas = bench.gemm_rates()
  print(("sgemm 1024^3, one thread: ours %.0f GFLOP/s, %s %.0f GFLOP/s; vectors: %s"):format(own,
    ffi.string(C.mn_blas()), blas, ffi.string(C.mn_simd())))
end

return bench
