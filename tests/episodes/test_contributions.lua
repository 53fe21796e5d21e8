-- test_contributions.lua -- what the page says of a memory's contributions is so: it is what interventions do, in every core.  What it
-- says of agents that learned: test_one_truth.lua.
local t = require "tests.harness"
local contributions = require "mneme.insight.episodes.contributions"
local frames = require "mneme.insight.episodes.frames"
local interventions = require "mneme.insight.episodes.interventions"
local mn = require "mneme"
local core_rig = require "tests.support.core_rig"

-- A stepper of an untrained small agent, and the frame at the end of its first `steps` steps.
local function play(settings, steps, previous)
  local core = core_rig.fresh(settings, 5, { d_in = 2 ^ 4 + (previous and 5 or 0) })
  mn.manual_seed(5)
  local env = mn.env("tmaze", { corridor = 12, num_envs = 1 })
  local agent = mn.agent { env = env, core = core, hidden = 8, previous = previous }
  local stepper, film, frame = mn.stepper.new(env, agent, { seed = 3, seeded = true }), frames.new(), nil
  for _ = 1, steps do frame = film:add(stepper:next()) end
  return stepper, frame
end

-- The policies of steps `at` .. n - 1 of the same episode, with the same actions, where a part is erased before step `at`; with `before`, an
-- intervention, also its frame (`after`) and the last one (`frame`).
local function erased(stepper, frame, word, at, before)
  local film, list = frames.new(), {}
  stepper:restart(stepper.seed, stepper.seed)
  stepper.acted = false
  local change = interventions.new(stepper, { { kind = "erase", what = word, at = at }, before })
  for i = 1, #frame.history do
    if i > 1 then stepper.env.action_space:put(stepper:acting(), 0, frame.history[i - 1].action) end
    local now = film:add(stepper:next(function() change:before(i - 1, { 0 }) end))
    list[i], list.frame = now.policy, now
    if before and i == before.at + 1 then list.after = now end
  end
  return list
end

-- How far policies of step k move in the direction in which changing all of the memory moves them, as a share of the probability.
local function moved(was, part, all)
  local whole, along, squares = 0, 0, 0
  for a = 1, #was do
    local d = all[a] - was[a]
    whole, along, squares = whole + math.abs(d) / 2, along + d * (part[a] - was[a]), squares + d * d
  end
  return squares > 0 and whole * along / squares or 0
end

