-- eval.lua -- `mneme eval`: a trained agent on fresh episodes.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local errors = require "mneme.base.errors"
local engine = require "mneme.base.engine"
local memory_story = lazy "mneme.insight.episodes.memory_story"
local fresh_episodes = lazy "mneme.insight.episodes.fresh_episodes"
local cores = lazy "mneme.models.cores"
local validation = lazy "mneme.learn.validation"
local script_agent = lazy "mneme.learn.script_agent"
local encoder_core = lazy "mneme.models.encoder_core"
local run_sources = lazy "mneme.runs.run_sources"
local stored_parameters = lazy "mneme.learn.stored_parameters"
local sequence_model = lazy "mneme.models.sequence_model"
local dataset = lazy "mneme.envs.dataset"
local stepper = lazy "mneme.insight.episodes.stepper"
local files = require "mneme.base.files"
local layout = require "mneme.base.layout"
local format = require "mneme.base.format"
local outcomes_table = lazy "mneme.lab.reports.outcomes_table"
local next_step = require("mneme.base.terminal").next_step
local reference_scores = lazy "mneme.envs.reference_scores"
local run_folder = lazy "mneme.runs.run_folder"
local stats = lazy "mneme.stats"
local tables = require "mneme.base.tables"

local eval = { name = "eval", doc = "evaluate a trained agent on fresh episodes", others = "env", loads = true,
  draws = "all environments draw from this seed, while each episode of intervene and where has one of its own",
  arguments = { { "folders", "RUN|STUDY", "a run; with outcomes=1 also several, and studies", noun = "run", several = true } }, about = [[
Success, return and length with confidence intervals.  Of a run on sequences: accuracy, loss, perplexity and bits per character on held-out
sequences; length=1024, say, shows how far a memory reaches.]],
  options = options.join(options.episodes(1000), options.common.num_envs, {
    { "seed", "which episodes: all environments draw from one seed, while intervene and where begin episode k with seed + k", type = "whole", default = 12345 },
    unpack(options.agent, 2) }, {
    { "record", "keep the episodes as arrays for NumPy: FOLDER/episode-N.npz", type = "folder", example = "episodes" },
    { "record_every", "with record=: every N-th episode", type = "whole", range = { 1 }, default = 1 },
    { "internals", "with record=: with the agent's memory", type = "switch", default = false },
    { "outcomes", "the share of episodes that reached each outcome of the environment (Craftax: achievements), with intervals, and the Crafter score",
      type = "switch", default = false },
    { "out", "with outcomes=1: the table", type = "file", endings = { "csv" } },
    { "split", "of a run on sequences: the part", type = "choice", choices = { "train", "valid", "test" }, unless = "test" },
    { "batches", "of a run on sequences: batches of the part", type = "whole", range = { 1 }, unless = "2000 sequences, or all", example = "10" },
  }) }

local of_sequences, of_both = { split = true, batches = true }, { best = true, threads = true, use = true, trust = true }

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
  print(format.said(mean, m) .. (high and format.said(half, high - m) or ""))
end

-- outcomes=1
local function tabulate(o, env)
  local csv = {}
  local status, text = engine.heeding(false, outcomes_table.make, o, env, csv, function(path)
    run_folder.read_info(path)
    arguments.check_env(eval, path, env)
  end)
  if not text then return status end
  print(("%s of each run%s; 95 %% intervals: over seeds, of a single run over its episodes"):format(
    format.counted(o.episodes, "episode"), o.greedy and ", greedy" or ""))
  io.stdout:write(layout.table(text))
  if o.out then
    files.write(o.out, { table.concat(csv, "\n") .. "\n" })
    print(o.out)
  end
  return status
end

-- ---- a run on sequences ----

local SEQUENCES = 2000             -- default for data sets that draw their examples

---A run's data set, with settings changed as given, and its model from the newest (or best) checkpoint.
---@param settings table<string, any>
---@return SequenceTask
---@return SequenceModel
---@return number step of the checkpoint
---@return boolean carry was its memory carried from batch to batch?
function eval.load(folder, settings, best)
  local run = run_folder.load(folder)
  local about = run.info
  run_sources.adopt(folder, about, { data = settings.file == nil })
  local made = dataset.new(about.sequence_task.name, tables.merged(about.sequence_task.settings, settings))
  if made.tokens ~= about.sequence_task.tokens or made.classes ~= about.sequence_task.classes then
    errors.usage(("%s was trained with %d tokens and %d answers, these settings make %d and %d"):format(folder,
      about.sequence_task.tokens, about.sequence_task.classes, made.tokens, made.classes))
  end
  if (about.sequence_task.vocabulary or made.vocabulary) ~= made.vocabulary then
    errors.usage(("%s was trained on a text with other tokens"):format(folder),
      "evaluate on the text of the run, or train on this one")
  end
  local encoder = not about.own_words and about.core.name == encoder_core.name and require("mneme.models.encoder").new(about.core.config) or nil
  -- `true`: config.json lists every key of a core, also those without effect.
  local model = about.own_words and script_agent.model(folder, about) or sequence_model.new { dataset = made, encoder = encoder,
    core = not encoder and cores.new(about.core.name, about.core.config, true) or nil }
  local checkpoint = best and run:best() or run:latest()
  if not checkpoint then errors.fail(run:no_checkpoint()) end
  stored_parameters.into(folder, checkpoint, model.module)
  return made, model, checkpoint.step, about.memory.carry
