-- test_attack.lua -- every public function, op and method is called with everything that it does not expect (attack_values.lua):
-- wrong types, sizes from -1 to 1e300, NaN, tables that hold themselves, tensors that were swept or freed, arguments too
-- few and too many.  It may work or refuse; no call may take the process with it, hang, or eat memory.
local t = require "tests.harness"
local mn = require "mneme"
local shell = require "tests.support.shell"

local root, build = shell.root, shell.build

local limit = 0.4 * (tonumber(os.getenv "MNEME_TEST_LIMIT") or 900)    -- of what this file may take: the note then says what hung

local function attack(part)
  local folder = shell.folder()
  local said, status = shell.run(folder, ("MNEME_BUILD='%s' timeout %d luajit '%stests/project/attack_values.lua' '%s' %s note 2> /dev/null"):format(build,
    limit, root, root, part))
  local last = shell.run(folder, "head -n 1 note"):gsub("%s+$", "")
  os.execute("rm -r '" .. folder .. "'")
  t.eq(status, 0, last .. ": " .. said)
  local calls, answered, faults, peak = said:match "(%d+) calls, (%d+) answered, (%d+) faults, (%d+) MB"
  t.ok(tonumber(calls) > 1000, said)
  t.ok(tonumber(peak) < 1500, said:match "[^\n]*")
  return tonumber(answered), tonumber(faults), said
end

t.test("functions outlive whatever they are given", function()
  local answered = attack "functions"
  t.ok(answered > 5000, answered .. " answered")
end)

t.test("ops take or refuse it, always in words", function()
  local _, faults, said = attack "ops"
  t.eq(faults, 0, said)
end)

t.test("methods outlive whatever they are given", function() attack "methods" end)

t.test("what it has found: names and lists without an end, counts beyond counting", function()
  local ring = {}
  ring[1], ring.name = ring, nil
  t.raises(function() mn.tensor(ring) end, "at most %d+ sizes")
  t.raises(function() mn.json.encode(ring) end, "holds itself")
  t.raises(function() mn.json.encode { a = { b = ring } } end, "holds itself")
  t.raises(function() mn.env(("x"):rep(1e5)) end, "unknown environment")
  t.raises(function() mn.stats.sign_test(2 ^ 40, 2 ^ 40) end, "at most 10 million")
  t.raises(function() mn.adam(3) end, "adam: parameters is a number, expected a list of leaves")
  t.raises(function() mn.adamw { 3 } end, "adamw: parameter 1 is a number, expected a leaf")
  t.raises(function() mn.json.decode(3) end, "json: number to decode, expected a text")
end)
