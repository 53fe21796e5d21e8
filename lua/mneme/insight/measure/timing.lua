-- timing.lua -- measures a core: seconds of a step after N others, seconds of a whole sequence, and the growth of the
-- process's memory.  For benchmarks, and for studies that measure instead of training; these run each
-- run in its own process, and set jobs = 1.
local cores = require "mneme.models.cores"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local plan = require "mneme.tensor.plan"
local resources = require "mneme.runs.resources"
local stopwatch = require "mneme.insight.measure.stopwatch"
local tensor = require "mneme.tensor.tensor"

local timing = { ROWS = 64 }     -- steps from one packing of the weights to the next, as in insight/episodes/stepper.lua
local ROWS = timing.ROWS
local TIMES, LONG = 3, 1        -- of a sequence: how often it is measured, and seconds from which once is enough
local ROUNDS, AWHILE = 12, 0.3  -- of a step: how many rounds at least, and seconds, since a machine's slow moment lasts longer than a round

---Fill a tensor with normal numbers, the same each time.
---@param t Tensor float32
---@param stream integer other numbers for each
---@param scale number their standard deviation
---@return Tensor t
function timing.fill(t, stream, scale)
  local p = t:data()
  C.mn_random_normal(1, stream, 0, p, t:size())
  for i = 0, t:size() - 1 do p[i] = p[i] * scale end
  return t
end

---A core's settings such that it looks back N steps: where its memory has a size, that is N; where it keeps an episode,
---there is room for N steps and `more`.
---@param name string
---@param config table its other settings
---@param N integer
---@param more integer? 0
---@return table config
---@return boolean bounded it has such a size
function timing.looking_back(name, config, N, more)
  local keys, full = cores.definition(name).config, {}
  for key, value in pairs(config) do full[key] = value end
  if keys.memory then full.memory = N end
  if keys.context then
    local unit = keys.block or keys.chunk or 1
    full.context = unit * math.ceil((N + (more or 0)) / unit)
  end
  return full, keys.memory ~= nil or keys.context ~= nil
end

-- ---- one step ----

---A core that has seen, or is about to see, N steps: where its memory has a size, that is N, and full of numbers.
---@return table self step(): one more step of one environment; seen: how many there were; bounded: another N needs another core; core
function timing.stepper(name, config, N)
  nn.manual_seed(1)
  local full, bounded = timing.looking_back(name, config, N, 16 * ROWS)
  local c = cores.new(name, full)
  local x, done, state = tensor.new { shape = { ROWS, 1, c.config.d_in }, time = true },
    tensor.new { shape = { ROWS, 1 }, dtype = "u8", time = true }, c:initial(1)
  timing.fill(x, 1, 1)
  for key, t in pairs(state) do
    if full.memory then timing.fill(t, 2, key == "mask" and 0 or 0.5) end
  end
  local act = plan(function(...) return tensor.off_tape(c.act, c, ...) end)
  local _, after = act(x, done, state)
  local row, self = 0, { seen = full.memory or 0, bounded = bounded, core = c }
  ---One step, as an agent takes it: a row of the plan, and every 64 of them the state goes back to its beginning.
  function self.step()
    act:rows(row, row + 1)
    row = row + 1
    if row == ROWS then
      tensor.keep(after, state)
      row = 0
    end
    self.seen = self.seen + 1
  end
  return self
end

---Seconds of one step of a stepper now.  A round of 64 takes every part of it once (the first packs the weights, the
---last carries the state over, which the median leaves out); each counts at its best of all rounds, since one that
---another program broke into says nothing.
---@return number mean
---@return number median
function timing.one_step(self)
  local best, sum, round, began = {}, 0, 0, C.mn_clock(false)
  while round < ROUNDS or C.mn_clock(false) - began < AWHILE do
    round = round + 1
    for i = 1, ROWS do
      local start = C.mn_clock(false)
      self.step()
      local took = C.mn_clock(false) - start
      best[i] = round > 2 and math.min(best[i], took) or took
    end
  end
  for i = 1, ROWS do sum = sum + best[i] end
  return sum / ROWS, stopwatch.lower_median(best)
end

---Seconds of one step of one environment after N steps.
---@param name string
---@param config table
---@param N integer
---@return number mean
---@return Core
function timing.step(name, config, N)
  local self = timing.stepper(name, config, N)
  while self.seen < N - ROWS do self.step() end
  return timing.one_step(self), self.core
end

-- ---- whole sequences ----

---Seconds of f(x) as a plan without a tape: the best of a few, or of one that takes long.
---@param f Module|fun(x: Tensor): Tensor
---@param x Tensor
---@return number
function timing.forward(f, x)
  local run = plan(function(...) return tensor.off_tape(f, ...) end)
  local y = run(x)
  if not tensor.is(y) then errors.raise(("meter: what is measured gave %s, expected a tensor"):format(tostring(y))) end
  local function again() run:run() end
  local first = stopwatch.timed(again)
  return first > LONG and first or stopwatch.least(TIMES, again)
end

---Seconds of one environment's sequence of N steps through a core that looks back over all of it.
---@param name string
---@param config table
---@param N integer
---@return number
function timing.sequence(name, config, N)
  nn.manual_seed(1)
  local c = cores.new(name, (timing.looking_back(name, config, N)))
  local x = timing.fill(tensor.new { shape = { N, 1, c.config.d_in }, time = true }, 1, 1)
  return timing.forward(function(input) return (c(input)) end, x)
end

---Seconds of a forward and a backward pass over one environment's sequence of N steps, through a core that looks back over all of it.
---@param name string
---@param config table
---@param N integer
---@return number
function timing.training(name, config, N)
  nn.manual_seed(1)
  local c = cores.new(name, (timing.looking_back(name, config, N)))
  local x = timing.fill(tensor.new { shape = { N, 1, c.config.d_in }, time = true }, 1, 1)
  local learn = plan(function(input)
    local loss = tensor.ops.mean { x = tensor.ops.square((c(input))) }
    loss:backward()
    return loss
  end)
  local function again() learn(x) end
  again()
  local first = stopwatch.timed(again)
  return first > LONG and first or stopwatch.least(TIMES, again)
end

-- ---- memory ----

---Measures the growth of the process's peak memory from now on.
---@return fun(): number MiB
function timing.memory()
  collectgarbage()
  local before = resources.peak()
  return function() return resources.peak() - before end
end

return timing
