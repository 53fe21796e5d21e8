-- validation.lua -- evaluates a model on a part of the data set that it is not trained on: accuracy, loss, perplexity
-- and bits per character, each with a 95 % interval.  Answers within a sequence are dependent, so the sequence (for a
-- text: its part in one batch) is the sampling unit of the intervals.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local plan = require "mneme.tensor.plan"
local ranks = require "mneme.tensor.ranks"
local stats = require "mneme.stats"
local tensor = require "mneme.tensor.tensor"
local C, check, ops = engine.C, engine.check, tensor.ops
local FIELDS = 3                   -- of a group: nats, right, asked

local validation = {}

---@class HeldOut
local HeldOut = {}
HeldOut.__index = HeldOut

---@param options { split: string, carry: boolean, whole: boolean? } carry: the state is carried from batch to batch of a text;
---  whole: no signal ends it early, since a part would pass for the result
---@return HeldOut
function validation.new(dataset, model, options)
  local self = setmetatable({ dataset = dataset, model = model, split = options.split, batch = dataset:buffers(),
    carry = dataset.carried and options.carry, whole = options.whole, came = ffi.new("double[?]", dataset.classes) }, HeldOut)
  self.start, self.state = model.core:initial(dataset.batch, dataset.first), model.core:initial(dataset.batch)
  self.plan = plan(function(token, answer, asked, done, state)
    local logits, after = tensor.off_tape(model, token, done, state)
    local _, nats, right = ops.cross_entropy { logits = logits, target = answer, asked = asked }
    return nats, right, after
  end)
  return self
end

-- What every sequence of a batch cost, and how often each answer came.
local function collect(self, nats, right, groups)
  local T, B, asked, answer = self.dataset.length, self.dataset.batch, self.batch.asked:data(), self.batch.answer:data()
  for b = 0, B - 1 do
    local g = { nats = 0, right = 0, asked = 0 }
    for i = b, (T - 1) * B + b, B do
      if asked[i] == 1 then
        g.nats, g.right, g.asked = g.nats + nats[i], g.right + right[i], g.asked + 1
        self.came[answer[i]] = self.came[answer[i]] + 1
      end
    end
    groups[#groups + 1] = g
  end
end

-- The groups of all ranks, in the order in which one process would have met them; and how often answers came.
local function gather(self, groups)
  if ranks.size == 1 then return groups end
  local n, B, all = #groups * FIELDS, self.dataset.batch, {}
  local mine, everyone = ffi.new("double[?]", n), ffi.new("double[?]", n * ranks.size)
  for i, g in ipairs(groups) do
    local p = mine + (i - 1) * FIELDS
    p[0], p[1], p[2] = g.nats, g.right, g.asked
  end
  check(C.mn_ranks_gather(engine.ctx, mine, everyone, 8 * n, true))
  for batch = 0, #groups / B - 1 do
    for r = 0, ranks.size - 1 do
      for b = 0, B - 1 do
        local p = everyone + r * n + (batch * B + b) * FIELDS
        all[#all + 1] = { nats = p[0], right = p[1], asked = p[2] }
      end
    end
  end
  ranks.sum(self.came, self.dataset.classes)
  return all
end

-- Half the 95 % interval of sum(key) / sum(asked) over groups (the ratio estimator); nil of one group.
local function half_interval(groups, key, ratio, asked)
  local n, square = #groups, 0
  for _, g in ipairs(groups) do square = square + (g[key] - ratio * g.asked) ^ 2 end
  return n > 1 and stats.student_quantile(0.975, n - 1) * math.sqrt(square * n / (n - 1)) / asked or nil
end

---Evaluate `batches` batches, from the first; no more than the part has.
---@return table { loss, loss_half, accuracy, accuracy_low, accuracy_high, asked, sequences, perplexity, commonest (the
---  accuracy of always giving the most frequent answer), bits_per_character (nil if unknown) }; of fewer
---  batches where a signal came; halves and ends of intervals are nil of a single sequence
function HeldOut:run(batches)
  local dataset, batch, groups = self.dataset, self.batch, {}
  tensor.keep(self.start, self.state)
  ffi.fill(self.came, 8 * dataset.classes)
  local module = self.model.module
  local trains = module.training
  module:eval()
  for n = 0, math.min(batches, dataset:batches(self.split)) - 1 do
    dataset:fill(batch, self.split, n)
    local nats, right, after = self.plan(batch.token, batch.answer, batch.asked, batch.done, self.state)
    if self.carry then tensor.keep(after, self.state) end
    collect(self, nats:data(), right:data(), groups)
    if not self.whole and ranks.most(C.mn_interrupted()) ~= 0 then break end
  end
  module:train(trains)
  groups = gather(self, groups)
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
  out.commonest = 0
  for c = 0, dataset.classes - 1 do out.commonest = math.max(out.commonest, self.came[c] / asked) end
  out.perplexity = math.exp(out.loss)
  local part = dataset.carried and dataset.parts[self.split]
  if part and part.characters then
    out.bits_per_nat = part.count / part.characters / math.log(2)
    out.bits_per_character = out.loss * out.bits_per_nat
  end
  return out
end

return validation
