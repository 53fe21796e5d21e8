-- test_search.lua -- where a tuning measures next: Sobol's points, the Gaussian process and the improvement against other programs and
-- closed forms; ranges; the schedule of a budget; and that it finds more than random search does.
local t = require "tests.harness"
local files = require "mneme.base.files"
local gp = require "mneme.lab.search.gaussian_process"
local improvement = require "mneme.lab.search.improvement"
local json = require "mneme.base.json"
local schedule = require "mneme.lab.search.schedule"
local sobol = require "mneme.lab.search.sobol"
local space = require "mneme.lab.search.space"
local special = require "mneme.stats.special"

local want = json.decode((files.read "tests/fixtures/search.json"))

t.test("Sobol's points are scipy's", function()
  t.eq(#want.sobol[1], sobol.MOST)
  local next_point = sobol.new(sobol.MOST)
  for i, point in ipairs(want.sobol) do
    local ours = next_point()
    for d, v in ipairs(point) do t.near(ours[d], v, 1e-9, ("point %d, dimension %d"):format(i, d)) end
  end
end)

t.test("shifted points fill the cube as evenly", function()
  local next_point, seen = sobol.new(3, { 0.3, 0.77, 0.12 }), {}
  for _ = 1, 64 do
    local p = next_point()
    for d = 1, 3 do
      t.ok(p[d] >= 0 and p[d] < 1)
      local at = d .. ":" .. math.floor(p[d] * 64)
      t.ok(not seen[at], "two of 64 points in one of 64 slices")
      seen[at] = true
    end
  end
  t.raises(sobol.new, "25 dimensions, expected 1 to 24", 25)
end)

t.test("the Gaussian process is scikit-learn's", function()
  for _, c in ipairs(want.process) do
    local p = gp.new(c.x, c.y, c.noise, { variance = c.variance, lengths = c.lengths, mean = 0 })
    t.near(p.log_likelihood, c.log_likelihood, 1e-5)
    for i, at in ipairs(c.at) do
      local mean, variance = p:predict(at)
      t.near(mean, c.mean[i], 1e-6)
      t.near(math.sqrt(variance), c.sd[i], 1e-5)
    end
  end
end)

t.test("one point in closed form; the likeliest mean", function()
  local p = gp.new({ { 0 } }, { 3 }, { 0.5 }, { variance = 2, lengths = { 1 }, mean = 1 })
  local mean, variance = p:predict { 0 }
  t.near(mean, 1 + 2 * 2 / 2.5, 1e-6)
  t.near(variance, 2 - 4 / 2.5, 1e-6)
  t.near(gp.new({ { 0 }, { 1 } }, { 3, 5 }, { 1, 1 }, { variance = 1, lengths = { 1e-3 } }).mean, 4, 1e-9)
  local best = -math.huge
  for m = 2, 5, 0.01 do
    best = math.max(best, gp.new({ { 0 }, { 0.2 }, { 1 } }, { 3, 5, 4 }, { 1, 0.1, 1 }, { variance = 1, lengths = { 0.5 }, mean = m }).log_likelihood)
  end
  t.ok(gp.new({ { 0 }, { 0.2 }, { 1 } }, { 3, 5, 4 }, { 1, 0.1, 1 }, { variance = 1, lengths = { 0.5 } }).log_likelihood >= best - 1e-12)
end)

t.test("lengths: what does not matter gets a long one", function()
  local x, y, uniform = {}, {}, improvement.random(3, 1)
  for i = 1, 40 do
    x[i] = { uniform(), uniform() }
    y[i] = 1.4 * math.sin(7 * x[i][1])
  end
  local p = gp.fit(x, y, nil, { 1, 2 })
  t.ok(p.lengths[2] > 3 * p.lengths[1], ("%g and %g"):format(p.lengths[1], p.lengths[2]))
  local worst = 0
  for i = 0, 20 do worst = math.max(worst, math.abs((p:predict { i / 20, 0.5 }) - 1.4 * math.sin(7 * i / 20))) end
  t.ok(worst < 0.2, worst)
  local shared = gp.fit(x, y, nil, { 1, 1 })
  t.eq(shared.lengths[1], shared.lengths[2])
end)

t.test("without noise and with nothing pending, improvement is the closed form", function()
  local p = gp.new({ { 0.1 }, { 0.5 }, { 0.8 } }, { 0, 1, 0.3 }, { 1e-9, 1e-9, 1e-9 }, { variance = 1, lengths = { 0.3 }, mean = 0 })
  local gain = improvement.of(p, {}, improvement.random(1, 1))
  for _, x in ipairs { 0.2, 0.4, 0.6, 0.95 } do
    local mean, variance = p:predict { x }
    local s = math.sqrt(variance)
    local d = mean - 1
    t.near(gain { x }, d * special.normal_cdf(d / s) + s * math.exp(-0.5 * (d / s) ^ 2) / math.sqrt(2 * math.pi), 2e-3)
  end
  t.ok(gain { 0.5 } < 1e-3, "nothing is gained where it is known")
  local waiting = improvement.of(p, { { 0.62 } }, improvement.random(1, 1))
  t.ok(waiting { 0.62 } < 0.1 * gain { 0.62 }, "nor where it is being measured")
end)

t.test("ranges, whole numbers and categories", function()
  local s = space.new { lr = "1e-5..1e-1:log", n = "2..5:int", w = "8..512:log:int", kind = { "a", "b", "c" } }
  local counts = {}
  for i = 0, 99 do
    local setting = s:setting { i / 100, i / 100, i / 100, i / 100 }
    counts[setting.n], counts[setting.kind] = (counts[setting.n] or 0) + 1, (counts[setting.kind] or 0) + 1
    t.ok(tonumber(setting.w) % 1 == 0 and tonumber(setting.w) >= 8 and tonumber(setting.w) <= 512)
    local again = s:setting(s:point(setting))
    for name, text in pairs(setting) do t.eq(again[name], text, name) end
  end
  for _, key in ipairs { "2", "3", "4", "5" } do t.eq(counts[key], 25) end
  t.ok(counts.a >= 33 and counts.b >= 33 and counts.c >= 33)
  t.eq(s:setting({ 0, 0.5, 0, 1 }).lr, "0.001")
  t.eq(s:point { lr = 1, n = 3, w = 8, kind = "a" }, nil)
  t.eq(s:point { lr = 1e-3, n = 3, w = 8, kind = "d" }, nil)
  t.ok(s:point { lr = 1e-5, n = 2, w = 512, kind = "c" })
  t.ok(space.is_range "1e-5..1e-2:log" and space.is_range "-3..4" and not space.is_range "../x.lua" and not space.is_range "a,b")
  for text, why in pairs { ["2..1"] = "lower end first", ["0..1:log"] = "no 0 or less", ["1.5..3:int"] = "not whole", ["1..3:lin"] = "lin",
    ["1..2..3"] = "expected two numbers" } do
    t.raises(space.new, why, { lr = text })
  end
  t.raises(space.new, "expected a range or several values", { lr = { 1 } })
end)

-- A tuning of a function, as `measure` gives it.
local function tuned(s, o, measure)
  local proposals, scores = {}, {}
  local function measured(i) return scores[i] end
  while true do
    local p, over = schedule.next(s, o, proposals, measured)
    if not p then
      t.ok(over)
      break
    end
    proposals[#proposals + 1], scores[#scores + 1] = p, {}
    for k, seed in ipairs(p.seeds) do scores[#scores][k] = measure(p.values, seed) end
  end
  return schedule.best(s, o, proposals, measured), proposals
end

t.test("a budget is spent to the last trial, no setting has a seed twice, and the script's own setting comes first", function()
  local s = space.new { lr = "1e-5..1e-1:log", kind = { "a", "b" } }
  for trials = 2, 40, 3 do
    for seeds = 1, math.min(3, trials) do
      local n, seen, own = 0, {}, { lr = "0.001", kind = "b" }
      local best, proposals = tuned(s, { trials = trials, seeds = seeds, top = 3, ahead = 2, seed = 1, first_seed = 1001, default = own }, function(v, seed)
        local _, key = s:words(v)
        n, key = n + 1, key .. seed
        t.ok(not seen[key], key)
        seen[key] = true
        return seed % 7 == 0 and false or math.log(tonumber(v.lr))
      end)
      t.eq(n, trials, ("%d trials, %d seeds"):format(trials, seeds))
      t.eq(proposals[1].values, own)
      t.ok(#best >= 1 and #best <= 3)
    end
  end
end)

t.test("a proposal does not depend on what is measured later than `ahead` before it", function()
  local s = space.new { x = "0..1", y = "0..1" }
  local o = { trials = 20, seeds = 1, top = 2, ahead = 3, seed = 4, first_seed = 1001 }
  local function f(v) return -(tonumber(v.x) - 0.3) ^ 2 - (tonumber(v.y) - 0.6) ^ 2 end
  local _, all = tuned(s, o, f)
  for i = 1, schedule.parts(s, o).settings do
    local before = { unpack(all, 1, i - 1) }
    local p = schedule.next(s, o, before, function(k) return k <= i - o.ahead and { f(all[k].values) } or nil end)
    t.eq(json.encode(p), json.encode(all[i]))
  end
end)

t.test("a setting that always fails is the worst, and is not picked", function()
  local s = space.new { x = "0..1" }
  local best = tuned(s, { trials = 16, seeds = 1, top = 1, ahead = 1, seed = 2, first_seed = 1 }, function(v)
    return tonumber(v.x) <= 0.5 and tonumber(v.x) or false
  end)
  t.ok(tonumber(best[1].values.x) <= 0.5 and tonumber(best[1].values.x) > 0.3, best[1].values.x)
end)

t.test("noise is measured between seeds", function()
  local s, list, uniform = space.new { x = "0..1" }, {}, improvement.random(9, 2)
  for i = 1, 30 do
    local scores = {}
    for k = 1, 2 do scores[k] = math.sin(6 * i / 30) + 0.4 * special.normal_quantile(uniform()) end
    list[i] = { id = i, values = { x = ("%.4g"):format(i / 30) }, scores = scores, mean = (scores[1] + scores[2]) / 2 }
  end
  local process, _, sd = schedule.model(s, list)
  local mean = 0
  for i = 1, 30 do mean = mean + process.noise[i] * sd ^ 2 * 2 / 30 end
  t.ok(mean > 0.1 and mean < 0.24, mean)                   -- 0.4^2 = 0.16
end)

-- Two settings that matter in a narrow place, one that does not; the noise of a seed is a fifth of the height.
t.test("with noise it finds more than random search with the same trials", function()
  local s = space.new { lr = "1e-5..1e-1:log", beta = "0..1", idle = "0..1" }
  local function truth(v)
    local l = math.log(tonumber(v.lr)) / math.log(10)
    return math.exp(-((l + 3.3) / 0.6) ^ 2 - ((tonumber(v.beta) - 0.3) / 0.25) ^ 2)
  end
  local TRIALS, TIMES, ours, random, wins = 40, 24, 0, 0, 0
  for k = 1, TIMES do
    local noise, uniform = improvement.random(k, 71), improvement.random(k, 72)
    local function measure(v) return truth(v) + 0.2 * special.normal_quantile(noise()) end
    local best = tuned(s, { trials = TRIALS, seeds = 1, top = 3, ahead = 2, seed = k, first_seed = 1 }, measure)
    local most, pick = -math.huge, nil
    for _ = 1, TRIALS do
      local v = s:setting { uniform(), uniform(), uniform() }
      local score = measure(v)
      if score > most then most, pick = score, v end
    end
    local a, b = truth(best[1].values), truth(pick)
    ours, random, wins = ours + a / TIMES, random + b / TIMES, wins + (a > b and 1 or 0)
  end
  print(("  %d tunings of %d trials: %.3f, random search %.3f, better in %d"):format(TIMES, TRIALS, ours, random, wins))
  t.ok(ours > random + 0.1 and wins >= 0.7 * TIMES, ("%.3f against %.3f, better in %d of %d"):format(ours, random, wins, TIMES))
end)

t.test("improvement per second avoids what is dear", function()
  local s = space.new { x = "0..1" }
  local sum = { steps = 0, seconds = 0 }
  for _, cost in ipairs { "steps", "seconds" } do
    local o = { trials = 24, seeds = 1, top = 1, ahead = 1, seed = 3, first_seed = 1 }
    local of = {}
    if cost == "seconds" then o.seconds = function(id) return of[id] end end
    local _, proposals = tuned(s, o, function(v) return math.sin(3 * tonumber(v.x)) end)
    -- trials at x take exp(4 x) seconds; again, now that they are known
    for _, p in ipairs(proposals) do of[p.setting] = math.exp(4 * tonumber(p.values.x)) end
    local function scores(i) return i < #proposals and { math.sin(3 * tonumber(proposals[i].values.x)) } or nil end
    local parts = schedule.parts(s, o)
    for i = parts.start + 1, parts.settings do
      local p = schedule.next(s, o, { unpack(proposals, 1, i - 1) }, scores)
      sum[cost] = sum[cost] + math.exp(4 * tonumber(p.values.x))
    end
  end
  t.ok(sum.seconds < sum.steps, ("%.0f and %.0f seconds"):format(sum.seconds, sum.steps))
end)
