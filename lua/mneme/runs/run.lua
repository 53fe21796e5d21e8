-- run.lua -- a run is a folder: config.json, metrics.jsonl, TensorBoard events, checkpoints.
-- Files appear whole or not at all, so kill -9 at any moment loses at most the steps since the last
-- checkpoint.  A checkpoint holds no clock, path or host: equal runs give equal files.
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local config = require "mneme.runs.config"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local run_folder = require "mneme.runs.run_folder"
local tables = require "mneme.base.tables"
local json = require "mneme.base.json"
local metrics_log = require "mneme.runs.metrics_log"
local resources = require "mneme.runs.resources"
local manifest = require "mneme.runs.manifest"
local lazy = require "mneme.base.lazy"
local new_folder = lazy "mneme.runs.new_folder"
local outcome, starts = run_folder.outcome, run_folder.starts
local ranks = require "mneme.tensor.ranks"
local run_sources = require "mneme.runs.run_sources"
local sealed = json.sealed
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local version = require "mneme.base.version"

local C = engine.C
local run = { finished_goes_on = false }     -- resuming a finished run: say so and stop, or return its result again

---@class Run: Folder
---@field resumed boolean
---@field before table? the outcome of the start before this one
local Run = setmetatable({}, { __index = run_folder.Folder })
Run.__index = Run

-- ---- ranks but the first: they get the folder's path from rank 0, read the same checkpoint, and write nothing ----

---@class Follower with the methods of a Run that the trainer calls
local Follower = {}
Follower.__index = Follower

---What rank 0 sends when it has opened its run; without a run, that there is nothing to do.
---@param opened Run?
local function lead(opened)
  ranks.tell(json.encode(opened and { path = opened.path, resumed = opened.resumed, step = opened.at and opened.at.step } or {}))
end

---What the others make of it.
---@return Follower
local function follow()
  local told = json.decode(ranks.tell(), "the message of rank 0")
  if not told.path then errors.stop(0) end
  C.mn_watch_signals(true)
  return setmetatable({ path = told.path, resumed = told.resumed, step = told.step, last_step = told.step or 0 }, Follower)
end

function Follower:latest() return self.step and run_folder.load(self.path):of_step(self.step) end
function Follower.due() return false end
function Follower.log() end
function Follower:checkpoint(step) self.last_step = step end

function Follower.close(_, status)
  C.mn_watch_signals(false)
  if status == 130 or status == 143 then errors.stop(status) end
end

-- ---- config.json ----

-- The first line that a command prints; nil: none.
local function command(line) return files.output(line .. " 2>/dev/null"):match "^[^\n]+" end

-- The commit of the folder that we are in, "-dirty" if files differ from it; nil: unknown.
-- A folder may bring a .git of its own, whose settings name programs: none of them is run.
-- Where that folder declares a filter, which comparing files would run, whether they differ stays unknown.
local GIT = "GIT_OPTIONAL_LOCKS=0 exec git --no-pager -c core.fsmonitor= -c core.hooksPath=/dev/null -c core.pager= "
local function commit()
  local at = not os.getenv "GIT_DIR" and lfs.currentdir()
  while at and not lfs.attributes(at .. "/.git", "mode") do
    if at == "" then return nil end                    -- git starts slowly, and would find nothing
    at = at:match "^(.*)/"
  end
  local id = command(GIT .. "rev-parse HEAD")
  if not id or command(GIT .. "config --show-scope --get-regexp '^filter[.].*[.](clean|process)$' | grep -E '^(local|worktree)'") then return id end
  return id .. (command(GIT .. "status --porcelain --untracked-files=no --ignore-submodules=all") and "-dirty" or "")
end

local made_at

---The host of everything that this process does and what machine that is, and the commit: that of the folder that we are in,
---where scripts are worked on, or else the program's, which is `program`: { commit, program, host, machine }; asked for once.
function run.made_at()
  local program = ffi.string(C.mn_commit()):match ".+"            -- none: unknown
  made_at = made_at or { commit = commit() or program, program = program, host = resources.host(), machine = resources.machine() }
  return made_at
end

-- The run's settings, without its folder and its window.
local function settings_of(cfg)
  local settings = {}
  for key, value in pairs(cfg) do
    local idle = key == "run" or key == "resume" or key == "view" or key == "where" or (key == "init" or key == "init_map" or key == "freeze") and value == ""
    if not idle then settings[key] = value end
  end
  return settings
end

local may_differ = { device = true, threads = true, view = true, where = true }

