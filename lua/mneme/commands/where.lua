-- where.lua -- `mneme where`: what the agent loses when each part of its memory is erased at each step.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local causal_map = lazy "mneme.insight.episodes.causal_map"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local format = require "mneme.base.format"
local files = require "mneme.base.files"
local figures = lazy "mneme.insight.figures"
local json = require "mneme.base.json"
local causal_map_file = lazy "mneme.insight.episodes.causal_map_file"
local memory_story = lazy "mneme.insight.episodes.memory_story"
local progress = require "mneme.base.progress"
local run_folder = lazy "mneme.runs.run_folder"
local readings_in_words = lazy "mneme.insight.measure.readings_in_words"
local readings = lazy "mneme.insight.measure.readings"
local scene = lazy "mneme.insight.view.scene"
local stats = lazy "mneme.stats"
local stepper = lazy "mneme.insight.episodes.stepper"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local thread_choice = lazy "mneme.learn.thread_choice"
local width = require("mneme.base.layout").width
local function wrap(text) return table.concat(require("mneme.base.layout").wrap(text, width()), "\n") end

local C = engine.C
local where = { name = "where", doc = "where is it remembered: success lost by erasing each part of the memory at each step", others = "env",
  loads = true, arguments = options.run,
  draws = "episode k begins with this seed + k, while the environments of eval all draw from one", about = [[
Every cell of the map plays the same episodes with the same random numbers, and continues from the state that was kept at its step.  The map is
kept in RUN/where after each column: killed, the same command resumes it.]],
  options = options.join({ options.episodes(64) }, options.played, options.common.threads_that_pay, {
    { "by", "the parts: heads (or groups of channels) and layers, or layers alone", type = "choice", choices = { "head", "layer" }, unless = "head" },
    { "every", "steps between columns", type = "whole", range = { 1 }, unless = "about 24 columns", example = "4" },
    { "columns", "about as many columns; those that are stored stay", type = "whole", range = { 1 }, unless = "24, fewer where episodes are long",
      example = "24" },
    { "test", "hold: freeze each part from that step on; gain in success: which part lost it, and when", type = "choice", choices = { "erase", "hold" },
      unless = "erase; where more than one episode in twenty fails, both" },
    { "measure", "what is lost", type = "choice", choices = { "success", "return" }, unless = "success where each score is 0 or 1, else the return" },
    { "out", "the numbers (.json), a figure (.csv .svg .pdf) or a picture (.png)", type = "file", endings = { "json", "csv", "svg", "pdf", "png" } },
    options.common.size, options.common.theme, options.common.scale }) }

-- ---- the command line ----

local kinds = { json = "numbers", csv = "figure", svg = "figure", pdf = "figure", png = "picture" }

-- What does not go together; and what `out` is.
local function check(o)
  o.width, o.height = o.width or scene.default_width, o.height or scene.default_height
  o.kind = o.out and kinds[o.out:lower():match "%.(%w+)$"]
  arguments.check_run(where, o, "to erase in")
  if o.every and o.columns then errors.usage "where: every= and columns= both say which steps, expected one of them" end
end

-- ---- measuring ----

-- On stderr, before the long rest: what some of all steps says.
local function say_coarse(map, seconds)
  local view, done, of = map:view(), map:progress()
  local what = memory_story.what(map.carrier.env)
  local text = #memory_story.parts(map, view.cells) > 0
    and memory_story[map.test_of == "hold" and "lost" or "kept"](map, view.cells, what) or "No part stands out of the noise yet."
  progress.aside(wrap(("so far, of %d of %d cells: %s"):format(done, of, text)))
  progress.announce(seconds, ("for the other %d cells; stopped, the same command resumes"):format(of - done))
end

-- Steps of both maps in as many threads as pay.
local function choose_threads(o)
  local steps = 0
  local choice = not o.threads and thread_choice.here(function() return steps end)
  if not choice then return end
  o.on_step = function()
    steps = steps + 1
    choice:after()
  end
