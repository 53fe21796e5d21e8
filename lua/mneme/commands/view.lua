-- view.lua -- `mneme view`: watch an agent live, in a window, in a browser, or as pictures.
-- The window's loop polls events sixty times a second and never waits for a trainer.
local lazy = require "mneme.base.lazy"
local lfs = require "lfs"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local progress = require "mneme.base.progress"
local live_channel = lazy "mneme.insight.episodes.live_channel"
local causal_map_file = lazy "mneme.insight.episodes.causal_map_file"
local nn = lazy "mneme.tensor.nn"
local intervention_options = lazy "mneme.insight.episodes.intervention_options"
local episode_data = lazy "mneme.insight.view.episode_data"
local episode_page = lazy "mneme.insight.view.episode_page"
local readings_of_frame = lazy "mneme.insight.measure.readings_of_frame"
local run_list = lazy "mneme.commands.run_list"
local scene = lazy "mneme.insight.view.scene"
local terminal = require "mneme.base.terminal"
local viewer = lazy "mneme.insight.view.viewer"
local browser_window = lazy "mneme.insight.view.browser_window"
local window = lazy "mneme.insight.view.window"
local options = require "mneme.commands.options"
local tables = require "mneme.base.tables"
local C = engine.C
local view = { name = "view", doc = "watch an agent (live or trained), in a window, in a browser or as a picture", loads = true,
  arguments = { { "things", "RUN|SCENE", "up to four, side by side in the same environments with one clock; or a folder of runs",
    noun = "run or scene", several = true } },
  about = [[
Of a folder of runs a table: type to filter it, a click opens a run, Esc comes back; Tab chooses runs for curves and, by Enter, up to four side by side.
With an intervention (erase=PART at=STEP), from this step on the untouched and the altered agent side by side, as in mneme intervene.
In the window, h lists the keys: f goes to the next failure, i intervenes at the step shown, Tab changes the scene.]],
  options = options.join({
    { "out", ".png: the last step, or step at=; .gif, .mp4: all of episodes=1; .html: the episode number episodes=1, to be played in a browser, "
      .. "opened at step at=", type = "file", endings = { "png", "gif", "mp4", "html" } },
    { "at", "the step that is shown, or at which an intervention begins", type = "whole", example = "40" },
    { "episodes", "how many episodes", type = "whole", range = { 1, 10000 }, default = 1 },
    { "seed", "which episodes", type = "whole", example = "1" }, options.common.greedy, options.common.checkpoint,
    { "scene", "the page (mneme list scenes), or a file of one", type = "text", unless = "the environment's", example = "memory" },
    { "wait", "seconds that the panels of a picture or page may compute; they say what is missing then", type = "whole", default = 60 },
    options.web, options.common.size, options.common.theme, options.common.scale }, options.interventions) }
local MOVIE_FPS, HOLD, WAIT, PREPARE, LONG = 10, 15, 60, 0.4, 2000          -- LONG: steps after which it is said that an episode goes on

local function usage(message, hint) errors.raise(message, { status = 2, where = false, hint = hint or options.usage(view) }) end

-- ---- the command line ----

-- Checks the interventions: is the step given, and can the agent act?
local function check_interventions(o)
  if #o.list == 0 and not o["for"] then return end
  if #o.list > 0 and not o.at then usage("view: at which step to intervene?", "at=40") end
  intervention_options.time(o.list, o.at, o["for"], "view")
  if #o.things > 1 then usage "view: two things side by side cannot be changed, expected one" end
end

