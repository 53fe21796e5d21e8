-- sign.lua -- one of some signs is shown, then nothing: which was it?   mneme run train env=sign.lua env.wait=20
-- What else an environment may have: docs/write-an-environment.md.
return function(settings)
  local wait, signs = settings.wait or 8, settings.signs or 4

  local function look(self)                        -- the sign at the beginning; at the end that it is asked for
    local seen = {}
    for i = 1, signs + 1 do seen[i] = 0 end
    if self.time == 0 then seen[self.sign + 1] = 1 end
    if self.time == wait then seen[signs + 1] = 1 end
    return seen
  end

  return {
    name = "sign", observation = { signs + 1 }, observes = ("sign[%d] asked"):format(signs), actions = signs,
    reset = function(self, random)                 -- self: a new table for each episode
      self.sign, self.time = random(signs) - 1, 0
      return look(self)
    end,
    step = function(self, action)                  -- gives observation, reward, whether it is over, score from 0 to 1
      self.time = self.time + 1
      local over, right = self.time > wait, action == self.sign and 1 or 0
      return look(self), over and right or 0, over, right
    end,
    truth = function(self) return { sign = self.sign, left = wait - self.time } end,
    to_know = { sign = "action@left" },            -- the right action, where 0 steps are left
    chance = 1 / signs, memoryless = 1 / signs, best = 1,
    rules = "Remember the sign that is shown first, and name it when you are asked.",
  }
end