for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": without another episode, contributions are what erasing does", function()
    local stepper, frame = play(case.settings, 7, case.settings[1] == "gru" and "action,reward" or nil)
    if not next(stepper.agent.core.states) then
      t.ok(contributions.new(stepper.agent, frame.history).problem:find "no memory")
      return
    end
    local job = contributions.new(stepper.agent, frame.history)
    t.ok(not job.problem and job:work(), job.problem)
    if job.problem then return t.eq(case.settings.sees, "rollout", "what else acts on more than its memory: " .. job.problem) end
    t.eq(#job.columns, 6)
    t.eq(job.rows[1].word, "all")
    local i = 4
    local all = erased(stepper, frame, "all", i - 1)
    for _, r in ipairs { 1, #job.rows } do
      local policies = erased(stepper, frame, job.rows[r].word, i - 1)
      for k = i, 7 do t.near(job.moved[i][r][k], moved(frame.history[k].policy, policies[k], all[k]), 1e-4, job.rows[r].word) end
    end
    local map = job:map()
    t.eq(#map.steps, 6) t.eq(map.steps[3], i - 1)
    t.eq(map.cells[1][3].moved, job.moved[i][1][job:decisive(i)])
    for k = i, 7 do t.ok(job.moved[i][1][k] <= map.cells[1][3].moved + 1e-12) end
  end)

  t.test(case.name .. ": with one, of another cue and the same actions, contributions are what swapping does, both ways", function()
    local stepper, frame = play(case.settings, 7, case.settings[1] == "gru" and "action,reward" or nil)
    if not next(stepper.agent.core.states) or case.settings.sees == "rollout" then return end
    local job = contributions.of_frame(frame)
    t.eq(job.problem, nil)
    local other, mine, core = job.other, frame.history, stepper.agent.core
    for k = 1, #other do t.eq(other[k].action, mine[k].action) end
    t.ok(mine[1].observation.values[0] ~= other[1].observation.values[0] or mine[1].observation.values[1] ~= other[1].observation.values[1], "another cue")
    local i = 4
    -- Policies of an episode from step i on; its memory before that step has parts of the state `theirs`.
    local function run(list, parts, theirs)
      local state, policies, before = core:initial(1), {}, nil
      for k = 1, math.min(7, #list) do
        local entry = list[k]
        if k == i then
          before = mn.keep(state)
          for _, part in ipairs(parts or {}) do interventions.copy(core, { part }, theirs, 0, 1, state, 0, 1) end
        end
        local x, done = mn.tensor { shape = { 1, 1, 16 } }, mn.tensor { shape = { 1, 1 }, dtype = "u8" }
        for j = 0, 15 do x:data()[j] = entry.observation.values[j] end
        done:fill(k == 1 and 1 or 0)
        local previous = stepper.agent:previous_leaves(1, 1)
        for name, t_of in pairs(previous or {}) do
          t_of:fill(name == "action" and (k > 1 and list[k - 1].action or -1) or k > 1 and entry.reward or 0)
        end
        mn.no_grad(function()
          local logits, _, after = stepper.agent:act(x, done, state, nil, previous)
          local p = logits:softmax():data()
          policies[k] = { p[0], p[1], p[2], p[3] }
          state = mn.keep(after)
        end)
      end
      return policies, before
    end
    local was, state = run(mine)
    local there, theirs = run(other)
    local whole = interventions.parts(core, "all")
    local all, back = run(mine, whole, theirs), run(other, whole, state)
    for _, r in ipairs { 1, #job.rows } do
      local parts = interventions.parts(core, job.rows[r].word)
      local one, two = run(mine, parts, theirs), run(other, parts, state)
      for k = i, math.min(7, #other) do
        t.near(job.moved[i][r][k], (moved(was[k], one[k], all[k]) + moved(there[k], two[k], back[k])) / 2, 1e-4, job.rows[r].word)
      end
    end
  end)
end

for _, core in ipairs { "gru", "agalite", "rwkv7" } do
  t.test(core .. ": in an episode whose memory was changed, contributions are measured from there on", function()
    local stepper, frame = play({ core }, 9)
    local first = { kind = "erase", what = "all", at = 3 }
    local altered = erased(stepper, frame, "all", 3, first)
    local job = contributions.new(stepper.agent, altered.frame.history, nil, altered.after)
    job:work()
    t.ok(not job.problem and job.done, job.problem)
    t.eq(job.columns[1], 5, "from the step after")
    local all = erased(stepper, frame, "all", 5, first)
    for _, r in ipairs { 1, #job.rows } do
      local policies = erased(stepper, frame, job.rows[r].word, 5, first)
      for k = 6, 9 do t.near(job.moved[6][r][k], moved(altered.frame.history[k].policy, policies[k], all[k]), 1e-4, job.rows[r].word) end
    end
    local problem = contributions.of_frame(setmetatable({ agent = stepper.agent, changed = 8, frame_of = function() return altered.frame end },
      { __index = altered.frame })).problem
    t.ok(problem and problem:find "nothing follows", problem)
  end)
end

t.test("where the episode cannot be computed again, there is a reason and no figure", function()
  local stepper, frame = play({ "galite" }, 5)
  local history = frame.history
  local function problem(agent, list) local job = contributions.new(agent, list) job:work() return job.problem or "" end
  t.ok(problem(nil, history):find "no agent" or problem(nil, history):find "none here")
  t.ok(problem(stepper.agent, { history[2], history[3] }):find "not every step")
  local entry = setmetatable({ policy = { 0.7, 0.1, 0.1, 0.1 } }, { __index = history[3] })
  t.ok(problem(stepper.agent, { history[1], history[2], entry }):find "was changed")
end)

-- The episode with another observation in step `at`, of zeros, as the agent would have acted on it.
local function blanked(agent, history, at)
  local zeros, state, list = { shape = { 16 }, values = require("ffi").new("float[16]") }, agent.core:initial(1), {}
  for i, entry in ipairs(history) do
    local x, done = mn.tensor { shape = { 1, 1, 16 } }, mn.tensor { shape = { 1, 1 }, dtype = "u8" }
    local seen = i == at and zeros or entry.observation
    for k = 0, 15 do x:data()[k] = seen.values[k] end
    done:fill(i == 1 and 1 or 0)
    mn.no_grad(function()
      local logits, _, after = agent:act(x, done, state)
      local p = logits:softmax():data()
      list[i] = setmetatable({ observation = seen, policy = { p[0], p[1], p[2], p[3] } }, { __index = entry })
      state = mn.keep(after)
    end)
  end
  return list
end

t.test("of a step that showed nothing nothing is carried, of another something; before it neither", function()
  local stepper, frame = play({ "galite" }, 6)
  local history = blanked(stepper.agent, frame.history, 2)
  local nothing, something = contributions.new(stepper.agent, history, 2), contributions.new(stepper.agent, history, 1)
  nothing:work() something:work()
  t.eq(nothing.problem, nil)
  t.eq(nothing.columns[1], 3) t.eq(something.columns[1], 2)
  local most = 0
  for r = 1, #nothing.rows do
    t.eq(nothing.moved[2], nil, "nothing of it is kept yet")
    for i = 3, 6 do t.eq(nothing.moved[i][r][6], 0) most = math.max(most, something.moved[i][r][6]) end
  end
  t.ok(most > 0)
end)