---What was given, as the viewer wants it.
---@param o table of arguments.read
function view.prepare(o)
  o.width, o.height, o.list = o.width or scene.default_width, o.height or scene.default_height, o.list or {}
  o.kind = o.out and o.out:lower():match "%.(%a+%d?)$"
  if o.things[5] then usage(("view: expected up to four things side by side, got a fifth: '%s'"):format(o.things[5])) end
  check_interventions(o)
  if o.web and o.out then usage("view: web= shows pages, out= writes a file: expected one of them") end
  if #o.list > 0 and o.episodes > 1 then
    usage(("view: an intervention is in the first episode, got episodes=%d"):format(o.episodes), "seed=N chooses the episode")
  end
  o.hint = ("mneme view %s out=FILE.png, or .gif, .mp4, .html, writes a file, web=1 shows it in a browser"):format(
    table.concat(o.things, " "))
  return o
end

-- ---- where frames come from ----

local function checkpoints_of(run)
  return tables.map(require("mneme.runs.run_folder").load(run).checkpoints, function(at) return at.step end)
end

-- How a track loads its agent: see insight/episodes/playback.lua.  For a run, the checkpoint shown last.
local function opener(o, run, what)
  local stepper, shown, seed = require "mneme.insight.episodes.stepper", o.checkpoint, o.seed
  return function(given)
    if given == "checkpoints" then return run and checkpoints_of(run) or {} end
    seed = given.seed or seed
    local wanted = { seed = seed, greedy = o.greedy, seeded = true, episode = given.episode }
    if not run then
      wanted.env, wanted.core = what.env, what.core
      nn.manual_seed(seed or 1)
      return stepper.fresh(wanted)
    end
    wanted.checkpoint = given.checkpoint or shown
    local source = stepper.from_run(run, wanted)
    shown = source.steps
    return source
  end
end

-- The map of a checkpoint of a run: see insight/episodes/causal_map.lua.  It is of the agent, whichever episode is shown.
local function map_of(o, run)
  return function(step, test, like) return causal_map_file.of_run(run, { checkpoint = step, greedy = o.greedy, test = test }, false, like) end
end

-- The agent of a checkpoint in many environments, to count what an intervention does.
local function many_of(o, run)
  return function(step)
    return require("mneme.insight.episodes.stepper").from_run(run, { num_envs = causal_map_file.episodes, seed = o.seed or causal_map_file.seed,
      greedy = o.greedy,
      checkpoint = step })
  end
end

-- The trainer, if the run is still training.
local function trainer(run)
  if not lfs.attributes(run .. "/live", "mode") then return nil end
  local found, source = pcall(live_channel.reader, run .. "/live")
  return found and source:state() == "running" and source or nil
end

-- One thing to view, as a track.
local function track_of(o, thing)
  if lfs.attributes(thing, "mode") == "directory" then
    local id = require("mneme.runs.run_folder").read_info(thing).env
    id = type(id) == "string" and id or ""
    local name = o.scene or #o.things > 2 and "compact" or scene.for_env(id)
    local what, open = scene.load(name), opener(o, thing)
    local source = not o.out and not o.checkpoint and #o.things == 1 and #o.list == 0 and trainer(thing)
    return { source = source or open {}, scene = what, open = open, map = map_of(o, thing), many = many_of(o, thing),
      scenes = scene.suiting(id), scene_name = name, stored = files.is_folder(thing .. "/where") }
  end
  if thing:find "[/.]" and not files.is_file(thing) then usage(("there is no run folder '%s'"):format(thing)) end
  if o.scene then usage(("scene=%s goes with a run folder, but '%s' is a scene"):format(o.scene, thing)) end
  local what = scene.load(thing)
  local open = opener(o, nil, what)
  return { source = open {}, scene = what, open = open }
end

