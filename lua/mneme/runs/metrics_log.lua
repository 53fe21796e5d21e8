-- metrics_log.lua -- the log of a run: metrics.jsonl, one line per call, and the same values
-- for TensorBoard.  Both grow by whole lines; resuming truncates them to the number of lines
-- and records in the checkpoint, so a run that was killed and resumed leaves the same log as one that was not.
-- What is cut is what training will write again: lines of later steps.  Any other log is kept aside.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local C, check = engine.C, files.check
local AT_ONCE = 2 ^ 20                 -- bytes of a log

---@class Log
---@field lines integer lines of metrics.jsonl
---@field named boolean? the files' names are on the disk
local Log = {}
Log.__index = Log

-- The first `lines` lines of a log: the bytes that they are, and how many of them there are.  Half a line does not count.
local function end_of(path, lines)
  local at, n, before = 0, 0, 0
  for text in files.pieces(path, 0, nil, AT_ONCE) do
    for stop in text:gmatch "\n()" do
      if n == lines then return at, n end
      at, n = before + stop - 1, n + 1
    end
    before = before + #text
  end
  return at, n
end

-- Some bytes of a log.
local function part(path, from, upto) return files.pieces(path, math.max(0, from), upto, AT_ONCE)() or "" end

-- A name for a log that is kept aside: not one that TensorBoard would read.
local function aside(folder, kind) return files.free_name(folder .. "/earlier-log", kind) end
local function warn(text, ...) terminal.note(("mneme: warning: " .. text):format(...)) end

-- Cut metrics.jsonl to its first `lines` lines, all of them of steps up to `step`; nil: there is no checkpoint.
local function cut(path, folder, lines, step)
  local at, have = end_of(path, lines)
  local rest = part(path, at, nil)
  local first = rest:match '^{"step": ([^,}]+)'
  if have < lines then
    warn("%s has %d of the %.0f lines that the checkpoint counts: the others never reached the disk", path, have, lines)
  elseif rest:find("\n", 1, true) and not (step and first and tonumber(first) and tonumber(first) > step) then
    local old = aside(folder, "jsonl")
    local data, bytes, owner = files.block(path)
    files.write(old, owner and { { data, bytes } })
    warn("%s holds lines that %s; all of it is kept in %s", path,
      step and "no later step explains" or "no checkpoint goes with, and training begins at step 0", old)
  end
  files.cut(path, at)
  return have
end

---Open the log of a run folder, cut to its first `lines` lines.
---@param lines integer 0 for a new run
---@param hyperparameters string Markdown shown by TensorBoard under "hyperparameters"
---@param step number? of the checkpoint that is resumed
---@return Log
local function open(folder, lines, hyperparameters, step)
  local self = setmetatable({ folder = folder, metrics = folder .. "/metrics.jsonl", events = folder .. "/events.out.tfevents.mneme", keys = {} }, Log)
  self.lines = cut(self.metrics, folder, lines, step)
  local begun = files.is_file(self.events)
  if begun and not step then
    files.rename(self.events, aside(folder, "events"))
    begun = false
  end
  if begun then check(C.mn_events_cut(engine.ctx, self.events, self.lines > 0 and self.lines + 2 or 0)) end
  if not begun or self.lines == 0 then
    check(C.mn_events_begin(engine.ctx, self.events, "hyperparameters", hyperparameters))
  end
  return self
end

---What has to reach the disk so that all that was written is there: the files, and the first time, the folder with their names.
---@return string[] paths, until `named` is set
function Log:unsynced()
  local list = { self.metrics, self.events }
  if not self.named then list[3] = self.folder end
  return list
end

---Append one line.
---@param values table<string, number> "charts/episodic_return" and so on; NaN is written as "NaN"
function Log:write(step, values)
  local names = tables.keys(values)
  local parts = { '{"step": ' .. json.encode(step) }
  local tags, numbers = ffi.new("const char *[?]", #names), ffi.new("float[?]", #names)
  for i, name in ipairs(names) do
    local key = self.keys[name] or json.encode(name) .. ": "
    self.keys[name], parts[i + 1] = key, key .. json.encode(values[name])
    tags[i - 1], numbers[i - 1] = name, values[name]
  end
  files.append(self.metrics, table.concat(parts, ", ") .. "}\n")
  check(C.mn_events_add(engine.ctx, self.events, step, #names, tags, numbers))
  self.lines = self.lines + 1
end

---The lines that a log has of the first `lines`.
local function lines_of(folder, lines) return select(2, end_of(folder .. "/metrics.jsonl", lines)) end

return { open = open, lines_of = lines_of }
