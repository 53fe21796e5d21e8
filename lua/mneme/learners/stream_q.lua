-- stream_q.lua -- stream Q(lambda): learner=stream (stream.lua) with one network, of Q, in place of policy and value (Elsayed, Vasan and Mahmood 2024,
-- arXiv 2410.14606; Watkins 1989, as Sutton and Barto 2018, 12.10, have it).  Actions are the largest Q, and with probability epsilon any.
--   delta = r + gamma max Q(s', .) - Q(s, a)      both by the parameters of this step; 0 for Q(s', .) where an episode ended
--   the trace ends before a step whose action is not the largest Q: what came before does not lead there by the policy that is learned
--   the trace takes in grad Q(s, a), then the parameters move by obgd (learn/obgd.lua)
local define = require("mneme.learn.learners").define
local stream = require("mneme.learn.learners").find "stream"
local tensor = require "mneme.tensor.tensor"

---@class StreamQ: Stream
local StreamQ = {
  base = stream, acts = "values", without = { "entropy_coef", "kappa_value" },
  doc = "stream Q(lambda): learns the value of actions at every step, with traces and bounded steps",
  source = "Elsayed, Vasan and Mahmood 2024, arXiv 2410.14606; traces: Watkins 1989",
  objective = [[
After every step the parameters move along a trace of Q, which is cleared before an action that is not the largest Q and where an episode ends,

$$\delta = r + \gamma \max_{a'} Q(s', a') - Q(s, a), \quad z \leftarrow \gamma \lambda z + \nabla Q(s, a), \quad
w \leftarrow w + \frac{\alpha}{\max(1, \max(|\delta|, 1) \alpha \kappa \|z\|_1)} \delta z$$

Here $\alpha$ is lr and $\kappa$ kappa. Actions are the largest Q, and with probability epsilon any.]],
  config = { kappa = 2, epsilon_start = 1, epsilon_end = 0.01, epsilon_decay = 0.05 },
}

---What the parameters rise along, for one step of one stream.
---@param step table see Stream.loss
---@return Tensor Q of what was done, one number
function StreamQ.loss(_, step) return (tensor.ops.pick(step.logits, step.actions):sum()) end

---One network: all that leads to Q.
function StreamQ:networks() return { { name = "q", parameters = self:parameters_of(1), kappa = self.kappa } } end

---Q of what stream b did, whose trace begins there where that was not the largest.
function StreamQ:predicted(b)
  local at = self.pieces[1].at
  local q = at.logits[b * self.agent.actions + at.actions[b]]
  if q < at.values[b] then self.optimiser:clear(b) end
  return q
end

return define(StreamQ)
