-- test_debugging.lua -- looking closely at a training: debug=nan, debug=grad, profile=1, and mneme doctor.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"
local engine = require "mneme.base.engine"
local mn = require "mneme"

local dir = shell.folder()
local function mneme(words) return shell.mneme(dir, words) end
local SMALL = "run demo core=gru core.d_model=8 hidden=8 num_steps=32 where=0 "

t.test("debug=nan: the message tells op, inputs and line; the step before is kept and comes there again", function()
  local said, status = mneme(SMALL .. "steps=2560 lr=1e30 max_norm=1e30 debug=nan run=odd")
  t.eq(status, 3, said)
  t.ok(said:find "training diverged at step %d+: [%w_]+: %w+ [%w ]+ is not finite; %w+ %[[%d,]+%] %S+%.%.%S+", said)
  t.ok(said:find "learners/a2c%.lua:%d+, from learn/on_policy%.lua:%d+", said)
  local step = tonumber(said:match "diverged at step (%d+)")
  t.ok(said:find("resume=odd debug=nan", 1, true), said)
  t.ok(files.is_file(("%s/odd/checkpoints/step-%d.safetensors"):format(dir, step - 8 * 32)), "the step before " .. step)
  said, status = mneme "run demo resume=odd"
  t.ok(status == 3 and said:find "diverged at step %d+: .*is %-?nan", said)
end)

t.test("debug=nan changes no number", function()
  mneme(SMALL .. "steps=1024 run=plain")
  mneme(SMALL .. "steps=1024 run=watched debug=nan")
  local function last(run) return (mneme("diff plain " .. run)) end
  t.ok(last "watched":find "equal" or last "watched":find "same", last "watched")
end)

t.test("debug: results without a gradient are checked, too: advantages that are not finite are named", function()
  local rewards, done = mn.tensor { { -3e38 } }, mn.tensor { data = { { 0 }, { 0 } }, dtype = "u8" }
  local plan = mn.plan(function(values) return (select(2, mn.ops.lambda_returns { rewards = rewards, values = values, done = done })) end)
  plan(mn.tensor { { 3e38 }, { 0 } })                     -- -3e38 - 3e38
  t.ok((plan:find_nan() or "nothing"):find "^lambda_returns: output advantages is not finite", plan:find_nan())
  plan(mn.tensor { { 1 }, { 0 } })
  t.eq(plan:find_nan(), nil)
  engine.C.mn_set_debug(engine.ctx, true)
  local odd = mn.tensor { { math.huge }, { math.huge } }    -- returns are infinite, too
  t.fails(function() mn.ops.lambda_returns { rewards = rewards, values = odd, done = done } end)
  engine.C.mn_set_debug(engine.ctx, false)
end)

t.test("debug=grad: a line of every parameter's gradient with each line of the log", function()
  local _, status = mneme(SMALL .. "steps=1024 debug=grad run=graded")
  t.eq(status, 0)
  local line = json.decode(files.read(dir .. "/graded/gradients.jsonl"):match "[^\n]+", "gradients.jsonl")
  local g = line["core.layers.0.hn.weight"]
  t.ok(line.step == 1024 and g.norm > 0 and g.largest > 0 and g.largest <= g.norm and g.weight > 0 and g.zeros < 1)
  t.ok(line["actor.0.weight"] and line["critic.1.bias"])
end)

t.test("profile=1: ops by their lines, and stacks", function()
  local said = shell.fine(dir, SMALL .. "steps=1024 profile=1 run=timed")
  t.ok(said:find "%d+%.%d %%%s+%d+%.%d+ s  models/recurrent%.lua:%d+%s+act%s+gru forward", said)      -- gru.lua calls it last
  t.ok(said:find "update%s+gru backward", said)
  local stacks = files.read(dir .. "/timed/profile.txt")
  t.ok(stacks:find "act;demo%.lua:%d+;.*models/recurrent%.lua:%d+;gru_forward %d+\n", stacks)
end)

t.test("debug and profile: other words are refused; a run from when they were true or false goes on", function()
  local said, status = mneme(SMALL .. "debug=all")
  t.ok(status == 2 and said:find "debug" and said:find "0, 1, nan, grad", said)
  said, status = mneme(SMALL .. "profile=all")
  t.ok(status == 2 and said:find "0, 1", said)
  local path = dir .. "/plain/config.json"
  local text = files.read(path):gsub('"checksum": "%x+",', "", 1):gsub('"debug": "0"', '"debug": false'):gsub('"profile": "0"', '"profile": false')
  files.write(path, { text })
  shell.fine(dir, "run demo resume=plain steps=1280")
end)

t.test("doctor: what there is, what is missing and how to get it", function()
  local said, status = mneme "doctor"
  t.ok(status == 0 and said:find "blas" and said:find "everything required is installed", said)
  said, status = shell.run(dir, ("env -u DISPLAY -u WAYLAND_DISPLAY PATH=/nowhere '%s' doctor"):format(shell.program))
  t.ok(status == 0 and said:find "ffmpeg%s+none" and said:find "apt%-get install ffmpeg", said)
  said, status = mneme "doctor now"
  t.ok(status == 2 and said:find "'now' is not expected", said)
end)

t.test("doctor: a row for every program that a command, make or a test asks for", function()
  local said = shell.run(dir, ("PATH=/nowhere COLUMNS=400 '%s' doctor"):format(shell.program))
  local asked, ignored = {}, { ["apt-get"] = true, sudo = true, cc = true, sh = true, p = true }
  local function ask(what, where) if not ignored[what] then asked[what] = where end end
  for path in shell.run(shell.root,
      "find lua scenes engine bindings gpu Makefile -name '*.lua' -not -name doctor.lua -o -name '*.c' -o -name '*.mk' -o -name Makefile"):gmatch "[^\n]+" do
    local text = files.read(shell.root .. path)
    for name in text:gmatch "command %-v ([%w_+-]+)" do ask(name, path) end
    for name in text:gmatch "apt%-get install ([%w.+-]*%w%+*)" do ask(name, path) end
  end
  for line in files.read(shell.root .. "bindings/packages.txt"):gmatch "[^\n]+" do
    local group, kind, what = line:match "^[^#%s]%S*%s+(%S+)%s+%S+%s+(%S+)%s+(%S+)$"
    if kind == "program" and (group == "show" or group == "test") then ask(what, "bindings/packages.txt") end
  end
  for _, name in ipairs { "ffmpeg", "rsvg-convert", "mpirun" } do t.ok(asked[name], name) end
  for name, where in pairs(asked) do t.ok((" " .. said):find("[%s\"]" .. name:gsub("%p", "%%%0") .. "%f[^%w+-]"), where .. " asks for " .. name) end
end)

os.execute("rm -rf '" .. dir .. "'")
