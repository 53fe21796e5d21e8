-- supervised.lua -- supervised training on sequences: tokens in, answers out, cross-entropy; one plan per update.
-- Four things that are easily confused have separate settings: `carry` (is the
-- state carried from one batch of a text to the next?), the data set's resets (done = 1 where a sequence begins), the
-- data set's `length`, the steps of a batch and the reach of its gradients, and the core's own settings,
-- which decide how far its memory reaches.
local ffi = require "ffi"
local agent = require "mneme.models.agent"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local errors = require "mneme.base.errors"
local extra_losses = require "mneme.learn.extra_losses"
local initial_parameters = require("mneme.base.lazy") "mneme.learn.initial_parameters"
local validation = require "mneme.learn.validation"
local learner_settings = require "mneme.runs.learner_settings"
local optim = require "mneme.tensor.optim"
local plan = require "mneme.tensor.plan"
local format = require("mneme.base.lazy") "mneme.base.format"
local ranks = require "mneme.tensor.ranks"
local tensor = require "mneme.tensor.tensor"
local trainer = require "mneme.learn.trainer"
local setting_types = require "mneme.base.setting_types"
local ops = tensor.ops
local sums = ffi.new "double[2]"

---@class Supervised
---@field losses table<string, number> of the last update
---@field cfg table
---@field dataset SequenceTask
---@field model SequenceModel
local Supervised = {}
Supervised.__index = Supervised

local defaults = {
  lr = 1e-3, lr_schedule = "constant", warmup = 0, beta1 = 0.9, beta2 = 0.999, adam_eps = 1e-8, weight_decay = 0,
  max_norm = 1, carry = true, eval_every = 1e5, eval_batches = 16, stop_score = -1,
}

-- What is minimised, for reports.
local objective = [[
Each step of AdamW minimises the cross-entropy over the asked positions of a batch

$$L = -\frac{1}{N} \sum_n \log p_{\theta}(y_n | x_{\le n})$$

with gradients clipped to the norm max_norm.]]

-- This rank's share of a batch.
local function share(dataset)
  local batch, B = dataset.batch, dataset.batch / ranks.size
  if B % 1 ~= 0 then errors.usage(("supervised: batch=%d cannot be shared out evenly among %d ranks"):format(batch, ranks.size)) end
  if ranks.size > 1 then dataset:keep(ranks.rank * B, B) end
  return batch
end

---A learner of labelled sequences: cross-entropy, with a validation part.
---@param cfg table learner keys (lr lr_schedule warmup beta1 beta2 adam_eps weight_decay max_norm carry eval_every
---  eval_batches stop_score) and the run's; eval_every counts tokens; training ends where the accuracy on the
---  validation part reaches stop_score
---@param dataset SequenceTask mn.dataset(...)
---@param model SequenceModel mn.sequence_model { dataset = dataset, core = core }
---@return Supervised
local function new(cfg, dataset, model)
  errors.need("supervised: data set", dataset, "buffers", "mn.dataset(...)")
  errors.need("supervised: model", model, "core", "mn.sequence_model { dataset = dataset, core = core }")
  local self = setmetatable({ cfg = cfg, dataset = dataset, model = model, updates = 0, evaluated = 0 }, Supervised)
  if trainer.instead then
    trainer.instead(self)
    return self
  end
  for key, value in pairs(learner_settings.read("supervised", cfg, defaults)) do self[key] = value end
  self.read, self.losses, self.divides_batch = {}, {}, true
  if (cfg.init or "") .. (cfg.init_map or "") .. (cfg.freeze or "") ~= "" then initial_parameters.settle(self) end
  self.each = dataset.length * share(dataset)
  self.batch, self.state = dataset:buffers(), model.core:initial(dataset.batch)
  if ranks.size > 1 then self.weight = tensor.new { 1 } end
  self.optimiser = optim.adamw(model:parameters(), { lr = self.lr, beta1 = self.beta1, beta2 = self.beta2,
    eps = self.adam_eps, max_norm = self.max_norm, weight_decay = self.weight_decay })
  self.learn = plan(function() return self:loss_and_step() end)
  self.valid = validation.new(dataset, model, { split = "valid", carry = self.carry, whole = true })
  return self
