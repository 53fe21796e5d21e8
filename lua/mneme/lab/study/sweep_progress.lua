-- sweep_progress.lua -- shows the progress of a sweep: on a terminal one line, rewritten in place; elsewhere a line for each run that ends.
-- It writes to stderr, so that stdout stays free for results.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local grid = require "mneme.lab.study.grid"
local process_pool = require "mneme.lab.study.process_pool"
local progress = require "mneme.base.progress"
local terminal = require "mneme.base.terminal"

local Progress = {}
Progress.__index = Progress

---@param count table { done, failed, all }, kept by the sweep
---@param tty boolean? stderr is a terminal
local function new(plan, jobs, count, tty)
  if tty == nil then tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb" end
  return setmetatable({ plan = plan, jobs = jobs, count = count, tty = tty, shown = -math.huge, times = {}, spent = 0, ended_runs = 0 }, Progress)
end

-- Seconds that a run takes in the mean: of those that ended, else as was estimated; nil: nothing is known.
local function mean_of(self)
  if self.ended_runs > 0 then return self.spent / self.ended_runs end
  local sum, n = 0, 0
  for _, c in ipairs(self.plan.runs) do
    if c.estimate then sum, n = sum + c.estimate.wall_s, n + 1 end
  end
  return n > 0 and sum / n or nil
end

-- Seconds that are left, if runs take as long as those of their kind did, or as was estimated, or as all did.
local function left(self, running, waiting)
  local mean, total, n = mean_of(self), 0, waiting
  if not mean then return nil end
  local longest = waiting > 0 and mean or 0
  local function expected(c)
    local t = self.times[grid.kind(c)]
    return t and t.sum / t.n or c.estimate and c.estimate.wall_s or mean
  end
  local now = C.mn_clock(false)
  for _, r in pairs(running) do
    local seconds = math.max(0, expected(r.job) - (now - r.since))
    n, total, longest = n + 1, total + seconds, math.max(longest, seconds)
  end
  return process_pool.seconds(total + waiting * mean, n, self.jobs, longest)
end

local function erase(self)
  if self.tty then io.stderr:write "\r\27[K" end
end

---Renew the line, a few times a second.
function Progress:update(running, waiting)
  local now, n = C.mn_clock(false), 0
  if not self.tty or now - self.shown < 0.25 then return end
  self.shown = now
  for _ in pairs(running) do n = n + 1 end
  local eta = left(self, running, waiting)
  erase(self)
  io.stderr:write((("%d of %d runs done%s%s, %d running, %d waiting"):format(self.count.done, self.count.all,
    self.count.failed > 0 and (", %d failed"):format(self.count.failed) or "", eta and ", ETA " .. progress.clock(eta) or "", n, waiting)
    :sub(1, (terminal.columns(2) or 80) - 1)))
  io.stderr:flush()
end

---A run has ended.
---@param what string "done", "failed" ...
---@param why string? what it said last
function Progress:ended(c, about, what, why)
  if what == "done" then
    local kind = grid.kind(c)
    local t = self.times[kind] or { n = 0, sum = 0 }
    t.n, t.sum, self.times[kind] = t.n + 1, t.sum + about.wall, t
    self.ended_runs, self.spent = self.ended_runs + 1, self.spent + about.wall
  end
  if self.tty and what == "done" then return end
  erase(self)
  terminal.note(("%d/%d  %s  %s  %s%s"):format(self.count.done, self.count.all, c.name, what, progress.clock(about.wall),
    why and why ~= "" and ": " .. why or ""))
end

---Print a line above the line.
function Progress:say(text)
  erase(self)
  terminal.note(text)
end

---The line goes.
function Progress:close() erase(self) end

return { new = new }
