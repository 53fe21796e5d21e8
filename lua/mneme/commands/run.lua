-- run.lua -- `mneme run SCRIPT`: train, or run any script.
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local new_folder = lazy "mneme.runs.new_folder"
local process_pool = lazy "mneme.lab.study.process_pool"
local progress = require "mneme.base.progress"
local ranks = lazy "mneme.tensor.ranks"
local script = lazy "mneme.runs.script"
local terminal = require "mneme.base.terminal"
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"

local C = engine.C
ffi.cdef "int isatty(int fd);"
local run = { name = "run", doc = "train, or run any script; mneme run SCRIPT --help lists its settings", others = "script", loads = true,
  arguments = { { "script", "SCRIPT", "a file, or the name of an experiment (mneme list experiments)", noun = "script", optional = true } },
  options = {
    { "seeds", "a run for each seed, each in a process of its own: 4: seeds 1 to 4; 3..7; 1,5,9", type = "seeds", example = "4" },
    { "jobs", "runs at a time", type = "whole", range = { 1 }, with = "seeds", unless = "one per processor", example = "2" },
  } }

-- ---- a run for each seed ----

-- jobs at a time, and threads of each: as many as the machine has processors, unless the user says otherwise.
local function share(words, n, jobs)
  local cores, threads, given = C.mn_cores(), tonumber(script.setting(words, "threads")), jobs
  jobs = jobs or n
  threads = threads or math.max(1, math.floor(cores / math.min(n, jobs)))
  return given or math.max(1, math.min(n, math.floor(cores / math.max(1, threads)))), threads
end

local function text_of(path) return files.is_file(path) and files.read(path) or "" end

