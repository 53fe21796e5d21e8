-- diff.lua -- `mneme diff`: find the first step at which two trajectories (.mnt), or the logs of two runs, differ, and show how.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local settings_diff = lazy "mneme.lab.study.settings_diff"
local lfs = require "lfs"
local checkpoints = lazy "mneme.runs.checkpoints"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local state_arrays = lazy "mneme.models.state_arrays"
local next_step = require("mneme.base.terminal").next_step
local json = require "mneme.base.json"
local trajectory_replay = lazy "mneme.insight.episodes.trajectory_replay"
local run_folder = lazy "mneme.runs.folder"
local safetensors = lazy "mneme.tensor.safetensors"
local trajectory = lazy "mneme.insight.episodes.trajectory"
local columns = require("mneme.base.layout").table

local diff = { name = "diff", doc = "find the first step at which two trajectories or runs differ", loads = true,
  about = "Exit status 0: they are equal; 1: they differ.",
  arguments = { { "things", "RUN|FILE.mnt", "two trajectories, or two runs", noun = "two things", several = true } },
  options = { { "env", "where the rules of trajectories are that a script or a file of yours defines: a run in it, or FILE.lua", type = "text",
    example = "mine.lua" } } }
local MOST_ROWS = 12                        -- differences shown of one step
local by_the_clock = { ["charts/SPS"] = true }

local function show(x)
  if type(x) == "number" then return ("%.9g"):format(x) end
  if x == nil then return "none" end
  return type(x) == "table" and json.encode(x) or tostring(x)
end

