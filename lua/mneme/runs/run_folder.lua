-- run_folder.lua -- reads a run's folder: config.json and checkpoints; what its starts changed, and what its training came to.
local checkpoint_files = require "mneme.runs.checkpoint_files"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"

local run_folder = {
  held = nil,              -- path -> its newest checkpoint when it was first asked for, while this is a table: a run goes on, and removes it
}

---@class Folder
---@field path string
---@field info table what config.json holds: { config, script, env, seed, ... }
---@field checkpoints { step: number, path: string, score: number? }[] oldest first
local Folder = {}
Folder.__index = Folder
run_folder.Folder = Folder

-- A folder's name without slashes at its end.
function run_folder.plain(path) return (path:gsub("(.)/+$", "%1")) end

-- ---- config.json ----

-- What run.lua writes, as far as others read it: a type; { of } a list; { ["*"] = of } an object of any names; other tables, their members.
local sources = { { path = "string", checksum = "string" } }
local SHAPE = { script = "string", env = "string", commit = "string", program = "string", host = "string", device = "string", mneme = "string",
  size_why = "string", script_core = "string", folder = "string", config = { steps = "number", seed = "number" },
  core = { name = "string", config = {} }, learner = { name = "string", config = {} },
  seed = "number", threads = "number", parameters = "number", script_parameters = "number",
  own_limit = "boolean", packages = { ["*"] = "string" }, reference = { ["*"] = "number" }, task = {}, machine = {}, values_from = { ["*"] = "string" },
  memory = { carry = "boolean", context = "number", horizon = "number", num_steps = "number", reset_on_done = "boolean" }, source = sources,
  data = sources, history = { { from_step = "number", steps = "number", threads = "number", commit = "string", program = "string", host = "string",
    processor = "string", device = "string", program_checksum = "string", source_folder = "string", source = sources, data = sources } } }
local words = { string = "a text", number = "a number", boolean = "true or false", table = "a list or an object" }

---What in a JSON value has another type than a writer gives it.
---@param shape string|table as SHAPE above; members that are absent are right
---@return string? fault "history[1].steps is x, expected a number"; nil: nothing
function run_folder.fault(value, shape, name)
  if type(shape) == "string" then
    if type(value) == shape or shape == "number" and (value == "NaN" or value == "Infinity" or value == "-Infinity") then return nil end
    return ("%s is %s, expected %s"):format(name, setting_types.show(value), words[shape])
  end
  local list = shape[1] ~= nil
  if type(value) ~= "table" or value == json.null or next(value) ~= nil and json.is_array(value) ~= list then
    return ("%s is %s, expected %s"):format(name, setting_types.show(value), list and "a list" or "an object")
  end
  for key, inner in pairs(value) do
    local of = list and shape[1] or shape[key] or shape["*"]
    local fault = of and run_folder.fault(inner, of, list and ("%s[%s]"):format(name, key) or (name == "" and "" or name .. ".") .. key)
    if fault then return fault end
  end
end

-- The first runs of a study's folder, as paths.
local function run_names(inner)
  local list, n = {}, 0
  for _, name in ipairs(files.list(inner)) do
    if files.is_file(("%s/%s/config.json"):format(inner, name)) then
      n = n + 1
      if n <= 3 then list[n] = inner .. "/" .. name end
    end
  end
  return table.concat(list, ", ") .. (n > 3 and (", %d more"):format(n - 3) or n == 0 and "none has begun" or "")
end

---What config.json of a run folder holds; an error where there is none, or a damaged one.
---@param path string of the folder
---@return table { config = settings, script, env, seed, commit, program, host, machine, device, threads }
function run_folder.read_info(path)
  local run = run_folder.plain(path)
  path = run .. "/config.json"
  if not files.is_folder(run) then errors.usage(run .. ": there is no such run") end
  if not files.is_file(path) then
    local inner = files.is_file(run .. "/study.json") and run .. (files.is_folder(run .. "/cells") and "/cells" or "/runs")
    if inner then errors.usage(run .. ": is a study, expected one run", "its runs: " .. run_names(inner)) end
    errors.usage(run .. ": not a run", "it has no config.json")
  end
  local info, problem = json.decode((files.read(path)), path)
  if problem then errors.fail(problem) end
  if type(info) == "table" then json.sealed.need(path, info.format) end
  if type(info) ~= "table" or type(info.config) ~= "table" then
    errors.fail(path .. ": damaged: it has no config")
  end
  local fault = run_folder.fault(info, SHAPE, "")
  if fault then errors.fail(("%s: damaged: %s"):format(path, fault)) end
  return info
