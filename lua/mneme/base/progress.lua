-- progress.lua -- shows progress: on a terminal one line that is rewritten in place and never wraps; elsewhere (a log file, a batch
-- job) a plain line every tenth of the way or every 30 s.  What takes more than ten seconds says how long, after the first second.
-- It writes to stderr, so that stdout stays free for results, and stays silent once stderr is closed.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local format = require "mneme.base.format"
local terminal = require "mneme.base.terminal"

local progress = {
  into = nil,               -- a file that gets "SHARE SECONDS_LEFT" in place of bars, for the process that started this one
}
local BAR = 12                                -- letters of the bar
local EVERY = 0.5                             -- seconds between two lines of progress.into
local LONG = 10                               -- seconds: what takes longer says so

---@class Progress
local Progress = {}
Progress.__index = Progress

-- 754 as "12:34".
function progress.clock(seconds)
  local s = math.floor(math.min(seconds, 359999) + 0.5)
  if s < 3600 then return ("%d:%02d"):format(s / 60, s % 60) end
  return ("%d:%02d:%02d"):format(s / 3600, s % 3600 / 60, s % 60)
end
local clock = progress.clock

---@param options table { steps = where it ends, start = where it begins (0), unit = what is counted ("steps"), at_most = it may end before its steps,
---  out = file (stderr),
---  after = seconds before the first line (0), tty = boolean (what stderr is), color = boolean (a terminal without NO_COLOR), columns =
---  function() -> the terminal's width, silent = print nothing }
---@return Progress
function progress.new(options)
  local tty = options.tty
  if tty == nil then tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb" end
  local color = options.color
  if color == nil then color = tty and (os.getenv "NO_COLOR" or "") == "" end
  local now, start = C.mn_clock(false), options.start or 0
  return setmetatable({ steps = options.steps, start = start, unit = options.unit or "steps", at_most = options.at_most, silent = options.silent,
    out = options.out or io.stderr, tty = tty, color = color, began = now, shown = -math.huge, after = options.after or 0,
    columns = options.columns or function() return terminal.columns(2) or 80 end,
    tenth = math.floor(10 * start / options.steps) }, Progress)
end

-- What may be shown, in this order.
local NUMBERS = { "return", "score", "loss", "accuracy" }
-- What a narrow terminal leaves out, first to last.
local SPARE = { "rate", "return", "bar", "of", "eta", "loss", "accuracy" }

-- The parts of the line for a step, by name and in order; and the share of the way.
local function parts_of(self, step, values, seconds)
  local part = math.min(step / self.steps, 1)
  local rate = seconds > 0 and (step - self.start) / seconds or 0
  local list = { { "percent", ("%3.0f%%"):format(100 * part) }, { "steps", format.short(step) },
    { "of", "/" .. format.short(self.steps) .. " " .. self.unit, "" }, { "rate", format.short(rate) .. (self.unit == "steps" and " SPS" or "/s") } }
  if part < 1 and rate > 0 then
    list[#list + 1] = { "eta", (self.at_most and "ETA at most " or "ETA ") .. clock(self.seconds or (self.steps - step) / rate) }
  end
  for _, name in ipairs(NUMBERS) do
    local x = values[name]
    if x and x == x then list[#list + 1] = { name, format.said("%s %.2f", name, x) } end
  end
  return list, part
end

local function joined(list)
  local line = ""
  for i, part in ipairs(list) do line = line .. (i > 1 and part[3] or i > 1 and "  " or "") .. part[2] end
  return line
end

---The text for a step, whole: what is shown, without the terminal's control characters.
---@param values table name -> number: "return", score, loss, accuracy; a NaN is not shown
---@param seconds number since the start
function Progress:text(step, values, seconds)
  local list, part = parts_of(self, step, values, seconds)
  return joined(list), part
end

---The line that a terminal of this width shows, without colours: the bar and the text.
---@param list table[] parts
---@param width integer columns
---@return boolean bar whether the bar is shown
local function fitted(list, width)
  local bar, room = true, width - 1                -- the last column stays free: some terminals wrap there
  local function wide() return terminal.letters(joined(list)) + (bar and BAR + 1 or 0) end
  for _, spare in ipairs(SPARE) do
    if wide() <= room then break end
    if spare == "bar" then bar = false end
    for i = #list, 1, -1 do if list[i][1] == spare then table.remove(list, i) end end
  end
  while wide() > room and #list > 1 do table.remove(list) end
  return bar, joined(list)
end

function Progress:show(step, values, seconds)
  local list, part = parts_of(self, step, values, seconds)
  if not self.tty then self.out:write(joined(list), "\n")
  else
    local shows_bar, line = fitted(list, self.columns())
    local full = math.floor(BAR * part + 0.5)
    local done, left = ("━"):rep(full), ("─"):rep(BAR - full)
    if self.color then done, left = "\27[32m" .. done .. "\27[0m", "\27[90m" .. left .. "\27[0m" end
    self.out:write("\r", shows_bar and done .. left .. " " or "", line, "\27[K")
  end
  self.out:flush()
end

function Progress:tell(step, values, now)
  if self.silent then return end
  self.shown, self.tenth, self.last = now, math.floor(10 * step / self.steps), step
  self:show(step, values, now - self.began)
end

-- After a second: how long all of it takes, if that is long.  The first update, which makes the plans, counts only if it took so long
-- itself.
local function foresee(self, step, now)
  if self.foreseen or self.silent then return end
  if not self.second then
    local slow = now - self.began >= 1
    self.second = { step = slow and self.start or step, time = slow and self.began or now }
  end
  local seconds = now - self.second.time
  if seconds < 1 or step <= self.second.step then return end
  local left = self.seconds or (self.steps - step) * seconds / (step - self.second.step)
  self.foreseen, self.left = not progress.into, left
  if left < LONG or progress.into then return end
  local line = ("%s %s for %s %s, at the speed of the first %s"):format(self.at_most and "at most about" or "about",
    clock(left), format.short(self.steps - step), self.unit,
    seconds < 1.5 and "second" or clock(seconds))
  if self.tty then self.out:write("\r\27[K", terminal.fold(line, self.columns()), "\n") else self.out:write(line, "\n") end
end

-- The line of progress.into.
local function hand_on(self, step, now)
  if self.silent or now - self.shown < EVERY then return end
  self.shown = now
  local f = io.open(progress.into, "w")
  if f then f:write(("%.4f %s\n"):format(math.min(step / self.steps, 1), self.left and ("%.1f"):format(self.left) or "")) f:close() end
end

---Report the progress; cheap if nothing is due to be shown.
---@param values table name -> number: "return", score, loss, accuracy; a NaN is not shown
function Progress:update(step, values)
  local now = C.mn_clock(false)
  foresee(self, step, now)
  if progress.into then return hand_on(self, step, now) end
  if now - self.began < self.after then return end
  local tenth = math.floor(10 * step / self.steps)
  if now - self.shown < (self.tty and 0.1 or 30) and (self.tty or tenth == self.tenth) then return end
  self:tell(step, values, now)
end

---The last line, whatever is due.
function Progress:finish(step, values)
  if progress.into then return end
  if self.tty or self.last ~= step then self:tell(step, values, C.mn_clock(false)) end
  if self.tty then self.out:write "\n" end
end

---A place where a job in small pieces may stop until it is called again.
---@param job table { deadline }
function progress.pause(job)
  if C.mn_clock(false) > job.deadline then coroutine.yield() end
end

---A piece of such a job: what its method work() does.
---@param job table { routine = coroutine that gets the job, done = boolean }
---@param deadline number? of engine.C.mn_clock(false)
---@return boolean done
function progress.piece(job, deadline)
  job.deadline = deadline or math.huge
  if job.done then return true end
  local ok, problem = coroutine.resume(job.routine, job)
  if not ok then error(problem, 0) end
  job.done = coroutine.status(job.routine) == "dead"
  return job.done
end

---Work in small pieces until it is done or a signal comes, with a bar once it has taken a second.
---@param job table work(deadline) -> done; progress() -> count, of how many (nil: not known yet), seconds left (nil: as many as the count says); done
---@param unit string what is counted
---@param before string what is done while it is not known how many there are; said if that takes more than two seconds
---@return boolean done
function progress.work(job, unit, before)
  local bar, began, said = nil, C.mn_clock(false), false
  repeat
    local done = job:work(C.mn_clock(false) + 0.1)
    local at, of, left = job:progress()
    if of and not bar then bar = progress.new { steps = math.max(1, of), start = at, unit = unit, after = 1 } end
    if bar then bar.seconds = left end
    if bar and not done then bar:update(at, {})
    elseif not bar and not said and C.mn_clock(false) - began > 2 then
      said = true
      io.stderr:write("mneme: ", before, "\n")
    end
  until done or C.mn_interrupted() ~= 0
  if bar and bar.last then bar:finish(job:progress(), {}) end
  return job.done
end

---The items of a list, as ipairs gives them; once some took a second, stderr says how long the others take, if that is long.
---@param what string what they are, in the plural
---@return fun(): integer?, any
function progress.each(list, what)
  local began, announced, i = C.mn_clock(false), false, 0
  return function()
    local spent = C.mn_clock(false) - began
    if not announced and i > 0 and i < #list and spent > 1 then
      announced = true
      progress.announce(spent / i * (#list - i), ("for %d more %s, at the speed of the first%s"):format(#list - i, what, i > 1 and " " .. i or ""))
    end
    i = i + 1
    if list[i] ~= nil then return i, list[i] end
  end
end

---On stderr, in the place of a bar: what is known before the end.
---@param text string lines
function progress.aside(text)
  if not progress.into then io.stderr:write(ffi.C.isatty(2) == 1 and "\r\27[K" or "", text, "\n") end
end

---On stderr: how long what comes takes, if that is more than ten seconds.
---@param basis string what is counted, and how it is known: "for 27 runs, as the first took"
function progress.announce(seconds, basis)
  if seconds < LONG or progress.into then return end
  progress.aside(terminal.fold(("about %s %s"):format(clock(seconds), basis), terminal.columns(2)))
end

---For the first round of something that prints a line a round: after two seconds of it, says how long the round takes, if that is long.
---@param what string what a round is, in one word
---@return fun(done: integer, of: integer) to call after each part of the round
function progress.first_round(what)
  local began, over = C.mn_clock(false), false
  return function(done, of)
    local spent = not over and C.mn_clock(false) - began or 0
    if spent < 2 or done >= of then return end
    over = true
    progress.announce(spent / done * of, ("for %d steps of the first %s, and as long or longer to learn from them: then a line comes"):format(of, what))
  end
end

---The line goes, for results to take its place.
function Progress:clear()
  if self.tty and self.last then self.out:write "\r\27[K" end
end

return progress
