-- test_sweep_trouble.lua -- a sweep whose disk is full, cannot be written to, or holds what nobody wrote: it says so, and
-- nothing that was there is lost.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local study_folder = require "mneme.lab.study.study_folder"
local shell = require "tests.support.shell"

local here = shell.folder()
local function path(name) return here .. "/" .. name end

files.write(path "study.lua", { [[
return require("mneme").study { title = "trouble", axes = { a = { 1, 2, 3 } }, settings = { steps = 10 }, seeds = 6,
  run = function(cfg) return { score = cfg.a * 10 + cfg.seed } end }
]] })

local function sweep(words)
  local said, status = shell.mneme(here, "sweep study.lua estimate=0 jobs=2 run=" .. words)
  return status, said
end

local function finished(name)
  local n = 0
  for _, c in ipairs(study_folder.load(path(name)).runs) do
    if c.status == "done" then
      t.eq(c.metrics.score, tonumber(c.labels.a) * 10 + c.seed)
      n = n + 1
    end
  end
  return n
end

t.test("a damaged study.json is named; without it the sweep finds its runs again", function()
  t.eq((sweep "there seeds=1"), 0)
  local file, one_run = path "there/study.json", path "there/runs/a=2,seed=1/result.json"
  local good = files.read(file)
  for _, text in ipairs { "", "{", "[]", "{}", "3", good:sub(1, 99), '{ "cells": [1], "script": "study.lua", "settings": "" }',
                          '{ "cells": {}, "script": 1, "settings": "" }' } do
    files.write(file, { text })
    local status, said = sweep "there seeds=1"
    t.eq(status, 1, text) t.ok(said:find "study%.json" and said:find "writes it again", said) t.ok(not said:find "%.lua:", said)
    said, status = shell.mneme(here, "report there")
    t.eq(status, 1) t.ok(said:find "writes it again" and not said:find "%.lua:", said)
    t.eq(files.read(file), text, "nobody overwrites it")
  end
  files.remove(file)
  local before = files.read(one_run)
  t.eq((sweep "there seeds=1"), 0)
  t.eq(files.read(file), good) t.eq(files.read(one_run), before) t.eq(finished "there", 3)
  for _, text in ipairs { "", '{ "sta', "[]", '{ "status": 7 }' } do
    files.write(one_run, { text })
    local status, said = sweep "there seeds=1"
    t.eq(status, 1) t.ok(said:find("a=2,seed=1/result.json", 1, true) and said:find "the run is open", said)
  end
  files.remove(one_run)
  t.eq((sweep "there seeds=1"), 0)
  t.eq(finished "there", 3)
end)

t.test("a number or a series that statistics cannot count with ends its run with the function's line, and so does os.exit", function()
  for i, case in ipairs { { "return { score = 1, line = { x = { 1, 2 }, y = { 1, 0 / 0 } } }", "number 2 of the series line is %-?nan, expected a" },
    { "return { score = 1e300 }", "score = 1e%+300, expected a finite number of at most 1e100" }, { "return { score = 1 / 0 }", "score = inf" },
    { "os.exit(0)", "os.exit%(0%) in the midst of the work" } } do
    files.write(path "series.lua", { ([[
return require("mneme").study { title = "series", settings = { steps = 1 }, seeds = 1,
  run = function() %s end }
]]):format(case[1]) })
    local said, status = shell.mneme(here, "sweep series.lua estimate=0 attempts=1 run=series" .. i)
    t.eq(status, 1) t.ok(said:find("series.lua:2: .-" .. case[2]), said)
    t.eq(study_folder.load(path("series" .. i)).runs[1].status, "failed")
  end
end)

