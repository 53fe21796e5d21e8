-- recur.lua -- `mneme bench recur`.
local lazy = require "mneme.base.lazy"
local published_agents = lazy "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local kernels = lazy "mneme.commands.bench.parts.kernels"
local mn = lazy "mneme"
local stopwatch = lazy "mneme.insight.measure.stopwatch"
local progress = require "mneme.base.progress"

local options = require "mneme.commands.options"
local recur = { name = "bench recur",
  doc = "recurrences written with mn.recur, forward and backward, next to the engine's own op where there is one", about = [[
And next to a PyTorch loop and JAX's lax.scan in the same run.]], options = { options.bench.threads, options.bench.torch } }
local T, B, D = 256, 8, 128              -- as in tests/reference/bench_recur.py
local ROUNDS, RUNS = 5, 5

local function sequence(width)
  local x = mn.tensor { shape = { T, B, width }, grad = true }
  for i = 0, x:size() - 1 do x:data()[i] = math.sin(1.7 * i) end
  return x
end

-- What is timed: { name, f = function that computes y }, and the op that it stands beside.
local function cases()
  mn.manual_seed(1)
  local done, none = mn.tensor { shape = { T, B }, dtype = "u8" }, mn.tensor { shape = { B, D } }
  local one, three, four = sequence(D), sequence(3 * D), sequence(4 * D)
  local w1, w3, w4 = mn.nn.linear(D, D), mn.nn.linear(D, 3 * D), mn.nn.linear(D, 4 * D)
  local bias = mn.tensor { shape = { D }, grad = true }
  local function part(x, k) return x:slice(-1, (k - 1) * D, k * D) end
  local function rnn(i, h)
    local after = (i + w1(h)):tanh()
    return after, after
  end
  local function gru(i, h)
    local p = w3(h)
    local r, z = (part(i, 1) + part(p, 1)):sigmoid(), (part(i, 2) + part(p, 2)):sigmoid()
    local n = (part(i, 3) + r * part(p, 3)):tanh()
    local after = n + z * (h - n)
    return after, after
  end
  local function slstm(i, s)
    local all = i + w4(s.h)
    local write, keep = part(all, 1), s.m - (-part(all, 2)):softplus()
    local m = keep:maximum(write)
    local a, b = (keep - m):exp(), (write - m):exp()
    local c, n = a * s.c + b * part(all, 3):tanh(), a * s.n + b
    local h = part(all, 4):sigmoid() * (c / n)
    return h, { h = h, c = c, n = n, m = m }
  end
  return {
    { "rnn", function() return (mn.recur(rnn, { x = one, state = none })) end },
    { "gru", function() return (mn.recur(gru, { x = three, state = none })) end,
      own = function() return (mn.ops.gru { i = three, w = w3.weight, bias = bias, done = done, h = none }) end },
    { "slstm", function() return (mn.recur(slstm, { x = four, state = { h = none, c = none, n = none, m = none } })) end },
  }
end

-- Seconds of forward and backward of functions, by turns: the median of rounds.
local function by_turns(list)
  local plans, times = {}, {}
  for i, f in ipairs(list) do
    plans[i], times[i] = mn.plan(function() f():square():sum():backward() end), {}
    plans[i]()
  end
  for round = 1, ROUNDS do
    for i, p in ipairs(plans) do times[i][round] = stopwatch.least(RUNS, function() p:run() end) end
  end
  for i, list_of in ipairs(times) do
    table.sort(list_of)
    times[i] = list_of[(ROUNDS + 1) / 2]
  end
  return times
end

---@return integer status
function recur.run(o)
  engine.open(nil, o.threads)
  published_agents.progress "recurrences"
  local others = o.torch and kernels.torch(o.torch, o.threads, "bench_recur.py")
  print(("mn.recur, forward + backward, T=%d B=%d D=%d, %d thread%s:"):format(T, B, D, o.threads, o.threads > 1 and "s" or ""))
  for _, case in progress.each(cases(), "recurrences") do
    published_agents.progress(case[1])
    local times = by_turns { case[2], case.own }
    local beside = case.own and ("   %.2f times the op's %.1f ms"):format(times[1] / times[2], 1e3 * times[2]) or ""
    for _, form in ipairs { "torch", "jax" } do
      local other = others and others[case[1] .. form]
      if other then
        beside = beside .. ("   %s (%s) %.1f ms: %.1f x"):format(form == "jax" and "JAX" or "PyTorch", other.form, other.ms,
          other.ms / (1e3 * times[1]))
      end
    end
    print(("%-7s %8.1f ms%s"):format(case[1], 1e3 * times[1], beside))
    mn.clear_tape()
  end
  return 0
end

return recur
