-- lr_schedule.lua -- schedules of the learning rate: settings lr, lr_schedule, warmup.
-- Decay depends on the fraction of the training that is done, so a longer run decays more slowly; warm-up and the inverse
-- root count updates of the optimiser, as published.  A resume with other steps continues from the rate of the last update.
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local schedule = {}

-- What is left of lr: done = share of the training so far (0..1), n = number of this update, from 1, warmup in updates.
local left = {
  constant = function() return 1 end,
  linear = function(done) return 1 - done end,
  cosine = function(done) return 0.5 * (1 + math.cos(math.pi * done)) end,
  inverse_root = function(_, n, warmup) return math.sqrt(math.max(warmup, 1) / math.max(n, warmup)) end,
}

schedule.names = tables.keys(left)

---Does a schedule depend on the steps of the whole training?
---@param name string
---@return boolean
function schedule.decays(name) return name == "linear" or name == "cosine" end

---What share of a training is done at a step.  Where a resume changed its steps, the share grows evenly from what it was at the update before
---to 1 at the new end: a schedule continues from the rate that it had.
---@param step number made before an update
---@param steps number? of the whole training
---@param starts { from_step: number, steps: number? }[]? where resumes changed the steps: all starts, ascending; without steps: as the next one
---@param each number? steps of an update
---@return number? share 0..1; nil: a training without an end
function schedule.share(step, steps, starts, each)
  if not steps or not starts then return steps and math.min(1, step / steps) end
  local from, begun, ends = 0, 0, steps          -- the stretch that the step is in: where it begins, the share there, where it ends
  for i = #starts, 1, -1 do ends = starts[i].steps or ends end
  local function at(s) return s <= from and begun or math.min(1, begun + (1 - begun) * (s - from) / (ends - from)) end
  for _, start in ipairs(starts) do
    if start.steps and start.steps ~= ends and start.from_step <= step then
      begun = at(start.from_step - each)
      from, ends = start.from_step, start.steps
    end
  end
  return at(step)
end

---The learning rate of one update.  During the first `warmup` updates it grows evenly to what the schedule says.
---  constant      lr
---  linear        lr (1 - step/steps)                    (CleanRL's annealing)
---  cosine        lr (1 + cos(pi step/steps)) / 2        (Loshchilov & Hutter 2017, without restarts)
---  inverse_root  lr sqrt(warmup / n) after the warm-up  (Vaswani et al. 2017; lr is the greatest rate)
---@param set table { lr, lr_schedule, warmup }
---@param n integer number of the update, from 1
---@param step number steps made before the update's own
---@param steps number? steps of the whole training; linear and cosine need it
---@param starts table[]? see schedule.share
---@param each number? see schedule.share
---@return number
function schedule.rate(set, n, step, steps, starts, each)
  local name = set.lr_schedule
  local done = schedule.share(step, steps, starts, each)
  if not steps and schedule.decays(name) then
    errors.raise(("lr_schedule=%s needs to know how long training is: cfg has no steps"):format(name))
  end
  local grown = n < set.warmup and n / set.warmup or 1
  return set.lr * grown * left[name](done, n, set.warmup)
end

return schedule
