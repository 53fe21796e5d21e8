-- test_many_differences.lua -- stats.max_sign_test: how often it is wrong, what it finds, and what it refuses.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local stats = require "mneme.stats"
local C = engine.C

-- Draws of 0 or 1, less draws of 0 or 1, for `cases` cases of m differences; in the first one the second draw is 0 with chance `effect`.
local function differences(seed, m, cases, effect)
  local u, list = ffi.new("float[?]", (2 * m + 1) * cases), {}
  C.mn_random_uniform(seed, 0, 9, u, (2 * m + 1) * cases)
  for k = 1, m do
    list[k] = {}
    for i = 1, cases do
      local at = ((i - 1) * m + k - 1) * 2
      local with = (u[at + 1] < 0.7 and not (k == 1 and u[2 * m * cases + i - 1] < effect)) and 1 or 0
      list[k][i] = (u[at] < 0.7 and 1 or 0) - with
    end
  end
  return list
end

t.test("max_sign_test: false alarms among many differences are as rare as it says, and a true one is found", function()
  local alarms, found, sets = 0, 0, 200
  for set = 1, sets do
    local least = 1
    for _, p in ipairs(stats.max_sign_test(differences(set, 12, 40, 0), 40, { reps = 400, seed = set })) do least = math.min(least, p) end
    alarms = alarms + (least <= 0.05 and 1 or 0)
    found = found + (stats.max_sign_test(differences(set, 12, 40, 0.8), 40, { reps = 400, seed = set })[1] <= 0.05 and 1 or 0)
  end
  t.ok(alarms <= 0.05 * sets + 3 * math.sqrt(0.05 * 0.95 * sets), ("%d of %d sets had a false alarm"):format(alarms, sets))
  t.ok(found >= 0.9 * sets, ("%d of %d effects were found"):format(found, sets))
end)

t.test("max_sign_test: of one difference it is McNemar's exact test, and more of them make p no smaller", function()
  for _, c in ipairs { { 9, 1 }, { 7, 3 }, { 12, 0 }, { 5, 5 } } do
    local d, more = {}, {}
    for i = 1, c[1] + c[2] do d[i], more[i] = i <= c[1] and 1 or -1, i % 2 == 0 and 1 or -1 end
    for _ = 1, 6 do d[#d + 1] = 0 end
    local p = stats.max_sign_test({ d }, #d, { reps = 20000 })
    t.near(p[1], stats.sign_test(c[1], c[2]), 0.015, c[1] .. " against " .. c[2])
    local both, threshold, seen = stats.max_sign_test({ d, more }, #d, { reps = 20000 })
    t.ok(both[1] >= p[1] - 0.005)
    t.ok(seen[1] <= threshold + 1e-9 or both[1] < 0.05)
  end
  local p, threshold, seen = stats.max_sign_test({ { 0, 0, 0 }, { [2] = 0 } }, 3)
  t.eq(p[1], 1) t.eq(p[2], 1) t.eq(seen[1], 0) t.eq(threshold, 0)
  t.raises(stats.max_sign_test, "an empty list", {}, 3)
  t.raises(stats.max_sign_test, "finite number", { { 0 / 0 } }, 1)
end)
