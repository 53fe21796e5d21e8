-- run_seeds.lua -- `mneme run SCRIPT seeds=4 [jobs=N] [key=value ...]`: a run for each seed, each in a process of its own.
local ffi = require "ffi"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local new_folder = require "mneme.runs.new_folder"
local next_step = require "mneme.base.next_step"
local progress = require "mneme.base.progress"
local terminal = require "mneme.base.terminal"
local pool = require "mneme.study.process_pool"
local script = require "mneme.runs.script"

local C = engine.C
local PROGRESS = "^%s*%d+%%  "               -- how a line of a progress bar begins
local FORESEEN = "^about ([%d:]+) for "      -- a run's estimate, after its first second
ffi.cdef "int isatty(int fd);"

-- jobs at a time, and threads of each: as many as the machine has processors, unless the user says otherwise.
local function share(words, n)
  local cores, threads, jobs = C.mn_cores(), script.setting(words, "threads"), script.setting(words, "jobs")
  jobs = tonumber(jobs or n)
  if not jobs or jobs < 1 or jobs % 1 ~= 0 then
    errors.usage(("run: jobs=%s, expected a whole number of at least 1"):format(script.setting(words, "jobs")))
  end
  threads = tonumber(threads) or math.max(1, math.floor(cores / math.min(n, jobs)))
  if not script.setting(words, "jobs") then jobs = math.max(1, math.min(n, math.floor(cores / math.max(1, threads)))) end
  return jobs, threads
end

-- "1:05:10" in seconds.
local function seconds_of(text)
  local sum = 0
  for part in text:gmatch "%d+" do sum = 60 * sum + tonumber(part) end
  return sum
end

local function lines_of(path)
  local list = {}
  for line in (files.is_file(path) and files.read(path) or ""):gmatch "[^\r\n]+" do list[#list + 1] = line end
  return list
end

---Run a script once for each seed.
---@param path string of the script
---@param words string[] its command line, without seeds
---@param seeds number[]
---@param run_one fun(words: string[]): integer runs `mneme run` with these words in this process; its exit status
---@return integer status 0; or that of the first run that failed, or of the signal that stopped them
local function run(path, words, seeds, run_one)
  local jobs, threads = share(words, #seeds)
  local list, at, done, status = {}, 0, 0, 0
  for i, seed in ipairs(seeds) do
    local own = {}
    for _, word in ipairs(words) do
      local folder = word:match "^%-*run=(.+)$"
      if folder then own.folder = ("%s-seed%.0f"):format(folder, seed)
      elseif not word:find "^%-*jobs=" and not word:find "^%-*threads=" then own[#own + 1] = word end
    end
    list[i] = { seed = seed, words = own, log = os.tmpname() }
  end
  local tty = ffi.C.isatty(2) == 1 and os.getenv "TERM" ~= "dumb"
  local foreseen
  local function status_line(running)
    if foreseen and not tty then return end
    local now = {}
    for _, r in pairs(running) do
      local said = lines_of(r.job.log)
      for _, line in ipairs(foreseen and {} or said) do
        local time = line:match(FORESEEN)
        if time and not foreseen then
          foreseen = true
          if tty then io.stderr:write "\r\27[K" end
          progress.announce(seconds_of(time) * math.ceil(#list / jobs), ("for %d runs, %d at a time, as one says after its first second"):format(#list, jobs))
        end
      end
      local last = said[#said] or ""
      if last:find(PROGRESS) then now[#now + 1] = ("seed %.0f: %s"):format(r.job.seed, last:match "^%s*(%d+%%)") end
    end
    if not tty then return end
    table.sort(now)
    local width, line = terminal.columns(2) or 80, ("%d of %d runs done"):format(done, #list)
    for _, text in ipairs(now) do if #line + 2 + #text < width then line = line .. "  " .. text end end
    io.stderr:write("\r\27[K", line, "\r")
  end
  C.mn_watch_signals(true)
  local signal = pool.run {
    jobs = jobs,
    next = function()
      at = at + 1
      local job = list[at]
      if not job then at = #list return nil end
      local folder = job.words.folder or new_folder(path:match "([^/]*)$":gsub("%.lua$", ""))
      job.folder = folder
      for _, word in ipairs { "run=" .. folder, ("seed=%.0f"):format(job.seed), ("threads=%d"):format(threads) } do
        job.words[#job.words + 1] = word
      end
      return job
    end,
    none_left = function() return at >= #list end,
    log = function(job) return job.log end,
    run = function(job)
      next_step.silent = true
      engine.forget()                            -- reading the log of a run that ended has opened one in this process's parent
      return run_one { "run", path, unpack(job.words) }
    end,
    tick = status_line,
    ended = function(job, about)
      if tty then io.stderr:write "\r\27[K" end
      for _, line in ipairs(lines_of(job.log)) do
        if not line:find(PROGRESS) and not line:find(FORESEEN) then
          io.stdout:write(terminal.fold(("seed %.0f: %s\n"):format(job.seed, line), terminal.columns(1)))
        end
      end
      io.stdout:flush()
      local killed = about.signal ~= 0 and not about.stopped
      if killed then terminal.note(("mneme: seed %.0f: its process was killed by signal %d"):format(job.seed, about.signal)) end
      os.remove(job.log)
      lfs.rmdir(job.folder)                      -- which only removes an empty one, of a run that never began
      done = done + 1
      if status == 0 then status = about.status end
    end,
  }
  C.mn_watch_signals(false)
  local folders = { "compare" }
  for _, job in ipairs(list) do folders[#folders + 1] = job.folder and files.is_file(job.folder .. "/config.json") and job.folder or nil end
  if folders[2] then next_step.note(folders) end
  return signal ~= 0 and errors.status_of(signal) or status
end

return { run = run }
