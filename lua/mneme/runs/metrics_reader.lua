-- metrics_reader.lua -- reads a run's metrics.jsonl, for pictures of a training that may still be running: each call reads
-- only the lines added since the last.
local lfs = require "lfs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local metrics_reader = {
  most = 2 ^ 15,                 -- points that are kept of a metric: of longer logs every second, every fourth ..., and the newest
}
local known = {}                 -- folder -> { bytes, series }
local AT_ONCE = 2 ^ 20           -- bytes

-- A point more: it replaces the last one, where that is not one of those which stay.
local function add(s, step, value)
  if s.since == s.every then
    if s.n == metrics_reader.most then
      for i = 1, s.n / 2 do s.x[i], s.y[i] = s.x[2 * i], s.y[2 * i] end
      for i = s.n, s.n / 2 + 1, -1 do s.x[i], s.y[i] = nil, nil end
      s.n, s.every = s.n / 2, 2 * s.every
    end
    s.n, s.since = s.n + 1, 0
  end
  s.x[s.n], s.y[s.n], s.since = step, value, s.since + 1
end

---What the log writes, {"name": number, "name": number}, several times as fast as JSON is read.
---@param row table is filled: name, number, name, number ..., the step first; n
---@return boolean plain false: it is other JSON, or none
function metrics_reader.plain(line, row)
  local next_at, n = 2, 0
  for at, name, value, stop in line:gmatch '()"([^"\\]+)": (%-?%d[%d.eE+-]*)()' do
    local number = tonumber(value)
    if at ~= next_at or not number then return false end
    row[n + 1], row[n + 2], n, next_at = name, number, n + 2, stop + 2
  end
  row.n = n
  return n > 0 and row[1] == "step" and next_at - 2 == #line and line:sub(1, 1) == "{" and line:sub(-1) == "}"
end

-- Take in the whole lines of a text; returns how many bytes they are.
local function take(series, text, path)
  local upto, row = 0, {}
  local function value_of(step, name, value)
    if name == "step" or type(value) ~= "number" or value - value ~= 0 then return end
    local s = series[name] or { n = 0, x = {}, y = {}, every = 1, since = 1 }
    series[name] = s
    add(s, step, value)
  end
  for line, at in text:gmatch "([^\n]*)\n()" do
    if metrics_reader.plain(line, row) then
      for i = 3, row.n, 2 do value_of(row[2], row[i], row[i + 1]) end
    else
      local entry = json.decode(line, path)
      local step = type(entry) == "table" and tonumber(entry.step)
      for name, value in pairs(step and entry or {}) do value_of(step, name, value) end
    end
    upto = at - 1
  end
  return upto
end

---What a run has measured: name -> { n, x = steps, y = values }; nothing where there is no log.  Values that are not
---finite and lines that are not JSON are left out; of more than `most` points some (see there).
---@param folder string
---@return table<string, table>
function metrics_reader.read(folder)
  local path = folder .. "/metrics.jsonl"
  local bytes = lfs.attributes(path, "size") or 0
  local run = known[folder]
  if not run or bytes < run.bytes then            -- new, or cut back by a resuming trainer
    run = { bytes = 0, series = {} }
    known[folder] = run
  end
  local rest = ""
  for text in files.pieces(path, run.bytes, bytes, AT_ONCE) do
    rest = rest .. text
    local whole = take(run.series, rest, path)
    run.bytes, rest = run.bytes + whole, rest:sub(whole + 1)
  end
  return run.series
end

---How steps are counted on an axis that reaches so far.
---@param steps number the axis' end
---@return number unit
---@return string word
function metrics_reader.unit(steps)
  if steps >= 2e6 then return 1e6, "million steps" end
  if steps >= 2e3 then return 1e3, "thousand steps" end
  return 1, "steps"
end

return metrics_reader