end

-- ---- checkpoints ----

-- A process that trains this run has taken a checkpoint away since its folder was read, for newer ones.
local function gone(self, at)
  if files.is_file(at.path) then return false end
  self.checkpoints = checkpoint_files.list(self.path)
  return true
end

---The newest checkpoint that is whole; `found(i, at)` is called for each damaged one, with a warning on stderr.
---@param found fun(i: integer, at: table)
function Folder:newest(found)
  for i = #self.checkpoints, 1, -1 do
    local at = self.checkpoints[i]
    local checkpoint, problem = checkpoint_files.read_unless_damaged(at.path)
    if checkpoint then return checkpoint end
    if gone(self, at) then return self:newest(found) end
    terminal.note(("mneme: warning: %s; %s"):format(problem.message,
      i > 1 and "using the one before" or "there is no other"))
    found(i, at)
  end
end

---The newest checkpoint that is whole, or nil; a damaged one is passed over with a warning.
---@return { step: number, tensors: table<string, Tensor>, counters: table, score: number?, path: string }?
function Folder:latest()
  local held = run_folder.held or {}
  held[self.path] = held[self.path] or self.at or self:newest(function() end)
  return held[self.path]
end

---The checkpoint with the best score; the newest where none has one.
function Folder:best()
  local best
  for _, at in ipairs(self.checkpoints) do
    local checkpoint = checkpoint_files.read_unless_damaged(at.path)
    if not checkpoint and gone(self, at) then return self:best() end
    if checkpoint and checkpoint.score and (not best or checkpoint.score >= best.score) then best = checkpoint end
  end
  return best or self:latest()
end

---Why there is no checkpoint, and when the first one comes.
---@return string message
---@return string hint
function Folder:no_checkpoint()
  local every = tonumber(self.info.config.checkpoint_every) or 0
  return self.path .. " has no checkpoint yet", ("the first comes %s, or when training ends or is interrupted (Ctrl-C); checkpoint_every=STEPS sets that")
    :format(every > 0 and ("after %.0f steps"):format(every) or "after a minute of training")
end

---The checkpoint of a step.
function Folder:of_step(step)
  local known, held = {}, run_folder.held and run_folder.held[self.path]
  if held and held.step == step then return held end
  for i, at in ipairs(self.checkpoints) do
    if at.step == step then return checkpoint_files.read(at.path) end
    known[i] = ("%.0f"):format(at.step)
  end
  errors.usage(("%s has no checkpoint at %.0f steps"):format(self.path, step), "there are " .. table.concat(known, ", "))
end

---Read a run without resuming it: its info, latest(), best(), of_step().
---@return Folder
function run_folder.load(path)
  local info = run_folder.read_info(path)
  path = run_folder.plain(path)
  return setmetatable({ path = path, info = info, checkpoints = checkpoint_files.list(path) }, Folder)
end

-- ---- starts ----

-- Settings that a resume may change: `history` of config.json has their values for each start, and here is what they were from
-- which step on.  A start without a value is of an earlier version of Mneme: its value is not known, and nothing is said of it.
local starts = {
  keys = { "debug", "device", "emulate", "precision", "profile", "steps", "threads" },
  numeric = { "device", "emulate", "precision", "steps" },          -- those on which numbers depend
}

