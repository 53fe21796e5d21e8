-- power.lua -- a power cut at any moment: does going on give what an undisturbed run gives, and is nothing lost that was there?
--   luajit tests/endurance/power.lua [CUTS [SEED]]
-- A training, one that is resumed, a sweep and a report run once, and tests/faults/record.c writes down what they do to files.  From that
-- tests/support/power_loss.lua makes the folders that a disk may hold after a cut.  In each of them the same command must end well; what it
-- makes must be what an undisturbed one makes, every checkpoint bit for bit; each line of a log that was there must be there still, in the
-- log or in the one that was kept aside; `mneme check` must find what it finds in words, and nothing afterwards.
local here = arg[0]:match "^(.*)tests/endurance/power%.lua$" or "./"
package.path = here .. "lua/?.lua;" .. here .. "lua/?/init.lua;" .. here .. "?.lua;" .. package.path
local run_contents = require "tests.support.run_contents"
local files = require "mneme.base.files"
local power_loss = require "tests.support.power_loss"
local shell = require "tests.support.shell"

local cuts, seed = tonumber(arg[1]) or 200, tonumber(arg[2]) or 1
local source, folder = shell.absolute(here), shell.folder()
local library, journal = folder .. "/record.so", folder .. "/journal"
math.randomseed(seed)
for _, name in ipairs { "empty", "work" } do files.make_folder(folder .. "/" .. name) end
local said = shell.run(folder, ("cc -O1 -shared -fPIC -o record.so '%stests/faults/record.c' -ldl"):format(source))
if not files.is_file(library) then error(said) end

local train = ("run '%sexperiments/tmaze.lua' corridor=4 core=gru core.d_model=8 hidden=8 num_envs=4 num_steps=64 steps=40960 "
  .. "checkpoint_every=6000 threads=1 run=it"):format(source)
files.write(folder .. "/empty/two.lua", { [[
local mn = require "mneme"
return mn.study { title = "two", of = "tmaze", seeds = 1,
  axes = { core = { { "gru", d_model = 8, label = "gru" }, { "lstm", d_model = 8, label = "lstm" } } },
  settings = { corridor = 4, hidden = 8, num_envs = 4, num_steps = 64, steps = 12288, checkpoint_every = 2048 },
  metrics = { score = { "score" } }, figures = { { "bars", y = "score", x = "core", title = "scores" } } }
]] })

local function mneme(at, words)
  local text, status = shell.mneme(at, words)
  if text:find "stack traceback" then error(words .. ": " .. text, 0) end
  return text, status
end
local function ends_well(at, words)
  local text, status = mneme(at, words)
  if status ~= 0 then error(("%s: status %d: %s"):format(words, status, text), 0) end
  return text
end

-- ---- what must hold of a run ----

local function without_clock(text) return (text:gsub('"charts/SPS": [%d.e+]+', "")) end

-- Whole lines of a run's logs, those kept aside too.
local function lines_of(run)
  local lines = {}
  for _, name in ipairs(files.list(run)) do
    if name == "metrics.jsonl" or name:find "^earlier%-log.*%.jsonl$" then
      for line in without_clock((files.read(run .. "/" .. name))):gmatch "([^\n]+)\n" do lines[line] = true end
    end
  end
  return lines
end

