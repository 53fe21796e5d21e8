-- test_luajit_pairs.lua -- loops over tables come to every key once, however often they run and whatever the compiler makes of them.
local t = require "tests.harness"
require "mneme"

-- Without the replacement, the LuaJIT of Debian 12 ends the outer loop after one key from about the 40,000th round on.
t.test("pairs: a loop within a loop comes to all keys, 100,000 times", function()
  local inner, wrong = { 1, 2, 3 }, 0
  local outer = { p = inner, q = inner, r = inner, s = inner, u = inner, v = inner }
  local function leave(...) for _ = 1, 50 do end return ... end          -- ends whatever is being compiled
  for _ = 1, 100000 do
    leave()
    local n = 0
    for _, list in pairs(outer) do
      for _ in pairs(list) do end
      n = n + 1
    end
    if n ~= 6 then wrong = wrong + 1 end
  end
  t.eq(wrong, 0)
end)

t.test("pairs: keys of every kind, none, and what is no table", function()
  local key, seen, n = {}, {}, 0
  local of = { 10, 20, nil, 40, word = "a", [key] = "b", [2.5] = "c", [false] = "d" }
  for k, v in pairs(of) do
    seen[k], n = v, n + 1
    of[k] = nil                                   -- allowed on the way
  end
  t.eq(n, 7)
  t.eq(seen[4], 40)
  t.eq(seen[key], "b")
  t.eq(seen[false], "d")
  t.eq(next(of), nil)
  for _ in pairs {} do t.ok(false, "an empty table has a key") end
  t.raises(function() for _ in pairs(nil) do end end, "test_luajit_pairs.lua:%d+: bad argument #1 to 'pairs' %(table expected, got nil%)")
end)
