-- ghost.lua -- the agent of a run that plays the episode which a person plays: the same start, the same random numbers of the
-- environment, one step for each of theirs.
local ghost = {}

---@class Ghost
---@field name string the agent
---@field rewards number[] of each step so far
---@field actions string[] likewise
---@field ret number the sum of the rewards
---@field outcome table? { score, ret, length }, where its episode has ended
local Ghost = {}
Ghost.__index = Ghost

---@param stepper Stepper of the run, with one environment
---@return Ghost
function ghost.new(stepper)
  return setmetatable({ stepper = stepper, name = stepper.agent.core.name or "the agent", rewards = {}, actions = {}, ret = 0 }, Ghost)
end

---Begin an episode.
---@param start string env:save of the person's environment, before its first step
function Ghost:begin(start)
  local s = self.stepper
  s:restart(nil, 1)
  s.env:restore(0, start, s:observations())
  self.rewards, self.actions, self.ret, self.outcome = {}, {}, 0, nil
end

---One step, unless its episode has ended.
function Ghost:move()
  local s = self.stepper
  if self.outcome then return end
  s:forward()
  local now, space = s:snapshot(0), s.env.action_space
  s:step()
  local n = #self.rewards + 1
  self.rewards[n], self.actions[n], self.ret = s.reward[0], space:words(now.did or now.action), self.ret + s.reward[0]
  if s.done[0] ~= 0 then
    self.outcome = s.env:outcome(0)
  end
end

local MOST = 1e5                               -- steps of an episode that no time limit ends

---Play on to the end of the episode.
---@return table? outcome nil: it does not end
function Ghost:finish()
  while not self.outcome and #self.rewards < MOST do self:move() end
  return self.outcome
end

---What a page shows of it.
---@param open boolean? its actions too, which a person who still plays may not see
---@return table { name, rewards, ret, outcome, actions? }
function Ghost:shown(open)
  local copy = { name = self.name, rewards = {}, ret = self.ret, outcome = self.outcome, actions = open and self.actions or nil }
  for i, reward in ipairs(self.rewards) do copy.rewards[i] = reward end
  return copy
end

return ghost
