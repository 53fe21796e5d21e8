-- gradient_error.lua -- how far the gradient of a batch in precision=bf16 is from that in fp32, while an agent or a model learns.
-- After an update the loss of its batch is recorded once more, without a step of the optimiser, and run in both precisions from the parameters as
-- they are then; training itself keeps its bits.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local gradient_again = require "mneme.insight.measure.gradient_again"

local gradient_error = {}

-- Sums of (x - y)^2 and x^2.
local function squares(x, y, n)
  local off, all = 0, 0
  for i = 0, n - 1 do off, all = off + (x[i] - y[i]) ^ 2, all + x[i] ^ 2 end
  return off, all
end

---A measurement of a learner; call it after an update.
---@param learner OnPolicy|Supervised of mn.learner or mn.supervised
---@param emulate string? of precision=bf16: "0", "1", "amx"; by default cfg.emulate
---@return fun(): number? relative |g of bf16 - g of fp32| / |g of fp32|, over all parameters; nil: no update was made, or the gradient is 0
function gradient_error.of(learner, emulate)
  if learner.lanes then errors.usage("gradient_error: " .. learner.what .. " has no batch, whose gradient this is: it learns from each step alone",
    "learner=pqn, learner=a2c") end
  local own, slow, parameters = learner.cfg.precision or "fp32", learner.cfg.emulate or "0", learner.optimiser.parameters
  -- Neither acting's activations nor those of its own update serve, which are of one precision.
  local again, kept = gradient_again(learner, {}, { acts_apart = function() return true end }), {}
  local function precision(word, how) engine.check(engine.C.mn_set_precision(engine.ctx, word, word == "bf16" and how or "0")) end
  for i, p in ipairs(parameters) do kept[i] = ffi.new("float[?]", p:size()) end
  return function()
    if learner.optimiser:updates() == 0 then return nil end
    local off, all = 0, 0
    for _, word in ipairs { "bf16", "fp32" } do
      precision(word, emulate or slow)
      again()
      for i, p in ipairs(parameters) do
        if word == "bf16" then ffi.copy(kept[i], p:grad_data(), 4 * p:size())
        else
          local d, s = squares(p:grad_data(), kept[i], p:size())
          off, all = off + d, all + s
        end
      end
    end
    precision(own, slow)
    return all > 0 and math.sqrt(off / all) or nil
  end
end

---Measure along a training: call before learner:train().
---@param learner OnPolicy|Supervised
---@param every integer steps or tokens of training between two measurements; the first is after the first update of the optimiser
---@return { x: number[], y: number[] } series the error over steps, filled while the learner trains
function gradient_error.watch(learner, every)
  local series, measure, advance, step, due = { x = {}, y = {} }, gradient_error.of(learner), learner.advance, 0, 0
  function learner:advance()
    local steps, finite = advance(self)
    step = step + steps
    local error = finite and step >= due and measure()
    if error then
      due = due + every
      series.x[#series.x + 1], series.y[#series.y + 1] = step, error
    end
    return steps, finite
  end
  return series
end

return gradient_error
