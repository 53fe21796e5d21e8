-- progress.lua -- shows progress: on a terminal one line that is rewritten in place; elsewhere (a log file,
-- a batch job) a plain line every tenth of the way or every 30 s.  It writes to stderr, so that stdout
-- stays free for results, and stays silent once stderr is closed.
local ffi = require "ffi"
local engine = require "mneme.base.engine"

local C = engine.C
ffi.cdef "int isatty(int fd);"

---@class Progress
local Progress = {}
Progress.__index = Progress

-- 950, 12.3k, 5.00M: four characters or so.
local function short(n)
  if n < 1000 then return ("%.0f"):format(n) end
  if n < 99950 then return ("%.1fk"):format(n / 1e3) end
  if n < 999500 then return ("%.0fk"):format(n / 1e3) end
  return n < 9.995e9 and ("%.2fM"):format(n / 1e6) or ("%.2fG"):format(n / 1e9)
end

-- 754 as "12:34".
local function clock(seconds)
  local s = math.floor(math.min(seconds, 359999) + 0.5)
  if s < 3600 then return ("%d:%02d"):format(s / 60, s % 60) end
  return ("%d:%02d:%02d"):format(s / 3600, s % 3600 / 60, s % 60)
end

---@param options table { steps = where it ends, start = where it begins (0), unit = what is counted ("steps"), out = file (stderr),
---  tty = boolean (what stderr is), color = boolean (a terminal without NO_COLOR), silent = print nothing }
---@return Progress
local function new(options)
  local tty = options.tty
  if tty == nil then tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb" end
  local color = options.color
  if color == nil then color = tty and (os.getenv "NO_COLOR" or "") == "" end
  local now, start = C.mn_clock(false), options.start or 0
  return setmetatable({ steps = options.steps, start = start, unit = options.unit or "steps", silent = options.silent,
    out = options.out or io.stderr, tty = tty, color = color, began = now, shown = -math.huge,
    tenth = math.floor(10 * start / options.steps) }, Progress)
end

-- What may be shown, in this order.
local NUMBERS = { "return", "score", "loss", "accuracy" }

---The text for a step: what is shown, without the terminal's control characters.
---@param step number
---@param values table name -> number: "return", score, loss, accuracy; a NaN is not shown
---@param seconds number since the start
function Progress:text(step, values, seconds)
  local part = math.min(step / self.steps, 1)
  local rate = seconds > 0 and (step - self.start) / seconds or 0
  local line = ("%3.0f%%  %s/%s %s  %s"):format(100 * part, short(step), short(self.steps), self.unit, short(rate))
    .. (self.unit == "steps" and " SPS" or "/s")
  if part < 1 and rate > 0 then line = line .. "  ETA " .. clock((self.steps - step) / rate) end
  for _, name in ipairs(NUMBERS) do
    local x = values[name]
    if x and x == x then line = line .. ("  %s %.2f"):format(name, x) end
  end
  return line, part
end

function Progress:show(line, part)
  if not self.tty then
    self.out:write(line, "\n")
  else
    local full = math.floor(12 * part + 0.5)
    local done, left = ("━"):rep(full), ("─"):rep(12 - full)
    if self.color then done, left = "\27[32m" .. done .. "\27[0m", "\27[90m" .. left .. "\27[0m" end
    self.out:write("\r", done, left, " ", line, "\27[K")
  end
  self.out:flush()
end

function Progress:tell(step, values, now)
  if self.silent then return end
  self.shown, self.tenth, self.last = now, math.floor(10 * step / self.steps), step
  self:show(self:text(step, values, now - self.began))
end

---Report the progress; cheap if nothing is due to be shown.
---@param step number
---@param values table name -> number: "return", score, loss, accuracy; a NaN is not shown
function Progress:update(step, values)
  local now = C.mn_clock(false)
  local tenth = math.floor(10 * step / self.steps)
  if now - self.shown < (self.tty and 0.1 or 30) and (self.tty or tenth == self.tenth) then return end
  self:tell(step, values, now)
end

---The last line, whatever is due.
function Progress:finish(step, values)
  if self.tty or self.last ~= step then self:tell(step, values, C.mn_clock(false)) end
  if self.tty then self.out:write "\n" end
end

return { new = new, clock = clock }
