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

local null = json.null
local function number(x) return x and x - x == 0 and tonumber(("%.3g"):format(x)) or null end

local function names_of(rows)
  local list = {}
  for r, row in ipairs(rows) do list[r] = row.text end
  return json.array(list)
end

-- rows x columns of of(row, column).
local function table_of(rows, columns, of)
  local all = {}
  for r = 1, rows do
    all[r] = {}
    for c = 1, columns do all[r][c] = number(of(r, c)) end
    json.array(all[r])
  end
  return json.array(all)
end

-- ---- each measure, of the frame at an episode's end ----

local function contribution(frames, deadline)
  local about = { title = "contribution of each part of the memory", name = "contribution", words = "percent",
    define = "How much of the policy's probability moves at most, at this step or a later one, if that part of the memory is erased before this step; the "
      .. "observations stay as they were.", variants = {} }
  for k, now in ipairs(frames) do
    local job = contributions.of_frame(now, nil, deadline)
    if job.problem then about.variants[k] = { why = job.problem }
    else
      local steps = {}
      for _, i in ipairs(job.columns) do if job.moved[i] then steps[#steps + 1] = i - 1 end end
      about.rows = about.rows or names_of(job.rows)
      about.variants[k] = { steps = json.array(steps), values = table_of(#job.rows, #steps, function(r, c) return job:of(r, steps[c] + 1, job.n) end),
        note = not job.done and ("%d of %d steps measured"):format(job:progress()) or now.changed and ("from step %d on"):format(now.changed + 1) or null }
    end
  end
  return about
end

local function knowledge(job, frames, fact)
  local about = { title = "what the memory knows: " .. fact.name, name = "knowledge-" .. fact.name, words = "percent", hi = 1,
    define = "The probability that a linear reading of each part of the memory gives to the right answer; it was fitted on other episodes of this run.",
    rows = names_of(job.parts), variants = {} }
  for k, now in ipairs(frames) do
    local said, steps = {}, {}
    for p in ipairs(job.parts) do said[p] = readings.episode(job, now, fact, p) end
    for _, step in ipairs(job.steps or {}) do if said[1][step] and said[1][step].p then steps[#steps + 1] = step end end
    about.variants[k] = { steps = json.array(steps), values = table_of(#job.parts, #steps, function(p, c)
      local one = said[p][steps[c]]
      return one and one.p
    end), note = not job.done and (job.steps and ("%d of %d steps read"):format(job.read, #job.steps) or "nothing read yet") or null }
  end
  return about
end

local maps = {
  erase = { title = "where it is remembered", name = "causes", define = "%s when that part is erased at that step",
    what = { success = "success lost", ["return"] = "return lost", kl = "nats of policy" } },
  hold = { title = "where it is lost", name = "losses", define = "%s when that part keeps, from that step on, what it holds there",
    what = { success = "success gained", ["return"] = "return gained" } },
}

-- Measures until the deadline, or with `coarse` until columns over all steps are done.
local function work(map, deadline, coarse)
  while not (map.done or coarse and map.coarse) and C.mn_clock(false) < deadline do map:work(deadline) end
end

-- A map as a panel; with its cells, if columns over all steps are done.
local function causes(map)
  local words = maps[map.test_of]
  local title, name = words.title, words.name
  if not map.steps or next(map.columns) == nil then
    local why = map.done and "the episodes end at step 0" or "not measured in the time that this page had; mneme where RUN stores it"
    return { title = title, name = name, define = why, variants = { { why = why } } }
  end
  local cells, steps, column = map:cells(), {}, {}
  local test = map.coarse and map:test(cells)
  for c, at in ipairs(map.steps) do if map.columns[c] then steps[#steps + 1], column[#steps + 1] = at, c end end
  local about = { title = title, name = name, words = "number", fixed = true, rows = names_of(map.rows), tips = {},
    step = map.test_of == "hold" and "kept as it is before step" or "erased at step",
    define = (words.define .. ", over %d episodes; what does not stand out of the noise has no colour."):format(words.what[map.measure], #map.outcomes) }
  local values = table_of(#map.rows, #steps, function(r, c)
    local cell = cells[r][column[c]]
    return cell and (cell.clear or not test) and math.max(0, cell.loss) or cell and 0
  end)
  for r = 1, #map.rows do
    about.tips[r] = {}
    for c = 1, #steps do
      local cell = cells[r][column[c]]
      local text = cell and ("%.2f"):format(cell.loss) or "not measured"
      if cell and cell.low then text = ("%s [%.2f, %.2f]"):format(text, cell.low, cell.high) end
      if cell and test then text = text .. (cell.clear and ", beyond the noise" or ", not beyond the noise") end
      about.tips[r][c] = text:gsub("%-(%d)", "−%1")
    end
  end
  local done, of = map:progress()
  about.variants = { { steps = json.array(steps), values = values, note = done < of and ("%d of %d cells"):format(done, of) or null } }
  return about, test and cells
end

-- The maps of a checkpoint, and what they say; of an agent whose episodes fail also what it lost.  job: Readings, or nil.
local function all_causes(map_of, checkpoint, deadline, job)
  local map = map_of(checkpoint)
  work(map, deadline, true)
  local held = map.coarse and memory_story.fails(map) and map_of(checkpoint, "hold") or nil
  if held then work(held, deadline, true) end
  work(map, deadline)
  if held then work(held, deadline) end
  local about, cells = causes(map)
  local list, story = { about }, memory_story.draw(map.outcomes)
  if cells then
    local what, held_cells = memory_story.what(map.carrier.env), nil
    if held then list[2], held_cells = causes(held) end
    story = table.concat(memory_story.sentences({ map = map, cells = cells }, held_cells and { map = held, cells = held_cells }, what,
      function(measure, word) return job and job.done and in_words.why(job, measure, word) or nil end), " ")
  end
  return list, story and ("%d episodes: %s"):format(#map.outcomes, story)
end

-- ---- all ----

---A function for episode_data.of that measures an episode.
---@param options table? { seconds = 10: what is not measured by then is left out, and the page says so; map = function(checkpoint, test): CausalMap }
---@return fun(frames: Frame[]): table[] measures of the last frames of an episode's variants: { title, name, define, rows, variants = { { steps,
---  values[row][column], note } or { why } }, words, hi, tips, fixed = the same for all variants }; and what the maps say, a text or nil
function episode_measures.of(options)
  options = options or {}
  return function(frames)
    local deadline, list = C.mn_clock(false) + (options.seconds or 10), {}
    list[1] = contribution(frames, deadline)
    local job, problem = readings.job(frames[1], deadline)
    local facts = 0
    for _, fact in ipairs(job and job.facts or {}) do
      if fact.kind == "class" and facts < FACTS then list[#list + 1], facts = knowledge(job, frames, fact), facts + 1 end
    end
    if not job and frames[1].run then
      list[#list + 1] = { title = "what the memory knows", name = "knowledge", define = problem, variants = { { why = problem } } }
    end
    local found, story = {}, nil
    if options.map and frames[1].checkpoint then found, story = all_causes(options.map, frames[1].checkpoint, deadline, job) end
    for _, about in ipairs(found) do list[#list + 1] = about end
    return list, story
  end
end

return episode_measures
