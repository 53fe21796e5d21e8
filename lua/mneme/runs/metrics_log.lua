-- metrics_log.lua -- the log of a run: metrics.jsonl, one line per call, and the same values
-- for TensorBoard.  Both grow by whole lines; resuming truncates them to the number of lines
-- and records in the checkpoint, so a run that was killed and resumed leaves the same log as one that was not.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local C, check = engine.C, files.check

---@class Log
---@field lines integer lines of metrics.jsonl
local Log = {}
Log.__index = Log

---Open the log of a run folder, cut to its first `lines` lines.
---@param folder string
---@param lines integer 0 for a new run
---@param hyperparameters string Markdown shown by TensorBoard under "hyperparameters"
---@return Log
local function open(folder, lines, hyperparameters)
  local self = setmetatable({ metrics = folder .. "/metrics.jsonl", lines = lines,
    events = folder .. "/events.out.tfevents.mneme" }, Log)
  if files.is_file(self.metrics) then
    local text, at = files.read(self.metrics), 0
    for _ = 1, lines do at = text:find("\n", at + 1, true) or at end       -- half a line does not count
    files.cut(self.metrics, at)
  end
  local begun = files.is_file(self.events)
  if begun then check(C.mn_events_cut(engine.ctx, self.events, lines > 0 and lines + 2 or 0)) end
  if not begun or lines == 0 then
    check(C.mn_events_begin(engine.ctx, self.events, "hyperparameters", hyperparameters))
  end
  return self
end

---Append one line.
---@param step integer
---@param values table<string, number> "charts/episodic_return" and so on; NaN is written as "NaN"
function Log:write(step, values)
  local names = {}
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  local parts = { '{"step": ' .. json.encode(step) }
  local tags, numbers = ffi.new("const char *[?]", #names), ffi.new("float[?]", #names)
  for i, name in ipairs(names) do
    parts[i + 1] = json.encode(name) .. ": " .. json.encode(values[name])
    tags[i - 1], numbers[i - 1] = name, values[name]
  end
  files.append(self.metrics, table.concat(parts, ", ") .. "}\n")
  check(C.mn_events_add(engine.ctx, self.events, step, #names, tags, numbers))
  self.lines = self.lines + 1
end

return { open = open }
