-- run_list.lua -- `mneme list runs [FOLDER]`: the runs and studies below a folder, newest first: what they are, how far they came, their
-- last score and whether they still run.  It reads config.json and the end of the log of each, and takes any folder as it is.
local lfs = require "lfs"
local lazy = require "mneme.base.lazy"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local claims = lazy "mneme.lab.study.claims"
local search_conditions = lazy "mneme.insight.view.search_conditions"
local declaration_file = lazy "mneme.lab.study.declaration_file"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local layout = require "mneme.base.layout"
local format = require "mneme.base.format"
local metrics_reader = lazy "mneme.runs.metrics_reader"
local outcome = require("mneme.runs.run_folder").outcome
local reference_scores = require "mneme.envs.reference_scores"
local setting_types = require "mneme.base.setting_types"
local settings_diff = lazy "mneme.lab.study.settings_diff"
local study_folder = lazy "mneme.lab.study.study_folder"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local run_list = {}
local TAIL = 16384                 -- bytes of a log's end that are read
local FRESH = 120                  -- seconds: a log that was written since then, by another machine, is being written
local said = { ["charts/episodic_return"] = " return", ["fresh episodes"] = " fresh", ["first reached"] = " first reached" }
local results = { "charts/score", "score", "eval/accuracy", "eval/bits_per_character", "charts/episodic_return" }

local function decoded(text)
  local ok, value = pcall(json.decode, text or "")
  return ok and type(value) == "table" and value or nil
end

-- The files that a process of this machine has locked, by inode; those of other containers are not among them.
local function locked_files()
  local inodes = tables.found(errors.text_of "@/proc/locks", "WRITE%s+%d+%s+%x+:%x+:(%d+)")
  return tables.set(tables.map(inodes, function(inode) return tonumber(inode) end))
end

-- The last whole line of a run's log.
local function last_line(path)
  local f, last = files.is_file(path .. "/metrics.jsonl") and io.open(path .. "/metrics.jsonl", "rb"), nil
  if not f then return {} end
  f:seek("set", math.max(0, (f:seek "end" or 0) - TAIL))
  for line in (f:read "*a" or ""):gmatch "([^\n]+)\n" do last = line end
  f:close()
  return decoded(last) or {}
end

local function name_of(core)
  if type(core) == "table" then core = core.name or core[1] end
  return type(core) == "string" and core or "–"
end

local function score_of(line)
  for _, key in ipairs(results) do if type(line[key]) == "number" then return line[key], key end end
end

local function script_of(info) return type(info.script) == "string" and info.script:match "([^/]*)$":gsub("%.lua$", "") or "–" end

-- What a run came to at its end, by the names that a log has.
local function score_at_end(came_to)
  return score_of { score = came_to.score, ["eval/accuracy"] = came_to.accuracy, ["eval/bits_per_character"] = came_to.bits_per_character,
    ["charts/episodic_return"] = came_to.mean_return }
end

