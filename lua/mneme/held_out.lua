-- held_out.lua -- how well a model does on the part of a task that it does not learn from: accuracy, loss, perplexity
-- and bits per character, each with a 95 % interval.  Answers of one sequence hang together, so the sequence (for a
-- text: what one batch holds of it) is the unit that intervals are worked out over.
local engine = require "mneme.engine"
local plan = require "mneme.plan"
local stats = require "mneme.stats"
local tensor = require "mneme.tensor"
local C, ops = engine.C, tensor.ops

local held_out = {}

---@class HeldOut
local HeldOut = {}
HeldOut.__index = HeldOut

---@param task SequenceTask
---@param model SequenceModel
---@param options { split: string, carry: boolean } carry: the state goes on from batch to batch of a text
---@return HeldOut
function held_out.new(task, model, options)
  local self = setmetatable({ task = task, model = model, split = options.split, batch = task:buffers(),
    carry = task.carried and options.carry }, HeldOut)
  self.start, self.state = model.core:initial(task.batch), model.core:initial(task.batch)
  self.plan = plan(function(token, answer, asked, done, state)
    local logits, after = tensor.off_tape(model, token, done, state)
    local _, nats, right = ops.cross_entropy { logits = logits, target = answer, asked = asked }
    return nats, right, after
  end)
  return self
end

-- What every sequence of a batch cost.
local function collect(self, nats, right, groups)
  local T, B, asked = self.task.length, self.task.batch, self.batch.asked:data()
  for b = 0, B - 1 do
    local g = { nats = 0, right = 0, asked = 0 }
    for i = b, (T - 1) * B + b, B do
      if asked[i] == 1 then g.nats, g.right, g.asked = g.nats + nats[i], g.right + right[i], g.asked + 1 end
    end
    groups[#groups + 1] = g
  end
end

-- Half the 95 % interval of sum(key) / sum(asked) over groups (the ratio estimator); nil of one group.
local function half_interval(groups, key, ratio, asked)
  local n, square = #groups, 0
  for _, g in ipairs(groups) do square = square + (g[key] - ratio * g.asked) ^ 2 end
  return n > 1 and stats.student_quantile(0.975, n - 1) * math.sqrt(square * n / (n - 1)) / asked or nil
end

---Evaluate `batches` batches, from the first; no more than the part has.
---@param batches integer
---@return table { loss, loss_half, accuracy, accuracy_low, accuracy_high, asked, sequences, perplexity,
---  bits_per_character (nil where tokens do not tell) }; of fewer batches where a signal came; halves and ends of
---  intervals are nil of a single sequence
function HeldOut:run(batches)
  local task, batch, groups = self.task, self.batch, {}
  tensor.keep(self.start, self.state)
  for n = 0, math.min(batches, task:batches(self.split)) - 1 do
    task:fill(batch, self.split, n)
    local nats, right, after = self.plan(batch.token, batch.answer, batch.asked, batch.done, self.state)
    if self.carry then tensor.keep(after, self.state) end
    collect(self, nats:data(), right:data(), groups)
    if C.mn_interrupted() ~= 0 then break end
  end
  local nats, right, asked, most = 0, 0, 0, 0
  for _, g in ipairs(groups) do
    nats, right, asked, most = nats + g.nats, right + g.right, asked + g.asked, math.max(most, g.asked)
  end
  local out = { loss = nats / asked, accuracy = right / asked, asked = asked, sequences = #groups }
  out.loss_half = half_interval(groups, "nats", out.loss, asked)
  if most == 1 then out.accuracy_low, out.accuracy_high = select(2, stats.wilson(right, asked))
  else
    local half = half_interval(groups, "right", out.accuracy, asked)
    if half then out.accuracy_low, out.accuracy_high = math.max(0, out.accuracy - half), math.min(1, out.accuracy + half) end
  end
  out.perplexity = math.exp(out.loss)
  if task.carried and task.characters(self.split) then
    local _, tokens = task.stream(self.split)
    out.bits_per_nat = tokens / task.characters(self.split) / math.log(2)
    out.bits_per_character = out.loss * out.bits_per_nat
  end
  return out
end

return held_out
