-- published_agents.lua -- agents of the published sizes, which several benchmarks train; and the rate of a large matrix product, their bound.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local mn = require "mneme"
local stopwatch = require "mneme.insight.measure.stopwatch"
local tables = require "mneme.base.tables"
local C, median, timed = engine.C, stopwatch.lower_median, stopwatch.timed

local published_agents = {}

-- The published configurations (T-Maze, corridor 160, 8 environments x 256 steps, heads 128).
published_agents.list = {
  { "agalite", core = { "agalite", eta = 4, r = 2 }, lr = 1e-4 },
  { "galite", core = { "galite", eta = 4 }, lr = 1e-4 },
  { "galite_released", core = { "galite_released", eta = 2 }, lr = 1e-4 },
  { "gtrxl", label = "gtrxl M=128", core = { "gtrxl", memory = 128 }, lr = 5e-4 },
  { "gtrxl256", label = "gtrxl M=256", core = { "gtrxl", memory = 256 }, lr = 5e-4 },
  { "gru", core = { "gru" }, lr = 5e-4 },
  { "lstm", core = { "lstm" }, lr = 1e-4 },
}

ffi.cdef "int isatty(int fd);"
local watched = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb"

---Print on a terminal what is being measured; the next result overwrites it.
function published_agents.progress(what)
  if watched then io.stderr:write("\r", what, " ...\27[K\r") end
end

-- ---- speed of the machine ----

---GFLOP/s of one large product on one thread, medians of `runs` (9): ours, and OpenBLAS's.
---@param clock (fun(): number)? see stopwatch.timed
function published_agents.gemm_rates(runs, clock)
  local n = 1024
  local a, b, c = ffi.new("float[?]", n * n, 1), ffi.new("float[?]", n * n, 1), ffi.new("float[?]", n * n)
  local own, blas = {}, {}
  for i = 1, runs or 9 do
    own[i] = timed(function() engine.check(C.mn_gemm_once(engine.ctx, false, n, a, b, c)) end, clock)
    blas[i] = timed(function() engine.check(C.mn_gemm_once(engine.ctx, true, n, a, b, c)) end, clock)
  end
  return 2e-9 * n ^ 3 / median(own), 2e-9 * n ^ 3 / median(blas)
end

-- ---- agents ----

---A published configuration.
function published_agents.find(name)
  for _, setup in ipairs(published_agents.list) do if setup[1] == name then return setup end end
  errors.unknown("agent", name, tables.map(published_agents.list, function(setup) return setup[1] end))
end

---A learner of a published configuration, not begun, and its agent.
function published_agents.learner(setup)
  mn.manual_seed(1)
  local env = mn.env("tmaze", { corridor = 160, num_envs = 8, seed = 1 })
  local core = mn.core(setup.core)
  local agent = mn.agent { env = env, core = core, hidden = 128 }
  return mn.a2c({ seed = 1, lr = setup.lr, bootstrap_truncated = 0 }, env, agent), agent
end

return published_agents
