-- metrics_reader.lua -- reads a run's metrics.jsonl, for pictures of a training that may still be running: each call reads
-- only the lines added since the last.
local ffi = require "ffi"
local lfs = require "lfs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"

local metrics_reader = {}
local known = {}                 -- folder -> { bytes, series }

-- Take in the whole lines of a text; returns how many bytes they are.
local function take(series, text, path)
  local upto = 0
  for line, at in text:gmatch "([^\n]*)\n()" do
    local row = json.decode(line, path)
    local step = type(row) == "table" and tonumber(row.step)
    for name, value in pairs(step and row or {}) do
      if name ~= "step" and type(value) == "number" and value - value == 0 then
        local s = series[name] or { n = 0, x = {}, y = {} }
        s.n = s.n + 1
        series[name], s.x[s.n], s.y[s.n] = s, step, value
      end
    end
    upto = at - 1
  end
  return upto
end

---What a run has measured: name -> { n, x = steps, y = values }; nothing where there is no log.  Values that are not
---finite and lines that are not JSON are left out.
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
  if bytes > run.bytes then
    local data, all, owner = files.block(path)
    if all > run.bytes then
      run.bytes = run.bytes + take(run.series, ffi.string(data + run.bytes, all - run.bytes), path)
    end
    known.owner = owner                           -- alive until here
    known.owner = nil
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