t.test("a run that trains an agent gives numbers of its own, with every learner: the training is the run", function()
  local learners = registry.names "learners"
  files.write(path "trains.lua", { ([[
local mn = require "mneme"
return mn.study { title = "trains", axes = { learner = { "%s" } }, seeds = 1, settings = { steps = 48, num_steps = 8, hidden = 4, num_envs = 1, minibatches = 1,
    norm_obs = false, core = { "gru", d_model = 4 }, threads = 1 },
  run = function(cfg)
    local env = mn.env { observation = { 1 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed,
      reset = function() return { 0 } end, step = function(_, action) return { 1 }, action, true, 1 end }
    local result = mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
    return { doubled = 2 * result.steps }
  end }
]]):format(table.concat(learners, '", "')) })
  local said, status = shell.mneme(here, "sweep trains.lua estimate=0 attempts=1 run=trains")
  t.eq(status, 0, said)
  local runs = study_folder.load(path "trains").runs
  t.eq(#runs, #learners)
  for _, run in ipairs(runs) do
    t.ok(run.status == "done" and run.metrics.doubled == 96 and files.is_folder(run.path .. "/checkpoints"), run.name)
    t.eq(select(2, shell.mneme(here, "eval '" .. run.path .. "' episodes=3")), 0, run.name)
  end
end)

t.test("a sweep of which a run was stopped, and not the sweep, has not succeeded", function()
  files.write(path "stopped.lua", { [[
return require("mneme").study { title = "stopped", axes = { a = { 1, 2 } }, settings = { steps = 1 }, seeds = 1,
  run = function(cfg) if cfg.a == 2 then os.exit(143) end return { score = 1 } end }
]] })
  local said, status = shell.mneme(here, "sweep stopped.lua estimate=0 run=stopped")
  t.eq(status, 1) t.ok(said:find("1 of 2 runs done, 1 open; the same command goes on", 1, true), said)
end)

t.test("a full disk, and one that cannot be written to: what is there stays, with room again the sweep goes on", function()
  files.make_folder(path "disk")
  local said, status = shell.run(here, "mount -t tmpfs -o size=160k none disk")
  if status ~= 0 then t.skip("no small disk can be made: " .. said:gsub("%s+$", "")) end
  local ok, problem = pcall(function()
    status, said = sweep "disk/study"
    t.eq(status, 1, said) t.ok(said:find "No space left on device", said) t.ok(not said:find "%.lua:", said)
    local n = finished "disk/study"
    t.ok(n > 0 and n < 18, tostring(n))
    shell.run(here, "mount -o remount,size=9m disk")
    status, said = sweep "disk/study"
    t.eq(status, 0, said) t.eq(finished "disk/study", 18)
    shell.run(here, "mount -o remount,ro disk")
    for _, words in ipairs { "disk/study", "disk/study seeds=7", "disk/other" } do
      status, said = sweep(words)
      t.eq(status, 1, said) t.ok(said:find "Read%-only file system", said) t.ok(not said:find "%.lua:", said)
    end
    t.eq((sweep "disk/study list=1"), 0)
    t.eq(finished "disk/study", 18)
  end)
  shell.run(here, "umount disk")
  if not ok then error(problem, 0) end
end)

t.test("a disk that fills up in the middle of a run: it says so, and goes on from its last checkpoint to the same numbers", function()
  files.write(path "letters", { ("how vexingly quick daft zebras jump over it. "):rep(60) })
  local words = "sweep char_lm file=letters core=gru core.n_layers=1 parameters=2000 d_embed=8 batch=2 length=8 eval_every=64 eval_batches=4 steps=640 "
    .. "checkpoint_every=64 seeds=1 estimate=0 attempts=1 run="
  local said, status = shell.mneme(here, words .. "whole")
  t.eq(status, 0, said)
  files.make_folder(path "small")
  said, status = shell.run(here, "mount -t tmpfs -o size=120k none small")
  if status ~= 0 then t.skip("no small disk can be made: " .. said:gsub("%s+$", "")) end
  local ok, problem = pcall(function()
    said, status = shell.mneme(here, words .. "small/study")
    t.eq(status, 1, said) t.ok(said:find "No space left on device" and not said:find "traceback", said)
    local one_run = study_folder.load(path "small/study").runs[1]
    t.ok(one_run.status ~= "done", one_run.status)
    local last = 0
    for _, name in ipairs(files.list(one_run.path .. "/checkpoints")) do last = math.max(last, tonumber(name:match "^step%-(%d+)%.safetensors$") or 0) end
    t.ok(last >= 64 and last < 640, "the last checkpoint is at " .. last)
    shell.run(here, "mount -o remount,size=9m small")
    said, status = shell.mneme(here, words .. "small/study")
    t.eq(status, 0, said)
    t.ok(files.read(path "small/study/runs/" .. one_run.name .. "/log.txt"):find("going on at step " .. last, 1, true))
    local after, whole = study_folder.load(path "small/study").runs[1], study_folder.load(path "whole").runs[1]
    t.eq(after.status, "done")
    for name, value in pairs(whole.metrics) do t.eq(after.metrics[name], value, name) end
  end)
  shell.run(here, "umount small")
  if not ok then error(problem, 0) end
end)

t.test("a sweep of which all fails alike ends after three runs, and says how to go on", function()
  files.write(path "faulty.lua", { [[
return require("mneme").study { title = "faulty", axes = { a = { 1, 2, 3 } }, settings = { steps = 10 }, seeds = 6, run = function(cfg)
  local text = io.open "varied" and ("x"):rep(10 * cfg.a + cfg.seed) or "there is nothing to learn from in run " .. cfg.seed
  if cfg.a < 3 or not io.open "third" then error(text) end
  return { score = 1 }
end }
]] })
  local function faulty(words) return shell.mneme(here, "sweep faulty.lua estimate=0 jobs=1 " .. words) end
  local said, status = faulty "run=faulty"
  t.eq(status, 1)
  t.ok(said:find("all of the first 3 runs failed alike: .*nothing to learn from.*the same command goes on; give_up=0 runs the others"), said)
  t.eq(#files.list(path "faulty/runs"), 3)
  said = faulty "run=all give_up=0 seeds=2"
  t.ok(said:find("0 of 6 runs done, 6 failed", 1, true), said)
  files.write(path "varied", { "" })
  said = faulty "run=other seeds=3..5"
  t.ok(not said:find "failed alike" and said:find("0 of 9 runs done, 9 failed", 1, true), said)
  files.write(path "third", { "" })
  files.remove(path "varied")
  said = faulty "run=faulty give_up=0"
  t.ok(said:find("6 of 18 runs done, 12 failed", 1, true), said)
end)

os.execute("rm -r '" .. here .. "'")
