-- test_beliefs.lua -- what scenes draw of an agent's beliefs lies where these things are: a memory that says the truth is drawn on the things
-- themselves, and one that says the opposite nowhere on them.
local t = require "tests.harness"
local C = require("mneme.base.engine").C
local frames = require "mneme.insight.episodes.frames"
local mn = require "mneme"
local map_display = require "mneme.insight.episodes.map_display"
local scene = require "mneme.insight.view.scene"
local stepper = require "mneme.insight.episodes.stepper"
local readings = mn.measure.readings_of_frame

-- A frame of a scene's environment after some steps, as if it were of a run.
local function frame_of(name, settings, steps)
  mn.manual_seed(5)
  local env = { name }
  for key, value in pairs(settings or {}) do env[key] = value end
  local source, film, frame = stepper.fresh { env = env, core = { "gru", d_model = 8 } }, frames.new(), nil
  for _ = 1, steps do frame = film:add(source:next()) end
  return setmetatable({ run = "runs/none" }, { __index = frame })
end

-- The frames that a scene draws over the world, in the world's units, where the memory says `list` of a fact: { x, y, right }.
-- worth: how much of the fact is read, default all.
local function drawn(name, frame, fact, list, worth)
  local real_job, real_episode, real_worth, real_map, found = readings.job, readings.episode, readings.worth, readings.map, {}
  readings.map = function() return map_display.new { title = "", steps = {}, rows = {}, cells = {}, note = "" } end
  readings.worth = function() return worth or 1 end
  readings.job = function() return { facts = { { name = fact, kind = "class" } }, done = true, parts = { { word = "all", at = 1 } }, steps = { 0 } } end
  readings.episode = function() return { [frame.step] = { list = list } } end
  local panel = scene.panels.beliefs
  scene.panels.beliefs = function(view, box, now, options)
    local outline, write = view.frame, view.text
    view.text = function(self, text, ...)
      if found[1] then found[#found].letter = text end
      return write(self, text, ...)
    end
    view.frame = function(_, x, y, w, h, colour)
      local x0, y0, scale = options.place(0, 0)
      local right = math.floor(colour / 256) == math.floor(mn.ui.canvas.theme.good / 256)
      found[#found + 1] = { x = (x + w / 2 - x0) / scale, y = (y + h / 2 - y0) / scale, right = right }
    end
    local ok, why = pcall(panel, view, box, now, options)
    view.frame, view.text = outline, write
    if not ok then error(why, 0) end
  end
  local ok, why = pcall(function() scene.painter():paint(scene.load(name), frame, 1280, 800) end)
  readings.job, readings.episode, readings.worth, readings.map, scene.panels.beliefs = real_job, real_episode, real_worth, real_map, panel
  t.ok(ok, why)
  return found
end

-- The shapes of a world: { kind, color, x, y, w, h }.
local function shapes_of(frame)
  local list, all = {}, C.mn_canvas_shapes(frame.canvas)
  for i = 0, C.mn_canvas_count(frame.canvas) - 1 do list[i + 1] = { all[i].kind, all[i].color, all[i].x, all[i].y, all[i].w, all[i].h } end
  return list
end

for _, name in ipairs { "mystery_path", "mystery_path_grid" } do
  t.test(name .. ": the path that the memory has is drawn on the path", function()
    local frame = frame_of(name, { level = "easy" }, 12)
    local truth, list, wrong, length = frame.truth, {}, {}, 0
    for k, on in ipairs(truth.path) do
      list[k], wrong[k] = { entry = k, p = { [on] = 1, [1 - on] = 0 } }, { entry = k, p = { [on] = 0, [1 - on] = 1 } }
      length = length + on
    end
    local found, at = drawn(name, frame, "path", list), {}
    t.eq(#found, length)
    for _, f in ipairs(found) do
      t.ok(f.right)
      at[math.floor(f.y) * 7 + math.floor(f.x) + 1] = true
      t.near(f.x % 1, 0.5, 1e-3) t.near(f.y % 1, 0.5, 1e-3)
    end
    for _, place in ipairs { "start", "goal" } do t.ok(at[truth[place .. "_y"] * 7 + truth[place .. "_x"] + 1], place .. " is on the path") end
    for k, on in ipairs(truth.path) do t.eq(at[k] or false, on == 1) end
    found = drawn(name, frame, "path", wrong)
    t.eq(#found, 49 - length)
    for _, f in ipairs(found) do t.ok(not f.right) end
    t.eq(#drawn(name, frame, "path", { { entry = 1, p = { [0] = 0.5, [1] = 0.5 } } }), 0, "what it does not know is not drawn")
  end)
end

t.test("memory_maze: frames lie on the targets where the memory says the truth", function()
  local frame = frame_of("memory_maze", { size = 9 }, 12)
  local list = {}
  for k, x in ipairs(frame.truth.targets) do list[k] = { entry = k, value = x } end
  local found, discs = drawn("memory_maze", frame, "targets", list), {}
  t.eq(#found, #list / 2)
  t.eq(#drawn("memory_maze", frame, "targets", list, 0), 0, "what is read from no memory is not drawn")
  for _, shape in ipairs(shapes_of(frame)) do
    if shape[1] == 2 then discs[#discs + 1] = shape end
  end
  for k, f in ipairs(found) do
    local on, colour = false, frame.truth.colors[k]
    if k < #found then t.eq(f.letter, ("ABCDEF"):sub(colour + 1, colour + 1), "a colour alone is not for every eye") end
    for _, disc in ipairs(discs) do on = on or math.abs(disc[3] - f.x) < 0.01 and math.abs(disc[4] - f.y) < 0.01 end
    t.ok(on, ("a target is drawn at %.2f, %.2f"):format(f.x, f.y))
  end
end)

for _, level in ipairs { "easy", "hard" } do
  t.test("concentration, " .. level .. ": what the memory says is drawn on closed cards", function()
    local frame, list, closed = frame_of("concentration", { level = level }, 9), {}, 0
    local truth, kinds = frame.truth, level == "hard" and 13 or 2
    for k = 1, 52 do
      local p = {}
      for class = 0, kinds - 1 do p[class] = class == truth.cards[k] and 1 or 0 end
      list[k], closed = { entry = k, p = p }, closed + 1 - truth.open[k]
    end
    local found, tiles = drawn("concentration", frame, "cards", list), {}
    t.eq(#found, closed)
    for _, shape in ipairs(shapes_of(frame)) do if shape[1] == 0 then tiles[#tiles + 1] = shape end end
    for _, f in ipairs(found) do
      local on = false
      for _, s in ipairs(tiles) do on = on or s[6] > 1 and math.abs(s[3] + s[5] / 2 - f.x) < 0.01 and math.abs(s[4] + s[6] / 2 - f.y) < 0.01 end
      t.ok(on and f.right, ("a card lies at %.2f, %.2f"):format(f.x, f.y))
    end
  end)
end

t.test("tmaze: each cell is lit once, by what was said there last, and the agent stands above the light", function()
  local frame = frame_of("tmaze", { corridor = 9 }, 14)
  local real_job, real_map, last, steps, cells, causes = readings.job, readings.map, {}, {}, { {}, {} }, { {}, {} }
  for k, entry in ipairs(frame.history) do
    local p = entry.step % 3 == 0 and 0.9 or 0.1
    steps[k], cells[1][k], cells[2][k] = entry.step, { p = 0.5 }, { p = p }
    causes[1][k], causes[2][k] = { loss = 0.4, clear = true }, { loss = 0.4, clear = entry.step < 8 }
    last[entry.x] = { p = entry.step < 7 and p or 0.5 }                -- of the part in use, to step 7; then of all of the memory
  end
  local rows = { { word = "all", text = "all" }, { word = "layers.0.head.1", text = "layer 0, head 1", layer = 0, head = 1 } }
  readings.map = function() return map_display.new { title = "", key = "p", floor = 1, steps = steps, rows = rows, cells = cells, value = "", at = "" } end
  frame.known = function() return map_display.new { key = "loss", floor = 0.2, steps = steps, rows = rows, cells = causes, test = {} } end
  readings.job = function() return { facts = { { name = "cue", kind = "class" } }, done = true, parts = { { word = "all", at = 1 } }, steps = { 0 } } end
  local real_worth, real_episode = readings.worth, readings.episode
  readings.worth, readings.episode = function() return 1 end, function() return {} end
  local painter, lit, above, panel = scene.painter(), {}, nil, scene.panels.beliefs
  scene.panels.beliefs = function(view, box, now, options)
    local rect, disc = view.rect, view.disc
    view.rect = function(self, x, y, w, h, colour)
      local x0, _, scale = options.place(0, 0)
      local good = math.floor(colour / 256) == math.floor(mn.ui.canvas.theme.good / 256)
      lit[#lit + 1] = { x = math.floor((x + w / 2 - x0) / scale), good = good }
      return rect(self, x, y, w, h, colour)
    end
    panel(view, box, now, options)
    view.rect = rect
    view.disc = function(self, x, y, r, colour)          -- the first that is drawn after the light
      local x0, _, scale = options.place(0, 0)
      if colour == self.theme.accent then above = above or math.floor((x - x0) / scale) end
      return disc(self, x, y, r, colour)
    end
  end
  local ok, why = pcall(function() painter:paint(scene.load "tmaze", frame, 1280, 800) end)
  readings.job, readings.episode, readings.map, readings.worth, scene.panels.beliefs = real_job, real_episode, real_map, real_worth, panel
  rawset(painter.view, "disc", nil)
  t.ok(ok, why)
  local places = 0
  for _ in pairs(last) do places = places + 1 end
  t.eq(#lit, places)
  for _, cell in ipairs(lit) do t.eq(cell.good, last[cell.x].p >= 0.5) end
  t.eq(above, frame.truth.position)
end)
