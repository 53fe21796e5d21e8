-- process_pool.lua -- runs a list of jobs in child processes, a given number at a time.  Children are
-- forked, so that nothing is loaded twice.
local ffi = require "ffi"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"

local pool = {}

-- No context is opened here: each process chooses its device itself.
local function check(result)
  if result == -1 then errors.fail(ffi.string(C.mn_error(nil))) end
  return result
end

---The seconds that jobs take side by side: shared out among as many processes as there are jobs for, and no less than the longest.
---@param seconds number of all jobs, one after another
---@param longest number seconds of the longest of them
function pool.seconds(seconds, n, jobs, longest) return n > 0 and math.max(seconds / math.min(jobs, n), longest) or 0 end

---Do the jobs.
---@param o table jobs = how many at a time; patience = seconds after which one is killed (nil: none is);
---  next() -> a job, nil: none now; log(job) -> file for what it prints;
---  run(job) -> status, in a child process; ended(job, about), about = { status, signal, cpu, peak, wall, stopped = a signal to all ended it };
---  tick(running) now and then, running = list of { job, since }; none_left() -> no more will come
---@return integer signal that ended it early; 0: none did
function pool.run(o)
  local running, n, ended = {}, 0, ffi.new "mn_ended"
  local function begin(job)
    io.stdout:flush()
    io.stderr:flush()
    local pid = check(C.mn_process_fork(nil, o.log(job)))
    if pid == 0 then
      local ok, status = pcall(o.run, job)
      io.stdout:flush()
      io.stderr:flush()
      C.mn_process_exit(ok and status or 1)
    end
    running[pid], n = { job = job, since = C.mn_clock(false) }, n + 1
  end
  local told = false
  while true do
    local signal = C.mn_interrupted()
    if signal ~= 0 and not told then             -- each finishes its update and saves; then there are none left
      told = true
      for pid in pairs(running) do C.mn_process_stop(pid, false) end
    end
    while signal == 0 and n < o.jobs do
      local job = o.next()
      if not job then break end
      begin(job)
    end
    if n == 0 then
      if signal ~= 0 or o.none_left() then return signal end
    end
    if check(C.mn_process_wait(nil, 0.2, ended)) == 1 then
      local r = running[ended.pid]
      if r then
        running[ended.pid], n = nil, n - 1
        local stopped = ended.status == 130 or ended.status == 143 or ended.signal ~= 0 and C.mn_interrupted() ~= 0
        o.ended(r.job, { status = ended.status, signal = ended.signal, cpu = ended.cpu, peak = ended.peak,
          wall = C.mn_clock(false) - r.since, stopped = stopped })
      end
    end
    for pid, r in pairs(running) do
      if o.patience and C.mn_clock(false) - r.since > o.patience then C.mn_process_stop(pid, true) end
    end
    o.tick(running)
  end
end

return pool
