-- eval.lua -- `mneme eval`: a trained agent on fresh episodes.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"
local fresh_episodes = lazy "mneme.episodes.fresh_episodes"
local stepper = lazy "mneme.episodes.stepper"
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local numbers = require "mneme.base.format"
local outcome = lazy "mneme.runs.outcome"
local outcomes_table = lazy "mneme.reports.outcomes_table"
local next_step = require "mneme.base.next_step"
local reference = lazy "mneme.envs.reference"
local run_folder = lazy "mneme.runs.folder"
local stats = lazy "mneme.stats"
local C = engine.C

local eval = { name = "eval", doc = "evaluate a trained agent on fresh episodes", others = "env", loads = true,
  draws = "all environments draw from this seed, while each episode of intervene and where has one of its own",
  arguments = { { "folders", "RUN|STUDY", "a run; with outcomes=1 also several, and studies", noun = "run", several = true } }, about = [[
Success, return and length with confidence intervals.  Of a run on sequences: accuracy, loss, perplexity and bits per character on held-out
sequences; length=1024, say, shows how far a memory reaches.]],
  options = options.join(options.episodes(1000), options.common.num_envs, options.agent, {
    { "record", "keep the episodes as trajectories", type = "folder", example = "episodes" },
    { "record_every", "with record=: every N-th episode", type = "whole", range = { 1 }, default = 1 },
    { "internals", "with record=: with the agent's memory", type = "switch", default = false },
    { "outcomes", "the share of episodes that reached each outcome of the environment (Craftax: achievements), with intervals, and the Crafter score",
      type = "switch", default = false },
    { "out", "with outcomes=1: the table", type = "file", endings = { "csv" } },
    { "split", "of a run on sequences: the part", type = "choice", choices = { "train", "valid", "test" }, unless = "test" },
    { "batches", "of a run on sequences: batches of the part", type = "whole", range = { 1 }, unless = "2000 sequences, or all", example = "10" },
  }) }

local of_sequences, of_both = { split = true, batches = true }, { best = true, threads = true, use = true, trust = true, keep_private = true }

-- Refuse options of runs with episodes where it is one on sequences, and the other way round.
local function check_kind(o, sequences)
  for _, item in ipairs(o.all) do
    local key = item[1]
    if options.by_name(eval)[key] and not of_both[key] and (of_sequences[key] or false) ~= sequences then
      errors.usage(("eval: %s= is for %s, and %s is none"):format(key, sequences and "runs with episodes" or "runs on sequences", o.folder))
    end
  end
end

-- What does not go together.
local function check(o)
  local folder, second = o.folders[1], o.folders[2]
  o.folder = folder
  if o.outcomes and o.checkpoint then
    errors.usage "eval: outcomes=1 takes the newest checkpoint of each run (best=1: the best), expected no checkpoint="
  end
  if second and not o.outcomes then
    errors.usage(("eval: one run, got '%s' and '%s'"):format(folder, second), ("one after the other; mneme compare %s %s compares them"):format(folder, second))
  end
  if o.out and not o.outcomes then errors.usage "eval: out=FILE.csv goes with outcomes=1" end
  if o.outcomes and o.record then errors.usage "eval: outcomes=1 and record= do not go together" end
  if o.internals and not o.record then errors.usage "eval: internals=1 goes with record=FOLDER" end
end

-- ---- what came of it ----

-- A line with the mean of a list and half the width of its interval; a single episode has no interval.
local function line(mean, half, list)
  local m, _, high = stats.t_interval(list)
  print(mean:format(m) .. (high and half:format(high - m) or ""))
end

-- outcomes=1
local function tabulate(o, env)
  C.mn_watch_signals(true)
  local function readable(path)
    run_folder.read_info(path)
    arguments.check_env(eval, path, env)
  end
  local text, csv = outcomes_table.make(o, env, readable)
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  if not text then return status end
  print(("%d episodes of each run%s; 95 %% intervals: over seeds, of a single run over its episodes"):format(o.episodes, o.greedy and ", greedy" or ""))
  io.stdout:write(layout.table(text))
  if o.out then
    files.write(o.out, { table.concat(csv, "\n") .. "\n" })
    print(o.out)
  end
  return status
end

---@return integer status
function eval.run(o)
  local env = o.env
  check(o)
  if o.outcomes then return tabulate(o, env) end
  local sequences = run_folder.read_info(o.folder).sequence_task ~= nil
  check_kind(o, sequences)
  if sequences then return require("mneme.commands.eval_sequences").run(o) end
  local num_envs = o.num_envs or math.min(o.episodes, 64)
  arguments.check_run(eval, o, "to play")
  local p = stepper.from_run(o.folder, { num_envs = num_envs, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = env })
  local album = o.record and require("mneme.episodes.episode_recorder").new(p, { folder = o.record, every = o.record_every,
    episodes = o.episodes, internals = o.internals })
  C.mn_watch_signals(true)
  local out = fresh_episodes.play(p, o.episodes, { album = album })
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  local n = #out.score
  if n == 0 then errors.stop(status) end
  local settings = {}
  for key, value in pairs(env) do settings[#settings + 1] = key .. "=" .. value end
  table.sort(settings)
  if p.agent.core.config.sees == "rollout" then settings[#settings + 1] = "core.sees=rollout" end
  print(("%s at %.0f steps, %d fresh episodes%s%s"):format(o.folder, p.steps, n, o.greedy and ", greedy" or "",
    #settings > 0 and ", " .. table.concat(settings, " ") or ""))
  local guess = out.scored and reference.text(p.env.reference)
  if not out.scored then print "score   not declared"
  else
    local mean, low, high, by_degrees = fresh_episodes.interval(out.score)
    if by_degrees then line("score   %.3f", "  +- %.3f", out.score)
    else print(("success %.3f  [%.3f, %.3f] (Wilson, 95 %%)"):format(mean, low, high)) end
  end
  if guess then print("        " .. guess) end
  local ended = outcome.read(o.folder)
  if ended and ended.ended == "stop_score" and ended.results.score then
    print(("        training first reached %.3f at step %s, and stopped"):format(ended.results.score, numbers.grouped(ended.step)))
  end
  line("return  %.3f", "  +- %.3f", out.ret)
  line("length  %.1f", "  +- %.1f", out.length)
  if album then print(("%d episodes in %s"):format(album.written, o.record)) end
  if status == 0 then next_step.say({ "intervene", o.folder, "erase=all", "at=1" }, { "compare", o.folder }) end
  return status
end

return eval
