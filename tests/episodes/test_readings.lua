-- test_readings.lua -- what mneme probe reads: over every environment that declares facts, a fact that is in the memory reads at the ceiling,
-- one of another episode, which cannot be known, at chance; what a page shows of one memory is what was scored.
local ffi = require "ffi"
local t = require "tests.harness"
local example_random = require "mneme.envs.example_random"
local envs = require "mneme.envs"
local mn = require "mneme"
local readings = require "mneme.insight.measure.readings"
local ridge = require "mneme.insight.measure.ridge"
local shell = require "tests.support.shell"

local B = 128

local FEW, CLASSES = 3, 64           -- entries of a list that are looked at; places for the classes of each
local NOISE = 4                     -- values that tell nothing
local SIZE = FEW * CLASSES + NOISE

-- A stepper of an untrained agent of whose memory `make(truths, b, values)` gives the values instead; lists of the truth are cut to FEW entries.
local function stand_in(name, fact, make)
  mn.manual_seed(3)
  local env = mn.env(name, { num_envs = B })
  local agent = mn.agent { env = env, core = { "rnn", d_model = SIZE }, hidden = 4 }
  local p = mn.stepper.new(env, agent, { seed = 5, rows = 2 })
  local forward, truth = p.forward, env.truth
  function env:truth(b)
    local all = truth(self, b)
    if type(all[fact]) == "table" then all[fact] = { unpack(all[fact], 1, FEW) } end
    return all
  end
  function p:forward()
    forward(self)
    local _, state = next(self.after)
    local to, truths = state:data(), {}
    for b = 0, B - 1 do truths[b] = env:truth(b)[fact] end
    for b = 0, B - 1 do make(truths, b, to + SIZE * b) end
  end
  return p
end

