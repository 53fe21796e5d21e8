-- test_contributions.lua -- what the page says of a memory's contributions is so: it is what interventions do, in every core; the ranking of
-- heads in agents that learned is that of the causal map; how far back a memory matters does not contradict what it contributes.
local t = require "tests.harness"
local causal_map = require "mneme.episodes.causal_map"
local contributions = require "mneme.episodes.contributions"
local frames = require "mneme.episodes.frames"
local interventions = require "mneme.episodes.interventions"
local learn = require "tests.support.learn_rig"
local mn = require "mneme"
local rig = require "tests.support.core_rig"

-- A stepper of an untrained small agent, and the frame at the end of its first `steps` steps.
local function play(settings, steps, previous)
  local core = rig.fresh(settings, 5, { d_in = 2 ^ 4 + (previous and 5 or 0) })
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
    local now = film:add(stepper:next(function() change:before(i - 1, { 0 }) end, i > 1 and frame.history[i - 1].action or nil))
    list[i], list.frame = now.policy, now
    if before and i == before.at + 1 then list.after = now end
  end
  return list
end

for _, case in ipairs(rig.cases()) do
  t.test(case.name .. ": contributions are what erasing does", function()
    local stepper, frame = play(case.settings, 7, case.settings[1] == "gru" and "action,reward" or nil)
    if not next(stepper.agent.core.states) then
      t.ok(contributions.new(stepper.agent, frame.history).problem:find "no memory")
      return
    end
    local job = contributions.new(stepper.agent, frame.history)
    t.ok(not job.problem and job:work(), job.problem)
    if job.problem then return t.eq(case.settings.sees, "rollout", "what else acts on more than its memory: " .. job.problem) end
    t.eq(#job.columns, 6)
    for _, r in ipairs { 1, #job.rows } do
      local i = 4
      local policies, most = erased(stepper, frame, job.rows[r].word, i - 1), 0
      for k = i, 7 do
        local moved = 0
        for a, p in ipairs(policies[k]) do moved = moved + math.abs(p - frame.history[k].policy[a]) / 2 end
        t.near(job.moved[i][r][k], moved, 2e-6, job.rows[r].word)
        most = math.max(most, moved)
      end
      t.near(job:of(r, i, 7), most, 2e-6)
    end
  end)
end

for _, core in ipairs { "gru", "agalite", "rwkv7" } do
  t.test(core .. ": in an episode whose memory was changed, contributions are measured from there on, and are what erasing does", function()
    local stepper, frame = play({ core }, 9)
    local first = { kind = "erase", what = "all", at = 3 }
    local altered = erased(stepper, frame, "all", 3, first)
    local job = contributions.of_frame(setmetatable({ agent = stepper.agent, changed = 3, frame_of = function() return altered.after end },
      { __index = altered.frame }))
    t.ok(not job.problem and job.done, job.problem)
    t.eq(job.columns[1], 5, "from the step after")
    for _, r in ipairs { 1, #job.rows } do
      local policies = erased(stepper, frame, job.rows[r].word, 5, first)
      for k = 6, 9 do
        local moved = 0
        for a, p in ipairs(policies[k]) do moved = moved + math.abs(p - altered.frame.history[k].policy[a]) / 2 end
        t.near(job.moved[6][r][k], moved, 2e-6, job.rows[r].word)
      end
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
    t.eq(nothing:of(r, 2, 6), nil, "nothing of it is kept yet")
    for i = 3, 6 do t.eq(nothing:of(r, i, 6), 0) most = math.max(most, something:of(r, i, 6)) end
  end
  t.ok(most > 0)
end)

t.test("how far back a memory matters is 0 exactly where it contributes nothing, and reaches every cell that does", function()
  local stepper, frame = play({ "gru" }, 7)
  local job = contributions.new(stepper.agent, frame.history)
  job:work()
  math.randomseed(4)
  for _ = 1, 200 do
    local scale = math.random() ^ 4
    for _, i in ipairs(job.columns) do
      for k = i, 7 do job.moved[i][1][k] = scale * math.random() end
    end
    local last = math.random(2, 7)
    local steps, cells, reach = job:horizon(1, last), 0, 0
    for _, i in ipairs(job.columns) do
      for k = i, last do if job.moved[i][1][k] >= contributions.LITTLE then reach = math.max(reach, k - i + 1) end end
      if i <= last and job:of(1, i, last) >= contributions.LITTLE then cells = cells + 1 end
    end
    t.eq(steps, reach)
    t.eq(steps == 0, cells == 0)
  end
end)

-- ---- agents that learned ----

-- Ranks, those of equal values their mean.
local function ranks(x)
  local list = {}
  for i, a in ipairs(x) do
    local less, equal = 0, 0
    for _, b in ipairs(x) do less, equal = less + (b < a and 1 or 0), equal + (b == a and 1 or 0) end
    list[i] = less + (equal + 1) / 2
  end
  return list
end

local function correlation(a, b)
  local x, y, n, ab, aa, bb = ranks(a), ranks(b), #a, 0, 0, 0
  for i = 1, n do
    local p, q = x[i] - (n + 1) / 2, y[i] - (n + 1) / 2
    ab, aa, bb = ab + p * q, aa + p * p, bb + q * q
  end
  return ab / math.sqrt(aa * bb)
end

-- What is far below the largest is nothing: among heads whose erasure changes nothing there is no order to agree on.
local function above(part, x)
  local most, list = 0, {}
  for i = 1, #x do most = math.max(most, x[i]) end
  for i = 1, #x do list[i] = x[i] >= part * most and x[i] or 0 end
  return list
end

-- What the panel shows of each part, the mean over some episodes.
local function shown_by_panel(run, episodes)
  local p, film, of, ended = mn.stepper.from_run(run, { num_envs = 1, seed = 5, seeded = true }), frames.new(), {}, 0
  local last
  while ended < episodes do
    local now = p:next()
    if now.ended then
      local job = contributions.of_frame(last)
      t.eq(job.problem, nil)
      for r, row in ipairs(job.rows) do of[row.word] = (of[row.word] or 0) + job:mean(r, job.n) / episodes end
      film, ended = frames.new(), ended + 1
    end
    last = film:add(now)
  end
  return of
end

-- What the causal map says of the same parts.
local function by_erasing(run, measure, parts)
  local function stepper() return mn.stepper.from_run(run, { num_envs = 48, seed = 1 }) end
  local map, of = causal_map.new(stepper(), stepper(), { measure = measure, every = 3, seed = 90 }), {}
  map:work()
  for r, cells in ipairs(map:cells()) do
    local word = map.rows[r].word
    for _, cell in pairs(parts[word] and cells or {}) do of[word] = (of[word] or 0) + cell.loss / #cells end
  end
  return of
end

local apart = 0
local small = "corridor=10 lr=1e-3 num_steps=64 hidden=32 steps=6e5 record_every=0 threads=1 core="
for _, core in ipairs { "agalite core.n_layers=2 core.d_model=32 core.d_head=16 core.d_ffn=32 core.eta=4",
  "gated_linear core.n_layers=2 core.d_model=32 core.d_head=16 core.d_ffn=32", "lstm core.d_model=64" } do
  local name = core:match "%S+"
  t.test(name .. ", trained: the panel ranks the parts of the memory as the causal map does", function()
    local run, said = learn.train("demo", small .. core, "contributions-" .. name)
    t.ok(said:find "first reached", said)
    local panel = shown_by_panel(run, 12)
    local words, x, y = {}, {}, {}
    local kl, success = by_erasing(run, "kl", panel), by_erasing(run, "success", panel)
    for word in pairs(panel) do words[#words + 1] = word end
    table.sort(words)
    local top = words[1]
    for i, word in ipairs(words) do
      x[i], y[i] = panel[word], kl[word]
      if success[word] > success[top] then top = word end
    end
    t.eq(#words, 8)
    local agreement = correlation(above(0.1, x), above(0.01, y))         -- a KL grows with the square of a change
    t.ok(agreement >= 0.7, ("rank correlation %.2f"):format(agreement))
    local brighter = 0
    for _, word in ipairs(words) do if panel[word] > panel[top] then brighter = brighter + 1 end end
    if success[top] > 0.05 then                    -- in some agents no part alone costs anything: several know the cue
      apart = apart + 1
      t.ok(brighter <= 1, ("%s costs most, %.2f, but %d parts are brighter"):format(top, success[top], brighter))
    end
  end)
end
t.test("of these agents one at least has a part whose erasure costs success", function() t.ok(apart >= 1) end)
learn.clean()
