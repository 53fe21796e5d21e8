-- episode_measures.lua -- what was measured of an agent's memory in an episode, as data for its page: what each part contributes, what it
-- knows, and what is lost when it is erased.  Each as rows of numbers at some steps.
local C = require("mneme.base.engine").C
local contributions = require "mneme.episodes.contributions"
local in_words = require "mneme.measure.readings_in_words"
local json = require "mneme.base.json"
local memory_story = require "mneme.episodes.memory_story"
local readings = require "mneme.measure.readings_of_frame"

local episode_measures = {}
local FACTS = 2                    -- facts that are classes, of which panels are made

-- Maps of the variants of an episode, or reasons, as one panel.
local function panel(maps, about, fixed)
  local first
  for k, map in ipairs(maps) do
    first = first or map.rows and map
    maps[k] = map.rows and map:page() or map
  end
  about = first or about
  local names = json.array {}
  for r, row in ipairs(about.rows or {}) do names[r] = row.text end
  return { title = about.title, name = about.name, define = about.define, words = about.percent and "percent" or "number", rows = names, fixed = fixed,
    variants = maps }
end

-- ---- each measure, of the frame at an episode's end ----

local function contribution(frames, deadline)
  local maps, title = {}, "contribution of each part of the memory"
  for k, now in ipairs(frames) do
    local job = contributions.of_frame(now, nil, deadline)
    maps[k] = job.problem and { why = job.problem } or job:map()
    if not job.problem and #job.columns == 0 then maps[k] = { why = "one step: nothing is kept yet" } end
    if now.changed and not maps[k].why then maps[k].note = maps[k].note or ("from step %d on"):format(now.changed + 1) end
  end
  return panel(maps, { title = title, name = "contribution", define = maps[1].why })
end

local function knowledge(job, frames, fact, causes)
  local maps = {}
  for k, now in ipairs(frames) do
    maps[k] = readings.map(job, setmetatable({ known = function() return causes end }, { __index = now }), fact)
  end
  return panel(maps)
end

-- Measures until the deadline, or with `coarse` until columns over all steps are done.
local function work(map, deadline, coarse)
  while not (map.done or coarse and map.coarse) and C.mn_clock(false) < deadline do map:work(deadline) end
end

-- A map as a panel; with what is known, if columns over all steps are done.
local function causes_of(map)
  local view = map:view()
  if not map.steps or next(map.columns) == nil then
    local why = map.done and "the episodes end at step 0" or "not measured in the time that this page had; mneme where RUN stores it"
    return { title = view.title, name = view.name, define = why, variants = { { why = why } } }
  end
  return panel({ view }, nil, true), map.coarse and view or nil
end

-- The maps of a checkpoint, what they say, and that of erasing; of an agent whose episodes fail also what it lost.  job: Readings, or nil.
local function all_causes(map_of, checkpoint, deadline, job)
  local map = map_of(checkpoint)
  work(map, deadline, true)
  local held = map.coarse and memory_story.fails(map) and map_of(checkpoint, "hold") or nil
  if held then work(held, deadline, true) end
  work(map, deadline)
  if held then work(held, deadline) end
  local about, kept = causes_of(map)
  local list, story = { about }, memory_story.draw(map.outcomes)
  if kept and (kept.test or map.measure == "kl") then
    local what, held_view = memory_story.what(map.carrier.env), nil
    if held then list[2], held_view = causes_of(held) end
    story = table.concat(memory_story.sentences(kept, held_view, what, function(measure, word)
      return job and job.done and in_words.why(job, measure, word) or nil
    end), " ")
  end
  return list, story and ("%d episodes: %s"):format(#map.outcomes, story), kept
end

-- ---- all ----

---A function for episode_data.of that measures an episode.
---@param options table? { seconds = 10: what is not measured by then is left out, and the page says so; map = function(checkpoint, test): CausalMap }
---@return fun(frames: Frame[]): table[] measures of the last frames of an episode's variants: { title, name, define, rows, words, fixed = the same for all
---  variants, variants = { PartMap:page, or { why } } }; and what the maps say, a text or nil
function episode_measures.of(options)
  options = options or {}
  return function(frames)
    local deadline, list = C.mn_clock(false) + (options.seconds or 10), {}
    list[1] = contribution(frames, deadline)
    local job, problem = readings.job(frames[1], deadline)
    local found, story, kept, facts = {}, nil, nil, 0
    if options.map and frames[1].checkpoint then found, story, kept = all_causes(options.map, frames[1].checkpoint, deadline, job) end
    for _, fact in ipairs(job and job.facts or {}) do
      if fact.kind == "class" and facts < FACTS then list[#list + 1], facts = knowledge(job, frames, fact, kept), facts + 1 end
    end
    if not job and frames[1].run then
      list[#list + 1] = { title = "what the memory knows", name = "knowledge", define = problem, variants = { { why = problem } } }
    end
    for _, about in ipairs(found) do list[#list + 1] = about end
    return list, story
  end
end

return episode_measures