end

---What the update plan records.
---@return Tensor loss
function Supervised:loss_and_step()
  local batch = self.batch
  self.optimiser:zero_grad()
  local logits, after = self.model(batch.token, batch.done, self.state)
  local loss, _, right = ops.cross_entropy { logits = logits, target = batch.answer, asked = batch.asked }
  if self.weight then loss = loss * self.weight end
  loss:backward()
  extra_losses.check_trained(self)
  self.optimiser:apply()
  self.read.loss, self.right, self.after = loss:data(), right:data(), after
  return loss
end

---Begin, or begin again: the memory is empty.
function Supervised:begin()
  tensor.keep(self.model.core:initial(self.dataset.batch, self.dataset.first), self.state)
end

-- How much this rank's part counts in the mean over all that is asked.
local function weigh(self)
  local asked, mine = self.batch.asked:data(), 0
  for i = 0, self.dataset.length * self.dataset.batch - 1 do mine = mine + asked[i] end
  sums[0] = mine
  ranks.sum(sums, 1)
  self.weight:data()[0] = sums[0] > 0 and mine * ranks.size / sums[0] or 1
end

local function evaluate(self)
  self.whole, self.result = self.each, nil
  self.evaluated, self.result = self.updates * self.each, self.valid:run(self.eval_batches)
  self.whole = nil
end

---One update with the next batch, and an evaluation where one is due.
---@return integer tokens
---@return boolean fine false where the loss or the gradient is not finite
function Supervised:advance()
  local step = self.updates * self.each
  self.whole = 0
  self.dataset:fill(self.batch, "train", self.updates)
  self.whole = nil
  if self.weight then weigh(self) end
  self.updates = self.updates + 1
  self.optimiser:tick(learner_settings.schedule.rate(self, self.updates, step, self.cfg.steps, self.starts, self.each))
  if self.learn.recorded then self.learn:run() else self.learn() end
  if self.dataset.carried and self.carry then tensor.keep(self.after, self.state) end
  step = step + self.each
  ranks.means(self.read, self.losses)
  local fine = trainer.is_finite(self.losses.loss, self.optimiser:grad_norm())
  if fine and (step - self.evaluated >= self.eval_every or step >= (self.cfg.steps or math.huge)) then evaluate(self) end
  return self.each, fine
end

---Does the validation part's accuracy reach stop_score?
---@return boolean
function Supervised:over()
  return self.stop_score >= 0 and self.result ~= nil and self.result.accuracy >= self.stop_score
end

-- ---- methods that the trainer calls ----

---What config.json says of model and data set.
---@return table
function Supervised:describe()
  local core = self.model.core
  local dataset, sized = self.dataset, core.sized or {}
  return { size = sized.size, size_why = sized.why, script_core = sized.script and sized.script[1], script_parameters = self.model.script_parameters,
    sequence_task = { name = dataset.name, settings = dataset.settings, tokens = dataset.tokens, classes = dataset.classes,
      vocabulary = dataset.vocabulary },
    memory = { carry = self.carry, length = dataset.length }, max_norm = self.max_norm,
    learner = { name = "supervised", config = learner_settings.of(self, defaults) },
    core = { name = core.file or core.name, config = core.config }, own_words = agent.own_words(core.config or {}), parameters = self.model.module:count() }
end

---One line: which model, on what.
---@return string
function Supervised:headline()
  local instead = self.dataset.instead
  return ("%s on %s%s, %d parameters"):format(self.model.core.name, self.dataset.name,
    instead and (" (%s: the package fortunes is not installed)"):format(instead:match "[^/]*$") or "", self.model.module:count())
end

