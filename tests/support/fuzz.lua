-- fuzz.lua -- what the fuzzers of tests/endurance share: where the modules are, CASES and SEED of the command line, a folder with a run and a study,
-- and how what a command printed is judged.  A fuzzer loads it by its path, since nothing says yet where modules lie.
local here = arg[0]:match "^(.*)tests/endurance/[%w_]+%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local foreign = require "tests.support.foreign"
local shell = require "tests.support.shell"

io.stdout:setvbuf "line"
local fuzz = { cases = tonumber(arg[1]) or 300, seed = tonumber(arg[2]) or 1, folder = shell.folder(), bad = 0, ran = 0 }
math.randomseed(fuzz.seed)
foreign.prepare(fuzz.folder)

function fuzz.pick(list) return list[math.random(#list)] end

---Runs a command; is anything wrong with what it did?
---@param i integer the case
---@param words string
---@param about string? what was done before it
---@param more fun(said: string, status: integer?): string? what else may be wrong
---@param line string? as for foreign.problem
---@return boolean
function fuzz.try(i, words, about, more, line)
  local said, status = foreign.run(fuzz.folder, words)
  local problem = foreign.problem(said or "", status, line) or more and more(said, status)
  fuzz.ran = fuzz.ran + 1
  if not problem then return false end
  fuzz.bad = fuzz.bad + 1
  print(("case %d: %s: mneme %s%s\n  %s"):format(i, problem, words:gsub("%c", "?"), about and ": " .. about or "", (said or ""):sub(-400):gsub("%c", " ")))
  return true
end

---The last line, and the end; the folder stays where something was wrong.
function fuzz.finish()
  print(("%d cases, %d commands, %d problems (seed %d)"):format(fuzz.cases, fuzz.ran, fuzz.bad, fuzz.seed))
  if fuzz.bad == 0 then os.execute(("rm -rf '%s'"):format(fuzz.folder)) else print("what was wrong lies in " .. fuzz.folder) end
  os.exit(fuzz.bad == 0 and 0 or 1)
end

return fuzz
