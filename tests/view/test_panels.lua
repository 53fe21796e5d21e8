-- test_panels.lua -- what panels show is so: curves are those of the log, places and outcomes those that were seen.
-- (What a memory reads: test_implicit_attention.lua.)
local t = require "tests.harness"
local metrics_reader = require "mneme.runs.metrics_reader"
local random_stepper = require "tests.support.random_stepper"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local frames = require "mneme.insight.episodes.frames"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"

-- ---- what was measured ----

t.test("learning curves: what was added is read, lines that are damaged are passed over", function()
  local folder = shell.folder()
  local function put(mode, text)
    local f = assert(io.open(folder .. "/metrics.jsonl", mode))
    f:write(text)
    f:close()
  end
  t.eq(next(metrics_reader.read(folder)), nil, "no log yet")
  put("w", '{"step": 10, "charts/score": 0.25}\n{"step": 20, "charts/score": "NaN", "x": 3}\nnonsense\n{"step": 30, "cha')
  local s = metrics_reader.read(folder)
  t.eq(s["charts/score"].n, 1) t.eq(s["charts/score"].y[1], 0.25) t.eq(s.x.x[1], 20)
  put("a", 'rts/score": 0.5}\n')
  s = metrics_reader.read(folder)["charts/score"]
  t.eq(s.n, 2) t.eq(s.x[2], 30) t.eq(s.y[2], 0.5)
  put("w", '{"step": 10, "charts/score": 0.25}\n')
  t.eq(metrics_reader.read(folder)["charts/score"].n, 1, "a trainer that resumes cuts its log")
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("gradient norms: means of their logarithms, a line for each part, the threshold from config.json", function()
  local folder = shell.folder()
  local function put(name, text)
    local f = assert(io.open(folder .. "/" .. name, "w"))
    f:write(text)
    f:close()
  end
  local log = {}
  for i = 1, 900 do
    log[i] = ('{"step": %d, "grad/norm": %g, "grad/core.layers.0": 0.1, "grad/core.layers.1": 0, "grad/actor": "NaN"}\n'):format(
      i * 10, i % 3 == 0 and 100 or 10)
  end
  put("metrics.jsonl", table.concat(log))
  local frame = setmetatable({ run = folder, selection = { layer = 1 } }, { __index = frames.new():add(random_stepper.new {}:next()) })
  local signals, now, options = scene.panels.signals, nil, nil
  scene.panels.signals = function(_, _, n, o) now, options = n, o end
  local function draw() scene.panels.gradients({}, nil, frame) end
  local ok, why = pcall(function()
    draw()
    t.eq(options.level, nil, "no config.json")
    put("config.json", '{"config": {}, "max_norm": 0.5}')
    draw()
  end)
  scene.panels.signals = signals
  os.execute("rm -r '" .. folder .. "'")
  t.ok(ok, why)
  t.near(options.level, math.log10(0.5), 1e-12)
  local names, of = {}, {}
  for i, line in ipairs(options.lines) do names[i], of[line.name] = line.name, line end
  t.eq(table.concat(names, " "), "all layer 0 1")
  t.eq(#now.history, 300)
  t.near(now.history[300].step, 9, 1e-12)
  for _, i in ipairs { 1, 150, 300 } do
    t.near(of.all.of(now.history[i]), (1 + 1 + 2) / 3, 1e-9)
    t.near(of["layer 0"].of(now.history[i]), -1, 1e-9)
    t.eq(of["1"].of(now.history[i]), nil, "no gradient has no logarithm")
  end
  t.ok(of["1"].thick > of["layer 0"].thick, "the chosen layer's")
end)

-- ---- what was seen ----

t.test("places and outcomes are those of the frames before, however far one steps back", function()
  local source, film, shown = random_stepper.new { corridor = 4 }, frames.new(), {}
  local steps, ends = 0, 0
  while ends < 3 do
    local now = source:next()
    if now.ended then film:finish(now.ended, now.reward) ends = ends + 1 end
    shown[#shown + 1] = film:add(now)
    steps = steps + 1
    t.eq(shown[#shown].been, steps)
    t.eq(shown[#shown].ended_before, ends)
  end
  t.eq(shown[2].been, 2) t.eq(shown[2].ended_before, 0)
  t.eq(shown[#shown].places.x[steps - 1], shown[#shown].truth.position)
  for i, entry in ipairs(shown[5].history) do
    t.eq(entry.truth.position, entry.x)
    t.near(entry.policy[4], shown[i].policy[4], 0)
    t.ok(entry.norms[3] > 0 and entry.probes and entry.observation)
  end
end)

t.test("of a training that is seen now and then, steps that were seen keep what was seen", function()
  local source, film = random_stepper.new { corridor = 20 }, frames.new()
  local function told(n)
    local history = {}
    for i = 1, n do history[i] = { step = i - 1, value = i, x = i, gates = {} } end
    return history
  end
  local frame
  for step = 0, 6 do
    local now = source:next()
    now.step, now.episode, now.history = step, 0, told(step + 1)
    if step % 3 == 0 then frame = film:add(now) end
  end
  t.eq(#frame.history, 7) t.eq(frame.been, 7)
  for i, entry in ipairs(frame.history) do
    t.eq(entry.value, i, "what the trainer told stays")
    t.eq(entry.policy ~= nil, (i - 1) % 3 == 0)
  end
  local now = source:next()
  now.step, now.episode, now.history = 9, 0, told(8)       -- a trainer that has not told this step
  frame = film:add(now)
  t.eq(frame.history[8].norms, nil)
  local painter = scene.painter()
  for _, name in ipairs(scene.list()) do painter:paint(scene.load(name), frame, 800, 600) end
end)

-- The frames of some steps on a scene's own environment, and what the scene asks of the panel of what was seen.
local function asked_of_seen(name, settings)
  local what, film, asked = scene.load(name), frames.new(), nil
  local env = { name }
  for key, value in pairs(settings) do env[key] = value end
  mn.manual_seed(5)
  local source, frame = stepper.fresh { env = env, core = { "gru", d_model = 8 } }, nil
  for _ = 1, 80 do
    local now = source:next()
    frame = now.ended and frame or film:add(now)
    if now.ended then break end
  end
  local panel = scene.panels.explored
  scene.panels.explored = function(_, _, _, options) asked = options end
  local ok, why = pcall(function() scene.painter():paint(what, frame, 800, 600) end)
  scene.panels.explored = panel
  t.ok(ok, why)
  return frame, asked
end

t.test("what was seen lies where it is: in memory_maze as in its layout", function()
  for _, mode in ipairs { "grid", "continuous" } do
    local frame, asked = asked_of_seen("memory_maze", { mode = mode, size = 11, view = 5 })
    t.eq(asked.view, 5) t.eq(asked.width, 11)
    local is, checked = { [0] = 1, [1] = 2, [2] = 3 }, 0
    for _, entry in ipairs(frame.history) do
      for k = 0, 24 do
        local code, x, y = entry.observation.values[k], asked.place(entry.truth, k)
        local inside = x >= 0 and y >= 0 and x < 11 and y < 11
        if code > 0 then
          t.eq(math.min(code, 3), inside and is[entry.truth.layout[y * 11 + x + 1]] or 1)
          checked = checked + 1
        end
      end
    end
    t.ok(checked > 500, mode)
  end
end)

t.test("what was seen lies where it is: in gridworld a place is always the same", function()
  local frame, asked = asked_of_seen("gridworld", { view = 5, map = [[
#########
#S.....1#
#.?.#...#
#.....#2#
#########]] })
  local at, checked = {}, 0
  for _, entry in ipairs(frame.history) do
    for k = 0, 24 do
      local code, x, y = entry.observation.values[k], asked.place(entry.truth, k)
      if code > 0 then
        t.ok(x >= 0 and y >= 0 and x < frame.truth.width and y < frame.truth.height)
        t.eq(at[y * 64 + x] or code, code)
        at[y * 64 + x], checked = code, checked + 1
      end
    end
  end
  t.ok(checked > 100 and #frame.history > 5)
end)

t.test("panels that are not complete when their time is over say what is missing, and complete ones do not", function()
  mn.manual_seed(3)
  local source, film, frame = stepper.fresh { env = { "tmaze", corridor = 30 }, core = { "agalite", n_layers = 2, d_model = 16 } }, frames.new(), nil
  for _ = 1, 24 do frame = film:add(source:next()) end
  local painter = scene.painter()
  local view, notes = painter.view, nil
  local card = view.card
  view.card = function(self, box, title, note, ...)
    notes = type(note) == "table" and table.concat(note, " | ") or note or ""
    return card(self, box, title, note, ...)
  end
  for name, words in pairs { contribution = "of %d+ steps measured", attention = "of %d+ steps measured" } do
    local own = setmetatable({ agent = setmetatable({}, { __index = frame.agent }) }, { __index = frame })        -- nothing is known yet
    view:clear(800, 600)
    view.deadline = 0
    scene.panels[name](view, view.box, own)
    t.ok(notes:find(words), name .. ": " .. notes)
    t.ok(view.unfinished, name)
    view.deadline = nil
    view:clear(800, 600)
    scene.panels[name](view, view.box, own)
    t.ok(not notes:find "measured" and not notes:find "not yet", name .. ": " .. notes)
    t.ok(not view.unfinished, name)
  end
end)

t.test("visits: cells are as wide as high, whatever places an environment has; of a corridor a strip", function()
  local floats = require("ffi").typeof "float[?]"
  local film, view = frames.new(), scene.painter().view
  local frame, box, heat = film:add(random_stepper.new { corridor = 4 }:next()), nil, nil
  heat, view.heat = view.heat, function(self, place, rows, cols, ...)
    if cols > 1 and rows * cols ~= 32 then box = { w = place.w / cols, h = place.h / rows, rows = rows } end
    return heat(self, place, rows, cols, ...)
  end
  for _, case in ipairs { { { 0, 1, 2, 8 }, { 0, 0, 3, 4 } }, { { 0.5, 1.25, 7, 3 }, { 0.1, 2, 2.5, 1 } }, { { 0, 1, 2, 8 }, { 0, 0, 0, 0 } } } do
    local places = { x = floats(4, case[1]), y = floats(4, case[2]), n = 4 }
    view:clear(800, 600)
    scene.panels.visits(view, view.box, setmetatable({ places = places, been = 4 }, { __index = frame }))
    if box.rows > 1 then t.near(box.w, box.h, 1e-3) else t.ok(box.h <= box.w, "a strip is not higher than its cells are wide") end
  end
end)

t.test("curves of any size take a sixth of their axis or more, with two numbers at least, each where it says; twelve lines have twelve colours", function()
  local view, units = scene.painter(nil, { width = 640, height = 400 }).view, { k = 1e3, M = 1e6, G = 1e9, T = 1e12, [""] = 1 }
  for power = -9, 12, 3 do
    for _, offset in ipairs { 0, 1.5, -1.5 } do
      local history, lines, colours, ticks, top, bottom = {}, {}, {}, {}, math.huge, -math.huge
      for i = 0, 20 do history[i + 1] = { step = i, y = 10 ^ power * (offset + math.sin(i)) } end
      for k = 1, 12 do lines[k] = { name = "x", of = function(entry) return entry.y end } end
      view:clear(640, 400)
      rawset(view, "text", function(_, text, x, y, _, _, align)
        local digits, unit = text:gsub("−", "-"):match "^(-?[%d.]+e?-?%d*)(%a?)$"
        if digits and align == "right" and x < 200 then ticks[#ticks + 1] = { y = y - 4 * view.unit, value = tonumber(digits) * units[unit] } end
      end)
      rawset(view, "disc", function(_, _, _, _, colour) colours[colour] = true end)
      rawset(view, "line", function(_, x0, y0, x1, y1) if x0 ~= x1 and y0 ~= y1 then top, bottom = math.min(top, y0, y1), math.max(bottom, y0, y1) end end)
      scene.panels.signals(view, { x = 0, y = 0, w = 640, h = 400 }, { history = history }, { title = "t", y_name = "y", span = 0.2, lines = lines })
      local first, last, what = ticks[1], ticks[#ticks], ("%g and %g"):format(10 ^ power, offset)
      t.ok(#ticks >= 2 and bottom - top > 50, what .. ": " .. #ticks .. " ticks, a curve of " .. bottom - top)
      local per = (last.y - first.y) / (last.value - first.value)
      for _, tick in ipairs(ticks) do t.ok(math.abs(first.y + per * (tick.value - first.value) - tick.y) < 1, what .. ": " .. tick.value) end
      local n = 0
      for _ in pairs(colours) do n = n + 1 end
      t.eq(n, 12)
    end
  end
end)
