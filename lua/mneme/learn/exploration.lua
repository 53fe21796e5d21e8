-- exploration.lua -- epsilon-greedy acting of learners of Q: the share of random actions falls along a line from epsilon_start to epsilon_end.
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local exploration = {}

---Sets the share of random actions, learner.epsilon[0], for a step of the training.
---@param learner table with epsilon_start, epsilon_end and epsilon_decay: over which share of the training it falls
function exploration.set(learner, step)
  local done = learner:share_done(step)
  if not done and learner.epsilon_start ~= learner.epsilon_end then
    errors.raise(learner.what .. ": epsilon_decay needs to know how long training is: cfg has no steps")
  end
  local left = learner.epsilon_decay > 0 and math.max(0, 1 - (done or 1) / learner.epsilon_decay) or 0
  engine.wait()
  learner.epsilon_at = learner.epsilon_at or learner.epsilon:data()
  learner.epsilon_at[0] = learner.epsilon_end + (learner.epsilon_start - learner.epsilon_end) * left
end

return exploration
