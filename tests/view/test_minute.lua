-- test_minute.lua -- the walk from "it failed" to "this head lost the cue" with real clicks: the program in a window under Xvfb, xdotool, and in
-- Chromium; and next to it the same viewer without a window, which says where things are and what the window has to show after each step.
-- MNEME_RECORD=docs/figures/minute.gif MNEME_RECORD_RUN=runs/NAME makes a film of the walk, at the pace of a person, from that viewer: no window, so that
-- a busy machine makes the same film; with 64 colours by ffmpeg's palettegen and paletteuse it is half as large.
local ffi = require "ffi"
local moment_links = require "mneme.insight.view.moment_links"
local engine = require "mneme.base.engine"
local t = require "tests.harness"
local chromium = require "tests.support.chromium"
local episode_data = require "mneme.insight.view.episode_data"
local forward = require "tests.support.forward"
local http = require "tests.support.http"
local action_keys = require "mneme.insight.view.action_keys"
local xvfb = require "tests.support.xvfb"
local files = require "mneme.base.files"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local parsed = require "tests.support.parsed"
local view = require "mneme.commands.view"
local viewer_rig = require "tests.support.viewer_rig"

local record, recorded_run = os.getenv "MNEME_RECORD", os.getenv "MNEME_RECORD_RUN"
local W, H, SCALE = 1280, 800, 1
if record then W, H, SCALE = 800, 620, 1.25 end        -- as wide as a page of documentation, so that letters stay as large as they are
recorded_run = recorded_run and shell.absolute(recorded_run)
local folder = shell.folder()
local FPS, C = 8, engine.C

-- The share of pixels that are alike.
local function likeness(a, b)
  local p, q, same, n = ffi.cast("const uint8_t *", a), ffi.cast("const uint8_t *", b), 0, #a / 4
  for i = 0, n - 1 do
    if p[4 * i] == q[4 * i] and p[4 * i + 1] == q[4 * i + 1] and p[4 * i + 2] == q[4 * i + 2] then same = same + 1 end
  end
  return same / n
end

-- The same viewer without a window.
local function twin_of(words)
  local twin = { v = view.open(view.prepare(parsed(view, words))), clock = 0 }
  local painter = viewer_rig.painter
  painter.view.scale = SCALE
  twin.v.canvas, twin.v.playing = painter.view, false
  function twin.paint()
    local what, frame = twin.v:page()
    return painter:paint(what, frame, W, H), W, H
  end
  -- Everything that a window computes while it is idle.
  function twin.settle()
    local clean = 0                            -- what a page shows decides what is computed next
    repeat
      twin.v.dirty = false
      twin.clock = twin.clock + 10
      twin.v:tick(twin.clock, math.huge)
      twin.picture = ffi.string(twin.paint(), W * H * 4)
      clean = twin.v.dirty and 0 or clean + 1
    until clean == 3
  end
  return twin
end

-- A pointer on a picture: an arrow, white with a dark edge, its tip at x, y.
local function with_pointer(pixels, x, y)
  local to = ffi.cast("uint8_t *", pixels)
  for row = 0, 17 do
    local wide = row < 13 and row * 0.7 or (17 - row) * 0.7
    for column = 0, math.floor(wide) do
      local px, py = math.floor(x) + column, math.floor(y) + row
      if px < W and py < H then
        local edge = column == 0 or column + 1 > wide or row == 17
        for k = 0, 2 do to[4 * (py * W + px) + k] = edge and 0 or 255 end
      end
    end
  end
end

-- The film: what the twin shows, with a pointer.
local function film_of(twin)
  local movie = record and engine.check(C.mn_movie_new(engine.ctx, record, W, H, FPS))
  local film = { at = { W / 2, H / 2 } }
  function film.add(seconds)
    if not movie then return end
    local pixels = ffi.new("uint8_t[?]", W * H * 4)
    ffi.copy(pixels, (twin.paint()), W * H * 4)
    with_pointer(pixels, film.at[1], film.at[2])
    for _ = 1, math.max(1, seconds * FPS) do engine.check(C.mn_movie_add(movie, pixels)) end
  end
  function film.finish()
    if movie then engine.check(C.mn_movie_end(movie)) C.mn_movie_free(movie) end
  end
  return film
end

