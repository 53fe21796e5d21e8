-- test_search.lua -- where a tuning measures: Sobol's points against another program; ranges; the schedule of a budget.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local tuning_schedule = require "mneme.lab.search.tuning_schedule"
local sobol = require "mneme.lab.search.sobol"
local search_space = require "mneme.lab.search.search_space"

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

t.test("ranges, whole numbers and categories", function()
  local s = search_space.new { lr = "1e-5..1e-1:log", n = "2..5:int", w = "8..512:log:int", kind = { "a", "b", "c" } }
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
  t.ok(search_space.is_range "1e-5..1e-2:log" and search_space.is_range "-3..4" and not search_space.is_range "../x.lua" and not search_space.is_range "a,b")
  for text, why in pairs { ["2..1"] = "lower end first", ["0..1:log"] = "no 0 or less", ["1.5..3:int"] = "not whole", ["1..3:lin"] = "lin",
    ["1..2..3"] = "expected two numbers" } do
    t.raises(search_space.new, why, { lr = text })
  end
  t.raises(search_space.new, "expected a range or several values", { lr = { 1 } })
end)

-- A tuning of a function, as `measure` gives it.
local function tuned(s, o, measure)
  local proposals = tuning_schedule.start(s, o)
  local function score(from)
    for i = from, #proposals do
      local p = proposals[i]
      p.scores = {}
      for k, seed in ipairs(p.seeds) do p.scores[k] = measure(p.values, seed) end
    end
  end
  score(1)
  local n = #proposals
  tuning_schedule.finish(s, o, proposals)
  score(n + 1)
  return tuning_schedule.best(o, proposals), proposals, n
end

t.test("a budget is spent to the last trial, no setting has a seed twice, and the script's own setting comes first", function()
  local s = search_space.new { lr = "1e-5..1e-1:log", kind = { "a", "b" } }
  for trials = 2, 40, 3 do
    for seeds = 1, math.min(3, trials) do
      local n, seen, own = 0, {}, { lr = "0.001", kind = "b" }
      local best, proposals = tuned(s, { trials = trials, seeds = seeds, top = 3, seed = 1, first_seed = 1001, default = own }, function(v, seed)
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

t.test("settings of the start depend on no result, and the best of them get further seeds", function()
  local s = search_space.new { x = "0..1", y = "0..1" }
  local o = { trials = 20, seeds = 1, top = 2, seed = 4, first_seed = 1001 }
  local best, all, n = tuned(s, o, function(v) return -(tonumber(v.x) - 0.3) ^ 2 - (tonumber(v.y) - 0.6) ^ 2 end)
  t.eq(n, tuning_schedule.settings(o))
  for i, p in ipairs(tuning_schedule.start(s, o)) do
    t.eq(json.encode(p.values), json.encode(all[i].values))
    local d, b = {}, best[1].values
    for k, v in ipairs { p.values, b } do d[k] = (v.x - 0.3) ^ 2 + (v.y - 0.6) ^ 2 end
    t.ok(d[1] >= d[2], "the best is the nearest of all")
  end
  for i = n + 1, #all do t.ok(all[i].why == "last" and (all[i].setting == best[1].id or all[i].setting == best[2].id)) end
end)

t.test("picks near an end of their range are counted, those of lists and of the middle are not", function()
  local picks = {}
  for i, lr in ipairs { "1e-5", "1.1e-5", "3e-4", "9e-3" } do picks[i] = { lr = lr, n = i == 1 and "32" or "17", by = "linear" } end
  local found = {}
  for _, line in ipairs(search_space.crowded(search_space.text { lr = "1e-5..1e-2:log", n = "1..32:int", by = { "linear", "constant" } }, picks)) do
    local name, count, where, range = line:match "^(%S+): (%d) of 4 picks? %l+ near the (%l+) end of (%S+)$"
    found[#found + 1] = { name, tonumber(count), where, range }
  end
  t.eq(json.encode(found), json.encode { { "lr", 2, "lower", "1e-5..1e-2:log" }, { "lr", 1, "upper", "1e-5..1e-2:log" }, { "n", 1, "upper", "1..32:int" } })
end)

t.test("a setting that always fails is the worst, and is not picked", function()
  local s = search_space.new { x = "0..1" }
  local best = tuned(s, { trials = 16, seeds = 1, top = 1, seed = 2, first_seed = 1 }, function(v)
    return tonumber(v.x) <= 0.5 and tonumber(v.x) or false
  end)
  t.ok(tonumber(best[1].values.x) <= 0.5 and tonumber(best[1].values.x) > 0.3, best[1].values.x)
end)
