-- progress_table.lua -- shows the progress of a sweep: on a terminal a table of the active runs, rewritten in place; elsewhere
-- a line for each run that ends.  It writes to stderr, so that stdout stays free for results.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local folder = require "mneme.lab.study.folder"
local grid = require "mneme.lab.study.grid"
local process_pool = require "mneme.lab.study.process_pool"
local progress = require "mneme.base.progress"
local run_folder = require "mneme.runs.folder"
local terminal = require "mneme.base.terminal"

local C = engine.C
local Table = {}
Table.__index = Table

---@param count table { done, failed, all }, kept by the sweep
---@param options table? { tty, columns = function() -> the terminal's width }
local function new(plan, o, count, options)
  local tty = options and options.tty
  if tty == nil then tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb" end
  return setmetatable({ plan = plan, run = o.run, jobs = o.jobs, count = count, tty = tty, lines = 0, shown = -math.huge, times = {},
    steps = {}, spent = 0, ended_runs = 0, columns = options and options.columns or function() return terminal.columns(2) or 80 end }, Table)
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

-- The steps that a run is to take, as it wrote them down; before it did, the script's.
local function steps_of(self, name, path)
  if not self.steps[name] and files.is_file(path .. "/config.json") then
    local read, info = pcall(run_folder.read_info, path)
    local steps = read and tonumber(info.config.steps) or 0
    self.steps[name] = steps > 0 and steps or nil
  end
  return self.steps[name] or self.plan.cfg.steps
end

-- The part of a run's steps that is done, and its last score, from its log.
local function so_far(self, c)
  local path = c.path or folder.run_path(self.run, c.name)
  local f = files.is_file(path .. "/metrics.jsonl") and io.open(path .. "/metrics.jsonl")
  if not f then return 0 end
  f:seek("end", -math.min(f:seek "end", 4096))
  local step, score = 0, nil
  local text = f:read "*a"
  for s in text:gmatch '"step":%s*(%d+)' do step = tonumber(s) end
  for s in text:gmatch '"charts/score":%s*([%d.e+-]+)' do score = tonumber(s) end
  f:close()
  return math.min(1, step / steps_of(self, c.name, path)), score
end

-- A line that does not wrap: what is too long ends in "...".
local function cut(line, width)
  if terminal.letters(line) < width then return line end
  local short, n = "", 0
  for letter in line:gmatch "[^\128-\191][\128-\191]*" do
    n = n + 1
    if n > width - 5 then break end
    short = short .. letter
  end
  return short .. " ..."
end

local function erase(self)
  if self.lines > 0 then io.stderr:write(("\27[%dA\27[J"):format(self.lines)) end
  self.lines = 0
end

---Renew the table, a few times a second.
function Table:update(running, waiting)
  local now = C.mn_clock(false)
  if not self.tty or now - self.shown < 0.25 then return end
  self.shown = now
  erase(self)
  local eta, n = left(self, running, waiting), 0
  local lines = {}
  for _, r in pairs(running) do
    n = n + 1
    local part, score = so_far(self, r.job)
    lines[n] = ("  %3.0f %%  %8s  %s%s"):format(100 * part, progress.clock(now - r.since), score and ("%.2f  "):format(score) or "", r.job.name)
  end
  table.sort(lines)
  table.insert(lines, 1, ("%d of %d runs done%s%s, %d running, %d waiting"):format(self.count.done, self.count.all,
    self.count.failed > 0 and (", %d failed"):format(self.count.failed) or "", eta and ", ETA " .. progress.clock(eta) or "", n, waiting))
  local width = self.columns()
  for _, line in ipairs(lines) do io.stderr:write(cut(terminal.plain(line, true), width), "\n") end
  io.stderr:flush()
  self.lines = n + 1
end

---A run has ended.
---@param what string "done", "failed" ...
---@param why string? what it said last
function Table:ended(c, about, what, why)
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

---Print a line above the table.
function Table:say(text)
  erase(self)
  terminal.note(text)
end

---The table goes.
function Table:close() erase(self) end

return { new = new }
