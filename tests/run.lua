-- run.lua -- runs tests/test_*.lua (or the files named) one after another; last line "N passed, N failed".
local here = arg[0]:match "^(.*)tests/run%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local t = require "tests.harness"

local files = { unpack(arg) }
if #files == 0 then
  local list = io.popen("ls " .. here .. "tests/test_*.lua")
  for file in list:lines() do files[#files + 1] = file end
  list:close()
end
for _, file in ipairs(files) do
  local before, start = { t.passed, t.failed, t.skipped }, os.clock()
  local chunk, err = loadfile(file)
  t.test(file, chunk or function() error(err, 0) end)
  collectgarbage()
  print(("%-28s %4d passed %3d failed %3d skipped  %5.1f s"):format(file:match "[^/]*$",
    t.passed - before[1], t.failed - before[2], t.skipped - before[3], os.clock() - start))
  io.stdout:flush()
end
print(("%d passed, %d failed%s"):format(t.passed, t.failed, t.skipped > 0 and (", %d skipped"):format(t.skipped) or ""))
os.exit(t.failed == 0 and t.passed > 0 and 0 or 1, false)