-- Nothing of `before` is lost in `run`, whose end is that of `whole`.
local function same_run(run, before, whole)
  local now = lines_of(run)
  for line in pairs(before) do
    if line:find '^{"step".*}$' and not now[line] then error("a line of the log is lost: " .. line, 0) end
  end
  local list = run_contents(run)
  local mine, last = {}, list[#list]
  for _, file in ipairs(list) do mine[file[1]] = file[2] end
  for i, file in ipairs(whole) do
    if mine[file[1]] and mine[file[1]] ~= file[2] then error(file[1] .. " has other bytes", 0) end
    if i == #whole and last[1] ~= file[1] then error("the last checkpoint is " .. last[1], 0) end
  end
end

local function checked(at, run)
  local text, status = mneme(at, "check " .. run)
  if status > 1 or status == 1 and not text:find "DAMAGED" then error(("check %s: status %d: %s"):format(run, status, text), 0) end
  return status == 0, text
end

local whole = {}

-- A run after a cut.
local function goes_on(at)
  local begun = files.is_file(at .. "/it/config.json")
  local before = lines_of(at .. "/it")
  if begun then checked(at, "it") end
  ends_well(at, begun and "run resume=it" or train)
  same_run(at .. "/it", before, whole.run)
  local sound, text = checked(at, "it")
  if not sound then error("afterwards: " .. text, 0) end
end

local runs_of_study = { "core=gru,seed=1", "core=lstm,seed=1" }
local function sweeps_on(at)
  local before = {}
  for i, name in ipairs(runs_of_study) do before[i] = lines_of(("%s/it/runs/%s"):format(at, name)) end
  if files.is_file(at .. "/it/study.json") then
    checked(at, "it")
    mneme(at, "report it")
  end
  ends_well(at, "sweep two.lua run=it estimate=0 jobs=2")
  for i, name in ipairs(runs_of_study) do same_run(("%s/it/runs/%s"):format(at, name), before[i], whole[name]) end
  ends_well(at, "report it")
  local sound, text = checked(at, "it")
  if not sound then error("afterwards: " .. text, 0) end
end

local function report(at)
  local path = at .. "/it.html"
  local old = files.is_file(path) and files.read(path)
  if old and #old > 0 and not old:find "</html>%s*$" then error("half a report was there", 0) end
  if old and #old == 0 then error("an empty report was there", 0) end
  ends_well(at, "report study out=it.html")
end

-- ---- subjects: a share of the cuts, a folder before, a line whose changes are recorded, and what must hold after a cut ----

local subjects = {
  { name = "training", share = 0.35, before = "empty", line = train, after = goes_on },
  { name = "resuming", share = 0.25, before = "half", line = "run resume=it", after = goes_on },
  { name = "a sweep", share = 0.3, before = "empty", line = "sweep two.lua run=it estimate=0 jobs=2", after = sweeps_on },
  { name = "a report", share = 0.1, before = "swept", line = "report study out=it.html", after = report },
}

local function fill(name, from)
  shell.run(folder, ("rm -rf '%s' && cp -r '%s' '%s'"):format(name, from, name))
  return folder .. "/" .. name
end

fill("whole", "empty")
ends_well(folder .. "/whole", train)
whole.run = run_contents(folder .. "/whole/it")
fill("swept", "empty")
ends_well(folder .. "/swept", "sweep two.lua run=study estimate=0 jobs=2")
for _, name in ipairs(runs_of_study) do whole[name] = run_contents(("%s/swept/study/runs/%s"):format(folder, name)) end
fill("half", "whole")                                    -- its log has lines that no checkpoint counts
for i, name in ipairs(files.list(folder .. "/half/it/checkpoints")) do
  if i > 1 then files.remove(folder .. "/half/it/checkpoints/" .. name) end
end

for _, subject in ipairs(subjects) do
  local at = fill("work", subject.before)
  files.remove(journal)
  local text, status = shell.run(at, ("MNEME_RECORD='%s' LD_PRELOAD='%s' '%s' %s"):format(journal, library, shell.program, subject.line))
  if status ~= 0 then error(("%s: %s"):format(subject.name, text), 0) end
  subject.journal = power_loss.read(journal)
end

-- ---- cuts ----

local ways = { "lost", "chance", "names", "chance", "bytes", "kept" }
local same, tried = 0, 0
for i, subject in ipairs(subjects) do
  local fine, n = 0, i < #subjects and math.floor(cuts * subject.share) or cuts - tried
  for k = 1, n do
    local at = math.floor((k - math.random()) / n * #subject.journal + 0.5)
    local way = ways[tried % #ways + 1]
    shell.run(folder, "rm -rf work")
    power_loss.after(folder .. "/" .. subject.before, subject.journal, at, way, k, folder .. "/work")
    local ok, problem = pcall(function() subject.after(folder .. "/work") end)
    tried = tried + 1
    if ok then fine = fine + 1 else
      print(("%s, cut after %d of %d changes, %s: %s"):format(subject.name, at, #subject.journal, way, tostring(problem)))
      shell.run(folder, "rm -rf failed-" .. tried)
      power_loss.after(folder .. "/" .. subject.before, subject.journal, at, way, k, folder .. "/failed-" .. tried)
    end
  end
  same = same + fine
  print(("%-10s %3d changes of files recorded; %d of %d cuts taken well"):format(subject.name, #subject.journal, fine, n))
end
print(("%d of %d power cuts are taken well"):format(same, tried))
if same < tried then
  print("what failed lies in " .. folder)
  os.exit(1, false)
end
shell.run("/", ("rm -r '%s'"):format(folder))
