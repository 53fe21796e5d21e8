-- test_interventions.lua -- operating on a living agent: what is erased, swapped, held and changed, and nothing else; in
-- every core; on an agent made by hand whose one memory is the cue; recorded, and lived through once more.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local mn = require "mneme"
local npz_reader = require "tests.support.npz_reader"
local files = require "mneme.base.files"
local state_arrays = require "mneme.models.state_arrays"
local parsed = require "tests.support.parsed"
local intervene = require "mneme.commands.intervene"
local paired_episodes = require "mneme.insight.episodes.paired_episodes"
local interventions = require "mneme.insight.episodes.interventions"
local stepper = require "mneme.insight.episodes.stepper"
local cue_agent = require "tests.support.cue_agent"
local shell = require "tests.support.shell"

-- Live for some steps; the next is between step() and forward().
local function live(p, steps)
  for _ = 1, steps do
    p:forward()
    p:step()
  end
  return p
end

-- One copy's numbers of every state, as strings.
local function memory(p, state, copy)
  local list = {}
  for name, x in pairs(state) do
    local n = state_arrays.size(p.memory[name].shape)
    list[name] = ffi.string(state_arrays.env_reader(p.agent.core, name, x)(copy), 4 * n)
  end
  return list
end

local function bits(data, n) return ffi.string(data, 4 * n) end
local function same(a, b, what) for name, bytes in pairs(a) do t.ok(bytes == b[name], what .. ": " .. name) end end

-- A stepper of a small core that has been 5 steps on its way, settled.
local function walking(settings, copies)
  local env = mn.env("tmaze", { corridor = 20, num_envs = copies or 3 })
  local agent = mn.agent { env = env, core = core_rig.build(settings, 1, { d_in = 16 }), hidden = 6 }
  local p = live(stepper.new(env, agent), 5)
  p:restart_plan()
  return p
end

-- ---- every core ----

