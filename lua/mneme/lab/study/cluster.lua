-- cluster.lua -- the unfinished runs of a sweep as a job for other machines: `mneme sweep X ... cluster=slurm` writes
-- into the study's folder the list of these runs and a script that runs them one by one.  A list never changes once it
-- is written, so its Nth line stays the same run for as long as a batch system uses the number N.
--   STUDY/slurm/1/   runs.txt, job.sh   a job array: one task per run, at most jobs=K at a time
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local shell_word = require "mneme.base.shell_word"

local cluster = {}
local MARGIN, MINUTES = 2, 10            -- other machines are slower, and the file system is busy; the least that is asked for
local WARNING = 60                       -- seconds in which a run that must go keeps what it has
local LONGEST = 1001                     -- Slurm's MaxArraySize where nobody says another

---A word as the shell reads it back.
function cluster.quote(word)
  if word:find "^[%w_./:=,+@%%-]+$" then return word end
  return shell_word(word)
end

local function quoted(words)
  local list = {}
  for i, word in ipairs(words) do list[i] = cluster.quote(word) end
  return table.concat(list, " ")
end

-- The command that runs one run; the run's name is appended.
local function command(o, words)
  local program = lfs.symlinkattributes("/proc/self/exe", "target")
  return quoted { program, o.command or "sweep", o.script, unpack(words) } .. " " .. quoted { "run=" .. o.run, unpack(run_sources.hand_on()) }
end

-- One line a run: its name, and the seconds and MiB that it is expected to take.
local function lines_of(runs)
  local lines = {}
  for i, c in ipairs(runs) do
    local e = c.estimate
    lines[i] = c.name .. (e and (" %.4g,%.4g"):format(e.wall_s, e.peak_mib or 0) or " 0") .. "\n"
  end
  return table.concat(lines)
end

-- The names of a list, without what is expected of them.
local function names_of(text) return (text:gsub(" [^\n]*", "")) end

-- The folder for these runs: the latest one where that is theirs, or a new one.
local function place(base, lines)
  local n = 0
  for _, name in ipairs(files.list(base)) do n = math.max(n, tonumber(name) or 0) end
  local last = ("%s/%d"):format(base, n)
  if files.is_file(last .. "/runs.txt") and names_of((files.read(last .. "/runs.txt"))) == names_of(lines) then return last end
  local path = ("%s/%d"):format(base, n + 1)
  files.make_folder(path)
  files.write(path .. "/runs.txt", { lines })
  return path
end

-- What the largest of the runs needs: minutes, and MiB where they are known.
local function needs(runs)
  local wall, peak = 0, 0
  for _, c in ipairs(runs) do
    local e = c.estimate
    if not e then return 60 end
    wall, peak = math.max(wall, e.wall_s), math.max(peak, e.peak_mib or 0)
  end
  return math.max(MINUTES, math.ceil(MARGIN * wall / 60 + 2 * WARNING / 60)), peak > 0 and math.ceil(1.5 * peak + 256) or nil
end

local SLURM = [=[
#!/bin/sh
# The runs of @RUNS@, one per task: line $SLURM_ARRAY_TASK_ID + $1.
#SBATCH --job-name=@NAME@
#SBATCH --output=@PLACE@/%A_%a.txt
#SBATCH --open-mode=append
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=@THREADS@
#SBATCH --time=@TIME@
@MORE@#SBATCH --signal=B:USR1@@WARNING@
#SBATCH --requeue
#SBATCH --chdir=@HERE@

read -r run guess << LINE
$(sed -n "$((SLURM_ARRAY_TASK_ID + ${1:-0}))p" @RUNS@)
LINE
[ -n "$run" ] || exit 2

# USR1: the time is nearly up, or somebody else needs the node; TERM: the task is not wanted any more, or Slurm brings it
# back by itself.  The run saves a checkpoint and ends with 143.
again=
trap 'again=1; kill -USR1 $! 2> /dev/null' USR1
trap 'again=; kill -USR1 $! 2> /dev/null' TERM
@COMMAND@ "only=$run" "estimate=$guess" &
wait $!; code=$?
while [ $code -gt 128 ] && kill -0 $! 2> /dev/null; do wait $!; code=$?; done

# 75: another process still runs this run, or seems to, for a while, after its node has gone.
case $code in
  0) again=; rm -f @PLACE@/"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID.txt" ;;
  75) again=1 ;;
  138|143) ;;
  *) again= ;;
