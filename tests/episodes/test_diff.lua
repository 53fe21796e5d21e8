-- test_diff.lua -- mneme diff finds the step at which two trajectories, or the logs of two runs, part, and says in
-- what.
local t = require "tests.harness"
local arguments = require "mneme.commands.arguments"
local diff = require "mneme.commands.diff"
local envs = require "mneme.envs.env"
local files = require "mneme.base.files"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"
local single = require "mneme.envs.single"
local trajectory = require "mneme.insight.episodes.trajectory"
local shell = require "tests.support.shell"

local folder = shell.folder()
local function path(name) return folder .. "/" .. name end

-- Act by a list; a record holds one number, `mind` of the step.
local function walk(settings, actions, mind, name)
  settings = settings or {}
  settings.num_envs, settings.corridor, settings.seed = 1, settings.corridor or 6, settings.seed or 2
  local s = single.new(envs.new("tmaze", settings))
  s.env:reset_raw(s.obs, settings.seed)
  local rec = trajectory_writer.new(s.env, 0, { fields = { value = { shape = { 1 } } } })
  rec:begin(s.obs)
  for k, action in ipairs(actions) do
    rec:internals { value = { mind and mind(k - 1) or 0 } }
    s:act(action, rec)
  end
  local file = path(name or "walk.mnt")
  rec:write(file)
  return trajectory.read(file)
end

local right = { 3, 3, 3, 3, 3, 0, 3, 3 }         -- at the end of the corridor, up; then the next episode

t.test("equal trajectories are the same", function()
  local same, text = diff.trajectories(walk(nil, right), walk(nil, right))
  t.ok(same and text == "equal in all 8 steps\n", text)
end)

t.test("another action: the step, and what follows is not told", function()
  local other = { 3, 3, 1, 3, 3, 3, 0, 3 }
  local same, text = diff.trajectories(walk(nil, right), walk(nil, other))
  t.ok(not same)
  t.eq(text, "they differ from step 2:\n  action  right  down\n")
  other = { unpack(right) }
  other[8] = 2
  same, text = diff.trajectories(walk(nil, right), walk(nil, other))
  t.ok(not same and text:find "^they differ from step 7 %(episode 1, step 1 of it%):\n  action +right +left\n$", text)
end)

t.test("another seed or corridor: the header, then the observation's slots", function()
  local same, text = diff.trajectories(walk(nil, right), walk({ corridor = 9 }, right))
  t.ok(not same and text:find "their headers differ:\n  corridor +6 +9\n", text)
  t.ok(text:find "they differ from step 5:\n  reward +%-?[%d.]+ +%-0.1%d*\n  episode +terminated +goes on", text)
  local fifth = walk(nil, right)
  fifth.copy = 4
  same, text = diff.trajectories(walk(nil, right), fifth)
  t.ok(not same and text:find "their headers differ:\n  environment number +0 +4\n", text)
  for seed = 3, 9 do
    local other = walk({ seed = seed }, right)
    same, text = diff.trajectories(walk(nil, right), other)
    t.ok(not same and text:find "  seed +2 +%d" and text:find "they differ from step [01]:\n  observation%[%d+%] +[01] +[01]\n", text)
  end
end)

t.test("one that goes on; records that part", function()
  local same, text = diff.trajectories(walk(nil, right), walk(nil, { 3, 3, 3 }))
  t.ok(not same and text == "equal for 3 steps; then one ends, and the other has 8\n", text)
  local function mind(at) return function(k) return k >= at and 0.25 or 1 end end
  same, text = diff.trajectories(walk(nil, right, mind(4)), walk(nil, right, mind(6)))
  t.ok(not same and text:find "recorded values differ from step 4:\n  value +differs by up to 0.75\n" and text:find "equal in all 8 steps", text)
end)

t.test("an environment that has changed is named", function()
  local a, b = walk(nil, right), walk(nil, right)
  a.rewards[3] = 7
  local same, text = diff.trajectories(a, b)
  t.ok(not same and text:find "they differ from step 3:\n  reward +7 +%-0.1" and text:find "walk.mnt: its environment has changed: step 3", text)
end)

t.test("a trajectory that cannot be replayed is compared by what it holds", function()
  local a, b = walk(nil, right), walk(nil, { 3, 3, 3, 2, 3, 3, 3, 0 })
  a.env, b.env = "gone-v3", "gone-v3"
  local same, text = diff.trajectories(a, b)
  t.ok(not same and text:find "unknown environment 'gone%-v3'.*observations are not compared" and
    text:find "they differ from step 3:\n  action +right +left", text)
end)

-- ---- runs ----

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
  walk(nil, right, nil, "one.mnt")
  local function says(pattern, ...)
    local words = { ... }
    t.raises(function() arguments.run(diff, words) end, pattern)
  end
  says("expected two things to compare, got 1", path "one.mnt")
  says("there is no such file or run", path "one.mnt", path "two.mnt")
  says("cannot be compared", path "one.mnt", folder)
  says("not a run", folder, folder)
end)

os.execute("rm -r '" .. folder .. "'")