for _, case in ipairs(core_rig.cases()) do
  local p = walking(case.settings)
  local core, all = p.agent.core, next(p.agent.core.states) ~= nil

  t.test(case.name .. ": each state is erased, in its copy alone; all of them make a fresh memory", function()
    if not all then return t.raises(function() interventions.new(p, { { at = 5, kind = "erase", what = "all" } }) end, "has no memory") end
    for _, name in ipairs(core:state_names()) do
      local before = { [0] = memory(p, p.state, 0), memory(p, p.state, 1), memory(p, p.state, 2) }
      t.eq(#interventions.new(p, { { at = 5, kind = "erase", what = name } }):before(5, { 1 }), 0)
      local want = before[1]
      want[name] = memory(p, p.start, 1)[name]
      for b = 0, 2 do same(before[b], memory(p, p.state, b), "copy " .. b .. " without " .. name) end
    end
    interventions.new(p, { { at = 5, kind = "erase", what = "all" } }):before(5, { 0, 1, 2 })
    for b = 0, 2 do same(memory(p, p.start, b), memory(p, p.state, b), "all of copy " .. b) end
    local fresh, n = stepper.new(p.env, p.agent), p.env.action_space.n * 3
    ffi.copy(fresh.x:data(), p:observations(), 4 * 3 * p.n)
    fresh.resets:fill(0)
    fresh:forward()
    p:forward()
    t.ok(bits(fresh.logits:data(), n) == bits(p.logits:data() + p.row * n, n), "an erased memory is not a fresh one")
    p:step()
  end)

  t.test(case.name .. ": memories are swapped among copies, and one copy has none to swap with", function()
    if not all then return end
    live(p, 5)
    p:restart_plan()
    local list = interventions.new(p, { { at = 5, kind = "swap", what = "all" } })
    local before = { [0] = memory(p, p.state, 0), memory(p, p.state, 1), memory(p, p.state, 2) }
    t.eq(#list:before(5, { 1 }), 1, "refused")
    t.eq(#list:before(5, { 0, 2 }), 0)
    same(before[2], memory(p, p.state, 0), "copy 0 has copy 2's")
    same(before[0], memory(p, p.state, 2), "copy 2 has copy 0's")
    same(before[1], memory(p, p.state, 1), "copy 1 has its own")
  end)

  t.test(case.name .. ": a head is erased, and no other number", function()
    local H = core.sizes.H
    for name in pairs(core.states) do
      local axes, layer = core.states[name]:gsub("%W", ""), name:match "^(layers%.%d+)%."
      local axis = axes:find("H", 1, true)
      if axis and layer then
        local shape, x = p.state[name]:shape(), p.state[name]
        x:fill(7)
        interventions.new(p, { { at = 5, kind = "erase", what = ("%s.head.%d"):format(layer, H - 1) } }):before(5, { 0 })
        local inner = 1
        for i = axis + 1, #shape do inner = inner * shape[i] end
        local start, per_copy = p.start[name]:data(), x:size() / 3
        t.eq(axes:sub(1, 1), "B")
        for i = 0, x:size() - 1 do
          local erased = i < per_copy and math.floor(i / inner) % H == H - 1
          t.eq(x:data()[i], erased and start[i] or 7, name)
        end
        t.raises(function() interventions.parts(core, ("%s.head.%d"):format(layer, H)) end, "has heads 0")
      end
    end
  end)

  t.test(case.name .. ": probes held at their own values change no bit, at other values the memory or the output", function()
    local a, b = walking(case.settings, 2), walking(case.settings, 2)
    local names = {}
    for _, name in ipairs(require("mneme.base.tables").keys(a.probes)) do             -- others tell of the newest row alone
      if a.probes[name]:shape()[1] == a.rows then names[#names + 1] = name end
    end
    b:clamp_probes(names)
    local n = a.env.action_space.n * 2
    for _ = 1, 3 do
      a:forward()
      for _, name in ipairs(names) do
        local held, size = b.held[name], a.probes[name]:size() / 64
        held.mask:fill(1)
        ffi.copy(held.value:data(), a.probes[name]:data() + a.row * size, 4 * size)
      end
      b:forward()
      t.ok(bits(a.logits:data() + a.row * n, n) == bits(b.logits:data() + b.row * n, n), "its own values changed something")
      t.eq(a.row, b.row)
      a:step()
      b:step()
    end
    for copy = 0, 1 do same(memory(a, a.after, copy), memory(b, b.after, copy), "memory") end
    for _, name in ipairs(names) do b.held[name].value:fill(0.3) end
    a:forward()
    b:forward()
    t.ok(bits(a.logits:data() + a.row * n, n) ~= bits(b.logits:data() + b.row * n, n), "other values changed nothing")
  end)
end

-- ---- an agent made by hand: it keeps the cue in one number, and turns as that says ----

local CORRIDOR = cue_agent.corridor
local by_hand = cue_agent.new

local function experiment(list, o)
  local p = by_hand(50)
  local made = interventions.new(p, list)
  o = o or {}
  local cases = paired_episodes.play(p, made, { episodes = o.episodes or 100, seed = o.seed or 5, record = o.record })
  local won = { 0, 0 }
  for _, c in ipairs(cases) do for arm = 1, 2 do won[arm] = won[arm] + c[arm].score end end
  return { won[1] / #cases, won[2] / #cases }, cases, made
end

local LAST = CORRIDOR - 1                       -- the step in which it stands at the junction

t.test("the agent made by hand remembers; without its memory it guesses, whenever that was taken away", function()
  for _, at in ipairs { 1, 5, LAST } do
    local score, cases = experiment { { at = at, kind = "erase", what = "all" } }
    t.eq(score[1], 1)
    t.ok(math.abs(score[2] - 0.5) < 0.2, ("erased in step %d: %.2f"):format(at, score[2]))
    for _, c in ipairs(cases) do t.eq(c[1].length, CORRIDOR) end
  end
end)

t.test("erasing before anything was seen, forcing nothing, and an intervention that is never reached change nothing", function()
  for _, list in ipairs { { { at = 0, kind = "erase", what = "all" } }, { { at = 0, kind = "erase", what = "layers.0.h" } },
    { { at = 99, kind = "erase", what = "all" } }, { { at = 3, kind = "freeze", what = "layers.0.h", steps = 1 } } } do
    local score, cases = experiment(list)
    t.eq(score[1], 1)
    for _, c in ipairs(cases) do
      for key, value in pairs(c[1]) do t.eq(value, c[2][key], key) end
    end
  end
end)

t.test("the cue flipped on the way leaves what it does and turns success round; at the start it is just another cue", function()
  local score, cases, made = experiment { { at = 5, kind = "flip" } }
  t.eq(made.specs[1].what, "cue")
  t.eq(made.specs[1].done, 100)
  t.eq(score[1], 1)
  t.eq(score[2], 0)
  for _, c in ipairs(cases) do
    t.eq(c[1].length, c[2].length)
    t.near(c[1].ret - c[2].ret, 5, 1e-5)
  end
  t.eq(experiment({ { at = 0, kind = "flip", what = "cue" } })[2], 1)
end)

t.test("the memory of another episode decides; a memory that is held does not change; a shifted agent walks on", function()
  local _, cases = experiment { { at = 6, kind = "swap", what = "layers.0" } }
  local changed = 0
  for i, c in ipairs(cases) do
    changed = changed + (c[2].score < 1 and 1 or 0)
    t.eq(c[1].length, c[2].length, "episode " .. i)
  end
  t.ok(changed > 25 and changed < 75, changed .. " of 100 episodes have a memory of the other cue")
  for _, odd in ipairs { { 101, 1 }, { 51, 1 }, { 50, 0 }, { 1, 1 } } do                -- 50 environments: a last round of one has no other episode
    local _, uneven = experiment({ { at = 6, kind = "swap", what = "layers.0" } }, { episodes = odd[1] })
    local kept, _, refused = paired_episodes.reaching(uneven, 6)
    t.eq(refused, odd[2], odd[1] .. " episodes")
    t.eq(#kept, odd[1] - odd[2])
    t.eq(intervene.report(uneven, 6):find("could", 1, true) ~= nil, odd[2] > 0)
  end
  local far
  _, far = experiment { { at = 4, kind = "shift", what = "position", by = 3 } }
  for _, c in ipairs(far) do
    t.eq(c[2].length, CORRIDOR - 3)
    t.eq(c[2].score, 1)
  end
  local score, beyond, made = experiment { { at = 4, kind = "shift", what = "position", by = CORRIDOR } }
  t.eq(score[2], 1)
  t.eq(made.specs[1].done, 0, "beyond the corridor")
  t.eq(select(3, paired_episodes.reaching(beyond, 4)), #beyond)
  t.ok(experiment({ { at = 2, kind = "force", what = "layers.0.h", to = 0, steps = 2 } })[2] == 1, "of gru it is what the memory gives out")
end)

t.test("both arms are the same up to the intervention, and recorded", function()
  local folder = os.tmpname()
  os.remove(folder)
  local _, cases = experiment({ { at = 5, kind = "flip" }, { at = 5, kind = "erase", what = "all" }, { at = 5, kind = "shift", what = "position", by = -2 } },
    { episodes = 3, record = folder })
  for i = 0, 2 do
    local a, b = npz_reader(("%s/without/episode-%d.npz"):format(folder, i)), npz_reader(("%s/with/episode-%d.npz"):format(folder, i))
    t.eq(a.about.interventions, nil)
    t.ok(b.about.interventions:find "^flip cue at step 5, erase all at step 5, shift position by %-2 at step 5$", b.about.interventions)
    t.eq(a.rewards.shape[1], cases[i + 1][1].length)
    t.eq(b.rewards.shape[1], cases[i + 1][2].length)
    local n = a.observations.shape[2]
    for k = 0, 4 do
      t.eq(a.actions.values[k], b.actions.values[k])
      t.eq(a.rewards.values[k], b.rewards.values[k])
    end
    for k = 0, 5 * n - 1 do t.eq(a.observations.values[k], b.observations.values[k]) end
    local differs = false
    for k = 5 * n, 6 * n - 1 do differs = differs or a.observations.values[k] ~= b.observations.values[k] end
    t.ok(differs, "step 5 is observed at another place")
  end
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("copies without an intervention run in the same pieces: every observation and choice is the other arm's", function()
  local p = by_hand(6)
  local list = interventions.new(p, { { at = 7, kind = "erase", what = "all" }, { at = 3, kind = "force", what = "layers.0.h", to = 0, steps = 1 } })
  local function log(act)
    local out = {}
    p:restart({ 1, 2, 3, 4, 5, 6 }, 9)
    list:release()
    for step = 0, 10 do
      list:before(step, act and { 2 } or {})
      out[step] = bits(p:observations(), 6 * p.n)
      p:forward()
      local n = p.env.action_space.n
      for b = 0, 5 do out[step] = out[step] .. (b == 2 and "" or bits(p.logits:data() + (p.row * 6 + b) * n, n)) end
      p:step()
    end
    return out
  end
  local a, b, c = log(false), log(true), log(false)
  for step = 0, 10 do t.ok(a[step] == b[step] and b[step] == c[step], "step " .. step) end
end)

t.test("to settle a memory changes neither what is chosen nor what is thought", function()
  local told = { name = "observations in bytes, the action and reward of the step before" }
  function told.stepper()
    local env = mn.env("associative_recall", { pairs = 3, questions = 4, num_envs = 2 })
    mn.manual_seed(2)
    return stepper.new(env, mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 6, previous = "action,reward" })
  end
  local cases = core_rig.cases()
  cases[#cases + 1] = told
  for _, case in ipairs(cases) do
    local function made() return case.stepper and case.stepper() or walking(case.settings, 2) end
    local a, b = made(), made()
    local exact = a.agent.core.claims.steps == "exact"
    for step = 1, exact and 80 or 0 do
      if step % 3 == 0 then b:restart_plan() end
      a:forward()
      b:forward()
      for i = 0, 1 do
        local at, n = a.row * 2 + i, a.env.action_space.n
        t.eq(a.actions:data()[at], b.actions:data()[b.row * 2 + i], case.name)
        for k = 0, n - 1 do t.near(a.logits:data()[at * n + k], b.logits:data()[(b.row * 2 + i) * n + k], 1e-4, case.name) end
      end
      a:step()
      b:step()
    end
  end
end)

t.test("what is frozen stays what it was, whatever else is done in the next step", function()
  local p = walking({ "galite" }, 2)
  local list = interventions.new(p, { { at = 6, kind = "erase", what = "layers.1" }, { at = 5, kind = "freeze", what = "layers.0.beta" },
    { at = 5, kind = "freeze", what = "layers.1.head.1.gamma", steps = 3 } })
  local first = {}
  for step = 5, 10 do
    list:before(step, { 1 })
    p:forward()
    for name, whole in pairs { ["layers.0.beta"] = true, ["layers.1.gamma"] = false } do
      local size = p.probes[name]:size() / 128
      local x = p.probes[name]:data() + (p.row * 2 + 1) * size
      first[name] = first[name] or bits(x, size)
      local held = whole and size or size / 2                  -- of two heads the second
      local frozen = bits(x + (size - held), held) == first[name]:sub(-4 * held)
      t.eq(frozen, whole or step < 8, name .. " in step " .. step)
      if step == 6 then
        local free = p.probes[name]:data() + p.row * 2 * size
        t.ok(bits(free, size) ~= first[name], "copy 0 is frozen too")
        if not whole then t.ok(bits(x, held) ~= first[name]:sub(1, 4 * held), "head 0 is frozen too") end
      end
    end
    p:step()
  end
end)

t.test("what is wrong is named, with what there is", function()
  local p = by_hand(2)
  local function refuse(pattern, spec) t.raises(function() interventions.new(p, { spec }) end, pattern) end
  refuse("unknown kind of intervention 'erased'; did you mean 'erase'", { at = 1, kind = "erased" })
  refuse("unknown key of erase: 'to'", { at = 1, kind = "erase", what = "all", to = 1 })
  refuse("at=nil, expected a whole number", { kind = "erase", what = "all" })
  refuse("at=%-1, expected a whole number of at least 0", { at = -1, kind = "erase", what = "all" })
  refuse("what is nil, expected a text", { at = 1, kind = "erase" })
  refuse("unknown part of the memory of gru: 'layers.1' %(known: all, layers.0%)", { at = 1, kind = "erase", what = "layers.1" })
  refuse("layers.0 of gru has no heads", { at = 1, kind = "swap", what = "layers.0.head.0" })
  refuse("unknown gate or probe of gru: 'layers.0.beta'", { at = 1, kind = "force", what = "layers.0.beta", to = 1 })
  t.fails(function()
    local env = mn.env("tmaze", { corridor = 5, num_envs = 1 })
    local attends = mn.core { "transformer", d_in = 16, d_model = 8, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 8 }
    interventions.new(stepper.new(env, mn.agent { env = env, core = attends, hidden = 8 }),
      { { at = 1, kind = "force", what = "layers.0.attention", to = 1 } })
  end)
  refuse("to=nil, expected a finite number", { at = 1, kind = "force", what = "layers.0.h" })
  refuse("steps=0, expected a whole number of at least 1", { at = 1, kind = "freeze", what = "layers.0.h", steps = 0 })
  refuse("unknown fact of tmaze%-v0 that can be changed: 'que' %(known: cue position%)", { at = 1, kind = "flip", what = "que" })
  refuse("tmaze%-v0: unknown value of cue: 'left' %(known: up down%)", { at = 1, kind = "set", what = "cue", to = "left" })
  refuse("position=2.5, expected a whole number from 0 to 2047", { at = 1, kind = "set", what = "position", to = 2.5 })
  refuse("by=nil, expected a finite number", { at = 1, kind = "shift", what = "position" })
  refuse("the donor is a table without memory", { at = 1, kind = "swap", what = "all", donor = { episode = 1 } })
  refuse("the donor has no episode", { at = 1, kind = "swap", what = "all", donor = { memory = {} } })
  refuse("the donor has not the 2 numbers of layers.0.h", { at = 1, kind = "swap", what = "all", donor = { memory = {}, episode = 1 } })
  refuse("the donor has not the 2 numbers of layers.0.h", { at = 1, kind = "swap", what = "all",
    donor = { memory = { ["layers.0.h"] = { values = ffi.new "float[1]" } }, episode = 1 } })
  p:forward()
  t.fails(function() p:clamp_probes { "layers.0.h" } end)
  local other = mn.env("associative_recall", { num_envs = 2 })
  p = stepper.new(other, mn.agent { env = other, core = { "gru", d_model = 2 }, hidden = 2 })
  refuse("associative_recall%-v0: no fact of this environment can be changed", { at = 1, kind = "flip" })
  local pole = mn.env("noisy_cartpole", { num_envs = 2 })
  p = stepper.new(pole, mn.agent { env = pole, core = { "gru", d_model = 2 }, hidden = 2 })
  refuse("flip: no fact of noisy_cartpole%-v0 has values to choose from", { at = 1, kind = "flip" })
  refuse("flip x: it is continuous, from %-2.4 to 2.4 %(set or shift it%)", { at = 1, kind = "flip", what = "x" })
end)

-- ---- the command line, and what it prints ----

t.test("the command line", function()
  local function read(...)
    local o = parsed(intervene, { ... })
    intervene.check(o)
    return o
  end
  local o = read("RUN", "erase=layers.0,tick", "force=layers.0.beta:0.5,layers.1.beta:0", "--at=7", "for=3",
    "flip=1", "shift=position:-2", "set=cue:up", "episodes=9", "corridor=30", "greedy=1")
  local list, env = o.list, o.env_settings
  t.eq(o.folder, "RUN")
  t.eq(o.episodes, 9)
  t.eq(o.greedy, true)
  t.eq(o.checkpoint, nil, "the newest")
  t.eq(read("RUN", "erase=all", "at=0", "checkpoint=0").checkpoint, 0, "the first is one, too")
  t.eq(env.corridor, 30)
  local words = {}
  for i, spec in ipairs(list) do
    words[i] = interventions.text(spec)
    t.eq(spec.at, 7)
  end
  t.eq(table.concat(words, "|"), "erase layers.0|erase tick|force layers.0.beta to 0.5 for 3 steps|force layers.1.beta to 0 for 3 steps|"
    .. "flip|shift position by -2|set cue to up")
  local function refuse(pattern, ...)
    local given = { ... }
    t.raises(function() read(unpack(given)) end, pattern)
  end
  refuse("which run%?", "erase=all", "at=3")
  refuse("no intervention is given", "RUN", "at=3")
  refuse("at which step", "RUN", "erase=all")
  refuse("force=layers.0.beta: expected a number after a colon", "RUN", "force=layers.0.beta", "at=1")
  refuse("set=cue: expected a value after a colon", "RUN", "set=cue", "at=1")
  refuse("erase=all:3: takes no value", "RUN", "erase=all:3", "at=1")
  refuse("for=2 goes with force, freeze and hold, not with erase", "RUN", "erase=all", "at=1", "for=2")
  refuse("one run, got 'A' and 'B'", "A", "B")
end)

t.test("the report: of the episodes that came so far; by degrees where success is one", function()
  local function episode(score, ret, length) return { score = score, ret = ret, length = length } end
  local text = intervene.report({ { episode(1, 4, 9), episode(0, -1, 9) }, { episode(1, 4, 9), episode(1, 4, 12) },
    { episode(0, 0, 3), episode(0, 0, 3) } }, 3)
  t.ok(text:find "^step 3 was reached by 2 of 3 episodes: the results below are of these\n", text)
  t.ok(text:find "success +1.000 %[0.342, 1.000%] +0.500 %[0.095, 0.905%] +%-0.500 %[%-0.905, 0.273%]", text)
  t.ok(text:find "1 succeed only without it, 0 only with it: p = 1 %(McNemar", text)
  text = intervene.report({ { episode(0.5, 4, 9), episode(0.25, -1, 9) } }, 0)
  t.ok(text:find "score +0.500 +0.250 +%-0.250\n" and text:find "intervals: Student's" and not text:find "McNemar", text)
  t.ok(intervene.report({ { episode(1, 4, 9), episode(1, 4, 9) } }, 40):find "reached by 0 of 1 episode: the longest had 9 steps\n$")
end)

t.test("mneme intervene on a run, from the checkpoint to the table", function()
  local folder = shell.folder()
  local function sh(words)
    local said, status = shell.mneme(folder, words)
    return said:gsub(" *%d+%%  [^\n]* episodes [^\n]*\n", "") .. ("[%d]\n"):format(status)        -- a slow machine tells how far it is
  end
  local small = "corridor=3 core.n_layers=1 core.d_model=8 core.d_head=4 core.d_ffn=8 hidden=8 steps=2048 threads=1 where=0 run=r"
  t.ok(sh("run demo " .. small):find "%[0%]\n$")
  local text = sh "intervene r erase=layers.0.head.1 force=layers.0.head.0.beta:0.5 for=1 at=1 episodes=20 record=kept"
  t.ok(text:find "^r at 2048 steps, 20 episodes: erase layers.0.head.1, force layers.0.head.0.beta to 0.5 for 1 step at step 1\n", text)
  t.ok(text:find "step 1 was reached by 20 of 20" and text:find "episodes in kept/without and kept/with\n%[0%]\n$", text)
  t.eq(sh "intervene r erase=layers.0.head.1 force=layers.0.head.0.beta:0.5 for=1 at=1 episodes=20 record=kept", text, "again")
  t.eq(npz_reader(folder .. "/kept/with/episode-19.npz").about.interventions,
    "erase layers.0.head.1 at step 1, force layers.0.head.0.beta to 0.5 for 1 step at step 1")
  t.ok(files.is_file(folder .. "/kept/without/episode-19.npz"))
  t.ok(sh("intervene r erase=layers.0.head.4 at=1"):find "layers.0 of agalite has heads 0..3\n%[2%]\n$")
  t.ok(sh("intervene r erase=all at=900 episodes=2"):find "reached by 0 of 2 episodes: the longest had %d+ steps\n%[0%]\n$")
  t.ok(sh("help intervene"):find "\n  erase=layers.0 ")
  os.execute("rm -r '" .. folder .. "'")
end)
