-- test_eval_outcomes.lua -- `mneme eval ... outcomes=1`: what episodes reached, of a run and of a study, with intervals; its mistakes.
local t = require "tests.harness"
local files = require "mneme.base.files"
local outcomes_table = require "mneme.lab.reports.outcomes_table"
local shell = require "tests.support.shell"
local stats = require "mneme.stats"

local small = "env=craftax_classic core=gru core.d_model=8 hidden=8 num_envs=8 num_steps=16 minibatches=2 epochs=1 steps=256 threads=1"
local folder = shell.folder()
local said, status = shell.mneme(folder, "sweep craftax seeds=2 run=grid jobs=2 estimate=0 " .. small)
t.test("a small study of Craftax Classic runs", function() t.eq(status, 0, said) end)

-- estimate, low, high by outcome and column, of a CSV
local function read(path)
  local rows = {}
  for line in files.read(path):gmatch "[^\n]+" do
    local name, of, estimate, low, high, runs, episodes = line:match '^([^,]+),"?(.-)"?,([^,]*),([^,]*),([^,]*),(%d+),(%d+)$'
    if name then
      rows[#rows + 1] = { name = name, of = of, estimate = tonumber(estimate), low = tonumber(low), high = tonumber(high), runs = tonumber(runs),
        episodes = tonumber(episodes) }
      rows[name] = rows[#rows]
    end
  end
  return rows
end

t.test("the Crafter score is the geometric mean of rates in percent, each one more", function()
  t.near(outcomes_table.crafter_score { 0, 0, 0 }, 0, 1e-12)
  t.near(outcomes_table.crafter_score { 100, 100 }, 100, 1e-9)
  t.near(outcomes_table.crafter_score { 0, 99 }, 9, 1e-9)          -- sqrt(1 * 100) - 1
end)

t.test("of a run: 22 rates with Wilson's intervals, whose sum is the score; the same again with the same seed", function()
  local run = "grid/runs/" .. files.list(folder .. "/grid/runs")[1]
  local text
  text, status = shell.mneme(folder, ("eval %s outcomes=1 episodes=24 out=a.csv"):format(run))
  t.eq(status, 0, text)
  t.ok(text:find "24 episodes of each run" and text:find "Crafter score" and text:find "wake_up", text)
  local rows, sum, rates = read(folder .. "/a.csv"), 0, {}
  t.eq(#rows, 3 + 22)
  for i = 4, #rows do
    local row = rows[i]
    local p, low, high = stats.wilson(math.floor(row.estimate * 0.24 + 0.5), 24)
    t.near(row.estimate, 100 * p, 1e-4, row.name)
    t.near(row.low, 100 * low, 1e-3) t.near(row.high, 100 * high, 1e-3)
    t.eq(row.episodes, 24)
    sum, rates[#rates + 1] = sum + row.estimate, row.estimate
  end
  t.near(sum / 22, rows.score.estimate, 1e-3)
  t.ok(sum > 20, "random play reaches something: " .. sum)
  t.near(rows["Crafter score"].estimate, outcomes_table.crafter_score(rates), 1e-3)
  shell.mneme(folder, ("eval %s outcomes=1 episodes=24 out=b.csv"):format(run))
  t.eq(files.read(folder .. "/b.csv"), files.read(folder .. "/a.csv"))
  -- and the return is that of the plain command
  text = shell.mneme(folder, ("eval %s episodes=24"):format(run))
  t.near(tonumber(text:match "return  (%S+)"), rows["return"].estimate, 1e-3, text)
end)

t.test("of an environment of Lua functions: what its `outcome` says of each episode, also at a time limit; where measures it as any other", function()
  files.write(folder .. "/keys.lua", { [[
return { name = "keys", observation = { 2 }, actions = 2, time_limit = 3, outcomes = { "first", "both", "never", "late" },
  outcome = function(self) return { first = self.n > 0, both = self.n == 2 and 1 or 0, late = self.t == 3 } end,
  reset = function(self, random) self.n, self.t, self.wanted = 0, 0, random(2) - 1 return { self.wanted, 1 } end,
  step = function(self, action)
    self.t, self.n = self.t + 1, self.n + (action == 1 and 1 or 0)
    return { 0, 0 }, action, self.n == 2, self.n / 2
  end }
]] })
  local mn = require "mneme"
  local spec = dofile(folder .. "/keys.lua")
  spec.num_envs, spec.seed = 2, 1
  local env = mn.env(spec)
  t.eq(table.concat(env.outcomes, " "), "first both never late")
  local reached = env:keep_outcomes()
  env:reset(1)
  for _, actions in ipairs { { 1, 0 }, { 1, 0 }, { 0, 1 } } do env:step(actions) end
  t.eq(require("ffi").string(reached, 8), "\1\1\0\0" .. "\1\0\0\1")
  local other = mn.env(spec)
  t.eq(other:keep_outcomes()[0], 0)
  local text
  text, status = shell.mneme(folder, "run train env=keys.lua core.d_model=8 hidden=8 num_envs=4 num_steps=8 steps=64 threads=1 run=keys")
  t.eq(status, 0, text)
  text, status = shell.mneme(folder, "eval keys outcomes=1 episodes=50 out=keys.csv")
  t.eq(status, 0, text)
  local rows = read(folder .. "/keys.csv")
  t.ok(rows.first.estimate >= rows.both.estimate and rows.both.estimate > 0 and rows.never.estimate == 0 and rows.late.estimate > 0, text)
  local _, low = stats.wilson(math.floor(rows.both.estimate / 2 + 0.5), 50)
  t.near(rows.both.low, 100 * low, 1e-3)
  t.eq(select(2, shell.mneme(folder, "where keys episodes=4")), 0)
  for changed, expected in pairs { [{ outcomes = { "a", "a" } }] = "outcomes%[2%] is a", [{ outcomes = {} }] = "outcomes%[1%] is nil",
      [{ outcomes = "a" }] = "outcomes is a string",
      [{ outcome = false }] = "outcome is a boolean", [{ outcomes = { "a b" } }] = "outcomes%[1%] is a b" } do
    local wrong = {}
    for _, set in ipairs { spec, changed } do for key, value in pairs(set) do wrong[key] = value end end
    t.raises(function() mn.env(wrong) end, expected)
  end
  spec.outcome = function() return { frist = true } end
  local bad = mn.env(spec)
  bad:keep_outcomes()
  bad:reset(1)
  t.fails(function() for _ = 1, 3 do bad:step { 1, 1 } end end)
  spec.outcome = nil
  t.fails(function() mn.env(spec) end)
end)

t.test("of a study: a column for each point, means over its seeds", function()
  local text
  text, status = shell.mneme(folder, "eval grid outcomes=1 episodes=16 out=c.csv")
  t.eq(status, 0, text)
  local rows, runs = read(folder .. "/c.csv"), files.list(folder .. "/grid/runs")
  t.eq(rows.wake_up.runs, 2)
  local sum, score = 0, 0
  for k, name in ipairs(runs) do
    shell.mneme(folder, ("eval grid/runs/%s outcomes=1 episodes=16 out=%d.csv"):format(name, k))
    local one = read(folder .. "/" .. k .. ".csv")
    sum, score = sum + one.wake_up.estimate / #runs, score + one["Crafter score"].estimate / #runs
  end
  t.near(rows.wake_up.estimate, sum, 1e-3)
  t.near(rows["Crafter score"].estimate, score, 1e-3)
end)

t.test("what does not fit is said", function()
  for words, expected in pairs {
    ["eval grid/runs/nothing outcomes=1"] = "nothing", ["eval grid outcomes=1 out=a.txt"] = "expected a name ending in .csv",
    ["eval grid out=a.csv"] = "goes with outcomes=1", ["eval grid outcomes=1 record=x"] = "do not go together",
    ["eval grid grid"] = "one run, got 'grid' and 'grid'", ["eval grid episodes=0"] = "eval: episodes=0, expected a whole number of at least 1",
    ["eval grid outcomes=1 checkpoint=0"] = "expected no checkpoint=", ["eval"] = "eval: which run?",
  } do
    local text
    text, status = shell.mneme(folder, words)
    t.ok(status ~= 0 and text:find(expected, 1, true), words .. ": " .. text)
  end
  shell.mneme(folder, "run tmaze core=gru core.d_model=8 hidden=8 corridor=4 num_envs=2 num_steps=8 steps=64 run=maze threads=1")
  local text = shell.mneme(folder, "eval maze outcomes=1")
  t.ok(text:find("outcomes=1, but tmaze-v0 declares none", 1, true), text)
  os.execute("rm -r '" .. folder .. "'")
end)
