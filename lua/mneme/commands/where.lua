-- where.lua -- `mneme where`: what the agent loses when each part of its memory is erased at each step.
local lazy = require "mneme.base.lazy"
local arguments = require "mneme.commands.arguments"
local options = require "mneme.commands.options"
local causal_map = lazy "mneme.insight.episodes.causal_map"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local figures = lazy "mneme.insight.figures"
local json = require "mneme.base.json"
local causal_map_file = lazy "mneme.insight.episodes.causal_map_file"
local memory_story = lazy "mneme.insight.episodes.memory_story"
local next_step = require("mneme.base.terminal").next_step
local progress = require "mneme.base.progress"
local run_folder = lazy "mneme.runs.folder"
local readings_in_words = lazy "mneme.insight.measure.readings_in_words"
local readings = lazy "mneme.insight.measure.readings"
local scene = lazy "mneme.insight.view.scene"
local stats = lazy "mneme.stats"
local stepper = lazy "mneme.insight.episodes.stepper"
local terminal = require "mneme.base.terminal"
local width = require("mneme.base.layout").width
local function wrap(text) return table.concat(require("mneme.base.layout").wrap(text, width()), "\n") end

local C = engine.C
local where = { name = "where", doc = "where is it remembered: success lost by erasing each part of the memory at each step", others = "env",
  loads = true, arguments = options.run,
  draws = "episode k begins with this seed + k, while the environments of eval all draw from one", about = [[
Every cell of the map plays the same episodes with the same random numbers, and continues from the state that was kept at its step.  The map is
kept in RUN/where after each column: killed, the same command resumes it.]],
  options = options.join({ options.episodes(64) }, options.agent, {
    { "by", "the parts: heads (or groups of channels) and layers, or layers alone", type = "choice", choices = { "head", "layer" }, unless = "head" },
    { "every", "steps between columns", type = "whole", range = { 1 }, unless = "about 24 columns", example = "4" },
    { "columns", "about as many columns; those that are stored stay", type = "whole", range = { 1 }, unless = "24, fewer where episodes are long",
      example = "24" },
    { "test", "hold: freeze each part from that step on; gain in success: which part lost it, and when", type = "choice", choices = { "erase", "hold" },
      unless = "erase; where more than one episode in twenty fails, both" },
    { "measure", "what is lost; kl: how far the policy is from the untouched one (nats, added up over the steps that follow)", type = "choice",
      choices = { "success", "return", "kl" }, unless = "success where each score is 0 or 1, else the return" },
    { "checkpoints", "a map of each kept checkpoint, as a film: out=FILE.gif or .mp4", type = "switch", default = false },
    { "out", "the numbers (.json), a figure (.csv .svg .pdf), a picture (.png) or film", type = "file",
      endings = { "json", "csv", "svg", "pdf", "png", "gif", "mp4" } },
    options.common.size, options.common.theme, options.common.scale }) }
local FPS, HOLD, END = 10, 8, 20             -- of a film: frames a second, frames of a map, more of the last one

-- ---- the command line ----

local kinds = { json = "numbers", csv = "figure", svg = "figure", pdf = "figure", png = "picture", gif = "film", mp4 = "film" }

-- What does not go together; and what `out` is.
local function check(o)
  o.width, o.height = o.width or scene.default_width, o.height or scene.default_height
  o.kind = o.out and kinds[o.out:lower():match "%.(%w+)$"]
  if o.checkpoints and (o.best or o.checkpoint) then errors.usage "where: checkpoints=1 is a map of each, expected no best= and no checkpoint=" end
  arguments.check_run(where, o, "to erase in")
  if o.every and o.columns then errors.usage "where: every= and columns= both say which steps, expected one of them" end
  if o.test == "hold" and o.measure == "kl" then errors.usage "where: test=hold asks what is gained, expected measure=success or measure=return" end
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

