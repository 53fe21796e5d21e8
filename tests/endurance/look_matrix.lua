-- look_matrix.lua -- can every run be looked at, whoever wrote its parts?   luajit tests/endurance/look_matrix.lua [PART-OF-A-NAME ...]
-- Trains each case of tests/support/look_matrix.lua for a moment and runs every command on it.  Some 20 minutes of processor time;
-- tests/commands/test_look_at_runs.lua has a part of it.
local here = arg[0]:match "^(.*)tests/endurance/look_matrix%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local look_matrix = require "tests.support.look_matrix"
local shell = require "tests.support.shell"

local function chosen(name)
  for _, part in ipairs(arg) do if not name:find(part, 1, true) then return false end end
  return true
end

local folder, count, failed = shell.folder(), 0, 0
look_matrix.prepare(folder)
for _, case in ipairs(look_matrix.all()) do
  local name = look_matrix.name(case)
  if chosen(name) then
    local problems = { look_matrix.train(folder, name, case) }
    for _, tool in ipairs(problems[1] and {} or look_matrix.tools) do
      count = count + 1
      problems[#problems + 1] = look_matrix.look(folder, name, tool)
    end
    failed = failed + #problems
    print(("%s %s"):format(#problems == 0 and "fine  " or "FAILED", name))
    for _, problem in ipairs(problems) do print("  " .. problem:gsub("\n", "\n  ")) end
  end
end
os.execute("rm -r '" .. folder .. "'")
print(("%d commands, %d failed"):format(count, failed))
os.exit(failed == 0 and 0 or 1, false)