-- A run as a row; `locked` and `here` (the host) say whether it still runs.
local function run_row(path, name, locked, here)
  local log = lfs.attributes(path .. "/metrics.jsonl", "modification")
  local time = log or lfs.attributes(path .. "/config.json", "modification") or 0
  local info = decoded(files.text(path .. "/config.json"))
  local config = info and info.config
  if info and (tonumber(info.format) or 0) > json.sealed.FORMAT then
    return { name = name, path = path, time = time, state = "of a later version" }
  elseif type(config) ~= "table" then return { name = name, path = path, time = time, state = "damaged config.json" } end
  local line = last_line(path)
  local kept = checkpoint_files.list(path)
  local wanted, step = tonumber(config.steps), math.max(tonumber(line.step) or 0, kept[#kept] and kept[#kept].step or 0)        -- the log is behind
  local score, key = score_of(line)
  local goal = tonumber(type(config.learner) == "table" and config.learner.stop_score or config.stop_score) or -1
  local lock = lfs.attributes(path .. "/lock", "ino")
  local ended, guess = outcome.read(path), reference_scores.guess(info.reference)      -- nil while it is trained, too
  local running = lock and (locked[lock] or files.locked(path .. "/lock")) or not ended and info.host and info.host ~= here and log and os.time() - log < FRESH
  local finished = wanted and step >= wanted or goal >= 0 and score and key == "charts/score" and score >= goal
  if ended and not running then
    finished = ended.ended ~= "signal" or wanted and step >= wanted
    local at_end, of = score_at_end(ended.results)
    if at_end then score, key = at_end, of end
    if ended.fresh then score, key = ended.fresh.score, "fresh episodes" elseif ended.ended == "stop_score" and of == "score" then key = "first reached" end
    guess = guess or ended.results.commonest
  end
  local state = running and "running" or ended and ended.ended == "diverged" and "diverged" or finished and "finished" or "stopped"
  return { name = name, path = path, time = time, state = state, script = script_of(info), core = name_of(config.core), step = step, wanted = wanted,
    score = score, key = key, guess = guess, normalised = key ~= "charts/episodic_return" and reference_scores.normalised(score, info.reference) or nil,
    env = type(info.env) == "string" and info.env:gsub("%-v%d+$", "") or nil, config = config }
end

-- A study as a row.
local function study_row(path, name)
  local info = decoded(files.text(path .. "/study.json"))
  local row = { name = name, path = path, study = true, time = lfs.attributes(path .. "/study.json", "modification") or 0, state = "damaged study.json" }
  if info and (tonumber(info.format) or 0) > json.sealed.FORMAT then row.state = "of a later version" return row
  elseif not info or type(info.runs) ~= "table" then return row end
  local done = 0
  for _, r in ipairs(info.runs) do
    local file = path .. "/runs/" .. tostring(type(r) == "table" and r.name) .. "/result.json"
    local result = files.text(file)
    if result and result:find '"status":%s*"done"' then done = done + 1 end
    row.time = math.max(row.time, result and lfs.attributes(file, "modification") or 0)
  end
  row.name, row.state, row.script = name .. "/", ("study: %d of %d done"):format(done, #info.runs), script_of(info)
  return row
end

---The runs and studies below a folder, newest first; those of a study where the folder is one.
---@return table[] rows { name, time, state = "running", "finished", "stopped", ..., script, core, step, wanted, score, key = which number the
---  score is: a name of the log, "fresh episodes" or "first reached", guess = the score without memory, else that of random actions, of a data
---  set that of the most frequent answer, normalised = the score between no memory (0) and a perfect one (1); nil: not known }
function run_list.rows(folder)
  local rows, locked, here = {}, locked_files(), errors.text_of "@/proc/sys/kernel/hostname":match "^[^\n]*"
  local function look(path, name, deeper)
    if files.is_file(path .. "/config.json") then rows[#rows + 1] = run_row(path, name, locked, here)
    elseif files.is_file(path .. "/study.json") and name ~= "" then rows[#rows + 1] = study_row(path, name)
    elseif deeper > 0 and files.is_folder(path) then
      local inner = files.is_file(path .. "/study.json") and files.is_folder(path .. "/runs") and "/runs" or ""
      local ok, names = pcall(files.list, path .. inner)
      if not ok then terminal.note("mneme: warning: " .. names.message) end
      for _, entry in ipairs(ok and names or {}) do look(path .. inner .. "/" .. entry, (name == "" and "" or name .. "/") .. entry, deeper - 1) end
    end
  end
  look(folder, files.is_file(folder .. "/config.json") and folder or "", 2)
  table.sort(rows, function(a, b) if a.time ~= b.time then return a.time > b.time end return a.name < b.name end)
  return rows
end

-- The folder that a word means.
local function folder_of(word)
  if files.is_folder(word) then return (word:gsub("(.)/+$", "%1")) end
  if files.is_folder("runs/" .. word) then return "runs/" .. word end
  errors.usage(("list runs: %s: there is no such folder"):format(word), "mneme list runs [FOLDER] [sort=score]")
end

local of_row = { core = true, state = true, script = true, env = true }

-- A value of a run: of its row, or of a setting that it was given; core.d_model: an option.
local function value_of(r, key)
  if of_row[key] then return r[key] end
  local at = r.config
  for part in key:gmatch "[^.]+" do at = type(at) == "table" and at[part] or nil end
  return type(at) == "table" and at.name or at
end

-- The rows in the wanted order; what has no value comes last.
local function sorted(rows, by)
  local key, down = by == "steps" and "step" or by, by == "score" or by == "normalised" or by == "steps" or by == "time"
  for i, r in ipairs(rows) do r.order = i end
  table.sort(rows, function(a, b)
    local x, y = key and a[key], key and b[key]
    if x == y or x == nil or y == nil then return x == y and a.order < b.order or x ~= y and y == nil end
    if down then return x > y end
    return x < y
  end)
  return rows
end

-- A row as it is printed.
local function cells(r, name)
  return { name, r.state, r.step and format.short(r.step) .. (r.wanted and " of " .. format.short(r.wanted) or "") or "",
    r.score and format.said("%.3f", r.score) .. (said[r.key] or "") or "", r.guess and reference_scores.short(r.guess) or "",
    r.normalised and ("%.3f"):format(r.normalised) or "", r.core or "", r.script or "", os.date("%Y-%m-%d %H:%M", r.time) }
end

---The runs of a folder for a page: see insight/view/run_table.lua.
run_list.source = { cells = function(r)
  local list = cells(r, r.name)
  list[8] = r.env or list[8]
  return list
end, columns = { { "run", "name" }, { "state", "state" }, { "steps", "steps" }, { "score", "score" }, { "guessing" }, { "normalised", "normalised" },
  { "core", "core" }, { "environment" }, { "last written", "time" }, { "settings that differ" } } }

function run_list.source.rows(folder, words, sort)
  local all, list, wanted = run_list.rows(folder), {}, search_conditions.read(words)
  for _, r in ipairs(sorted(all, sort)) do
    local function value(key)
      if key == "state" then return r.state:match "^%a+" end
      return value_of(r, key) or ({ score = r.score, normalised = r.normalised, steps = r.step })[key]
    end
    if search_conditions.met(wanted, value, function(word) return r.name:find(word, 1, true) end) then list[#list + 1] = r end
  end
  for _, r in ipairs(list) do
    r.settings = {}
    for key, value in pairs(settings_diff.flat(r.config or {})) do r.settings[key] = setting_types.show(value) end
  end
  local _, names = settings_diff.divide(tables.map(list, function(r) return r.config and r.settings or nil end))
  for _, r in ipairs(list) do
    r.differs = table.concat(tables.map(names, function(key) return r.settings[key] and key .. "=" .. r.settings[key] or nil end), "  ")
  end
  return list, #all, names
end

function run_list.source.curve(path)
  local series = metrics_reader.read(path)
  for _, key in ipairs(results) do if series[key] then return setmetatable({ of = key }, { __index = series[key] }) end end
end

function run_list.source.claims(path)
  local held = declaration_file.read(path)
  local spec = held and held.spec
  if not spec then return { problem = "this study keeps no declaration: mneme report reads its script" } end
  local study = study_folder.load(path)
  study_folder.add_means(study, spec)
  return tables.map(claims.judge(study, spec.claims, spec.metrics), function(v) return { text = v.claim.text, verdict = v.verdict } end)
end

---What `mneme list runs` prints.  Of the folder runs the names alone are printed, which every command takes; of another one, paths.
---@param o table { folder, sort }, each or none
---@return { path: string, study: boolean }? newest
function run_list.text(o)
  if not o.folder and not files.is_folder "runs" then return "there are no runs here yet\n" end
  local folder = o.folder and folder_of(o.folder) or "runs"
  local rows, lines = run_list.rows(folder), { { "run", "state", "steps", "score", "guessing", "normalised", "core", "script", "last written" } }
  local newest = rows[1]
  for i, r in ipairs(sorted(rows, o.sort)) do
    lines[i + 1] = cells(r, folder == "runs" and r.name or r.path)
  end
  if not newest then return ("there are no runs in %s\n"):format(folder) end
  return layout.table(lines), { path = newest.path, study = newest.study }
end

return run_list