esac
[ -z "$again" ] || scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
exit $code
]=]

-- The lines by which the arrays are begun: no longer than the cluster allows, and in all no wider than jobs=K.
local function sbatch_lines(o, path, n)
  local pipe = io.popen "scontrol show config 2> /dev/null"
  local longest = tonumber(pipe:read "*a":match "MaxArraySize%s*=%s*(%d+)") or LONGEST
  pipe:close()
  local arrays, lines = math.ceil(n / (longest - 1)), {}
  local wide = o.jobs and "%" .. math.max(1, math.floor(o.jobs / arrays)) or ""
  for i = 1, arrays do
    local first = (i - 1) * (longest - 1)
    lines[i] = ("sbatch --array=1-%d%s %s%s"):format(math.min(longest - 1, n - first), wide, cluster.quote(path .. "/job.sh"),
      first > 0 and " " .. first or "")
  end
  return lines
end

-- Writes the script; returns the lines of a shell that begin it.
local function write(o, words, runs)
  local threads = script.setting(runs[1].words, "threads")
  if threads == "0" then errors.usage("sweep: threads=0 means all of this machine's, expected a number: how many a task of the cluster has") end
  local path, minutes, mib = place(o.run .. "/slurm", lines_of(runs)), needs(runs)
  local memory = (o.mem or mib) and ("#SBATCH --mem=%s\n"):format(o.mem or mib .. "M") or ""
  local with = { RUNS = cluster.quote(path .. "/runs.txt"), PLACE = cluster.quote(path), HERE = cluster.quote(lfs.currentdir()),
    NAME = o.run:match "([^/]*)/*$":gsub("[^%w_.-]", "_"), THREADS = threads, WARNING = WARNING, COMMAND = command(o, words), TIME = o.time or minutes,
    MORE = memory .. (o.partition and ("#SBATCH --partition=%s\n"):format(o.partition) or "") }
  files.write(path .. "/job.sh", { (SLURM:gsub("@(%u+)@", with)) })
  return sbatch_lines(o, path, #runs)
end

---Write a job for other machines, and say how it begins; submit=1 begins it.
---@param o table of the sweep: command = "sweep" or another that takes only=;
---  script, run, jobs, submit; time, mem, partition as sbatch takes them
---@param words string[] of the command line, for the script of the study
---@param runs table[] that are open, with their estimates where these are known
---@param told string how many there are
function cluster.hand_over(o, words, runs, told)
  local lines = write(o, words, runs)
  print(("%s: %s; %s"):format(o.run, told, o.submit and "handed over:" or "this begins them:"))
  for _, line in ipairs(lines) do
    print("  " .. line)
    io.stdout:flush()
    if o.submit and os.execute(line) ~= 0 then errors.fail("'" .. line .. "' failed", "what it said stands above") end
  end
end

---Refuse what no job's script can hold.
function cluster.check(o)
  for what, path in pairs { run = o.run or "", ["the current directory"] = lfs.currentdir() } do
    if path:find "%c" then
      errors.usage(("sweep: %s has a line break or control character in its name, which no line of a job's script can hold"):format(what))
    end
  end
  for _, key in ipairs { "time", "mem", "partition" } do
    if o[key] and not o[key]:find "^[%w_:,.-]+$" then errors.usage(("sweep: %s=%s, expected what sbatch --%s takes"):format(key, o[key], key)) end
  end
end

return cluster
