-- eval.lua -- evaluate a trained agent on fresh episodes: success, return and length with confidence intervals.
--   episodes=1000 seed=N num_envs=N   how many episodes, and which: all environments draw from one seed, one episode after the other, so
--                   they are not those of `mneme intervene` and `mneme where` with that seed, which begin episode k with seed + k
--   greedy=1        take the most probable action instead of sampling
--   best=1 checkpoint=STEPS   the best checkpoint, or that one, instead of the newest
--   record=FOLDER   keep the episodes as trajectories, which mneme view shows: record_every=10 every tenth; internals=1
--                   with the agent's memory
--   outcomes=1      the share of episodes that reached each outcome of the environment (Craftax: achievements), with
--                   intervals, and the Crafter score; of several runs, and of studies, too; out=FILE.csv
--   threads=N       CPU threads; default: all processors
-- Other keys are settings of the environment: corridor=200, or env.corridor=200.
local arguments = require "mneme.commands.run_arguments"
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"
local memory_story = require "mneme.episodes.memory_story"
local fresh_episodes = require "mneme.episodes.fresh_episodes"
local stepper = require "mneme.episodes.stepper"
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local numbers = require "mneme.base.format"
local outcome = require "mneme.runs.outcome"
local outcomes_table = require "mneme.reports.outcomes_table"
local next_step = require "mneme.base.next_step"
local reference = require "mneme.envs.reference"
local run_folder = require "mneme.runs.folder"
local stats = require "mneme.stats"
local C = engine.C

local eval = {}

-- ---- the command line ----

local command = { name = "eval", draws = "all environments draw from this seed, while each episode of intervene and where has one of its own",
  usage = "mneme eval RUN episodes=1000 [greedy=1] [corridor=200]", other = {},
  whole = { episodes = 1, seed = 0, num_envs = 1, greedy = 0, best = 0, checkpoint = 0, record_every = 1, internals = 0, outcomes = 0 } }
function command.other.record(o, text)
  if text == "" then errors.usage "eval: record= is empty, expected the name of a folder" end
  o.record = text
end
function command.other.out(o, text)
  if not text:find "%.csv$" then errors.usage(("eval: out=%s, expected a file that ends in .csv"):format(text)) end
  o.out = text
end

local function read(words)
  local o, env = arguments.read(command, words, { episodes = 1000, greedy = false, best = false, seed = 12345, record_every = 1,
    internals = false, outcomes = false, folders = {} })
  if o.outcomes and o.checkpoint then
    errors.usage "eval: outcomes=1 takes the newest checkpoint of each run (best=1: the best), expected no checkpoint="
  end
  if #o.folders > 1 and not o.outcomes then
    errors.usage(("eval: one run, got '%s' and '%s'"):format(o.folder, o.folders[2]),
      ("one after the other; mneme compare %s %s compares them"):format(o.folder, o.folders[2]))
  end
  if o.out and not o.outcomes then errors.usage "eval: out=FILE.csv goes with outcomes=1" end
  if o.outcomes and o.record then errors.usage "eval: outcomes=1 and record= do not go together" end
  if o.internals and not o.record then errors.usage "eval: internals=1 goes with record=FOLDER" end
  return o, env
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
  local function check(path)
    run_folder.read_info(path)
    arguments.check_settings(command, path, env)
  end
  local text, csv = outcomes_table.make(o, env, check)
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

---@param words string[]
---@return integer status
function eval.main(words)
  local o, env = read(words)
  if o.outcomes then return tabulate(o, env) end
  if run_folder.read_info(o.folder).sequence_task then return require("mneme.commands.eval_sequences").main(words) end
  local num_envs = o.num_envs or math.min(o.episodes, 64)
  arguments.check(command, o, env, "to play")
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
  local draw = out.scored and memory_story.draw(out.outcomes)
  if draw then print("        " .. draw) end
  local ended = outcome.read(o.folder)
  if ended and ended.ended == "stop_score" and ended.results.score then
    print(("        training first reached %.3f at step %s, and stopped"):format(ended.results.score, numbers.grouped(ended.step)))
  end
  line("return  %.3f", "  +- %.3f", out.ret)
  line("length  %.1f", "  +- %.1f", out.length)
  if album then print(("%d episodes in %s"):format(album.written, o.record)) end
  if album and album.written > 0 then next_step.say { "view", o.record .. "/episode-0.mnt" }
  elseif status == 0 then next_step.say({ "intervene", o.folder, "erase=all", "at=1" }, { "compare", o.folder }) end
  return status
end

return eval