-- The cells of a fact, read from all of the memory, by step; and the share of its commonest value.  The memory holds noise and the fact of the
-- environment `shift` further on.
local function read(name, fact, shift, every)
  local noise, values, total, most = example_random.new():seek(9, "train", shift), {}, 0, 0
  local p = stand_in(name, fact.name, function(truths, b, to)
    local truth = truths[(b + shift) % B]
    ffi.fill(to, 4 * SIZE)
    for j = SIZE - NOISE, SIZE - 1 do to[j] = noise:uniform() end
    for entry, value in ipairs(type(truth) == "table" and truth or { truth }) do
      values[value], total = (values[value] or 0) + 1, total + 1
      most = math.max(most, values[value])
      local at = (entry - 1) * CLASSES
      if fact.kind == "number" then to[at] = value elseif value >= 0 then to[at + value] = 1 end
    end
  end)
  local job, list = readings.new(p, { facts = { fact.name }, last = 2 * every, every = every }), {}
  job:work()
  for k, step in ipairs(job.steps) do
    local cell = (job.cells[fact.name][k] or {})[1]
    if cell then list[#list + 1] = { step = step, cell = cell } end
  end
  return list, most / total
end

for _, e in ipairs(envs.list()) do
  local env = mn.env(e.name, { num_envs = 1 })
  env:reset(1)
  t.test(e.name .. ": declares facts of its truth", function()
    t.ok(#env.to_know > 0)
    for _, fact in ipairs(env.to_know) do
      t.ok(env:truth(0)[fact.name] ~= nil, fact.name)
      t.ok(fact.kind == "class" or fact.kind == "number", fact.kind)
    end
  end)
  for k, fact in ipairs(env.to_know) do
    t.test(("%s: %s reads at the ceiling where it is, and at chance in another episode's memory"):format(e.name, fact.name), function()
      local there, commonest, every = {}, nil, nil
      for _, steps in ipairs { 22, 4, 27 } do                               -- some episodes are short, some ask late
        if #there == 0 then
          there, commonest = read(e.name, fact, 0, steps)
          every = steps
        end
      end
      if commonest > 0.98 then t.skip(("%s has one value in %.4f of what an agent does that has learned nothing"):format(fact.name, commonest)) end
      local elsewhere = k == 1 and read(e.name, fact, 47, every) or {}      -- of the first fact
      t.ok(#there > 0, "nothing was asked")
      for _, at in ipairs(there) do
        local rare = fact.kind == "class" and at.cell.classes > 8           -- of some there are few examples
        t.ok((rare and at.cell.right - at.cell.chance or at.cell.p) > (rare and 0.15 or 0.9),
          ("step %d: %.3f, %.2f right, %.2f by chance, %d classes"):format(at.step, at.cell.p, at.cell.right or 0, at.cell.chance or 0, at.cell.classes or 0))
      end
      for _, at in ipairs(elsewhere) do
        local most = math.max(at.cell.chance or 0, at.cell.control)
        t.ok(at.cell.p < most + 0.2, ("step %d: %.3f, by chance %.3f"):format(at.step, at.cell.p, most))
      end
    end)
  end
end

t.test("probabilities: what is sharp is sharp, what tells nothing is even", function()
  local noise, told, blind, answers = example_random.new():seek(1, "train", 0), {}, {}, {}
  for i = 1, 200 do
    answers[i] = i % 3 + 1
    told[i], blind[i] = { 0, 0, 0 }, {}
    told[i][answers[i]] = 1
    for k = 1, 3 do blind[i][k] = noise:uniform() end
  end
  t.ok(ridge.probabilities(told[1], ridge.sharpness(told, answers))[answers[1]] > 0.99)
  for _, p in ipairs(ridge.probabilities(blind[1], ridge.sharpness(blind, answers))) do t.near(p, 1 / 3, 0.08) end
end)

t.test("leaving a sample out by the factors is leaving it out", function()
  local n, noise, x, y = 12, example_random.new():seek(2, "train", 0), {}, {}
  for i = 1, n do
    x[i], y[i] = {}, noise:uniform()
    for j = 1, 5 do x[i][j] = noise:uniform() - 0.5 end
  end
  local function solve(list)
    local m = #list
    local a, b = ffi.new("double[?]", m * m), ffi.new("double[?]", m)
    for p, i in ipairs(list) do
      b[p - 1] = y[i]
      for q, k in ipairs(list) do
        local sum = i == k and 0.1 or 0
        for j = 1, 5 do sum = sum + x[i][j] * x[k][j] end
        a[(p - 1) * m + q - 1] = sum
      end
    end
    local order = {}
    for p = 1, m do order[p] = p end
    local l = ridge.factor(a, m, order, m, 0)
    ridge.solve(l, m, b)
    return l, b
  end
  local all = {}
  for i = 1, n do all[i] = i end
  local l, a = solve(all)
  local diagonal = ridge.inverse_diagonal(l, n)
  for i = 1, n do
    local rest, said = {}, 0
    for k = 1, n do if k ~= i then rest[#rest + 1] = k end end
    local _, b = solve(rest)
    for p, k in ipairs(rest) do for j = 1, 5 do said = said + x[i][j] * x[k][j] * b[p - 1] end end
    t.near(y[i] - a[i - 1] / diagonal[i - 1], said, 1e-9)
  end
end)

t.test("a page shows what was scored: kept readings give the same answers", function()
  mn.manual_seed(4)
  local env = mn.env("tmaze", { corridor = 6, num_envs = 64 })
  local agent = mn.agent { env = env, core = { "galite", n_layers = 2, n_heads = 2, d_model = 16, d_head = 8, d_ffn = 16, eta = 2 }, hidden = 8 }
  local p = mn.stepper.new(env, agent, { seed = 5, rows = 2 })
  local job = readings.new(p, { facts = { "cue" }, last = 3, every = 3, keep = true, seed = 70 })
  job:work()
  local seeds, right, asked = {}, { 0, 0, 0, 0, 0 }, 0
  for b = 0, 63 do seeds[b + 1] = 70 + b end
  p:restart(seeds, 70)
  for _ = 0, 2 do p:forward() p:step() end
  p:forward()
  for b = 0, 63 do
    if not job.learns[b] and p.step_of[b] == 3 then
      asked = asked + 1
      for at = 1, 5 do right[at] = right[at] + job:of("cue", at, 3, p:snapshot(b))[1].p[env:truth(b).cue] end
    end
  end
  t.eq(#job.parts, 5)
  for at = 1, 5 do t.near(right[at] / asked, job.cells.cue[2][at].p, 1e-3) end
end)

t.test("mneme probe: its errors", function()
  local function said(words) return (shell.mneme("/tmp", words)) end
  t.ok(said "probe":find "which run")
  t.ok(said "probe . .":find "one run")
  t.ok(said "probe . episodes=3":find "at least 48")
  t.ok(said "probe . out=x.doc":find "x.doc")
  local function many(n)
    mn.manual_seed(1)
    local env = mn.env("tmaze", { corridor = 3, num_envs = n })
    return mn.stepper.new(env, mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 }, { seed = 5 })
  end
  local p = many(readings.most + 1)
  t.ok(p.rows * p.num_envs < 10000, "rows of a plan for many environments: " .. p.rows)
  t.eq(many(64).rows, 64)
  t.fails(function() readings.new(p) end)
  local silent = mn.env("tmaze", { num_envs = 64 })
  silent.to_know = {}                                -- as of a user's own file of C that declares none
  local _, why = pcall(readings.new, mn.stepper.new(silent, mn.agent { env = silent, core = "rnn" }, {}))
  t.ok(why.hint:find("engine/envs/tmaze.c", 1, true), why.hint)
  t.fails(function() readings.new(mn.stepper.new(mn.env("tmaze", { num_envs = 64 }), mn.agent { env = mn.env "tmaze", core = "rnn" }, { rows = 2 }),
    { facts = { "clue" } }) end)
end)
