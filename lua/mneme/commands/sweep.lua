-- sweep.lua -- `mneme sweep SCRIPT`: what lab/study/sweep.lua takes on the command line.
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local ranks = lazy "mneme.tensor.ranks"
local script = lazy "mneme.runs.script"

local function as_text(o, _, option, _, text) o[option[1]] = text end

local sweep = { name = "sweep", doc = "run a grid of settings and seeds, in several processes", others = "script", loads = true,
  about = [[
The axes are those of the script's study, and every setting with several values (core=gru,lstm); axis=value keeps only that value.
A range (lr=1e-5..1e-2:log, num_steps=32..256:int) is tuned first, for each point with the whole budget=NxS: docs/tuning.md.
The same command resumes a sweep: it runs what is unfinished, and tries failed runs once more.]],
  arguments = { { "script", "SCRIPT", "a study, or any script", noun = "script" } }, ask = "mneme sweep SCRIPT [key=value,value ...]; mneme list experiments",
  options = {
    { "jobs", "runs at a time", type = "whole", unless = "one per processor", example = "2" },
    { "seeds", "how many seeds, 3..7 or 1,5,9", type = "seeds", unless = "those of the study", set = as_text, example = "10" },
    { "run", "the study's folder", type = "folder", unless = "runs/SCRIPT" },
    { "list", "only list the runs", type = "switch" },
    { "power", "only print what the claims can decide with this number of seeds", type = "switch" },
    { "budget", "of what is tuned: NxS, N trials of S steps for each point; N: of the script's own steps", type = "text", example = "40x1e5" },
    { "by", "the number that a tuning makes high", type = "text", unless = "score", example = "score" },
    { "estimate", "0: start at once, without estimating the time", type = "text", example = "0", pattern = "^[01]$", expected = "0 or 1" },
    { "attempts", "how often a run that fails is tried", type = "whole", range = { 1 }, default = 2 },
    { "give_up", "begin no more runs once that many have failed with the same error and none is done; 0: never", type = "whole", default = 3 },
    { "import", "take finished runs from a file that mneme report STUDY export=FILE wrote", type = "text", example = "runs.jsonl" },
    { "only", "only this run, by name or number, for batch systems", type = "text", example = "1" },
  } }

function sweep.run(o)
  script.once(o.words)
  ranks.begin()
  if ranks.size > 1 then                         -- every rank would run the whole grid
    errors.usage(("sweep: mpirun started %d processes, but a sweep starts its own"):format(ranks.size),
      "mneme sweep ... jobs=N; for several machines see docs/clusters.md")
  end
  return require("mneme.lab.study.sweep").main(o)
end

return sweep
