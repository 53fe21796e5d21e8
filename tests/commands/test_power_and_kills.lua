-- test_power_and_kills.lua -- a few power cuts and kills at random moments: going on gives the bits of an undisturbed run, and no line of a
-- log is lost.  `luajit tests/endurance/power.lua 200` and `kill.lua 200` try more.
local t = require "tests.harness"
local shell = require "tests.support.shell"

local preloaded = os.getenv "LD_PRELOAD" or ""

t.test("after a power cut", function()
  if not shell.has "cc" then t.skip "no C compiler" end
  if preloaded ~= "" then t.skip "a sanitizer wants to be the first library" end
  local said, status = shell.run(shell.root, ("MNEME_BUILD='%s' luajit tests/endurance/power.lua 8"):format(shell.build))
  t.ok(status == 0 and said:find "\n8 of 8 power cuts are taken well", said)
end)

t.test("after kill -9", function()
  local said, status = shell.run(shell.root, ("MNEME_BUILD='%s' luajit tests/endurance/kill.lua 2"):format(shell.build))
  t.ok(status == 0 and said:find "^2 of 2 runs are the same", said)
end)