-- Both at once: what is done to the window is done to its twin, and then both show the same.  A film has no window.
local function walk_of(screen, twin, film)
  local walk = {}
  function walk.alike(what)
    twin.settle()
    if screen then xvfb.wait("the window to show " .. what, function() return screen:shows(twin) end) end
    film.add(2.5)
  end
  local function move(x, y)
    if screen then screen:move(x, y) end
    local from = film.at
    for i = record and 1 or 6, 6 do
      film.at = { from[1] + (x - from[1]) * i / 6, from[2] + (y - from[2]) * i / 6 }
      twin.v:pointer("move", film.at[1], film.at[2], 0, twin.clock, twin.paint)
      film.add(0)
    end
  end
  function walk.hover(x, y, what)
    move(x, y)
    walk.alike(what)
  end
  function walk.click(x, y, what, button)
    x, y = math.floor(x), math.floor(y)
    move(x, y)
    film.add(0.3)
    if screen then screen:click(x, y, button) end
    twin.v:pointer("press", x, y, button or 1, twin.clock, twin.paint)
    twin.v:pointer("release", x, y, button or 1, twin.clock, twin.paint)
    walk.alike(what)
  end
  function walk.key(name, code, what)
    if screen then screen:keys(name) end
    twin.v:key(code, twin.clock, twin.paint)
    walk.alike(what)
  end
  -- The window plays for a moment; in the film the episode is played.
  function walk.play()
    if screen then
      screen:keys "space"
      os.execute "sleep 0.1"
      screen:keys "Home"
    end
    twin.v:key(260, twin.clock, twin.paint)
    for _ = 1, record and 12 or 0 do
      film.add(0)
      twin.v:key(action_keys.RIGHT, twin.clock, twin.paint)
    end
  end
  return walk
end

-- ---- where the program is shown ----

local function start(words)
  os.remove(folder .. "/status")
  os.execute(("cd '%s' && { %s view %s > said 2>&1 & echo $! > pid; wait $!; echo $? > status; } &"):format(folder, shell.program, table.concat(words, " ")))
end

-- A window under Xvfb, with a person in front of it.
local InWindow = {}
InWindow.__index = InWindow

local function in_window(words)
  local screen = assert(xvfb.start(W, H))
  local self = setmetatable({ screen = screen }, InWindow)
  start(words)
  self.at = screen:window "Mneme"
  t.eq(self.at.w, W) t.eq(self.at.h, H)
  return self
end

function InWindow:shows(twin) return likeness(twin.picture, self.screen:picture(self.at)) > 0.995 end
function InWindow:move(x, y) self.screen:xdotool(("mousemove %d %d"):format(self.at.x + x, self.at.y + y)) end
function InWindow:click(x, y, button) self.screen:click(self.at, x, y, button) end
function InWindow:keys(name) self.screen:keys(name) end
function InWindow:close() self.screen:close(self.at) end
function InWindow:stop() self.screen:stop() end

-- A page of Chromium, through a port that ssh forwards where there is a server of it, as from a laptop to a cluster.
local InBrowser = {}
InBrowser.__index = InBrowser

local function in_browser(words)
  start { "web=1", unpack(words) }
  local port, token = xvfb.wait("a link", function()
    return files.is_file(folder .. "/said") and files.read(folder .. "/said"):match "http://localhost:%d+/%?token=%x+\n"
  end):match ":(%d+)/%?token=(%x+)"
  local way = not forward.lacks() and forward.open(tonumber(port)) or nil
  port = way and way.port or tonumber(port)
  return setmetatable({ port = port, way = way, token = token,
    page = chromium.open(("http://localhost:%d/?token=%s"):format(port, token), { width = W, height = H }) }, InBrowser)
end

-- The shapes are the same, every one.
function InBrowser:shows(twin)
  local fd = http.send(self.port, http.text("GET", "/page?after=0", { Host = "localhost", ["X-Token"] = self.token }))
  return select(2, http.answer(fd)) == episode_data.page(viewer_rig.painter, { title = twin.v.title .. " - Mneme",
    address = moment_links.write(twin.v:address()) })
end

function InBrowser:move(x, y) self.page:pointer(x, y) end
function InBrowser:click(x, y) self.page:pointer(x, y, true) end
local names = { space = " ", bracketright = "]", Page_Up = "PageUp" }
function InBrowser:keys(name) self.page:press(names[name] or name) end
function InBrowser.close() os.execute(("kill $(cat '%s/pid')"):format(folder)) end
function InBrowser:stop()
  os.execute(("test -e '%s/status' || kill -9 $(cat '%s/pid')"):format(folder, folder))
  self.page:close()
  if self.way then self.way.stop() end
  chromium.stop()
end

-- What is missing for it, if anything is.
function InWindow.lacks()
  for _, program in ipairs { "Xvfb", "xdotool" } do if not shell.has(program) then return program .. " is not installed" end end
end
function InBrowser.lacks()
  if not chromium.program() then return "no Chromium is installed (apt-get install chromium)" end
  if not pcall(function() return scene.library().mn_web_new end) then return "this build has no server (apt-get install libmicrohttpd-dev, then make)" end
end

-- ---- the walk ----

local trained
local function run_to_show()
  if trained or recorded_run then return trained or recorded_run end
  local said, status = shell.mneme(folder, "run demo corridor=6 core=gru core.d_model=12 steps=60000 stop_score=0.8 num_steps=64 "
    .. "checkpoint_every=20000 keep_checkpoints=9 threads=1 where=0 run=there")
  t.eq(status, 0, said)
  trained = folder .. "/there"
  return trained
end

