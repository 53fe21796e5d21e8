-- diff.lua -- `mneme diff`: find the first step at which the logs of two runs differ, and show how.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local settings_diff = lazy "mneme.lab.study.settings_diff"
local checkpoint_files = lazy "mneme.runs.checkpoint_files"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local next_step = require("mneme.base.terminal").next_step
local json = require "mneme.base.json"
local run_folder = lazy "mneme.runs.run_folder"
local safetensors = lazy "mneme.tensor.safetensors"
local columns = require("mneme.base.layout").table

local diff = { name = "diff", doc = "find the first step at which two runs differ", loads = true,
  about = "Exit status 0: they are equal; 1: they differ.",
  arguments = { { "runs", "RUN", "two runs", noun = "run", several = true } }, options = {} }
local MOST_ROWS = 12                        -- differences shown of one step
local by_the_clock = { ["charts/SPS"] = true }

local function show(x)
  if type(x) == "number" then return ("%.9g"):format(x) end
  if x == nil then return "none" end
  return type(x) == "table" and json.encode(x) or tostring(x)
end

-- Rows { what, a, b } where two tables differ, with dotted names.
local function compare_tables(rows, prefix, a, b)
  for _, key in ipairs(tables.keys(tables.merged(a, b))) do
    local p, q = a[key], b[key]
    if p == nil and q == nil then p, q = a[tonumber(key)], b[tonumber(key)] end
    if type(p) == "table" and type(q) == "table" then compare_tables(rows, prefix .. key .. ".", p, q)
    elseif p ~= q then rows[#rows + 1] = { prefix .. key, show(p), show(q) } end
  end
  return rows
end

-- Some rows under a title; the rest is counted.
local function say(out, line, rows)
  out[#out + 1] = line .. "\n"
  local shown = { unpack(rows, 1, math.min(#rows, MOST_ROWS)) }
  if #rows > MOST_ROWS then shown[#shown + 1] = { ("and %d more"):format(#rows - MOST_ROWS) } end
  out[#out + 1] = columns(shown)
end

-- ---- runs ----

-- The lines of a metrics.jsonl, without times.
---@return table[] lines
local function read_log(path)
  local lines = {}
  for text in (files.read(path)):gmatch "[^\n]+" do
    local line, problem = json.decode(text, path)
    if type(line) ~= "table" then errors.fail(("%s: line %d: %s"):format(path, #lines + 1, problem or "not an object")) end
    for key in pairs(by_the_clock) do line[key] = nil end
    lines[#lines + 1] = line
  end
  return lines
end

-- Is a line of an earlier step than another?  Lines without steps are of the same one.
local function before(x, y) return (tonumber(x.step) or 0) < (tonumber(y.step) or 0) end

-- Compares the newest checkpoints of one step that two runs have: are they equal?  nil: there are none.
local function compare_checkpoints(out, a, b)
  local there, last, paths = {}, nil, nil
  for _, at in ipairs(files.is_folder(a) and checkpoint_files.list(a) or {}) do there[at.step] = at.path end
  for _, at in ipairs(files.is_folder(b) and checkpoint_files.list(b) or {}) do
    if there[at.step] then last, paths = at.step, { there[at.step], at.path } end
  end
  if not last then return nil end
  local p, q, rows = safetensors.read(paths[1]).tensors, safetensors.read(paths[2]).tensors, {}
  for _, name in ipairs(tables.keys(tables.merged(p, q))) do
    local x, y = p[name], q[name]
    local same = x and y and x.dtype == y.dtype and x.bytes == y.bytes and ffi.string(x.data, x.bytes) == ffi.string(y.data, y.bytes)
    if not same then rows[#rows + 1] = { name } end
  end
  if #rows > 0 then say(out, ("their checkpoints at step %.0f differ in:"):format(last), rows)
  else out[#out + 1] = ("their checkpoints at step %.0f hold equal tensors\n"):format(last) end
  return #rows == 0
end

---Compare what two runs logged, step by step, and the newest checkpoints of one step.  A run that was stopped has logged that step besides,
---and the means of its next line begin there: such lines are counted, not compared.
---@param a string RUN or metrics.jsonl
---@return boolean same
function diff.runs(a, b)
  local out, rows = {}, {}
  if files.is_folder(a) and files.is_folder(b) then
    local list = tables.map({ run_folder.read_info(a), run_folder.read_info(b) }, function(info)
      return { info = info, flat = settings_diff.flat(info.config) }
    end)
    settings_diff.fill(list)
    compare_tables(rows, "", list[1].flat, list[2].flat)
    if #rows > 0 then say(out, "their settings differ:", rows) end
  end
  local function log_of(path) return files.is_folder(path) and path .. "/metrics.jsonl" or path end
  local p, q = read_log(log_of(a)), read_log(log_of(b))
  local i, k, common, alone, aligned = 1, 1, 0, 0, true
  while p[i] and q[k] do
    local x, y = p[i], q[k]
    local same = x.step == y.step
    local found = same and aligned and compare_tables({}, "", x, y) or {}
    if #found > 0 then
      say(out, ("they differ from line %d, step %s:"):format(i, show(x.step)), found)
      return false, table.concat(out)
    end
    if same and aligned then common = common + 1 else alone = alone + 1 end
    aligned = same
    if not before(y, x) then i = i + 1 end
    if not before(x, y) then k = k + 1 end
  end
  local left = #p - i + #q - k + 2
  if alone > 0 then
    out[#out + 1] = ("equal in %d lines; the logs have %d that the other has not, or that measure since another step\n"):format(common, alone + left)
  elseif left > 0 then out[#out + 1] = ("equal for %d lines; then one ends, and the other has %d\n"):format(common, common + left)
  else out[#out + 1] = ("equal in all %d lines\n"):format(common) end
  local same = compare_checkpoints(out, a, b)
  if same == nil then same = alone + left == 0 end
  return #rows == 0 and same, table.concat(out)
end

-- ---- the command ----

function diff.run(o)
  local runs = o.runs
  if #runs ~= 2 then errors.usage(("diff: expected two runs to compare, got %d"):format(#runs), "mneme diff RUN RUN") end
  local same, text = diff.runs(runs[1], runs[2])
  io.stdout:write(text)
  next_step.say { "compare", unpack(runs) }
  return same and 0 or 1
end

return diff