-- Rows { what, a, b } where two tables differ, with dotted names.
local function compare_tables(rows, prefix, a, b)
  local keys = {}
  for key in pairs(a) do keys[key] = true end
  for key in pairs(b) do keys[key] = true end
  for _, key in ipairs(tables.keys(keys)) do
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
  local shown = {}
  for i = 1, math.min(#rows, MOST_ROWS) do shown[i] = rows[i] end
  if #rows > MOST_ROWS then shown[#shown + 1] = { ("and %d more"):format(#rows - MOST_ROWS) } end
  out[#out + 1] = columns(shown)
end

-- ---- trajectories ----

-- Differences between the headers of two trajectories.
local function headers(a, b)
  local rows = {}
  local function add(what, p, q) if p ~= q then rows[#rows + 1] = { what, show(p), show(q) } end end
  add("environment", a.env, b.env)
  compare_tables(rows, "", a.settings, b.settings)
  add("reset with seed", show(a.seed), show(b.seed))
  add("environment number", a.copy, b.copy)
  add("actions", table.concat(a.names, " "), table.concat(b.names, " "))
  add("observation", show(a.observation), show(b.observation))
  if #rows == 0 and a.start ~= b.start then rows[1] = { "start", "a different state", "or a different position in the random stream" } end
  return rows
end

-- A replay that computes the observations again; or nil and why not.
local function replayed(t, env)
  local ok, result = pcall(trajectory_replay.new, t, env)
  if ok then return result end
  return nil, errors.is(result) and result.message or error(result, 0)
end

local function observations(rows, p, q)
  if p.obs_bytes ~= q.obs_bytes or p.env.observation_space.dtype ~= q.env.observation_space.dtype then return end
  if ffi.string(p.obs, p.obs_bytes) == ffi.string(q.obs, q.obs_bytes) then return end
  for i = 0, state_arrays.size(p.env.observation_space.shape) - 1 do
    local x, y = p.obs[i], q.obs[i]
    if x ~= y then rows[#rows + 1] = { ("observation[%d]"):format(i), show(x), show(y) } end
  end
end

-- The interventions before a step.
local function done_to(t, k)
  local list = {}
  for _, x in ipairs(t.interventions) do
    if x.at == k then list[#list + 1] = ("%s %s%s"):format(x.kind, x.what, x.to and " to " .. show(x.to) or "") end
  end
  return #list > 0 and table.concat(list, ", ") or "none"
end

local flags = { [0] = "goes on", "terminated", "truncated" }

-- What differs in step k: the observation, then the action, then its outcome.
local function step_rows(a, b, p, q, k)
  local rows = {}
  if p and q then observations(rows, p, q) end
  if k >= a.steps or k >= b.steps then return rows end
  local function add(what, x, y) if x ~= y and (x == x or y == y) then rows[#rows + 1] = { what, show(x), show(y) } end end
  add("intervention", done_to(a, k), done_to(b, k))
  add("action", a.space:words(a.space:read(a.actions, k)), b.space:words(b.space:read(b.actions, k)))
  add("reward", a.rewards[k], b.rewards[k])
  add("episode", flags[a.flags[k]], flags[b.flags[k]])
  return rows
end

-- The largest difference of the recorded fields that both have.
local function record_rows(a, b, k)
  local rows = {}
  for _, f in ipairs(a.fields) do
    local x, y, most = trajectory.recorded(a, k, f.name), trajectory.recorded(b, k, f.name), 0
    for _, g in ipairs(b.fields) do
      if g.name == f.name and show(g.shape) == show(f.shape) and g.dtype == f.dtype then
        for i = 0, state_arrays.size(f.shape) - 1 do
          if x[i] ~= y[i] and (x[i] == x[i] or y[i] == y[i]) then
            local d = math.abs(x[i] - y[i])
            most = d ~= d and math.huge or math.max(most, d)
          end
        end
      end
    end
    if most > 0 then rows[#rows + 1] = { f.name, "differs by up to " .. show(most) } end
  end
  return rows
end

-- "step 17 (episode 1, step 3 of it)"
local function place(t, k)
  local episode, first = 0, 0
  for i = 0, k - 1 do
    if t.flags[i] ~= 0 then episode, first = episode + 1, i + 1 end
  end
  return episode == 0 and ("step %d"):format(k) or ("step %d (episode %d, step %d of it)"):format(k, episode, k - first)
end

---Compare two trajectories.
---@param env string? where the rules of both are: see trajectory_replay.lua
---@return boolean same
---@return string text what differs
function diff.trajectories(a, b, env)
  local out, rows = {}, headers(a, b)
  if #rows > 0 then say(out, "their headers differ:", rows) end
  local p, why_p = replayed(a, env)
  local q, why_q = replayed(b, env)
  for _, why in ipairs { why_p or "", why_q or "" } do
    if why ~= "" then out[#out + 1] = why .. "; observations are not compared\n" end
  end
  local both, parted, inside = math.min(a.steps, b.steps), false, false
  for k = 0, both do
    local found = step_rows(a, b, p, q, k)
    if #found > 0 then
      say(out, "they differ from " .. place(a, k) .. ":", found)
      parted = true
      break
    end
    if not inside and k < both then
      found = record_rows(a, b, k)
      inside = #found > 0
      if inside then say(out, "their recorded values differ from " .. place(a, k) .. ":", found) end
    end
    if k < both and p and q then
      p:advance()
      q:advance()
    end
  end
  for _, source in pairs { p, q } do
    if source:verify() then out[#out + 1] = ("%s: its environment has changed: %s\n"):format(source.trajectory.path, source.problem) end
  end
  if not parted and a.steps ~= b.steps then
    out[#out + 1] = ("equal for %d steps; then one ends, and the other has %d\n"):format(both, math.max(a.steps, b.steps))
    parted = true
  end
  if not parted then out[#out + 1] = ("equal in all %d steps\n"):format(both) end
  return #rows == 0 and not parted and not inside, table.concat(out)
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
  for _, at in ipairs(files.is_folder(a) and checkpoints.list(a) or {}) do there[at.step] = at.path end
  for _, at in ipairs(files.is_folder(b) and checkpoints.list(b) or {}) do
    if there[at.step] then last, paths = at.step, { there[at.step], at.path } end
  end
  if not last then return nil end
  local p, q, rows = safetensors.read(paths[1]).tensors, safetensors.read(paths[2]).tensors, {}
  for _, name in ipairs(tables.keys(p)) do
    local x, y = p[name], q[name]
    if not y or x.dtype ~= y.dtype or x.bytes ~= y.bytes or ffi.string(x.data, x.bytes) ~= ffi.string(y.data, y.bytes) then rows[#rows + 1] = { name } end
  end
  for _, name in ipairs(tables.keys(q)) do if not p[name] then rows[#rows + 1] = { name } end end
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
    local list = {}
    for i, info in ipairs { run_folder.read_info(a), run_folder.read_info(b) } do list[i] = { info = info, flat = settings_diff.flat(info.config) } end
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
  local words, env = o.things, o.env
  if #words ~= 2 then errors.usage(("diff: expected two things to compare, got %d"):format(#words), "mneme diff A.mnt B.mnt, or mneme diff RUN RUN") end
  local kinds = {}
  for i, path in ipairs(words) do
    if not lfs.attributes(path, "mode") then errors.usage(path .. ": there is no such file or run") end
    kinds[i] = path:find "%.mnt$" and not files.is_folder(path)
  end
  if kinds[1] ~= kinds[2] then errors.usage("diff: a trajectory and a run cannot be compared", "two .mnt files, or two run folders") end
  if env and not kinds[1] then errors.usage(("diff: env=%s goes with trajectories, FILE.mnt"):format(env)) end
  local same, text
  if kinds[1] then same, text = diff.trajectories(trajectory.read(words[1]), trajectory.read(words[2]), env)
  else same, text = diff.runs(words[1], words[2]) end
  io.stdout:write(text)
  next_step.say { kinds[1] and "view" or "compare", unpack(words) }
  return same and 0 or 1
end

return diff