---What several ranks of one training have alike, for ranks.compare: settings, the model, code and data, and the program.
---@param cfg table from mn.config
---@param about table of the learner
---@return table<string, string>
function run.alike(cfg, about)
  local of = { program = run_sources.program(), parameters = setting_types.show(about.parameters), model = json.encode { about.core } }
  for key, value in pairs(cfg) do if not may_differ[key] then of[key] = setting_types.show(value) end end
  for _, file in ipairs((trusted_code.list())) do of[file.path] = "checksum " .. files.crc(file.text) end
  return of
end

-- An entry of `history`, one for each start or resume: who went on from which step, and with what.
local function session(step, cfg)
  local at, entry = run.made_at(), {}
  for _, key in ipairs(starts.keys) do entry[key] = cfg[key] end
  for key, value in pairs { from_step = step, commit = at.commit, program = at.program, program_checksum = run_sources.program(), host = at.host,
    processor = at.machine and at.machine.processor, device = engine.device or "cpu", threads = C.mn_threads(engine.ctx),
    code = run_sources.choice } do entry[key] = value end
  return entry
end

local function write_info(path, info) files.write(path .. "/config.json", { sealed.encode(info) }) end

local function first_info(path, cfg, about)
  local settings = tables.each(settings_of(cfg), setting_types.to_json)
  local info = { mneme = version, format = sealed.FORMAT, config = settings, script = config.meta(cfg).script, seed = cfg.seed,
    device = cfg.device, threads = C.mn_threads(engine.ctx), ranks = ranks.size > 1 and ranks.size or nil,
    commit = run.made_at().commit, program = run.made_at().program, host = run.made_at().host, machine = run.made_at().machine,
    history = { session(0, cfg) }, folder = path:match "[^/]*$", values_from = config.origins(cfg) }
  run_sources.write(path, info.history[1])
  for key, value in pairs(about) do info[key] = value end
  write_info(path, info)
  return info
end

