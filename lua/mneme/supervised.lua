-- supervised.lua -- learning sequences: tokens in, answers out, cross-entropy between; one plan an update.
-- The four things that are easily mistaken for each other are settings with names of their own: `carry` (does the
-- memory go on from one batch of a text to the next?), the task's resets (done = 1 where a sequence begins), and the
-- task's `length`, which is both what one batch holds and how far back gradients go; how far a memory reaches within
-- or beyond it is the core's own setting.
local errors = require "mneme.errors"
local held_out = require "mneme.held_out"
local learner_keys = require "mneme.learner_keys"
local optim = require "mneme.optim"
local plan = require "mneme.plan"
local schedule = require "mneme.schedule"
local tensor = require "mneme.tensor"
local trainer = require "mneme.trainer"
local ops = tensor.ops

---@class Supervised
local Supervised = {}
Supervised.__index = Supervised

local defaults = {
  lr = 1e-3, lr_schedule = "constant", warmup = 0, beta1 = 0.9, beta2 = 0.999, adam_eps = 1e-8, weight_decay = 0,
  max_norm = 1, carry = true, eval_every = 1e5, eval_batches = 16,
}

---@param cfg table learner keys (lr lr_schedule warmup beta1 beta2 adam_eps weight_decay max_norm carry eval_every
---  eval_batches stop_score) and the run's; eval_every counts tokens; training ends where the accuracy on the
---  validation part reaches stop_score
---@param task SequenceTask mn.task(...)
---@param model SequenceModel mn.sequence_model { task = task, core = core }
---@return Supervised
local function new(cfg, task, model)
  errors.need("supervised: task", task, "buffers", "mn.task(...)")
  errors.need("supervised: model", model, "core", "mn.sequence_model { task = task, core = core }")
  local self = setmetatable({ cfg = cfg, task = task, model = model, updates = 0, evaluated = 0 }, Supervised)
  for key, value in pairs(learner_keys.read("supervised", cfg, defaults)) do self[key] = value end
  self.each = task.length * task.batch
  self.batch, self.state = task:buffers(), model.core:initial(task.batch)
  self.optimiser = optim.adamw(model:parameters(), { lr = self.lr, beta1 = self.beta1, beta2 = self.beta2,
    eps = self.adam_eps, max_norm = self.max_norm, weight_decay = self.weight_decay })
  self.learn = plan(function() return self:loss_and_step() end)
  self.valid = held_out.new(task, model, { split = "valid", carry = self.carry })
  return self
end

-- What the update plan records.
function Supervised:loss_and_step()
  local batch = self.batch
  self.optimiser:zero_grad()
  local logits, after = self.model(batch.token, batch.done, self.state)
  local loss, _, right = ops.cross_entropy { logits = logits, target = batch.answer, asked = batch.asked }
  loss:backward()
  self.optimiser:apply()
  self.loss, self.right, self.after = loss:data(), right:data(), after
  return loss
end

---Begin, or begin again: the memory is empty.
function Supervised:begin()
  tensor.keep(self.model.core:initial(self.task.batch), self.state)
end

---One update with the next batch, and an evaluation where one is due.
---@return integer tokens
---@return boolean fine false where the loss or the gradient is not finite
function Supervised:advance()
  local step = self.updates * self.each
  self.task:fill(self.batch, "train", self.updates)
  self.updates = self.updates + 1
  self.optimiser:tick(schedule.rate(self, self.updates, step, self.cfg.steps))
  if self.learn.recorded then self.learn:run() else self.learn() end
  if self.task.carried and self.carry then tensor.keep(self.after, self.state) end
  step = step + self.each
  local loss, norm = self.loss[0], self.optimiser:grad_norm()
  local fine = loss - loss == 0 and norm - norm == 0
  if fine and (step - self.evaluated >= self.eval_every or step >= (self.cfg.steps or math.huge)) then
    self.evaluated, self.result = step, self.valid:run(self.eval_batches)
  end
  return self.each, fine
end

---Does the validation part's accuracy reach cfg.stop_score?
function Supervised:over()
  local stop = self.cfg.stop_score
  return stop ~= nil and self.result ~= nil and self.result.accuracy >= stop
end

-- ---- what the trainer asks ----

function Supervised:describe()
  local core = self.model.core
  local task = self.task
  return { sequence_task = { name = task.name, settings = task.settings, tokens = task.tokens, classes = task.classes,
      vocabulary = task.vocabulary },
    memory = { carry = self.carry, length = task.length }, max_norm = self.max_norm,
    core = { name = core.name, config = core.config }, parameters = self.model.module:count() }
end

function Supervised:headline()
  return ("%s on %s, %d parameters"):format(self.model.core.name, self.task.name, self.model.module:count())
end

function Supervised:contents()
  local list = self.optimiser:contents()
  if self.task.carried then
    for _, name in ipairs(self.model.core:state_names()) do list[#list + 1] = { "state." .. name, self.state[name] } end
  end
  self.model.module:each(function(name, t) list[#list + 1] = { name, t } end, "model.")
  return list
end

function Supervised:counters() return { updates = self.updates, evaluated = self.evaluated, result = self.result } end

function Supervised:restored(checkpoint)
  local c = checkpoint.counters
  self.updates, self.evaluated, self.result = c.updates, c.evaluated, c.result
end

-- The share of right answers in the last batch.
local function batch_accuracy(self)
  local asked, right, count = self.batch.asked:data(), 0, 0
  for i = 0, self.each - 1 do right, count = right + self.right[i], count + asked[i] end
  return right / count
end

function Supervised:metrics(m)
  m["losses/loss"], m["charts/accuracy"] = self.loss[0], batch_accuracy(self)
  self.optimiser:metrics(m, self.model.module:parts())
  for _, key in ipairs(self.result and { "loss", "accuracy", "perplexity", "bits_per_character" } or {}) do
    m["eval/" .. key] = self.result[key]
  end
end

function Supervised:shown()
  return { accuracy = self.result and self.result.accuracy, loss = self.loss and self.loss[0] }
end

---The best checkpoint is the one with the smallest loss on the validation part.
function Supervised:best() return self.result and -self.result.loss end
function Supervised:plans() return { { "learn", self.learn }, { "valid", self.valid.plan } } end
function Supervised:find_nan() return self.learn:find_nan() or "the loss is not finite" end

function Supervised:summary()
  local r = self.result
  if not r then return "no evaluation yet", {} end
  local bits = r.bits_per_character and (", %.3f bits per character"):format(r.bits_per_character) or ""
  return ("on the validation part accuracy %.3f, loss %.4f%s"):format(r.accuracy, r.loss, bits),
    { accuracy = r.accuracy, loss = r.loss, perplexity = r.perplexity, bits_per_character = r.bits_per_character }
end

---Train to cfg.steps tokens: run folder, log, checkpoints, progress, Ctrl-C.
function Supervised:train() return trainer.train(self) end

return { new = new, defaults = defaults }
