-- probe.lua -- `mneme probe`: what does a memory know, step by step?
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local figures = lazy "mneme.insight.figures"
local json = require "mneme.base.json"
local causal_map_file = lazy "mneme.insight.episodes.causal_map_file"
local progress = require "mneme.base.progress"
local readings_in_words = lazy "mneme.insight.measure.readings_in_words"
local layout = require "mneme.base.layout"
local readings = lazy "mneme.insight.measure.readings"
local stepper = lazy "mneme.insight.episodes.stepper"
local tables = require "mneme.base.tables"

local probe = { name = "probe", doc = "what does a memory know, step by step: linear readings of the task's facts", others = "env", loads = true,
  arguments = options.run, about = [[
Linear readings of the facts that the environment declares, from all of the memory and from each part, on episodes that they were not fitted
to.  Of a class the table has the probability of the right answer, of a number the share of its variance that is read.  a dot is no more
than chance.  What can be read need not be used: mneme where RUN.]],
  options = options.join({ "episodes", "how many episodes, of which 7 in 10 are learned from", type = "whole", range = { 48 }, default = 256 }, options.agent, {
    { "facts", "which", type = "list", unless = "all that the environment declares (mneme help env NAME)", example = "cue,position" },
    { "every", "steps between those that are read", type = "whole", range = { 1 }, unless = "about 32 steps", example = "4" },
    { "last", "the last step that is read", type = "whole", unless = "one that half of the episodes reach", example = "40" },
    { "out", ".json: all numbers; else a figure for each fact, FILE-FACT where there are several", type = "file",
      endings = { "json", "svg", "png", "pdf", "csv" } } }) }

-- ---- what came of it ----

-- What is read of a fact, with marks of what is used where the map of erasing is stored.
local function marked(job, fact, causes)
  local map = job:map(fact)
  return causes and map.needed and map:mark_used(causes, 1) or map
end

---The table of a fact, with its control.
---@param fact table { name, kind }
---@param causes PartMap? the stored map of erasing
function probe.report(job, fact, causes)
  local map, sum, n = marked(job, fact, causes), 0, 0
  for k in ipairs(job.steps) do
    local cell = (job.cells[fact.name][k] or {})[1]
    if cell then sum, n = sum + cell.control, n + 1 end
  end
  if n == 0 then return ("%s: nothing to read: it does not vary, or in too few episodes\n"):format(fact.name) end
  return ("%s: %s; with shuffled answers %.2f\n"):format(fact.name, map.value, sum / n) .. map:table "is read"
end

---All numbers, for JSON.
---@param about table what the file says besides
function probe.numbers(job, about)
  about.steps, about.parts, about.facts = job.steps, tables.map(job.parts, function(part) return part.word end), {}
  for _, fact in ipairs(job.facts) do
    local cells = job.cells[fact.name]
    about.facts[fact.name] = { kind = fact.kind, cells = tables.map(job.steps, function(_, k)
      return tables.map(job.parts, function(_, at) return (cells[k] or {})[at] or false end)
    end) }
  end
  return about
end

local function write(job, o, p, causes)
  if o.out:lower():find "%.json$" then
    files.write(o.out, { json.encode(probe.numbers(job, { run = o.folder, checkpoint = p.steps, episodes = o.episodes, seed = o.seed })) })
    return print(o.out)
  end
  for _, fact in ipairs(job.facts) do
    local path = #job.facts == 1 and o.out or o.out:gsub("(%.%w+)$", "-" .. fact.name .. "%1")
    local map = marked(job, fact, causes)
    local thin = causes and map.needed and " Thin: read, and erasing that part alone costs nothing beyond the noise, or is not measured there." or ""
    figures.export(map:figure("What the memory knows of the " .. fact.name, "Linear readings on held-out episodes; grey: no more than chance." .. thin), path)
    print(path)
  end
end

function probe.run(o)
  arguments.check_run(probe, o, "to probe")
  if o.episodes > readings.most then
    errors.usage(("probe: episodes=%d, expected at most %d: the time grows with their cube"):format(o.episodes, readings.most))
  end
  local p = stepper.from_run(o.folder, { num_envs = o.episodes, seed = o.seed, greedy = o.greedy, best = o.best,
    checkpoint = o.checkpoint, settings = o.env_settings, threads_that_pay = not o.threads })
  local job = readings.new(p, { facts = o.facts, seed = o.seed, every = o.every, last = o.last })
  progress.work(job, "readings", ("playing %d episodes, to see how long they are"):format(o.episodes))      -- a signal ends it: there is nothing to keep
  print(("%s at %.0f steps, %d episodes, read on the 3 in 10 that were not learned from"):format(o.folder, p.steps, o.episodes))
  local causes = causal_map_file.stored(o, p.steps)
  for _, fact in ipairs(job.facts) do
    local sentence = readings_in_words.of(job, fact, causes and marked(job, fact, causes))
    io.stdout:write("\n", probe.report(job, fact, causes), sentence and table.concat(layout.wrap(sentence, layout.width()), "\n") .. "\n" or "")
  end
  if o.out then write(job, o, p, causes) end
  print(("what can be read need not be used: mneme where %s"):format(o.folder))
  return 0
end

return probe
