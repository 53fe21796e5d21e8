-- eval_sequences.lua -- `mneme eval RUN [split=test] [batches=N] [best=1] [length=1024 ...]` for a run of supervised
-- learning: accuracy, loss, perplexity and bits per character on held-out sequences, each with a 95 % interval.  Other
-- keys are settings of the data set: longer sequences show how far a memory reaches.
local C = require("mneme.base.engine").C
local core = require "mneme.models.core"
local errors = require "mneme.base.errors"
local validation = require "mneme.learn.validation"
local rebuild = require "mneme.learn.rebuild"
local reader = require "mneme.models.encoder_core"
local run_folder = require "mneme.runs.folder"
local run_sources = require "mneme.runs.run_sources"
local stored_parameters = require "mneme.learn.stored_parameters"
local sequence_model = require "mneme.models.sequence_model"
local dataset = require "mneme.envs.dataset"

local eval = {}
local SEQUENCES = 2000             -- default for data sets that draw their examples

---A run's data set, with settings changed as given, and its model from the newest (or best) checkpoint.
---@param folder string
---@param settings table<string, any>
---@param best boolean
---@return SequenceTask
---@return SequenceModel
---@return number step of the checkpoint
---@return boolean carry was its memory carried from batch to batch?
function eval.load(folder, settings, best)
  local run = run_folder.load(folder)
  local about, all = run.info, {}
  run_sources.adopt(folder, about, { data = settings.file == nil })
  for key, value in pairs(about.sequence_task.settings) do all[key] = value end
  for key, value in pairs(settings) do all[key] = value end
  local made = dataset.new(about.sequence_task.name, all)
  if made.tokens ~= about.sequence_task.tokens or made.classes ~= about.sequence_task.classes then
    errors.usage(("%s was trained with %d tokens and %d answers, these settings make %d and %d"):format(folder,
      about.sequence_task.tokens, about.sequence_task.classes, made.tokens, made.classes))
  end
  if (about.sequence_task.vocabulary or made.vocabulary) ~= made.vocabulary then
    errors.usage(("%s was trained on a text with other tokens"):format(folder),
      "evaluate on the text of the run, or train on this one")
  end
  local encoder = not about.own_words and about.core.name == reader.name and require("mneme.models.encoder").new(about.core.config) or nil
  -- `true`: config.json lists every key of a core, also those without effect.
  local model = about.own_words and rebuild.model(folder, about) or sequence_model.new { dataset = made, encoder = encoder,
    core = not encoder and core.new(about.core.name, about.core.config, true) or nil }
  local checkpoint = best and run:best() or run:latest()
  if not checkpoint then errors.fail(run:no_checkpoint()) end
  model.module:load_state_dict(stored_parameters.of(checkpoint))
  return made, model, checkpoint.step, about.memory.carry
end

-- A line of the result; a single sequence has no interval.
local function line(text, value, interval, low, high)
  print((text):format(value) .. (low and ("  " .. interval):format(low, high) or ""))
end

---@param o table the options of `mneme eval`
---@return integer status
function eval.run(o)
  local made, model, step, carry = eval.load(o.folder, o.env, o.best)
  local held = validation.new(made, model, { split = o.split or "test", carry = carry })
  local batches = o.batches or made.carried and math.huge or math.ceil(SEQUENCES / made.batch)
  C.mn_watch_signals(true)
  local r = held:run(batches)
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  print(("%s at %.0f tokens, %d sequences of the %s part, %d answers"):format(o.folder, step, r.sequences, o.split, r.asked))
  local half = r.loss_half
  line("accuracy %.4f", r.accuracy, "[%.4f, %.4f]", r.accuracy_low, r.accuracy_high)
  print(("         %.4f for always giving the most frequent answer"):format(r.commonest))
  line("loss     %.4f", r.loss, "+- %.4f nats", half)
  line("perplexity %.3f", r.perplexity, "[%.3f, %.3f]", half and math.exp(r.loss - half), half and math.exp(r.loss + half))
  if r.bits_per_character then line("bits per character %.4f", r.bits_per_character, "+- %.4f", half and half * r.bits_per_nat) end
  return status
end

return eval