for kind, place in pairs { Xvfb = { in_window, InWindow }, Chromium = { in_browser, InBrowser } } do
t.test("a minute: a failure, where its cue was lost, the cell's counterfactual and its effect, another checkpoint, a video (" .. kind .. ")", function()
  if record and kind ~= "Xvfb" then t.skip "the film is made once" end
  local missing = not record and place[2].lacks()
  if missing then t.skip(missing) end
  local run, screen = run_to_show(), nil
  local list = require("mneme.runs.run_folder").load(run).checkpoints
  local begin = list[math.max(1, #list - 1)].step
  local words = { run, "scene=tmaze", "checkpoint=" .. begin, ("size=%dx%d"):format(W, H), SCALE > 1 and "scale=" .. SCALE or nil }
  local ok, why = xpcall(function()
    local twin = twin_of(words)
    twin.settle()
    local film = film_of(twin)
    if not record then
      screen = place[1](words)
      screen:keys "space"
      for _ = 1, 8 do screen:keys "Page_Up" end            -- a busy machine hears of the space in a later episode
      screen:keys "Home"
    end
    local walk = walk_of(screen, twin, film)
    twin.v:key(260, twin.clock, twin.paint)
    walk.hover(600, 10, "its first page, with the strip")

    -- a red square of the strip
    local failed
    for _, e in ipairs(twin.v:episodes_of(1)) do failed = failed or e.failed and e or nil end
    t.ok(failed, "one of 16 episodes fails")
    local x, y = viewer_rig.find_spot(function(what) return what.start == failed.start end)
    walk.click(x, y, "the episode that failed, with its seed and return at the pointer")
    t.eq(twin.v:frame(1).episode, failed.episode)
    t.ok(twin.v.tip:find("episode " .. failed.episode, 1, true) and twin.v.tip:find "seed" and twin.v.tip:find "return", twin.v.tip)
    walk.play()
    walk.key("End", 261, "its end")
    x, y = viewer_rig.spot_of_key "b"
    walk.click(x, y, "the failure and a success side by side")
    t.ok(twin.v.together and #twin.v.tracks == 2)
    t.ok(twin.v:tick_of(2).episode ~= failed.episode)
    walk.key("End", 261, "both ends")
    walk.key("c", ("c"):byte(), "the failure alone")

    -- the scene where, by its name
    x, y = viewer_rig.find_spot(function(what) return what.scene == "where" end)
    walk.click(x, y, "the map of causes")
    local state, best = twin.v.causes.state, nil
    t.ok(state and state.map.done)
    local last = failed.outcome.length - 1
    for r, row in ipairs(state.map.rows) do
      for c, step in ipairs(state.map.steps) do
        local cell = state.cells[r][c]
        if step <= last and 2 * step >= last and (not recorded_run or row.head) and (not best or cell.loss > best.loss) then
          best = { row = row, at = step, loss = cell.loss }
        end
      end
    end
    x, y = viewer_rig.find_spot(function(what) return what.erase == best.row.word and what.at == best.at end)
    walk.hover(math.floor(x), math.floor(y), "the loss of the cell at the pointer")
    t.ok(twin.v.tip:find(("erased at step %d"):format(best.at)), twin.v.tip)
    local solved
    for _, e in ipairs(twin.v:episodes_of(1)) do solved = solved or e.failed == false and e.outcome.length > best.at and e or nil end
    if solved then
      local sx, sy = viewer_rig.find_spot(function(what) return what.start == solved.start end)
      walk.click(sx, sy, "an episode that succeeded")
      x, y = viewer_rig.find_spot(function(what) return what.erase == best.row.word and what.at == best.at end)
    end
    walk.click(x, y, "the episode without and with that part erased, and the effect over 100 episodes")
    t.eq(#twin.v.tracks, 2)
    local told = twin.v.effect.job:text()
    t.ok(told:find "^over %d+ episodes: success %d", told)
    -- the failure again, in the corridor; the next checkpoint; a video
    x, y = viewer_rig.find_spot(function(what) return what.start == failed.start end)
    walk.click(x, y, "the failure again: the intervention is closed")
    t.eq(#twin.v.tracks, 1)
    x, y = viewer_rig.find_spot(function(what) return what.scene == "tmaze" end)
    walk.click(x, y, "the corridor")
    walk.key("bracketright", ("]"):byte(), "the next checkpoint")
    t.ok(twin.v:source().steps > begin)
    walk.key("End", 261, "how far the cue is known now")
    film.finish()
    if not screen then return end
    screen:keys "v"
    os.execute "sleep 0.3"
    screen:keys "v"
    xvfb.wait("the video", function() return (shell.run(folder, "ls mneme-*.mp4 mneme-*.gif 2>/dev/null") or ""):find "mneme" end)
    screen:close()
    xvfb.wait("the program to end", function() return files.is_file(folder .. "/status") end)
    t.eq(files.read(folder .. "/status"), "0\n")
  end, function(e) return debug.traceback(tostring(e)) end)
  if screen then screen:stop() end
  if not ok then error(tostring(why) .. "\nthe program said: " .. (files.is_file(folder .. "/said") and files.read(folder .. "/said") or ""), 0) end
end)
end

os.execute("rm -rf '" .. folder .. "'")