end

-- A line of the result; a single sequence has no interval.
local function value_line(text, value, interval, low, high)
  print(format.said(text, value) .. (low and format.said("  " .. interval, low, high) or ""))
end

-- Accuracy, loss, perplexity and bits per character on held-out sequences.
local function evaluate_sequences(o)
  local split = o.split or "test"
  local made, model, step, carry = eval.load(o.folder, o.env_settings, o.best)
  local held = validation.new(made, model, { split = split, carry = carry })
  local batches = o.batches or made.carried and math.huge or math.ceil(SEQUENCES / made.batch)
  local status, r = engine.heeding(false, held.run, held, batches)
  print(("%s at %.0f tokens, %d sequences of the %s part, %d answers"):format(o.folder, step, r.sequences, split, r.asked))
  local half = r.loss_half
  value_line("accuracy %.4f", r.accuracy, "[%.4f, %.4f]", r.accuracy_low, r.accuracy_high)
  print(("         %.4f for always giving the most frequent answer"):format(r.commonest))
  value_line("loss     %.4f", r.loss, "+- %.4f nats", half)
  value_line("perplexity %.3f", r.perplexity, "[%.3f, %.3f]", half and math.exp(r.loss - half), half and math.exp(r.loss + half))
  if r.bits_per_character then value_line("bits per character %.4f", r.bits_per_character, "+- %.4f", half and half * r.bits_per_nat) end
  return status
end

-- ---- the command ----

function eval.run(o)
  local env = o.env_settings
  check(o)
  if o.outcomes then return tabulate(o, env) end
  local sequences = run_folder.read_info(o.folder).sequence_task ~= nil
  check_kind(o, sequences)
  if sequences then return evaluate_sequences(o) end
  local num_envs = o.num_envs or math.min(o.episodes, 64)
  arguments.check_run(eval, o, "to play")
  local p = stepper.from_run(o.folder, { num_envs = num_envs, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = env, threads_that_pay = not o.threads })
  local album = o.record and require("mneme.insight.episodes.episode_arrays").album(p, { folder = o.record, every = o.record_every,
    episodes = o.episodes, internals = o.internals })
  local status, out = engine.heeding(o.record ~= nil, fresh_episodes.play, p, o.episodes, { album = album })
  local n = #out.score
  if n == 0 then errors.stop(status) end
  local settings = tables.map(tables.keys(env), function(key) return key .. "=" .. env[key] end)
  if p.agent.core.config.sees == "rollout" then settings[#settings + 1] = "core.sees=rollout" end
  print(("%s at %.0f steps, %s%s%s"):format(o.folder, p.steps, format.counted(n, "fresh episode"), p:how_chosen(),
    #settings > 0 and ", " .. table.concat(settings, " ") or ""))
  local guess = out.scored and reference_scores.text(p.env.reference, (stats.mean(out.score)))
  if not out.scored then print "score   not declared"
  else
    local mean, low, high, by_degrees = fresh_episodes.interval(out.score)
    if by_degrees then line("score   %.3f", "  +- %.3f", out.score)
    else print(("success %.3f  [%.3f, %.3f] (Wilson, 95 %%)"):format(mean, low, high)) end
  end
  if guess then print("        " .. guess) end
  local draw = out.scored and memory_story.draw(out.outcomes)
  if draw then print("        " .. draw) end
  local ended = run_folder.outcome.read(o.folder)
  if ended and ended.ended == "stop_score" and ended.results.score then
    print(("        training first reached %.3f at step %s, and stopped"):format(ended.results.score, format.grouped(ended.step)))
  end
  line("return  %.3f", "  +- %.3f", out.ret)
  line("length  %.1f", "  +- %.1f", out.length)
  if album then print(("%s in %s"):format(format.counted(album.written, "episode"), o.record)) end
  if status == 0 then next_step.say({ "intervene", o.folder, "erase=all", "at=1" }, { "compare", o.folder }) end
  return status
end

return eval
