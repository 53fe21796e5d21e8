-- run.lua -- `mneme run SCRIPT`: train, or run any script.
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local next_step = require "mneme.base.next_step"
local ranks = lazy "mneme.tensor.ranks"
local script = lazy "mneme.runs.script"

local run = { name = "run", doc = "train, or run any script; mneme run SCRIPT --help lists its settings", others = "script", loads = true,
  arguments = { { "script", "SCRIPT", "a file, or the name of an experiment (mneme list experiments)", noun = "script", optional = true } },
  options = {
    { "seeds", "a run for each seed, each in a process of its own: 4: seeds 1 to 4; 3..7; 1,5,9", type = "seeds", example = "4" },
    { "jobs", "runs at a time", type = "whole", range = { 1 }, with = "seeds", unless = "one per processor", example = "2" },
  } }

-- One run per seed.
local function several(o)
  if ranks.size > 1 then errors.usage "run: seeds=: the processes of mpirun train one agent together, expected one seed" end
  if script.setting(o.rest, "resume") then errors.usage "run: seeds= starts new runs, expected no resume= (resume=RUN resumes one run)" end
  if script.setting(o.rest, "seed") then errors.usage "run: seed= and seeds=, expected one of them" end
  if (script.setting(o.rest, "view") or "0") ~= "0" then errors.usage "run: view=1 shows one run, expected one seed instead of seeds=" end
  return require("mneme.commands.run_seeds").run(script.named(o.script), o.rest, o.seeds, o.jobs, require("mneme.commands.cli").main)
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
      require("mneme.runs.folder").read_info(folder)           -- its error says what is wrong
      errors.usage("run: which script made this run?", "mneme run SCRIPT resume=" .. folder)
    end
    require("mneme.runs.run_sources").adopt(folder, about)
  elseif not path then
    if o.rest[1] then script.locate(o.rest[1]) end             -- its error says where env= belongs
    errors.usage("run: which script?", "mneme run SCRIPT [key=value ...]; mneme list experiments")
  end
  local result = script.run(o.script and script.named(path) or script.locate(path), o.rest)
  local made = type(result) == "table" and type(result.path) == "string" and ranks.rank == 0 and result.path
  if not made or not require("mneme.base.files").is_file(made .. "/config.json") then return end
  local trained = require("mneme.runs.checkpoints").list(made)[1]
  if not trained then next_step.note({ "compare", made }, "list runs")
  elseif require("mneme.runs.folder").read_info(made).sequence_task then next_step.note({ "eval", made }, { "compare", made })
  else next_step.note({ "view", made }, { "eval", made }) end
end

return run
