-- test_patching.lua -- paths between two episodes: with all of A's memory at the decision B decides as A, with none of it as itself; the part that
-- carries the cue carries the decision and no other does; in a linear memory the paths add up to the whole; every core, one layer and several.
local t = require "tests.harness"
local contributions = require "mneme.insight.episodes.contributions"
local cue_agent = require "tests.support.cue_agent"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local mn = require "mneme"
local patching = require "mneme.insight.episodes.patching"
local core_rig = require "tests.support.core_rig"
local parsed = require "tests.support.parsed"
local shell = require "tests.support.shell"
local view = require "mneme.commands.view"

local here = shell.folder()

-- Two episodes of an agent whose cues differ, and its stepper.
local function pair_of(make, most)
  local list, cues = {}, {}
  for seed = 1, 40 do
    local p = make(seed)
    local history = patching.play(p, most)
    local cue = history[1].truth.cue
    if not list[cue] then list[cue], cues[#cues + 1] = { history = history, p = p }, cue end
    if #cues == 2 then return list[1].history, list[0].history, list[0].p end
  end
  error "the cues are all alike"
end

local function greedy(policy)
  local best = 1
  for a, p in ipairs(policy) do if p > policy[best] then best = a end end
  return best - 1
end

t.test("an agent made by hand: the channel of the cue carries the decision at every step, by its own way; the other one nothing", function()
  local A, B, p = pair_of(function(seed) return cue_agent.new(1, { seed = seed, seeded = true }) end, 100)
  local job = patching.new(p.agent, A, B)
  t.ok(not job.problem and job:work(), job.problem)
  t.eq(job.decision, 11, "the junction")
  t.eq(#job.map.steps, 11)
  local from_a, from_b = greedy(A[12].policy), greedy(B[12].policy)
  t.ok(from_a ~= from_b)
  for c = 1, 11 do
    t.eq(job.cells[1][c].greedy, from_a, "all of A's memory")
    t.eq(job.cells[2][c].greedy, from_a, "its channel of the cue")
    t.near(job.cells[2][c].loss, job.cells[1][c].loss, 1e-5)
    t.eq(job.cells[3][c].greedy, from_b, "what erasing costs nothing changes nothing")
    t.ok(job.cells[3][c].loss < contributions.LITTLE)
  end
  for _, path in ipairs(job.paths) do
    t.eq(path.clear, path.from.word == job.parts[2].word and path.through == path.from, path.from.word .. " through " .. path.through.word)
  end
  t.eq(job.map.rows[4].word, job.parts[2].word .. ">" .. job.parts[2].word)
end)

t.test("patching all of the memory before the decision gives A's policy on B's observation; patching B's own memory changes nothing", function()
  local A, B, p = pair_of(function(seed) return cue_agent.new(1, { seed = seed, seeded = true }, 6) end, 100)
  for _, decision in ipairs { 11, false } do                     -- false: the map chooses one
    local same = patching.new(p.agent, B, B, { decision = decision or nil })
    t.ok(same:work() and not same.problem, same.problem)
    for r in ipairs(same.parts) do for c in ipairs(same.map.steps) do t.near(same.cells[r][c].loss, 0, 1e-6) end end
    for _, path in ipairs(same.paths) do t.near(path.log_odds, 0, 1e-4) end
  end
  local job = patching.new(p.agent, A, B, { decision = 5, at = 5 })
  t.ok(job:work() and not job.problem, job.problem)
  t.eq(#job.map.steps, 1)
end)

files.write(here .. "/linear.lua", { [[
local mn = require "mneme"
return { doc = "two leaky sums, the second of the first", source = "a test", config = { d_in = 6, d_model = 4, reset = true }, build = function(cfg)
  local D = cfg.d_model
  local one, two = mn.nn.linear(cfg.d_in, D), mn.nn.linear(D, D)
  local function step(x, h) local y = 0.9 * h + x.x return y, y end
  return { module = mn.nn.container { { "one", one }, { "two", two } }, d_out = D, states = { ["layers.0.h"] = "[B,D]", ["layers.1.h"] = "[B,D]" },
    sizes = { D = D }, forward = function(x, done, state)
      done = cfg.reset and done or nil
      local y, h = mn.recur(step, { x = { x = one(x) }, state = state["layers.0.h"], done = done })
      local z, g = mn.recur(step, { x = { x = two(y) }, state = state["layers.1.h"], done = done })
      return z, { ["layers.0.h"] = h, ["layers.1.h"] = g }
    end }
end }
]] })

local function linear(seed)
  mn.manual_seed(7)
  local env = mn.env("tmaze", { corridor = 6, num_envs = 1 })
  local core = mn.core { here .. "/linear.lua" }
  local agent = mn.agent { env = env, core = core, torso = mn.nn.linear(env.observation_space.shape[1], 6), policy = mn.nn.linear(core.d_out, 4),
    value = mn.nn.linear(core.d_out, 1) }
  return mn.stepper.new(env, agent, { seed = seed, seeded = true })
end

t.test("in a linear memory of your own the paths through all parts add up to what the part does", function()
  local A, B, p = pair_of(linear, 8)
  local job = patching.new(p.agent, A, B)
  t.ok(job:work() and not job.problem, job.problem)
  local sum, layers = {}, {}
  for _, path in ipairs(job.paths) do
    local key = path.from.word .. path.step
    sum[key] = (sum[key] or 0) + path.log_odds
    layers[path.through.layer] = true
  end
  t.ok(layers[0] and layers[1], "two layers")
  local largest = 0
  for r = 2, #job.parts do
    for c, step in ipairs(job.map.steps) do
      t.near(sum[job.parts[r].word .. step], job.cells[r][c].log_odds, 2e-4)
      largest = math.max(largest, math.abs(job.cells[r][c].log_odds))
    end
  end
  t.ok(largest > 1e-3, "nothing moves")
end)

for _, case in ipairs(core_rig.cases()) do
  t.test(case.name .. ": all of A's memory gives what A's memory decides, a path through nothing is B's own", function()
    local function make(seed)
      local core = core_rig.fresh(case.settings, 5, { d_in = 2 ^ 4 })
      mn.manual_seed(5)
      local env = mn.env("tmaze", { corridor = 12, num_envs = 1 })
      return mn.stepper.new(env, mn.agent { env = env, core = core, hidden = 8 }, { seed = seed, seeded = true })
    end
    local A, B, p = pair_of(make, 6)
    local job = patching.new(p.agent, A, B, { decision = 4 })
    job:work()
    if not next(p.agent.core.states) then return t.ok(job.problem:find "no memory") end
    if job.problem then return t.eq(case.settings.sees, "rollout", job.problem) end
    local run = contributions.runner(p.agent, p.agent.observation_space, 1)
    for i = 1, 4 do run.step(i, { A }) end
    local policy = run.step(5, { B })
    local moved = 0
    for a = 0, 3 do moved = moved + math.abs(policy[a] - B[5].policy[a + 1]) / 2 end
    t.near(job.cells[1][#job.map.steps].loss, moved, 1e-5)
    for _, path in ipairs(job.paths) do
      t.ok(path.loss == path.loss and path.loss <= 1)
      if path.step == 4 and path.from ~= path.through then t.near(path.loss, 0, 2e-5, path.from.word .. " through " .. path.through.word) end
    end
  end)
end

t.test("mneme intervene patch=: a table, and every number in a file; what it cannot take is named", function()
  local function mneme(words) return shell.mneme(here, words) end
  local said, status = mneme "run tmaze core=gru core.d_model=8 corridor=4 steps=2048 num_envs=4 num_steps=32 hidden=8 run=a"
  t.eq(status, 0, said)
  said, status = mneme "intervene a patch=0:1 out=p.json"
  t.eq(status, 0, said)
  t.ok(said:find "memory of episode 0" and said:find "layers.0.channels", said)
  local all = json.decode((files.read(here .. "/p.json")))
  t.eq(all.memory_of, 0) t.eq(all.episode, 1)
  local totals, paths = 0, 0
  for _, v in ipairs(all.values) do if v.through == "" then totals = totals + 1 else paths = paths + 1 end end
  t.eq(totals % 9, 0) t.eq(paths, totals / 9 * 64)
  t.eq(select(2, mneme "intervene a patch=0:1 decision=3 every=2 out=p.csv"), 0)
  t.ok(files.read(here .. "/p.csv"):find "%f[%w]all%f[%W]", (files.read(here .. "/p.csv")))
  t.eq(select(2, mneme "intervene a patch=0:1 out=p.svg"), 0)
  t.ok(files.read(here .. "/p.svg"):find "layer 0, channel ")
  for words, what in pairs { ["patch=a"] = "numbers of two episodes", ["patch=0:1 decision=999"] = "expected 0 to",
    ["patch=0:1 decision=3 at=5"] = "after step 3", ["patch=0:1 erase=all at=1"] = "map of its own",
    ["erase=all at=1 every=2"] = "every= is for patch", ["patch=0:1 out=p.png"] = "expected a name ending in .svg" } do
    said, status = mneme("intervene a " .. words)
    t.ok(status ~= 0 and said:find(what, 1, true), words .. ": " .. said)
  end
end)

t.test("a picture of the scene puts a second episode next to the first without a key", function()
  local said, status = shell.mneme(here, "run train env=tmaze env.corridor=4 env.time_limit=20 core=gru core.d_model=8 hidden=8 num_envs=2 num_steps=32 "
    .. "steps=256 threads=1 run=pair")
  t.eq(status, 0, said)
  local function pictured(thing)
    local o = view.prepare(parsed(view, { thing, "scene=paths", "out=" .. here .. "/paths.png", "size=640x480" }))
    local shown = view.open(o)
    view.export(shown, o)
    return shown
  end
  local shown = pictured(here .. "/pair")
  t.eq(#shown.tracks, 2)
  t.ok(shown:tick_of(1).episode ~= shown:tick_of(2).episode)
end)
