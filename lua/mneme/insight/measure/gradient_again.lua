-- gradient_again.lua -- the gradient of a learner's loss once more, without a step: nothing of the training changes, the generator of dropout neither.
local engine = require "mneme.base.engine"
local plan = require "mneme.tensor.plan"
local random = require "mneme.tensor.random"
local tensor = require "mneme.tensor.tensor"

-- An object with some fields of its own; what it kept of an earlier recording (`run_again`) is not its own.
local function over(object, own)
  local function inherited(_, key) if key ~= "run_again" then return object[key] end end
  return setmetatable(own, { __index = inherited, __call = function(_, ...) return object(...) end })
end

---@param learner OnPolicy|Supervised
---@param own table fields in place of the learner's
---@param of_agent table? likewise of its agent, if it has one
---@param first function? what is recorded before the loss
---@return function run leaves the gradient in the parameters
return function(learner, own, of_agent, first)
  own.read, own.optimiser = {}, over(learner.optimiser, { apply = function() end })
  own.agent = of_agent and learner.agent and over(learner.agent, of_agent) or nil
  local it, drawn = over(learner, own), nil
  local again = plan(function()
    if first then first() end
    it:loss_and_step()
  end)
  return function()
    drawn = random.state() and tensor.keep(random.state(), drawn)
    if again.recorded then again:run() else again() end
    if drawn then random.set_state(drawn) end
    engine.wait()
  end
end