---A viewer of the things on the command line.
---@param o table see parse
---@return Viewer
function view.open(o)
  local tracks = {}
  for k, thing in ipairs(o.things) do
    tracks[k] = track_of(o, thing)
    if #o.things > 1 then tracks[k].name = thing:match "([^/]+)/*$" end
  end
  return viewer.new(tracks, { theme = o.theme, controls = not o.out, seed = o.seed, title = table.concat(o.things, ", "),
    follow = not o.out and not o.checkpoint and #o.things == 1 and #o.list == 0 and files.is_folder(o.things[1]) })
end

local function too_late(at, steps)
  errors.fail(("step %d is not reached: the episode has %d step%s"):format(at, steps, steps == 1 and "" or "s"), "seed=N shows another")
end

---Go to the step of the interventions and apply them: the untouched and the altered agent are shown side by side.
---@param o table list, at, for: see parse
function view.intervene(shown, o)
  shown:go_to(o.at)
  local step, over = shown:tick_of(1).step, shown:ended()
  if step < o.at or over then too_late(o.at, step + 1) end
  local done, why = shown:intervene(intervention_options.of(o.list), o["for"], 0)
  if why then error(why, 0) end
  if not done then errors.fail(shown.note) end
end

-- ---- pictures ----

-- Show every slot of some episodes, or up to step `at` of the first episode; after an
-- intervention, the slots from there on.
local function play(shown, o, show)
  local episodes, at = o.episodes, #o.list == 0 and o.at or nil
  if shown.at > 0 then show(false) end
  repeat
    local more = shown:forward()
    local over = shown:ended()
    if over then episodes = episodes - 1 end
    if shown:tick_of(1).step == LONG and not at and #o.list == 0 then
      terminal.note(("mneme: %s: step %d, and the episode goes on: at=%d ends at this step"):format(o.out, LONG, LONG))
    end
    local last = not more or (at and shown:tick_of(1).step == at) or (over and episodes <= 0)
    if last and at and shown:tick_of(1).step < at then too_late(at, shown:tick_of(1).step + 1) end
    if more or last then show(last) end
  until last
end

-- Ends where a signal came.
local function heed()
  local signal = C.mn_interrupted()
  if signal ~= 0 then errors.stop(errors.status_of(signal)) end
end

-- Completes what the panels of the first frame compute, with a bar for each job that takes long; later frames need little more.
local function prepare(shown, painter, o)
  shown:look_ahead()
  local function paint(deadline)
    local what, frame = shown:page()
    painter.view.deadline = deadline
    painter:paint(what, frame, o.width, o.height)
    return painter.view.unfinished
  end
  local job = paint(C.mn_clock(false))
  while job do
    heed()
    local now = job
    local slice = { progress = function() if now ~= true and now.progress then return now:progress() end return 0 end }
    function slice:work(deadline)
      job = paint(deadline + PREPARE)
      self.done = job ~= now
      return self.done
    end
    progress.work(slice, "parts of the memory", "computing what the panels show")
  end
  painter.view.deadline = nil
end

---Draw some episodes into a file: the last frame as PNG, all of it as GIF or MP4.
---@param o table out, kind, width, height, episodes, at, theme, scale, wait: see view.prepare
---@return integer frames written
function view.export(shown, o)
  local painter, written, wait, unfinished = scene.painter(nil, o), 0, o.wait or WAIT, false
  local function paint(deadline)
    shown:look_ahead()                       -- panels show the whole episode
    local function page()
      local what, frame = shown:page()
      painter.view.deadline = deadline
      return painter:paint(what, frame, o.width, o.height)
    end
    local pixels = page()
    local changed
    changed, unfinished = shown:measure(deadline)
    if deadline and painter.view.wants_pair and #shown.tracks == 1 then
      shown:pair(deadline)
      changed = true
    end
    return changed and page() or pixels
  end
  if o.kind == "png" then
    play(shown, o, function(last)
      if last then files.check(C.mn_image_write(engine.ctx, o.out, paint(C.mn_clock(false) + wait), o.width, o.height)) end
    end)
    if unfinished or painter.view.unfinished then
      terminal.note(("mneme: %s: its panels are not complete after %d s, and say what is missing: wait=%d"):format(o.out, wait, 10 * math.max(1, wait)))
    end
    return 1
  end
  local movie = engine.check(C.mn_movie_new(engine.ctx, o.out, o.width, o.height, MOVIE_FPS))
  local bar, frames = nil, 0
  local ok, why = pcall(engine.heeding, false, play, shown, o, function(last)            -- what was written of a film is removed
    heed()
    if frames == 0 then prepare(shown, painter, o) end
    local pixels = paint()
    frames = frames + 1
    if not bar then                          -- now the first episode's length is known; others may be longer
      local from, to = shown:episode()
      bar = progress.new { steps = o.episodes * (to - from + 1), start = frames, unit = "frames", after = 2 }
    end
    bar:update(math.min(bar.steps, frames), {})
    for _ = 1, last and HOLD or 1 do
      engine.check(C.mn_movie_add(movie, pixels))
      written = written + 1
    end
    if last then files.check(C.mn_movie_end(movie)) end
  end)
  C.mn_movie_free(movie)
  if bar then bar:clear() end
  if not ok then error(why, 0) end
  return written
end

---Write an episode as an HTML file that plays it: the one shown, or the episode number `episodes`.
---@param o table out, episodes, at, theme, wait: see view.prepare
function view.write_page(shown, o)
  if shown.at == 0 then shown:forward() end
  local bar = progress.new { steps = o.episodes, unit = "episodes", after = 2 }
  for k = 2, o.episodes do
    bar:update(k - 1, {})
    local from = shown:episode()
    shown:to_episode(1)
    if shown:episode() == from then errors.fail(("%s: there is no episode number %d"):format(o.things[1], o.episodes)) end
  end
  bar:clear()
  local film
  local data = episode_data.of(shown, { open = o.at, seconds = o.wait, width = o.width, height = o.height, theme = o.theme, on = function(i, n)
    film = film or progress.new { steps = n, unit = "steps", after = 2 }
    film:update(i, {})
  end })
  film:clear()
  if o.at and #o.list == 0 and o.at >= #data.steps and not data.left_out then too_late(o.at, #data.steps) end
  local deadline = C.mn_clock(false) + o.wait
  if o.wait > 0 then shown:ahead(deadline) end
  if shown.scouted then
    local _, problem = readings_of_frame.settle(shown:frame(1), shown:episodes_of(1), deadline)
    data.strip, data.legend = shown:strip(problem)
  end
  files.write(o.out, { episode_page.whole(data, { theme = o.theme }) })
end

-- The runs below a folder, of which each opens in its place.
local function shelf(o)
  local source = setmetatable({ open = function(paths)
    return view.open(setmetatable({ things = paths }, { __index = o }))
  end }, { __index = run_list.source })
  return require("mneme.insight.view.run_table").new(o.things[1], source)
end

---The command `mneme view`.
function view.run(o)
  view.prepare(o)
  local many = not o.out and #o.list == 0 and #o.things == 1 and files.is_folder(o.things[1]) and not files.is_file(o.things[1] .. "/config.json")
    and run_list.rows(o.things[1])[1]
  for _, thing in ipairs(o.things) do              -- what is wrong with it is said before what this machine lacks
    if many then break elseif files.is_folder(thing) then require("mneme.runs.run_folder").read_info(thing)
    elseif thing:find "/" and not files.is_file(thing) then errors.usage(("%s: there is no such run"):format(thing), "mneme list runs")
    else scene.file(thing, "run or scene") end
  end
  if not o.out and not o.web then window.need_display(o.hint) end
  local shown = many and shelf(o) or view.open(o)
  if #o.list > 0 then view.intervene(shown, o)
  elseif o.at and not o.out and not many then shown:go_to(o.at) end
  if o.out then
    local write = o.kind == "html" and view.write_page or view.export
    write(shown, o)
    print(o.out)
    if files.is_folder(o.things[1]) then
      terminal.next_step.say(#o.list > 0 and { "eval", o.things[1] } or { "intervene", o.things[1], "erase=all", "at=1" })
    end
  else
    engine.heeding(true, (o.web and browser_window or window).run, shown, o)            -- a signal must not truncate a file that is being written
  end
  return 0
end

return view
