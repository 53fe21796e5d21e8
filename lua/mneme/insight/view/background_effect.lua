-- background_effect.lua -- what an intervention does over many episodes, counted while the window is idle: the same as
-- `mneme intervene` with that many.
local errors = require "mneme.base.errors"
local interventions = require "mneme.insight.episodes.interventions"
local paired_episodes = require "mneme.insight.episodes.paired_episodes"
local progress = require "mneme.base.progress"
local stats = require "mneme.stats"


---@class BackgroundEffect
---@field done boolean nothing is left to count
local Effect = {}
Effect.__index = Effect

---@param open fun(): Stepper the agent in many environments
---@param specs table[] interventions, each with its step
---@param o table { episodes, seed }
---@return BackgroundEffect
local function new(open, specs, o)
  local self = setmetatable({ episodes = o.episodes, counted = 0, at = specs[1].at, done = false }, Effect)
  self.routine = coroutine.create(function()
    local p = open()
    self.pairs_of = paired_episodes.play(p, interventions.new(p, specs), { episodes = o.episodes, seed = o.seed, pause = function() progress.pause(self) end,
      done = function(n) self.counted = n end })
  end)
  return self
end

---Counts until the deadline.
---@param deadline number of engine.C.mn_clock(false)
---@return boolean changed there is another text
function Effect:work(deadline)
  local before = self.counted
  local ok, problem = errors.try(progress.piece, self, deadline)
  if not ok then self.done, self.problem = true, problem.message end
  return self.done or self.counted ~= before
end

-- "0.81 → 0.52, −0.29 [−0.39, −0.19]"
local function change(name, without, with, by, low, high)
  local text = ("%s %.2f → %.2f"):format(name, without, with)
  if low then text = text .. (", %+.2f [%+.2f, %+.2f]"):format(by, low, high) end
  return (text:gsub("%-(%d)", "−%1"))
end

---What is known, in words.
---@param here number? by how much the shown episode is better with the interventions, where it is over
function Effect:text(here)
  if self.problem then return self.problem end
  if not self.done then return ("counting over %d episodes: %d"):format(self.episodes, self.counted) end
  local cases, _, refused = paired_episodes.reaching(self.pairs_of, self.at)
  if #cases == 0 and refused > 0 then return ("possible in none of %d episodes that reach step %d"):format(refused, self.at) end
  if #cases == 0 then return ("none of %d episodes reaches step %d"):format(self.episodes, self.at) end
  local text
  self.sign = 0
  local count, n = paired_episodes.count_success(cases), #cases
  if count then
    local by, low, high = stats.paired_shares(count.both, count.with, count.without, count.neither)
    text, self.sign = change("success", (count.both + count.without) / n, (count.both + count.with) / n, by, low, high), low > 0 and 1 or high < 0 and -1 or 0
  else
    local without, by = 0, {}
    for i, c in ipairs(cases) do without, by[i] = without + c[1].ret / n, c[2].ret - c[1].ret end
    local mean, low, high = stats.t_interval(by)
    text, self.sign = change("return", without, without + mean, mean, low, high), low and (low > 0 and 1 or high < 0 and -1) or 0
  end
  return ("over %d episodes: %s%s"):format(n, text, (here or 0) * self.sign < 0 and "; here the opposite, by chance" or "")
end

return { new = new }
