-- ranks.lua -- `mneme bench ranks`.
local lazy = require "mneme.base.lazy"
local lfs = require "lfs"
local metrics_reader = lazy "mneme.runs.metrics_reader"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local shell_word = require "mneme.base.shell_word"
local progress = require "mneme.base.progress"

local bench = { name = "bench ranks", doc = "how much faster two ranks train than one process, at the published sizes of AGaLiTe in T-Maze", about = [[
With one thread each, alternating.  The fastest part of each counts, since other programs only slow it down.  Two ranks slow each other as two
programs on one machine do; so it is for users.]],
  options = {
    { "num_envs", "environments", type = "wholes", range = { 2 }, multiple = 2, default = { 8, 16, 32 }, example = "8,16,32" },
    { "updates", "updates of each", type = "whole", range = { 1 }, default = 12 },
  } }
local AIM, ROUNDS, STEPS = 0.8, 3, 256        -- of twice as fast; rounds; steps per environment in an update
local LEAST = 40000                            -- steps, so that the log has lines

-- Steps per second between the two lines of a run's log where it was fastest.  As root, mpirun starts only if the
-- environment allows it.
local function speed(run, ranks, num_envs, updates)
  local line = ("mpirun --oversubscribe -n %d %s run tmaze num_envs=%d threads=1 steps=%d checkpoint_every=1e9 run=%s > %s 2>&1"):format(ranks,
    shell_word(lfs.symlinkattributes("/proc/self/exe", "target")), num_envs, math.max(LEAST, updates * num_envs * STEPS), shell_word(run),
      shell_word(run .. ".txt"))
  local pipe = io.popen("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " .. line .. "; echo $?")            -- os.execute ignores Ctrl-C
  local status = pipe:read "*n"
  pipe:close()
  if status ~= 0 then
    errors.fail("bench ranks: '" .. line .. "' failed: " .. files.read(run .. ".txt"))
  end
  local sps = metrics_reader.read(run)["charts/SPS"]
  local best, before = 0, nil
  for i = 1, sps.n do
    local at = sps.x[i] / sps.y[i]               -- seconds since the beginning
    if before and at > before.at then best = math.max(best, (sps.x[i] - before.x) / (at - before.at)) end
    before = { x = sps.x[i], at = at }
  end
  return best
end

---@return integer status
function bench.run(o)
  if os.execute "command -v mpirun > /dev/null" ~= 0 then errors.fail("bench ranks: mpirun is not installed", "Debian: apt-get install openmpi-bin") end
  local here = os.tmpname()
  files.remove(here)
  files.make_folder(here)
  local ok, problem = pcall(function()
    for _, num_envs in progress.each(o.num_envs, "sizes") do
      local best = { 0, 0 }
      for round = 1, ROUNDS do
        for ranks = 1, 2 do
          best[ranks] = math.max(best[ranks], speed(("%s/%d-%d-%d"):format(here, num_envs, ranks, round), ranks, num_envs, o.updates))
        end
      end
      local ideal = best[2] / (2 * best[1])
      print(("num_envs=%d: one process %.0f steps/s, two ranks %.0f = %.0f %% of twice that (target %.0f: %s)"):format(num_envs, best[1], best[2],
        100 * ideal, 100 * AIM, ideal >= AIM and "met" or "missed"))
      io.stdout:flush()
    end
  end)
  files.remove_folder(here)
  if not ok then error(problem, 0) end
  return 0
end

return bench
