-- test_decisions.lua -- the action that an environment declares as right is right, in every environment that declares one, and what is counted of
-- wrong decisions is what happened.
local t = require "tests.harness"
local ffi = require "ffi"
local right_actions = require "mneme.envs.right_actions"
local envs = require "mneme.envs"
local memory_story = require "mneme.insight.episodes.memory_story"
local mn = require "mneme"
local cue_agent = require "tests.support.cue_agent"
local tensor = require "mneme.tensor.tensor"

-- A sign is shown in the first of three steps; in the last one it is asked for.
local function own(kind, num_envs)
  return mn.env { name = "sign", observation = { 2 }, actions = 3, num_envs = num_envs, to_know = { sign = kind },
    truth = function(self) return { sign = self.sign, left = 2 - self.step } end,
    reset = function(self, random)
      self.sign, self.step = random(3) - 1, 0
      return { self.sign, 0 }
    end,
    step = function(self, action)
      self.step = self.step + 1
      if self.step == 3 then
        local right = action == self.sign and 1 or 0
        return { 0, 0 }, right, true, right
      end
      return { 0, self.step }, 0, false
    end }
end

-- The action that walks to a question, if it is not the last one: to the oracle first, then to the junction.
local function by_the_oracle(truth) return truth.told == 0 and 2 or 0 end
local makers, ahead = {}, { tmaze_passive = by_the_oracle, tmaze_active = by_the_oracle }
for _, about in ipairs(envs.list()) do
  local id = about.name
  local env = envs.new(id, { num_envs = 1 })
  local best = env.reference and env.reference.best or 1
  if right_actions.acting(env.to_know) and best == 1 then makers[id] = function(n) return envs.new(id, { num_envs = n, seed = 3 }) end end
  env:close()
end
makers["an environment of Lua"] = function(n) return own("action@left", n) end

t.test("the environments that ask questions declare the answer", function()
  local n = 0
  for _ in pairs(makers) do n = n + 1 end
  t.ok(n >= 9, n .. " environments")
  t.raises(function() own("actoin", 1) end, "action@FACT")
end)