-- What a script loads later, while it trains, is kept, too.
local function keep_code(self)
  if trusted_code.count() == self.noted then return end
  self.noted = trusted_code.count()
  run_sources.write(self.path, self.info.history[#self.info.history])
  write_info(self.path, self.info)
end

-- The settings as a table in Markdown.
local function markdown(cfg)
  local lines = { "|setting|value|", "|-|-|" }
  for _, key in ipairs(tables.keys(settings_of(cfg))) do
    lines[#lines + 1] = ("|%s|%s|"):format(key, setting_types.show(cfg[key]))
  end
  return table.concat(lines, "\n")
end

-- ---- checkpoints ----

---Is it time for a checkpoint?  Every cfg.checkpoint_every steps, or once a minute.
function Run:due(step)
  if self.every > 0 then return step - self.last_step >= self.every end
  return C.mn_clock(false) - self.last_time >= 60
end

---Write a checkpoint; older ones but the last keep_checkpoints and the best go.
---@param tensors table[] { name, Tensor } or { name =, dtype =, shape =, data = }
---@param counters table whatever JSON can hold: what training needs to go on
---@param score number? 0..1; the best one is kept
function Run:checkpoint(step, tensors, counters, score)
  keep_code(self)
  local log_file = self.log_file
  checkpoint_files.write(self.path, self.checkpoints, { step = step, score = score == score and score or nil, lines = log_file.lines,
    counters = counters }, tensors, self.kept, log_file:unsynced())       -- the checkpoint counts the log's lines
  log_file.named = log_file.lines > 0
  self.last_step, self.last_time = step, C.mn_clock(false)
end

-- ---- opening, logging, closing ----

local function lock(path) files.lock(path .. "/lock") end          -- two that trained one run would write one log

local function new_run(cfg, about)
  local path = cfg.run ~= "" and run_folder.plain(cfg.run) or new_folder(config.meta(cfg).name)
  local made_by = config.meta(cfg).script
  if made_by and json.decode(json.encode(made_by)) ~= made_by then
    errors.usage(made_by .. ": its name is not UTF-8, and config.json could not name it", "rename the file")
  end
  if files.is_file(path .. "/config.json") then
    errors.usage(path .. " already holds a run", "resume=" .. path .. " goes on with it")
  end
  for _, name in ipairs(files.list(path .. "/checkpoints")) do
    if name:find "^step%-.*%.safetensors$" then errors.usage(path .. " has checkpoints of another run", "remove the folder, or run=ANOTHER") end
  end
  files.make_folder(path .. "/checkpoints")
  lock(path)
  return setmetatable({ path = path, info = first_info(path, cfg, about), resumed = false, checkpoints = {}, last_step = 0 }, Run)
end

local function old_run(cfg)
  run_folder.read_info(cfg.resume)
  lock(run_folder.plain(cfg.resume))                -- before its checkpoints are listed: a process that trains it replaces them
  manifest.before_resume(run_folder.plain(cfg.resume), run_folder.read_info(cfg.resume))
  files.make_folder(run_folder.plain(cfg.resume) .. "/checkpoints")
  for _, place in ipairs { "", "/checkpoints" } do files.remove_drafts(run_folder.plain(cfg.resume) .. place) end
  local self = setmetatable(run_folder.load(cfg.resume), Run)
  self.resumed = true
  self.at = self:newest(function(i, at)       -- what is damaged must not be taken for the newest again
    files.rename(at.path, at.path .. ".damaged")
    table.remove(self.checkpoints, i)
  end)
  for _, at in ipairs(self.checkpoints) do
    local checkpoint = checkpoint_files.read_unless_damaged(at.path)
    at.score = checkpoint and checkpoint.score
  end
  checkpoint_files.prune(self.checkpoints, cfg.keep_checkpoints)    -- the process that wrote the last one may have been killed before pruning
  self.last_step = self.at and self.at.step or 0
  self.before = outcome.read(self.path)
  local unplayed = self.before and self.before.ended == "stop_score" and not self.before.fresh          -- its fresh episodes
  unplayed = unplayed or self.at and self.at.counters.unmeasured                           -- its last evaluation failed
  if self.at and self.at.step >= cfg.steps and not run.finished_goes_on and not unplayed then
    terminal.note(("%s is finished: %.0f steps (steps=N goes further)"):format(self.path, self.at.step))
    terminal.next_step.say({ "view", self.path }, { "eval", self.path })
    lead(nil)
    errors.stop(0)
  end
  local history = type(self.info.history) == "table" and self.info.history or {}
  local before, now = history[#history], session(self.last_step, cfg)
  for _, key in ipairs(before and starts.keys or {}) do            -- of a version that did not note it
    if before[key] == nil and (key == "steps" or #history == 1) then before[key] = self.info.config[key] end
  end
  self.info.config.steps = cfg.steps                      -- the next resume is to go as far
  if before and before.program_checksum ~= now.program_checksum then
    terminal.note(("%s: another build of Mneme continues this run (%s, before %s)"):format(self.path, now.program or "unknown commit",
      before.program or "unknown commit"))
  end
  run_sources.write(self.path, now, self.info)
  local lost = self.at and self.at.lines - metrics_log.lines_of(self.path, self.at.lines) or 0
  now.lost_lines = lost > 0 and lost or nil
  history[#history + 1] = now
  self.info.history = history
  write_info(self.path, self.info)
  outcome.forget(self.path)                     -- after the start is written: from then on the manifest, which names it, is an older start's
  return self
end

---Begin a run, or go on with the one that cfg.resume names.  From here on the first Ctrl-C only sets the
---flag that mn_interrupted() reads, until close.
---@param cfg table from mn.config
---@param about table? more for config.json: { env = "tmaze-v0" }
---@return Run
function run.open(cfg, about)
  config.opened = true
  if ranks.rank > 0 then return follow() end
  local self = cfg.resume ~= "" and old_run(cfg) or new_run(cfg, about or {})
  config.opened = self.path
  self.log_file = metrics_log.open(self.path, self.at and self.at.lines or 0, markdown(cfg), self.at and self.at.step)
  self.every, self.last_time, self.steps = cfg.checkpoint_every, C.mn_clock(false), cfg.steps
  self.script, self.kept, self.noted = config.meta(cfg).script, cfg.keep_checkpoints, trusted_code.count()
  lead(self)
  C.mn_watch_signals(true)
  return self
end

---Append to metrics.jsonl and the event file.
---@param metrics table<string, number>
function Run:log(step, metrics)
  self.at = nil                    -- what resuming read is used by now; let its memory go
  self.log_file:write(step, metrics)
end

---The last thing of a run.  status 130 or 143: it was stopped by a signal, says how to go on, and leaves the
---program with that status.
---@param status integer 0, 130 or 143; 1: an error ended it
function Run:close(status)
  C.mn_watch_signals(false)
  if status ~= 1 then
    keep_code(self)
    manifest.write(self.path, self.info, self.log_file)
  end
  if status ~= 130 and status ~= 143 then return end
  terminal.note(("stopped at step %.0f; to go on: mneme run %s resume=%s"):format(self.last_step,
    self.script or "SCRIPT", self.path))
  errors.stop(status)
end

return run
