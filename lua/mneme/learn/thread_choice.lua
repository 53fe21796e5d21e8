-- thread_choice.lua -- threads=0: as many threads as pay, measured while a learner trains.  Small agents are slower with two threads than with
-- one where another program wants a processor, and the bits are the same for any number.
local engine = require "mneme.base.engine"
local ranks = require "mneme.tensor.ranks"

local C = engine.C
local thread_choice = {}
local WARM = 3                     -- updates that do not count: plans are made
local ROUNDS, SECONDS = 3, 0.03    -- trials of each number at first, and seconds of a trial, at least one update
local AGAIN = 30                   -- seconds between trials
local GAIN = 1.05                  -- that more threads must bring

---@class ThreadChoice
local ThreadChoice = {}
ThreadChoice.__index = ThreadChoice

-- 1, 2, 4 ... and all.
local function numbers(most)
  local list, n = {}, 1
  while n < most do list[#list + 1], n = n, 2 * n end
  list[#list + 1] = most
  return list
end

---Of this process, which has as many threads as it may use; nil where there is no choice.
---@param steps fun(): number of work that after() is called for
---@return ThreadChoice?
function thread_choice.here(steps)
  local most = C.mn_threads(engine.ctx)
  if most == 1 or engine.device ~= "cpu" or ranks.size > 1 then return nil end
  return thread_choice.new(numbers(most), steps, function() return C.mn_clock(false) end,
    function(n) engine.check(C.mn_set_threads(engine.ctx, n)) end)
end

---An observer of a training (see trainer.lua); nil where the number of threads is given, or there is no choice.
---@param steps fun(): number
---@return ThreadChoice?
function thread_choice.open(learner, _, steps)
  local cfg = learner.cfg
  return cfg.threads == 0 and cfg.profile == "0" and thread_choice.here(steps) or nil
end

---The same with a clock and a way to set the number, which begins as the last of `list`.
---@param list integer[] ascending
---@param steps fun(): number
---@param clock fun(): number
---@param set fun(n: integer)
---@return ThreadChoice
function thread_choice.new(list, steps, clock, set)
  return setmetatable({ list = list, steps = steps, clock = clock, set = set, now = list[#list], updates = 0, queue = nil, rates = {} }, ThreadChoice)
end

local function plan(self, rounds)
  self.queue, self.rates = {}, {}
  for _ = 1, rounds do for k = #self.list, 1, -1 do table.insert(self.queue, self.list[k]) end end
end

local function use(self, n)
  if n ~= self.now then self.set(n) end
  self.now = n
end

-- The fewest threads that are nearly as fast as any.
local function best(self)
  local most = 0
  for _, n in ipairs(self.list) do most = math.max(most, self.rates[n]) end
  for _, n in ipairs(self.list) do if self.rates[n] * GAIN >= most then return n end end
end

-- The next trial, or the end of all.
local function next_trial(self)
  self.trial = table.remove(self.queue, 1)
  self.began = nil                                 -- the first update after a change does not count
  if self.trial then return use(self, self.trial) end
  use(self, best(self))
  self.again, self.queue = self.clock() + AGAIN, nil
end

---After an update.
function ThreadChoice:after()
  self.updates = self.updates + 1
  if self.updates < WARM then return end
  local time = self.clock()
  if not self.queue then
    if self.again and time < self.again then return end
    plan(self, self.again and 1 or ROUNDS)
    return next_trial(self)
  end
  if not self.began then
    self.began, self.from = time, self.steps()
  elseif time - self.began >= SECONDS then
    local rate = (self.steps() - self.from) / (time - self.began)
    self.rates[self.trial] = math.max(self.rates[self.trial] or 0, rate)
    next_trial(self)
  end
end

return thread_choice
