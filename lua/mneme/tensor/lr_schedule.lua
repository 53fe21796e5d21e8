-- lr_schedule.lua -- schedules of the learning rate: settings lr, lr_schedule, warmup.
-- Decay depends on the fraction of the training that is done, so a longer run decays more slowly; warm-up and the inverse
-- root count updates of the optimiser, as published.
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

---The learning rate of one update.  During the first `warmup` updates it grows evenly to what the schedule says.
---  constant      lr
---  linear        lr (1 - step/steps)                    (CleanRL's annealing)
---  cosine        lr (1 + cos(pi step/steps)) / 2        (Loshchilov & Hutter 2017, without restarts)
---  inverse_root  lr sqrt(warmup / n) after the warm-up  (Vaswani et al. 2017; lr is the greatest rate)
---@param set table { lr, lr_schedule, warmup }
---@param n integer number of the update, from 1
---@param step number steps made before the update's own
---@param steps number? steps of the whole training; linear and cosine need it
---@return number
function schedule.rate(set, n, step, steps)
  local name = set.lr_schedule
  if not steps and (name == "linear" or name == "cosine") then
    errors.raise(("lr_schedule=%s needs to know how long training is: cfg has no steps"):format(name))
  end
  local grown = n < set.warmup and n / set.warmup or 1
  return set.lr * grown * left[name](steps and math.min(1, step / steps), n, set.warmup)
end

return schedule
