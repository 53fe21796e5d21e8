-- episode_stats.lua -- outcomes of finished episodes: those since the last line of the log, and the last hundred.
local ffi = require "ffi"
local checkpoints = require "mneme.runs.checkpoints"
local errors = require "mneme.base.errors"

local WINDOW = 100                 -- episodes behind the running score

---@class Episodes
local Episodes = {}
Episodes.__index = Episodes
Episodes.WINDOW = WINDOW

local function new()
  return setmetatable({ total = 0, scores = ffi.new("float[?]", WINDOW), returns = ffi.new("float[?]", WINDOW),
    count = 0, sum_score = 0, sum_return = 0, sum_length = 0 }, Episodes)
end

---An episode has ended, in step t of the rollout.
function Episodes:add(_, score, ret, length) self:count_in(score, ret, length) end

function Episodes:count_in(score, ret, length)
  local at = self.total % WINDOW
  self.scores[at], self.returns[at] = score, ret
  self.total, self.count = self.total + 1, self.count + 1
  self.sum_score, self.sum_return = self.sum_score + score, self.sum_return + ret
  self.sum_length = self.sum_length + length
end

local function mean(values, n)
  local sum = 0
  for i = 0, n - 1 do sum = sum + values[i] end
  return n > 0 and sum / n or 0 / 0
end

---Mean score over the last hundred episodes; NaN before the first.
function Episodes:score() return mean(self.scores, math.min(self.total, WINDOW)) end
function Episodes:mean_return() return mean(self.returns, math.min(self.total, WINDOW)) end

---"score 0.970 over the last 100 episodes, return 3.88"
function Episodes:text()
  if self.total == 0 then return "no episode has ended" end
  return ("score %.3f over the last %d episodes, return %.2f"):format(self:score(), math.min(self.total, WINDOW),
    self:mean_return())
end

---Means since the last call, as logged.
function Episodes:metrics(m)
  if self.count > 0 then
    m["charts/episodic_return"] = self.sum_return / self.count
    m["charts/episodic_length"] = self.sum_length / self.count
    m["charts/score"] = self.sum_score / self.count
  end
  m["charts/episodes"] = self.total
  self.count, self.sum_score, self.sum_return, self.sum_length = 0, 0, 0, 0
  return m
end

local function list_of(values, n)
  local list = {}
  for i = 0, n - 1 do list[i + 1] = values[i] end
  return list
end

---What a checkpoint keeps, as JSON can.
function Episodes:counters()
  local n = math.min(self.total, WINDOW)
  return { total = self.total, count = self.count, sum_score = self.sum_score, sum_return = self.sum_return,
    sum_length = self.sum_length, scores = list_of(self.scores, n), returns = list_of(self.returns, n) }
end

---@param c table of a checkpoint, of its counters
---@param path string the checkpoint's
function Episodes:restore(c, path)
  local function refuse(what) errors.fail(("%s: damaged: %s of its episodes"):format(path, what)) end
  if type(c) ~= "table" then refuse "it has no list" end
  checkpoints.whole(path, "count of episodes", c.count, checkpoints.whole(path, "number of episodes", c.total))
  for _, key in ipairs { "sum_score", "sum_return", "sum_length" } do if type(c[key]) ~= "number" then refuse(key .. " is not a number:") end end
  for _, key in ipairs { "scores", "returns" } do
    if type(c[key]) ~= "table" or #c[key] ~= math.min(c.total, WINDOW) then refuse("there are not as many " .. key .. " as there were") end
    for i, v in ipairs(c[key]) do
      if type(v) ~= "number" then refuse("not a number among the " .. key) end
      self[key][i - 1] = v
    end
  end
  for _, key in ipairs { "total", "count", "sum_score", "sum_return", "sum_length" } do self[key] = c[key] end
end

return new
