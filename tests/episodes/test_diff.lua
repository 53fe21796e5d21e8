-- test_diff.lua -- mneme diff finds the step at which the logs of two runs part, and says in what.
local t = require "tests.harness"
local arguments = require "mneme.commands.arguments"
local diff = require "mneme.commands.diff"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

local function a_run(name, lines, settings)
  files.make_folder(path(name))
  files.write(path(name) .. "/config.json", { ('{"config": {%s}}\n'):format(settings or '"lr": 0.1, "core": {"name": "gru"}') })
  files.write(path(name) .. "/metrics.jsonl", { table.concat(lines, "\n"), "\n" })
  return path(name)
end

t.test("two runs: the first line that differs, not counting the clock", function()
  local one = { '{"step": 10, "losses/loss": 0.5, "charts/SPS": 100}', '{"step": 20, "losses/loss": 0.25, "charts/SPS": 90}' }
  local a = a_run("a", one)
  local same, text = diff.runs(a, a_run("b", { (one[1]:gsub("100", "3")), one[2] }))
  t.ok(same and text == "equal in all 2 lines\n", text)
  same, text = diff.runs(a, a_run("c", { one[1], '{"step": 20, "losses/loss": 0.125, "grad/norm": "NaN", "charts/SPS": 9}' }))
  t.ok(not same)
  t.eq(text, "they differ from line 2, step 20:\n  grad/norm    none  NaN\n  losses/loss  0.25  0.125\n")
  same, text = diff.runs(a, a_run("d", { one[1] }))
  t.ok(not same and text:find "equal for 1 lines; then one ends, and the other has 2")
  same, text = diff.runs(a, a_run("e", one, '"lr": 0.2, "core": {"name": "lstm"}'))
  t.ok(not same and text:find "settings differ:\n  core +gru +lstm\n  lr +0.1 +0.2\n", text)
  t.fails(function() diff.runs(a, a_run("f", { one[1], "{" })) end)
end)

t.test("a run that was stopped between: lines of the same spans are compared, the others counted", function()
  local a = a_run("g", { '{"step": 10, "x": 1}', '{"step": 20, "x": 2}', '{"step": 30, "x": 3}', '{"step": 40, "x": 4}' })
  local same, text = diff.runs(a, a_run("h", { '{"step": 10, "x": 1}', '{"step": 15, "x": 9}', '{"step": 30, "x": 8}', '{"step": 40, "x": 4}' }))
  t.ok(not same and text:find "equal in 2 lines; the logs have 3 that", text)
  same, text = diff.runs(a, a_run("i", { '{"step": 15, "x": 9}', '{"step": 30, "x": 8}', '{"step": 40, "x": 5}' }))
  t.ok(not same and text:find "they differ from line 4, step 40", text)
end)

t.test("the command line of mneme diff", function()
  local function says(pattern, ...)
    local words = { ... }
    t.raises(function() arguments.run(diff, words) end, pattern)
  end
  says("expected two runs to compare, got 1", folder)
  says("there is no such run", folder, path "two")
  says("not a run", folder, folder)
end)

os.execute("rm -r '" .. folder .. "'")