---Run a script once for each seed.
---@param path string of the script
---@param words string[] its command line, without seeds and jobs
---@param at_a_time integer? runs at a time
---@param run_one fun(words: string[]): integer runs `mneme run` with these words in this process; its exit status
---@return integer status 0; or that of the first run that failed, or of the signal that stopped them
local function each_seed(path, words, seeds, at_a_time, run_one)
  local jobs, threads = share(words, #seeds, at_a_time)
  local at, done, status, folder = 0, 0, 0, script.setting(words, "run") or ""
  local list = tables.map(seeds, function(seed)
    return { seed = seed, words = setting_types.without(words, "run", "threads"), folder = folder ~= "" and ("%s-seed%.0f"):format(folder, seed) or nil,
      log = files.temporary(), progress = files.temporary() }
  end)
  local tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb"
  local foreseen
  local function status_line(running)
    if foreseen and not tty then return end
    local now = {}
    for _, r in pairs(running) do
      local part, left = text_of(r.job.progress):match "^([%d.]+) ([%d.]*)\n"
      if tonumber(left) and not foreseen then
        foreseen = true
        if tty then io.stderr:write "\r\27[K" end
        progress.announce(left * math.ceil(#list / jobs), ("for %d runs, %d at a time, as one says after its first second"):format(#list, jobs))
      end
      if part then now[#now + 1] = ("seed %.0f: %d%%"):format(r.job.seed, 100 * part) end
    end
    if not tty then return end
    table.sort(now)
    local width, line = terminal.columns(2) or 80, ("%d of %d runs done"):format(done, #list)
    for _, text in ipairs(now) do if #line + 2 + #text < width then line = line .. "  " .. text end end
    io.stderr:write("\r\27[K", line, "\r")
  end
  local status_of_signal = engine.heeding(true, process_pool.run, {
    jobs = jobs,
    next = function()
      at = at + 1
      local job = list[at]
      if not job then at = #list return nil end
      job.folder = job.folder or new_folder((path:match "([^/]*)$":gsub("%.lua$", "")))
      for _, word in ipairs { "run=" .. job.folder, ("seed=%.0f"):format(job.seed), ("threads=%d"):format(threads) } do
        job.words[#job.words + 1] = word
      end
      return job
    end,
    none_left = function() return at >= #list end,
    log = function(job) return job.log end,
    run = function(job)
      terminal.next_step.silent, progress.into = true, job.progress
      engine.forget()                            -- reading the log of a run that ended has opened one in this process's parent
      return run_one { "run", path, unpack(job.words) }
    end,
    tick = status_line,
    ended = function(job, about)
      if tty then io.stderr:write "\r\27[K" end
      for line in text_of(job.log):gmatch "[^\r\n]+" do
        io.stdout:write(terminal.fold(("seed %.0f: %s\n"):format(job.seed, line), terminal.columns(1)))
      end
      io.stdout:flush()
      if about.signal ~= 0 and not about.stopped then terminal.note(("mneme: seed %.0f: its process was killed by signal %d"):format(job.seed, about.signal))
      elseif about.status ~= 0 and text_of(job.log) == "" then
        terminal.note(("mneme: seed %.0f ended with status %d; what it said could not be written to %s"):format(job.seed, about.status, job.log))
      end
      os.remove(job.log)
      os.remove(job.progress)
      lfs.rmdir(job.folder)                      -- which only removes an empty one, of a run that never began
      done = done + 1
      if status == 0 then status = about.status end
    end,
  })
  local folders = tables.map(list, function(job) return job.folder and files.is_file(job.folder .. "/config.json") and job.folder or nil end)
  if folders[1] then terminal.next_step.note { "compare", unpack(folders) } end
  return status_of_signal ~= 0 and status_of_signal or status
end

-- One run per seed.
local function several(o)
  if ranks.size > 1 then errors.usage "run: seeds=: the processes of mpirun train one agent together, expected one seed" end
  if script.setting(o.rest, "resume") then errors.usage "run: seeds= starts new runs, expected no resume= (resume=RUN resumes one run)" end
  if script.setting(o.rest, "seed") then errors.usage "run: seed= and seeds=, expected one of them" end
  if (script.setting(o.rest, "view") or "0") ~= "0" then errors.usage "run: view=1 shows one run, expected one seed instead of seeds=" end
  return each_seed(script.named(o.script), o.rest, o.seeds, o.jobs, require("mneme.commands.cli").main)
end

-- ---- the command ----

---The settings of every script, for help.
function run.more()
  local rows = tables.map(require("mneme.runs.config").standard, function(s) return { s[1] .. "=" .. setting_types.show(s[2]), s[3][1] } end)
  return "settings of every script\n" .. require("mneme.base.layout").columns(rows, 26)
end

function run.run(o)
  script.once(o.words)
  ranks.begin()
  local folder, path = script.setting(o.rest, "resume"), o.script
  if o.seeds and (path or folder) then return several(o) end
  if not path and folder then
    local about = script.peek(folder)
    path = about.script
    if not path then
      require("mneme.runs.run_folder").read_info(folder)           -- its error says what is wrong
      errors.usage("run: which script made this run?", "mneme run SCRIPT resume=" .. folder)
    end
    require("mneme.runs.run_sources").adopt(folder, about)
  elseif not path then
    if o.rest[1] then script.locate(o.rest[1]) end             -- its error says where env= belongs
    errors.usage("run: which script?", "mneme run SCRIPT [key=value ...]; mneme list experiments")
  end
  local result = script.run(o.script and script.named(path) or script.locate(path), o.rest)
  local made = type(result) == "table" and type(result.path) == "string" and ranks.rank == 0 and result.path
  if not made or not files.is_file(made .. "/config.json") then return end
  local trained = require("mneme.runs.checkpoint_files").list(made)[1]
  if not trained then terminal.next_step.note({ "compare", made }, "list runs")
  elseif require("mneme.runs.run_folder").read_info(made).sequence_task then terminal.next_step.note({ "eval", made }, { "compare", made })
  else terminal.next_step.note({ "view", made }, { "eval", made }) end
end

return run