---All that a checkpoint holds: { name, tensor }, in order.
---@return table[]
function Supervised:contents()
  local list = self.optimiser:contents()
  if self.dataset.carried then
    local core = self.model.core
    for _, name in ipairs(core:state_names()) do
      list[#list + 1] = { "state." .. name, self.state[name], batch_axis = core:batch_axis(name) }
    end
  end
  self.model.module:each(function(name, t) list[#list + 1] = { name, t } end, "model.")
  return list
end

---Its data set has failed, in a batch or in an evaluation: what a checkpoint holds is that after the last update.
---@return integer? steps of that update that the trainer does not know of; nil: an update broke off
function Supervised:undo() return self.whole end

---What a checkpoint holds besides tensors.
---@return table
function Supervised:counters()
  return { updates = self.updates, evaluated = self.evaluated, result = self.result, unmeasured = (self.whole or 0) > 0 or nil }
end

---Go on from a checkpoint, whose tensors are in place.
---@param checkpoint table
function Supervised:restored(checkpoint)
  local c, path = checkpoint.counters, checkpoint.path
  self.updates, self.evaluated = checkpoint_files.whole(path, "updates", c.updates), checkpoint_files.whole(path, "evaluated", c.evaluated)
  if c.result ~= nil and type(c.result) ~= "table" then errors.fail(path .. ": damaged: its result is not a table") end
  self.result = c.result
  for key, value in pairs(c.result or {}) do                                           -- a perplexity may be "Infinity"
    c.result[key] = type(key) == "string" and tonumber(value) or errors.fail(("%s: damaged: %s of its result"):format(path, setting_types.show(key)))
  end
end

-- The share of right answers in the last batch.
local function batch_accuracy(self)
  local asked = self.batch.asked:data()
  sums[0], sums[1] = 0, 0
  for i = 0, self.dataset.length * self.dataset.batch - 1 do sums[0], sums[1] = sums[0] + self.right[i], sums[1] + asked[i] end
  ranks.sum(sums, 2)
  return sums[0] / sums[1]
end

---The numbers of a line of metrics.jsonl.
---@param m table<string, number> to fill
function Supervised:metrics(m)
  m["losses/loss"], m["charts/accuracy"] = self.losses.loss, batch_accuracy(self)
  self.part_names = self.part_names or self.model.module:parts()
  self.optimiser:metrics(m, self.part_names)
  for _, key in ipairs(self.result and { "loss", "accuracy", "perplexity", "bits_per_character" } or {}) do
    m["eval/" .. key] = self.result[key]
  end
end

---What the progress bar shows.
---@return table
function Supervised:shown()
  return { accuracy = self.result and self.result.accuracy, loss = self.losses.loss }
end

---The best checkpoint is the one with the smallest loss on the validation part, of those that were measured.
---@return number?
function Supervised:best() return self.result and self.evaluated == self.updates * self.each and -self.result.loss or nil end
---Its plans, { name, plan }: for profile=1 and the search for a NaN.
---@return table[]
function Supervised:plans() return { { "learn", self.learn }, { "valid", self.valid.plan } } end
---What was not finite first: the op and its tensor.
---@return string
function Supervised:find_nan() return self.learn:find_nan() or "the loss is not finite" end

---How it ended: a line, and the same as a table.
---@return string
---@return table
function Supervised:summary()
  if self.updates * self.each >= (self.cfg.steps or math.huge) and self.evaluated < self.updates * self.each then evaluate(self) end
  local r = self.result
  if not r then return "no evaluation yet", {} end
  local bits = r.bits_per_character and (", %.3f bits per character"):format(r.bits_per_character) or ""
  local guess = r.commonest and (" (the most frequent answer gives %s)"):format(format.short(r.commonest)) or ""
  return ("on the validation part accuracy %.3f%s, loss %.4f%s"):format(r.accuracy, guess, r.loss, bits),
    { accuracy = r.accuracy, commonest = r.commonest, loss = r.loss, perplexity = r.perplexity, bits_per_character = r.bits_per_character }
end

---Train to cfg.steps tokens: run folder, log, checkpoints, progress, Ctrl-C.
---@return table { path, steps, accuracy, commonest, loss, perplexity, bits_per_character }
function Supervised:train() return trainer.train(self) end

return { new = new, defaults = defaults, objective = objective }
