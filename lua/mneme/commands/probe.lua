-- probe.lua -- what does a memory know, step by step?  mneme probe RUN: linear readings of the facts that the environment declares, from all of
-- the memory and from each part, on episodes that they were not fitted to.
--   episodes=256 seed=N greedy=1   which episodes, of which 7 in 10 are learned from; best=1 checkpoint=STEPS: which checkpoint
--   facts=cue,position             default: all that the environment declares (mneme help env NAME)
--   every=N last=STEP              which steps are read; default: about 32, up to one that half of the episodes reach
--   out=FILE                       .json: all numbers; .svg .png .pdf .csv: a figure for each fact, FILE-FACT where there are several
--   threads=N                      CPU threads; default: all processors
-- Of a class the table has the probability of the right answer, of a number the share of its variance that is read; a dot is no more than chance.
-- What can be read need not be used: mneme where RUN.  Other keys are settings of the environment.
local arguments = require "mneme.commands.run_arguments"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local figures = require "mneme.figures"
local json = require "mneme.base.json"
local progress = require "mneme.base.progress"
local in_words = require "mneme.measure.readings_in_words"
local layout = require "mneme.base.layout"
local readings = require "mneme.measure.readings"
local stepper = require "mneme.episodes.stepper"

local probe = {}

local command = { name = "probe", usage = "mneme probe RUN [facts=cue,position] [episodes=256] [every=STEPS] [last=STEP] [out=FILE.json|svg]",
  whole = { episodes = 48, seed = 0, every = 1, last = 0, checkpoint = 0, greedy = 0, best = 0 }, other = {} }
function command.other.facts(o, text)
  o.facts = {}
  for name in text:gmatch "[^,%s]+" do o.facts[#o.facts + 1] = name end
  if #o.facts == 0 then errors.usage "probe: facts= is empty, expected names such as cue,position" end
end
function command.other.out(o, text)
  o.out = text
  if not text:lower():find "%.json$" then figures.kind_of_file(text) end
end

-- ---- what came of it ----

---The table of a fact, with its control.
---@param job Readings
---@param fact table { name, kind }
---@return string
function probe.report(job, fact)
  local map, sum, n = job:map(fact), 0, 0
  for k in ipairs(job.steps) do
    local cell = (job.cells[fact.name][k] or {})[1]
    if cell then sum, n = sum + cell.control, n + 1 end
  end
  if n == 0 then return ("%s: nothing to read: it does not vary, or in too few episodes\n"):format(fact.name) end
  return ("%s: %s; with shuffled answers %.2f\n"):format(fact.name, map.value, sum / n) .. map:table "is read"
end

---All numbers, for JSON.
---@param job Readings
---@param about table what the file says besides
---@return table
function probe.numbers(job, about)
  about.steps, about.parts, about.facts = job.steps, {}, {}
  for at, part in ipairs(job.parts) do about.parts[at] = part.word end
  for _, fact in ipairs(job.facts) do
    local of = { kind = fact.kind, cells = {} }
    for k in ipairs(job.steps) do
      of.cells[k] = {}
      for at in ipairs(job.parts) do of.cells[k][at] = (job.cells[fact.name][k] or {})[at] or false end
    end
    about.facts[fact.name] = of
  end
  return about
end

local function write(job, o, p)
  if o.out:lower():find "%.json$" then
    files.write(o.out, { json.encode(probe.numbers(job, { run = o.folder, checkpoint = p.steps, episodes = o.episodes, seed = o.seed })) })
    return print(o.out)
  end
  for _, fact in ipairs(job.facts) do
    local path = #job.facts == 1 and o.out or o.out:gsub("(%.%w+)$", "-" .. fact.name .. "%1")
    figures.export(job:map(fact):figure("What the memory knows of " .. fact.name, "linear readings on held-out episodes"), path)
    print(path)
  end
end

---@param words string[]
---@return integer status
function probe.main(words)
  local o, env = arguments.read(command, words, { episodes = readings.episodes, seed = 12345, greedy = false, best = false })
  arguments.check(command, o, env, "to probe")
  if o.episodes > readings.most then
    errors.usage(("probe: episodes=%d, expected at most %d: the time grows with their cube"):format(o.episodes, readings.most))
  end
  local p = stepper.from_run(o.folder, { num_envs = o.episodes, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = env })
  local job = readings.new(p, { facts = o.facts, seed = o.seed, every = o.every, last = o.last })
  progress.work(job, "readings", ("playing %d episodes, to see how long they are"):format(o.episodes))      -- a signal ends it: there is nothing to keep
  print(("%s at %.0f steps, %d episodes, read on the 3 in 10 that were not learned from"):format(o.folder, p.steps, o.episodes))
  for _, fact in ipairs(job.facts) do
    local sentence = in_words.of(job, fact)
    io.stdout:write("\n", probe.report(job, fact), sentence and table.concat(layout.wrap(sentence, layout.width()), "\n") .. "\n" or "")
  end
  if o.out then write(job, o, p) end
  print(("what can be read need not be used: mneme where %s"):format(o.folder))
  return 0
end

return probe