end

-- The map; resumed where it was begun.
local function open(o, env, test)
  local carrier = stepper.from_run(o.folder, { num_envs = o.episodes, seed = o.seed, greedy = o.greedy, best = o.best, checkpoint = o.checkpoint,
    settings = env })
  local rows = (test or o.test) == "hold" and 1 or nil              -- what holds a part begins again at every step
  local worker = carrier:twin(nil, tables.merged(carrier.given, { rows = rows }))
  local map = causal_map.new(carrier, worker, { test = test or o.test, by = o.by, measure = o.measure, seed = o.seed, every = o.every,
    columns = o.columns, on_coarse = say_coarse, on_step = o.on_step })
  local path, found = causal_map_file.attach(map, run_folder.plain(o.folder))
  if found > 0 then terminal.note(("mneme: %s: %d of %d columns were there"):format(path, found, #map.steps)) end
  return map, path
end

-- ---- what came of it ----

-- The episodes as they are.
local function baseline(map)
  local list = tables.map(map.outcomes, function(o) return map.measure == "success" and o.score or o.ret end)
  if map.measure == "success" then return ("success %.3f [%.3f, %.3f]"):format(stats.wilson(stats.mean(list) * #list, #list)) end
  local mean, low, high = stats.t_interval(list)
  return format.said(low and "return %.3f [%.3f, %.3f]" or "return %.3f", mean, low, high)
end

-- What the noise is, in a sentence.
local function note(result)
  local test = result.test
  if not test then return "" end
  return ("%d of %d cells stand out: p <= 0.05 for all cells together (largest statistic under random signs of the episodes)%s."):format(test.clear,
    test.of, test.noise and ("; the least of these losses is %.2g"):format(test.noise) or "")
end

---The table of a map.
---@param result PartMap of CausalMap:view
function where.report(result)
  if #result.steps == 0 then return "the episodes end at step 0: there is nothing to erase before\n" end
  local more = #result.map:columns_of(nil, true)
  return result:table(result.test and "stands out") .. note(result) .. "\n" .. (#result.steps < more and not result.map.asked_for
    and wrap(("%d of some %d columns, as the episodes are long: columns=%d measures the others"):format(#result.steps, more, causal_map.columns)) .. "\n" or "")
end

-- Everything as JSON.
local function numbers(result, o)
  local map = result.map
  local rows = json.array(tables.map(map.rows, function(row, r)
    local cells = json.array(tables.map(map.steps, function(_, c) return result.cells[r][c] or json.null end))
    return { part = row.word, layer = row.layer, head = row.head, cells = cells }
  end))
  return { run = o.folder, checkpoint = map.carrier.steps, episodes = #map.outcomes, seed = map.seed, measure = map.measure, test_of = map.test_of,
    steps = json.array(map.steps), rows = rows, outcomes = json.array(map.outcomes), test = result.test }
end

-- ---- pictures ----

-- A page with the map.
local function page(o, result)
  return { draw = function(view)
    local box = view:inset(view.box, 24)
    local head, body = view:split(box, "rows", { 44, "1*" })
    local map, u = result.map, view.unit
    view:text(("%s at %.0f steps"):format(o.folder:match "([^/]+)/*$", map.carrier.steps), head.x, head.y + 26 * u, 20, view.theme.text)
    view:text(("%d episodes, %s"):format(#map.outcomes, baseline(map)), head.x + head.w, head.y + 26 * u, 14, view.theme.dim, "right")
    scene.panels.causes(view, body, { causes = function() return result end })
  end }
end

local function write(o, result)
  if o.kind == "numbers" then files.write(o.out, { json.encode(numbers(result, o), " "), "\n" })
  elseif o.kind == "figure" then
    if #result.steps == 0 then errors.usage(("where: out=%s: there is no step to draw"):format(o.out), ".json and .png say so") end
    local name, map = o.folder:match "([^/]+)/*$", result.map
    figures.export(result:figure(("Where %s %s, at %.0f steps"):format(name, map.test_of == "hold" and "forgets" or "remembers", map.carrier.steps),
      ("episodes: %d, %s. %s%s"):format(#map.outcomes, baseline(map), note(result), result.test and " Cells without colour do not." or "")), o.out)
  else files.check(C.mn_image_write(engine.ctx, o.out, scene.painter(nil, o):paint(page(o, result), {}, o.width, o.height), o.width, o.height)) end
  print(o.out)
end

-- ---- the command ----

---What to look at after a map: the part that its sentence names, where it costs most; nil: none stands out.
---@param result PartMap of CausalMap:view
---@return string? word
---@return integer? at
function where.worth_seeing(result)
  local top = memory_story.parts(result.map, result.cells)[1]
  if top then return top.row.word, result.steps[top.best] end
end

-- Measures the map; nil where a signal came.
local function measure(o, env, test)
  local map, path = open(o, env, test)
  if not progress.work(map, "cells", ("playing %d episodes, to see how they end"):format(o.episodes)) then
    local cells, of = map:progress()
    print(("stopped after %d of %s cells; the same command resumes from %s"):format(cells, of or "?", path))
    return nil
  end
  local result = map:view()
  result.what = memory_story.what(map.carrier.env)
  map:release()                                    -- before the next one's memory is taken
  return result
end

-- Measures the map that is asked for, and prints it; nil where a signal came.
local function measured(o, env)
  local result = measure(o, env)
  if not result then return nil end
  local map = result.map
  print(("%s at %.0f steps, %s%s: %s; %s when a part %s"):format(o.folder, map.carrier.steps,
    format.counted(o.episodes, "episode"), map.carrier.chosen, baseline(map), result.value, map.test_of == "hold" and "keeps what it holds" or "is erased"))
  io.stdout:write(where.report(result))
  return result
end

-- What readings of the memory say of an agent that no part, kept as it is, helps; nil: nothing, or a signal came.
local function why(o, env, what_fails, word)
  local p = stepper.from_run(o.folder, { num_envs = readings.episodes, seed = o.seed, greedy = o.greedy, best = o.best, checkpoint = o.checkpoint,
    settings = env })
  local facts = tables.map(p.env.to_know, function(fact) return fact.kind == "class" and fact.name or nil end)
  if #facts ~= 1 then return nil end
  local job = readings.new(p, { facts = facts, seed = o.seed })
  if not progress.work(job, "parts of the memory", ("playing %d episodes, to see what the memory knows"):format(readings.episodes)) then return nil end
  return readings_in_words.why(job, what_fails, word)
end

-- What maps say of the newest checkpoint, in sentences; where episodes fail, what was lost is measured for it.  False where a signal came.
local function tell(o, env, result)
  local map = result.map
  if #map.steps == 0 then return true end
  if map.test_of == "hold" then print(wrap(memory_story.lost(map, result.cells, result.what))) return true end
  local held = memory_story.fails(map) and measure(o, env, "hold")
  if held == nil then return false end             -- a signal came
  local sentences, lost = memory_story.sentences(result, held, result.what, function(of, word) return why(o, env, of, word) end)
  for _, text in ipairs(sentences) do print(wrap(text)) end
  if lost then print(("see it: mneme view %s hold=%s at=%d"):format(o.folder, lost.row.word, lost.last)) end
  return true
end

function where.run(o)
  local env = o.env_settings
  check(o)
  choose_threads(o)
  local status, result = engine.heeding(false, function()
    local result = measured(o, env)
    return result and tell(o, env, result) and result
  end)
  if not result then return status end
  if o.out then write(o, result) end
  local word, at = where.worth_seeing(result)
  if not word then terminal.next_step.say { "probe", o.folder }
  else print(("see it: mneme view %s %s=%s at=%d"):format(o.folder, result.map.test_of, word, at)) end
  return status
end

return where