-- The map of one checkpoint, at the steps of another map or its own; resumed where it was begun.
local function open(o, env, checkpoint, steps, test)
  local function agent()
    return stepper.from_run(o.folder, { num_envs = o.episodes, seed = o.seed, greedy = o.greedy, best = o.best, checkpoint = checkpoint,
      settings = env })
  end
  local map = causal_map.new(agent(), agent(), { test = test or o.test, by = o.by, measure = o.measure, seed = o.seed, every = o.every,
    columns = not steps and o.columns or nil, steps = steps, on_coarse = say_coarse })
  local path, found = causal_map_file.attach(map, run_folder.plain(o.folder))
  if found > 0 then terminal.note(("mneme: %s: %d of %d columns were there"):format(path, found, #map.steps)) end
  return map, path
end

-- ---- what came of it ----

-- The episodes as they are.
local function baseline(map)
  local list, successes = {}, 0
  for i, o in ipairs(map.outcomes) do
    list[i], successes = map.measure == "success" and o.score or o.ret, successes + (o.score or 0)
  end
  if map.measure == "success" then return ("success %.3f [%.3f, %.3f]"):format(stats.wilson(successes, #list)) end
  local mean, low, high = stats.t_interval(list)
  return low and ("return %.3f [%.3f, %.3f]"):format(mean, low, high) or ("return %.3f"):format(mean)
end

-- What the noise is, in a sentence.
local function note(result)
  local test, map = result.test, result.map
  if not test then
    return map.measure == "kl" and "Divergences are never negative: there is no test of no effect; compare with the largest." or ""
  end
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
  local map, rows = result.map, json.array {}
  for r, row in ipairs(map.rows) do
    local list = json.array {}
    for c in ipairs(map.steps) do list[c] = result.cells[r][c] or json.null end
    rows[r] = { part = row.word, layer = row.layer, head = row.head, cells = list }
  end
  return { run = o.folder, checkpoint = map.carrier.steps, episodes = #map.outcomes, seed = map.seed, measure = map.measure, test_of = map.test_of,
    steps = json.array(map.steps), rows = rows, outcomes = json.array(map.outcomes), test = result.test }
end

-- ---- pictures ----

-- A page with the map of one checkpoint.
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

-- The maps of a film: from the first on of which a cell stands out.
local function born(results)
  for i, result in ipairs(results) do
    for _, row in ipairs(result.cells) do for _, cell in pairs(row) do if cell and cell.clear then return { unpack(results, i) } end end end
  end
  return { results[#results] }
end

local function draw(o, results)
  if o.kind == "film" then results = born(results) end
  local painter, most = scene.painter(nil, o), 0
  for _, result in ipairs(results) do most = math.max(most, result:scale()) end
  for _, result in ipairs(results) do result.floor = most end                    -- one scale for all
  local function paint(result) return painter:paint(page(o, result), {}, o.width, o.height) end
  if o.kind == "picture" then
    return engine.check(C.mn_image_write(engine.ctx, o.out, paint(results[#results]), o.width, o.height))
  end
  local movie = engine.check(C.mn_movie_new(engine.ctx, o.out, o.width, o.height, FPS))
  local ok, why = pcall(function()
    for i, result in ipairs(results) do
      local pixels = paint(result)
      for _ = 1, HOLD + (i == #results and END or 0) do engine.check(C.mn_movie_add(movie, pixels)) end
    end
    engine.check(C.mn_movie_end(movie))
  end)
  C.mn_movie_free(movie)
  if not ok then error(why, 0) end
end

local function write(o, results)
  local result = results[#results]
  if o.kind == "numbers" then
    local list = {}
    for i, one in ipairs(results) do list[i] = numbers(one, o) end
    files.write(o.out, { json.encode(o.checkpoints and json.array(list) or list[1], " "), "\n" })
  elseif o.kind == "figure" then
    local name, map = o.folder:match "([^/]+)/*$", result.map
    figures.export(result:figure(("Where %s %s, at %.0f steps"):format(name, map.test_of == "hold" and "forgets" or "remembers", map.carrier.steps),
      ("episodes: %d, %s. %s%s"):format(#map.outcomes, baseline(map), note(result), result.test and " Cells without colour do not." or "")), o.out)
  else draw(o, results) end
  print(o.out)
end

-- ---- the command ----

---What to look at after a map: the part that its sentence names, where it costs most; nil: none stands out.  Of a map without a test the largest cell.
---@param result PartMap of CausalMap:view
---@return string? word
---@return integer? at
---@return number? most
function where.worth_seeing(result)
  local top, best = memory_story.parts(result.map, result.cells)[1], nil
  if top then return top.row.word, result.steps[top.best], top.most end
  for r, row in ipairs(result.test and {} or result.rows) do
    for c, cell in pairs(result.cells[r]) do
      local small = row.word ~= "all" and not row.word:find "^layers%.%d+$"
      if small and cell.loss > (best and best[3] or 0) then best = { row.word, result.steps[c], cell.loss } end
    end
  end
  return unpack(best or {})
end

-- One line of a map among several.
local function line(result)
  local word, at, best = where.worth_seeing(result)
  return ("%12.0f steps: %s; %s%s"):format(result.map.carrier.steps, baseline(result.map),
    word and ("most by %s at step %d: %.2f"):format(word, at, best) or "nothing stands out",
    result.test and (", %d cells stand out"):format(result.test.clear) or "")
end

-- Measures the map of a checkpoint; nil where a signal came.
local function measure(o, env, checkpoint, steps, test)
  local map, path = open(o, env, checkpoint, steps, test)
  if not progress.work(map, "cells", ("playing %d episodes, to see how they end"):format(o.episodes)) then
    local cells, of = map:progress()
    print(("stopped after %d of %s cells; the same command resumes from %s"):format(cells, of or "?", path))
    return nil
  end
  local result, env_of = map:view(), map.carrier.env
  result.what = memory_story.what(env_of)
  -- Their memory is free before the next one's is taken.
  map.carrier, map.worker = { steps = map.carrier.steps, num_envs = map.carrier.num_envs, chosen = map.carrier:how_chosen() }, nil
  return result
end

-- The maps of the checkpoints, oldest first: nil where a signal came.  The newest is measured first, and the others at its steps.
local function measure_all(o, env, which)
  local results, steps = {}, nil
  for i = #which, 1, -1 do
    local result = measure(o, env, which[i] or nil, steps)
    if not result then return nil end
    local map = result.map
    table.insert(results, 1, result)
    steps, o.measure = map.steps, map.measure
    if i == #which then
      print(("%s at %.0f steps, %d episode%s%s: %s; %s when a part %s"):format(o.folder, map.carrier.steps, o.episodes,
        o.episodes == 1 and "" or "s", map.carrier.chosen, baseline(map), result.value,
        map.test_of == "hold" and "keeps what it holds" or "is erased"))
      io.stdout:write(where.report(result))
    end
    if #which > 1 then print(line(result)) end
  end
  return results
end

-- What readings of the memory say of an agent that no part, kept as it is, helps; nil: nothing, or a signal came.
local function why(o, env, what_fails, word)
  local p = stepper.from_run(o.folder, { num_envs = readings.episodes, seed = o.seed, greedy = o.greedy, best = o.best, checkpoint = o.checkpoint,
    settings = env })
  local facts = {}
  for _, fact in ipairs(p.env.to_know) do if fact.kind == "class" then facts[#facts + 1] = fact.name end end
  if #facts ~= 1 then return nil end
  local job = readings.new(p, { facts = facts, seed = o.seed })
  if not progress.work(job, "parts of the memory", ("playing %d episodes, to see what the memory knows"):format(readings.episodes)) then return nil end
  return readings_in_words.why(job, what_fails, word)
end

-- What maps say of the newest checkpoint, in sentences; where episodes fail, what was lost is measured for it.  False where a signal came.
local function tell(o, env, asked, result)
  local map = result.map
  if map.measure == "kl" or #map.steps == 0 then return true end
  if map.test_of == "hold" then print(wrap(memory_story.lost(map, result.cells, result.what))) return true end
  local held
  if memory_story.fails(map) then
    o.measure = asked
    held = measure(o, env, o.checkpoint, nil, "hold")
    if not held then return false end
  end
  local sentences, lost = memory_story.sentences(result, held, result.what, function(of, word) return why(o, env, of, word) end)
  for _, text in ipairs(sentences) do print(wrap(text)) end
  if lost then print(("see it: mneme view %s hold=%s at=%d"):format(o.folder, lost.row.word, lost.last)) end
  return true
end

function where.run(o)
  local env = o.env_settings
  check(o)
  local asked, which = o.measure, { o.checkpoint or false }
  if o.checkpoints then
    for i, at in ipairs(run_folder.load(o.folder).checkpoints) do which[i] = at.step end
  end
  C.mn_watch_signals(true)
  C.mn_lose_nothing(true)
  local results = measure_all(o, env, which)
  local told = results and tell(o, env, asked, results[#results])
  local status = errors.status_of(C.mn_interrupted())
  C.mn_watch_signals(false)
  if not results or not told then return status end
  if o.out then write(o, results) end
  local word, at = where.worth_seeing(results[#results])
  if not word then next_step.say { "probe", o.folder }
  else print(("see it: mneme view %s %s=%s at=%d"):format(o.folder, results[#results].map.test_of, word, at)) end
  return status
end

return where