for id, make in pairs(makers) do
  for _, n in ipairs { 1, 6 } do
    t.test(("%s, %d environment(s): the right action scores 1, another one less"):format(id, n), function()
      for _, wrong in ipairs { false, true } do
        local env = make(n)
        local fact, A = right_actions.acting(env.to_know), env.action_space.n
        local x = tensor.new { shape = { n, unpack(env.observation_space.shape) }, dtype = env.observation_space.dtype }
        local reward, over, cut = ffi.new("float[?]", n), ffi.new("uint8_t[?]", n), ffi.new("uint8_t[?]", n)
        local actions, scores, steps = ffi.new("int32_t[?]", n), {}, 0
        env:reset_raw(x:data(), 3)
        while #scores < n and steps < 4000 do
          for b = 0, n - 1 do
            local truth = env:truth(b)
            local right = right_actions.right(fact, truth, A)
            actions[b] = right and (wrong and (right + 1) % 2 or right) or ahead[id] and ahead[id](truth) or A - 1
          end
          env:step_raw(actions, x:data(), reward, over, cut)
          for b = 0, n - 1 do if over[b] + cut[b] > 0 then scores[#scores + 1] = env:outcome(b).score end end
          steps = steps + 1
        end
        t.ok(#scores >= n, "episodes end")
        for _, score in ipairs(scores) do
          if wrong then t.ok(score < 1, score) else t.eq(score, 1) end
        end
        env:close()
      end
    end)
  end
end

t.test("wrong decisions of an episode: those that were drawn, and the last one alone where one may decide again", function()
  local function entry(right, action, p, left) return { truth = { cue = right, left = left }, action = action, policy = p } end
  local fact = require("mneme.envs.native").fact
  local quiz, turn = fact("cue", "action"), fact("cue", "action@left")
  local list = { entry(0, 1, { 0.6, 0.4 }, 1), entry(1, 0, { 0.7, 0.3 }, 0), entry(1, 0, { 0.2, 0.8 }, 0), entry(-1, 0, { 1, 0 }, 0) }
  local count = right_actions.of_episode(quiz, list, 2)
  t.eq(count.wrong, 3) t.eq(count.drawn, 2) t.eq(count.clear, 1) t.eq(count.first, list[1]) t.eq(count.right, 0)
  count = right_actions.of_episode(turn, list, 2)
  t.eq(count.wrong, 1) t.eq(count.drawn, 1) t.eq(count.clear, 1) t.eq(count.first, nil)
end)

-- The cue agent with actions that are nearly drawn by lot: right ones have more probability.
for _, n in ipairs { 1, 6 } do
  t.test(("what is counted in %d environment(s) is what the episodes were"):format(n), function()
    local p = cue_agent.new(n, { seed = 5 })
    for _, name in ipairs { "actor.1.weight", "actor.1.bias" } do
      local of = p.agent:state_dict()[name]
      for i = 0, of:size() - 1 do of:data()[i] = of:data()[i] / 12 end
    end
    local counter, fact, ended, drawn, failed = right_actions.counter(p), right_actions.acting(p.env.to_know), 0, 0, 0
    local last = {}
    while ended < 60 do
      p:forward()
      counter.note()
      for b = 0, n - 1 do
        local now = p:snapshot(b)
        local right = right_actions.right(fact, p.env:truth(b), 4)
        if right then last[b] = now.action ~= right and now.policy[right] > now.policy[now.action] end
      end
      p:step()
      for b = 0, n - 1 do
        if p.done[b] ~= 0 then
          local count = counter.take(b)
          local w, d = count.wrong, count.drawn
          ended = ended + 1
          local lost = p.env:outcome(b).score < 1
          failed, drawn = failed + (lost and 1 or 0), drawn + d
          t.eq(w, lost and 1 or 0)
          t.eq(d == 1, lost and last[b] or false)
        end
      end
    end
    t.ok(failed > 3 and drawn > 0, failed .. " failures, " .. drawn .. " drawn")
  end)
end

t.test("the draw of actions comes first, in numbers; nothing is said where nothing fails, or nothing is known", function()
  local function said(list)
    local outcomes = {}
    for i, o in ipairs(list) do outcomes[i] = { score = o[1], wrong = o[2], drawn = o[3], clear = o[5] or o[3], greedy = o[4] } end
    return memory_story.draw(outcomes)
  end
  local function numbers(text) return text and table.concat({ text:match "(%d+) of (%d+)" }, "/") end
  t.eq(numbers(said { { 1, 0, 0 }, { 0, 1, 1 }, { 0, 1, 1 }, { 0, 1, 0 } }), "2/3")
  t.eq(numbers(said { { 0.5, 4, 3 }, { 0.2, 6, 0 }, { 1, 0, 0 } }), "3/10")
  t.eq(table.concat({ said({ { 0, nil, nil, 1 }, { 0, nil, nil, 0 }, { 1, nil, nil, 1 } }):match "^(%d+) fail.- (%d+):" }, "/"), "2/1")
  t.ok(said { { 0, 1, 1, 1 }, { 0, 1, 1, 1 }, { 1, 0, 0, 1 } }:find "not the memory")
  t.ok(not said { { 0, 1, 1, 1, 0 }, { 0, 1, 1, 1, 0 }, { 1, 0, 0, 1 } }:find "not the memory", "more, and hardly more")
  t.ok(said { { 0, 0, 0 }, { 1, 0, 0 } }:find "No wrong decision")
  t.eq(said { { 1, 0, 0 }, { 1, 0, 0 } }, nil)
  t.eq(said { { 0 }, { 1 } }, nil)
  t.eq(said { {}, {} }, nil)
end)