---The starts that made what the run is now: of two that begin at one step the later, and none whose steps were lost.
---@return table[] entries of history, ascending by from_step
function starts.of(info)
  local list = {}
  for _, start in ipairs(type(info.history) == "table" and info.history or {}) do
    local from = type(start) == "table" and tonumber(start.from_step)
    if from then
      while list[1] and list[#list].from_step >= from do list[#list] = nil end
      list[#list + 1] = start
    end
  end
  return list
end

---What a setting was, where a resume changed it: "10240, 20480 from step 5120".
---@param key string of starts.keys
---@return string? nil: one value, or not known
function starts.text(info, key)
  local parts, before = {}, nil
  for _, start in ipairs(starts.of(info)) do
    local value = start[key] ~= nil and setting_types.show(start[key]) or before
    if value ~= before then parts[#parts + 1] = before and ("%s from step %.0f"):format(value, start.from_step) or value end
    before = value
  end
  return parts[2] and table.concat(parts, ", ") or nil
end

---What resumes changed of a run that its numbers depend on, and lines that they did not find in its log, as a sentence.
---@return string? nil: nothing that is known
function starts.changes(info)
  local parts, all = {}, {}
  for _, key in ipairs(starts.numeric) do
    local text = starts.text(info, key)
    parts[#parts + 1] = text and ("%s=%s"):format(key, text)
  end
  all[1] = parts[1] and "a resume changed " .. table.concat(parts, "; ")
  for _, start in ipairs(starts.of(info)) do
    local lost = tonumber(start.lost_lines)
    all[#all + 1] = lost and ("%.0f lines of the log before step %.0f are missing"):format(lost, start.from_step)
  end
  return all[1] and table.concat(all, "; ")
end

-- ---- outcome ----

-- RUN/outcome.json: why the last training of a run ended, at which step, and what it came to: of an agent the mean score and return of its last
-- hundred episodes, which is more than the log's last line has.  A run that is being trained, was killed or failed has none.  Of one that its
-- stop_score ended, that score was reached for the first time, by luck, too: `fresh` is what its agent does afterwards.
--   { ended = "steps" | "stop_score" | "learner" (says that it is over) | "signal" | "budget", step, results = { score, mean_return ... },
--     fresh = { score, low, high (its 95 % interval), greedy, episodes, num_envs, seed } }
local outcome = {}
local function file_of(path) return path .. "/outcome.json" end

---@param results table the learner's summary; of it the finite numbers are kept
---@param fresh table? likewise, of fresh episodes
function outcome.write(path, ended, step, results, fresh)
  local function finite(t)
    local kept = {}
    for name, value in pairs(t) do if type(value) == "number" and value - value == 0 then kept[name] = value end end
    return kept
  end
  files.write(file_of(path), { json.sealed.encode { ended = ended, step = step, results = finite(results),
    fresh = fresh and finite(fresh) } })
end

---Training goes on: what it came to is not known any more.
function outcome.forget(path) if files.is_file(file_of(path)) then files.remove(file_of(path)) end end

---@return { ended: string, step: number, results: table<string, number>, fresh: table<string, number>? }? nil: there is none, or a damaged one
function outcome.read(path)
  if not files.is_file(file_of(path)) then return nil end
  local ok, o = pcall(function() return (json.decode((files.read(file_of(path))))) end)
  if not ok or type(o) ~= "table" or type(o.ended) ~= "string" or type(o.step) ~= "number" or type(o.results) ~= "table" then return nil end
  for _, numbers in ipairs { o.results, o.fresh } do
    if type(numbers) ~= "table" then return nil end
    for name, value in pairs(numbers) do if type(name) ~= "string" or type(value) ~= "number" or value - value ~= 0 then return nil end end
  end
  if o.fresh and not (o.fresh.score and o.fresh.episodes) then return nil end
  return o
end

---What its fresh episodes came to, by the names that a study's metrics have: fresh_score, fresh_greedy.
---@return table<string, number> metrics empty: it played none
function outcome.metrics(path)
  local fresh = (outcome.read(path) or {}).fresh or {}
  return { fresh_score = fresh.score, fresh_greedy = fresh.greedy }
end

run_folder.starts, run_folder.outcome = starts, outcome

return run_folder
