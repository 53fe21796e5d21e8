-- train.lua -- `mneme bench train`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local learning_speed = lazy "mneme.insight.measure.learning_speed"
local progress = require "mneme.base.progress"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local stopwatch = lazy "mneme.insight.measure.stopwatch"
local C = engine.C
ffi.cdef "int prctl(int option, unsigned long number);"
local END_WITH_PARENT, TERM = 1, 15          -- PR_SET_PDEATHSIG, SIGTERM

local train = { name = "bench train",
  doc = "how fast agents of the published sizes train here, A2C on the T-Maze, next to the bound of their products", about = [[
With precision=bf16 next to fp32, by turns in one process.  The bound of training: 4 x the products of one step (act, update's forward, backward
twice) plus the recurrence (two forward, one backward), at the rate of a large matrix product measured here.]],
  arguments = { { "names", "NAME", "with precision=bf16: agents", noun = "agent", several = true, optional = true } },
  options = {
    { "precision", "of matrix products", type = "choice", choices = { "fp32", "bf16" }, default = "fp32" },
    { "one", "this agent alone, in this process, numbers without names", type = "text", example = "gru" },
  } }

-- Operations of one environment step of training, by the bound's convention.
local function operations(agent)
  local cost = agent.core:describe().cost
  local heads = 2 * (agent.core.d_out * 2 * 128 + 128 * 5)
  return 4 * (cost.products + heads) + (cost.acting or cost.forward) + cost.forward + cost.backward
end

-- One configuration in a separate process, with its own memory; one thread and two alternate every second or two, since the
-- machine's speed drifts.
local function one(name)
  ffi.C.prctl(END_WITH_PARENT, ffi.cast("unsigned long", TERM))
  local counts = C.mn_threads(engine.ctx) > 1 and { 1, 2 } or { 1 }
  engine.open("cpu", 1)
  local gemm, l, agent = math.max(published_agents.gemm_rates()), published_agents.learner(published_agents.find(name))
  local list = learning_speed.of(l, 9 * #counts, counts)
  local resident = C.mn_bytes(engine.ctx, "resident") / 1e6
  engine.open("cpu", 1)
  gemm = (gemm + math.max(published_agents.gemm_rates())) / 2
  for k, r in ipairs(list) do
    local bound = gemm * 1e9 / operations(agent) * counts[k]
    print(("%-16s %d thread%s %8.0f steps/s  bound %8.0f (%.2f MFLOP/step at %.0f GFLOP/s)  %3.0f %%  act %.0f ms, update %.0f ms  %s"):format(
      published_agents.find(name).label or name, counts[k], k > 1 and "s" or " ", r.rate, bound, operations(agent) / 1e6, gemm, 100 * r.rate / bound,
      1e3 * r.act, 1e3 * r.update, k == 1 and ("%.0f MB resident"):format(resident)
        or ("%.2f x one thread (the fastest of %d each %.2f)"):format(r.rate / list[1].rate, r.updates, list[1].least / r.least)))
  end
end

local function all()
  print "training, A2C on T-Maze, published sizes (corridor 160, 8 environments x 256 steps):"
  io.stdout:flush()
  local program = lfs.symlinkattributes("/proc/self/exe", "target") or ""
  if not program:find "mneme$" then errors.usage "bench train: run it as build/mneme bench train" end
  for _, setup in progress.each(published_agents.list, "agents") do              -- bound: each thread stays on its own processor
    local pipe = io.popen(("OMP_PROC_BIND=true exec '%s' bench train one=%s"):format(program, setup[1]))     -- os.execute ignores Ctrl-C
    for line in pipe:lines() do print(line) end
    pipe:close()
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
local function precisions(names)
  engine.open("cpu", 1)
  engine.check(C.mn_set_precision(engine.ctx, "bf16", "0"))          -- a CPU without it is refused here
  print(("training in fp32 and bf16 by turns (%s), A2C on T-Maze, published sizes, one thread, processor time:"):format(ffi.string(C.mn_bf16_name "0")))
  for _, name in ipairs(#names > 0 and names or { "agalite", "galite", "gtrxl", "gru" }) do
    local setup = published_agents.find(name)
    local l = published_agents.learner(setup)
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
    local both, acting, learning, rates, began = {}, {}, {}, { {}, {} }, C.mn_clock(false)
    repeat
      published_agents.progress(("%s, pair %d"):format(name, #both + 1))
      local act, update = turn "fp32"
      local act2, update2 = turn "bf16"
      both[#both + 1], acting[#acting + 1], learning[#learning + 1] = (act + update) / (act2 + update2), act / act2, update / update2
      table.insert(rates[1], l.T * l.B / (act + update))
      table.insert(rates[2], l.T * l.B / (act2 + update2))
    until #both >= PAIRS and C.mn_clock(false) - began > SECONDS
    local middle, low, high = quartiles(both)
    print(("%-16s fp32 %6.0f steps/s, bf16 %6.0f: %.2f x (%.2f - %.2f, %d pairs); acting %.2f x, update %.2f x"):format(setup.label or name,
      stopwatch.lower_median(rates[1]), stopwatch.lower_median(rates[2]), middle, low, high, #both,
      stopwatch.lower_median(acting), stopwatch.lower_median(learning)))
    io.stdout:flush()
  end
end

function train.run(o)
  if o.one then one(o.one)
  elseif o.precision == "bf16" then precisions(o.names)
  elseif #o.names > 0 then errors.usage(("bench train: %s: names go with precision=bf16 or device="):format(o.names[1]))
  else all() end
  return 0
end

return train
