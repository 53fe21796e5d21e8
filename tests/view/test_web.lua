-- test_web.lua -- the window in Chromium: every scene as SDL's window shows it, keys and clicks, a second browser, a live training, a server that
-- ends.  Who may ask for what: test_web_server.lua; the walk of a minute: test_minute.lua.
local ffi = require "ffi"
local t = require "tests.harness"
local chromium = require "tests.support.chromium"
local engine = require "mneme.base.engine"
local episode_data = require "mneme.insight.view.episode_data"
local files = require "mneme.base.files"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local browser_window = require "mneme.insight.view.browser_window"

local C, lib, folder = engine.C, scene.library(), shell.folder()
local W, H = 1280, 800
local TOKEN = ("0123456789abcdef"):rep(2)
local BLOCK, LIFE = 20, 40                                       -- the frame that scenes draw

local function test(name, f)
  t.test(name, function()
    if not pcall(function() return lib.mn_web_new end) then t.skip "this build has no server (apt-get install libmicrohttpd-dev, then make)" end
    if not chromium.program() then t.skip "no Chromium is installed (apt-get install chromium)" end
    f()
  end)
end

-- ---- pictures ----

local function read(path)
  local w, h = ffi.new "int[1]", ffi.new "int[1]"
  engine.check(C.mn_image_read(engine.ctx, path, nil, w, h))
  local pixels = ffi.new("uint8_t[?]", w[0] * h[0] * 4)
  engine.check(C.mn_image_read(engine.ctx, path, pixels, w, h))
  return pixels, w[0], h[0]
end

-- How far two pictures are apart: the mean of all pixels, in levels of 255, and the most of the mean colours of any block of 20 pixels.  Letters, which are
-- hinted otherwise, and edges change single pixels; a shape that is missing, or elsewhere, changes the mean of a block.
local function apart(a, b, w, h)
  local sum, worst = 0, 0
  for y0 = 0, h - BLOCK, BLOCK do
    for x0 = 0, w - BLOCK, BLOCK do
      for channel = 0, 2 do
        local signed = 0
        for y = y0, y0 + BLOCK - 1 do
          for x = x0, x0 + BLOCK - 1 do
            local at = 4 * (y * w + x) + channel
            local d = a[at] - b[at]
            sum, signed = sum + math.abs(d), signed + d
          end
        end
        worst = math.max(worst, math.abs(signed) / BLOCK ^ 2)
      end
    end
  end
  return sum / (3 * w * h), worst
end

test("every scene by picture, in both themes, on a fine screen, too", function()
  for _, look in ipairs { { theme = "dark", fine = 1 }, { theme = "light", fine = 2 } } do
    local server = engine.check(lib.mn_web_new(engine.ctx, browser_window.document(), TOKEN, 0))
    local painter = scene.painter(nil, { theme = look.theme, scale = look.fine })
    local page = chromium.open(("http://localhost:%d/?token=%s"):format(lib.mn_web_port(server), TOKEN),
      { width = W / look.fine, height = H / look.fine, fine = look.fine })
    for i, name in ipairs(scene.list()) do
      local what = scene.load(name)
      painter:draw(what, (scene_rig.frame(what, LIFE)), W, H)
      local bytes = episode_data.page(painter, { title = name })
      engine.check(lib.mn_web_show(server, bytes, #bytes))
      page:value(("new Promise(done => { const look = () => mneme.number === %d ? requestAnimationFrame(done) : setTimeout(look, 10); look(); })"):format(i))
      local path = ("%s/%s-%s.png"):format(folder, name, look.theme)
      page:screenshot(path)
      local pixels, w, h = read(path)
      t.eq(w, W) t.eq(h, H)
      local mean, worst = apart(painter:fill(), pixels, W, H)
      t.ok(mean < 1.5 and worst < 16, ("%s, %s: %.2f levels apart, a block by %.1f"):format(name, look.theme, mean, worst))
    end
    t.eq(table.concat(page:problems(), "\n"), "")
    page:close()
    lib.mn_web_free(server)
  end
end)

-- ---- the program ----

-- Starts it: { pid, url }.
local function start(words)
  local said = os.tmpname()
  local pipe = io.popen(("cd '%s' && { env -u DISPLAY -u WAYLAND_DISPLAY '%s' %s >'%s' 2>&1 & echo $!; }"):format(folder, shell.program, words, said))
  local pid = pipe:read "*l"
  pipe:close()
  local program = { pid = tonumber(pid), said = said }
  program.url = shell.wait("a link", function() return files.read(said):match "http://localhost:%d+/%?token=%x+\n" end):sub(1, -2)
  return program
end

-- Seconds of the processor that a process has used.
local function used(pid)
  local list = {}
  for word in shell.run(folder, ("cat /proc/%d/stat"):format(pid)):match "%) (.*)":gmatch "%S+" do list[#list + 1] = tonumber(word) or 0 end
  return (list[12] + list[13]) / 100
end

local function kill(program, signal)
  os.execute(("kill -%s %d"):format(signal, program.pid))
  shell.wait("the program to end", function() return os.execute(("kill -0 %d 2>/dev/null"):format(program.pid)) ~= 0 end)
  os.remove(program.said)
end

-- All that a page says.
local function texts(page)
  return page:value [=[mneme.page ? mneme.page.pages[0].map(i => mneme.page.shapes[i]).filter(s => s[0] === 5)
    .map(s => mneme.page.strings[s[7]]).join("\n") : ""]=]
end

local function says(page, what)
  return shell.wait("the page to say " .. what, function() return ("\n" .. texts(page) .. "\n"):find(what) end)
end

local function status(page, what)
  return shell.wait("the page to warn: " .. what, function() return page:value "mneme.status.hidden ? '' : mneme.status.textContent":find(what) end)
end

-- Where the page says something, in points.
local function place(page, what)
  return unpack(page:value(([=[(() => {
    const s = mneme.page.pages[0].map(i => mneme.page.shapes[i]).filter(s => s[0] === 5 && mneme.page.strings[s[7]] === %q).pop();
    return [(s[2] + s[6] / 2) / 100, s[3] / 100 - 4]; })()]=]):format(what)))
end

test("keys, clicks and the pointer, a second browser, names without effect, and a program that ends", function()
  local run = "<img src=x onerror=document.title=1>"
  local said, code = shell.mneme(folder, ("run demo corridor=6 core=gru core.d_model=12 steps=2000 num_steps=64 threads=1 where=0 run='%s'"):format(run))
  t.eq(code, 0, said)
  local program = start(("view '%s' web=1"):format(run))
  local ok, why = xpcall(function()
    local page = chromium.open(program.url, { width = 1100, height = 700 })
    says(page, "\nh: help\n")
    page:press " " page:press "Home"
    says(page, "paused") says(page, "\nepisode 0, 0 of %d+\n")
    page:press "ArrowRight" page:press "ArrowRight"
    says(page, "\nepisode 0, 2 of %d+\n")
    local x, y = place(page, "world")                           -- the scene of that name
    page:pointer(x, y, true)
    shell.wait("another scene", function() return not texts(page):find "corridor\n" end)
    x, y = place(page, "help")
    page:pointer(x, y, true)
    says(page, "previous failure")
    page:press "h"
    page:press "t"
    shell.wait("the light page", function() return page:value "mneme.page.theme" == "light" end)
    t.eq(page:value "mneme.canvas.width", 1100) t.eq(page:value "mneme.canvas.height", 700)
    t.eq(page:value "document.title", run .. " - Mneme")
    t.eq(page:value "document.querySelectorAll('img').length", 0)

    local first = page.session
    chromium.open(program.url, { width = 900, height = 600 })   -- the same window, for somebody else
    local second = page.session
    says(page, "\nepisode 0, 2 of %d+\n")
    page:press "ArrowRight"
    says(page, "\nepisode 0, 3 of %d+\n")
    page.session = first
    t.ok(texts(page):find "\nepisode 0, 2 of %d+", "a page that nobody sees asks for nothing")
    page:call "Page.bringToFront"
    says(page, "\nepisode 0, 3 of %d+\n")
    t.eq(page:value "mneme.canvas.width", 900, "one size for all: that of the browser that came last")
    shell.wait("the end of the maps: what is paused and complete takes no processor time, and is not sent again", function()
      local pages, before = page:value "mneme.pages", used(program.pid)
      os.execute "sleep 2"
      return page:value "mneme.pages" == pages and used(program.pid) - before < 0.05
    end)
    page.session = second
    page:close()
    page.session = first
    kill(program, "TERM")
    status(page, "The program has ended")
    for _, problem in ipairs(page:problems()) do t.ok(problem:find "Failed to load", problem) end
  end, debug.traceback)
  if not ok then
    os.execute(("kill -9 %d 2>/dev/null"):format(program.pid))
    error(why, 0)
  end
end)

test("a training is followed as it goes; a program that is killed is missed", function()
  os.execute(("cd '%s' && { env -u DISPLAY -u WAYLAND_DISPLAY timeout 500 '%s' run train env=tmaze core=gru core.d_model=12 steps=1e12 num_steps=64 "
    .. "threads=1 where=0 view=1 run=live >live.log 2>&1 & echo $! >live.pid; }"):format(folder, shell.program))
  shell.wait("the training", function() return files.is_file(folder .. "/live/live") end)
  local program = start "view live web=1"
  local ok, why = xpcall(function()
    local page = chromium.open(program.url)
    says(page, "live")
    local function shown() return page:value "mneme.number" end
    local before = shown()
    shell.wait("more pages", function() return shown() > before + 20 end)
    kill(program, "KILL")
    status(page, "No connection to the program; trying again")
    page:close()
  end, debug.traceback)
  if not ok then os.execute(("kill -9 %d 2>/dev/null"):format(program.pid)) end
  os.execute(("kill -TERM $(cat '%s/live.pid')"):format(folder))
  if not ok then error(why, 0) end
end)

test("an environment by hand: the right keys end its episode", function()
  local program = start "play tmaze corridor=3 seed=1 web=1"
  local ok, why = xpcall(function()
    local page = chromium.open(program.url)
    says(page, "your move")
    page:press "Tab"
    says(page, "Tab: back to")
    for _ = 1, 3 do page:press "ArrowRight" end
    page:press "ArrowUp"
    says(page, "you, with Tab")                                 -- the episode is over: what is asked for next was not said before
    page:press "Escape"                                         -- another browser may play on: Ctrl-C ends the program
    page:press " "
    says(page, "your move")
    local said = program.said
    os.execute(("kill -TERM %d"):format(program.pid))
    shell.wait("the score", function() return files.read(said):find "episode 0: .*with Tab" end)
    page:close()
  end, debug.traceback)
  os.execute(("kill -9 %d 2>/dev/null"):format(program.pid))
  os.remove(program.said)
  if not ok then error(why, 0) end
end)

test("the address names the moment: in a new page, behind a link of yesterday, and of a run of a table", function()
  local said, code = shell.mneme(folder, "run demo corridor=6 core=gru core.d_model=12 steps=2000 num_steps=64 threads=1 where=0 run=kept/one")
  t.eq(code, 0, said)
  local program, other = start "view kept/one web=1", nil
  local ok, why = xpcall(function()
    local page = chromium.open(program.url)
    local function address(what)
      return shell.wait("the address " .. what, function()
        local hash = page:value "location.hash"
        return hash:find(what) and hash
      end)
    end
    says(page, "h: help")
    page:press " " page:press "Home" page:press "PageDown" page:press "PageDown"
    for _ = 1, 3 do page:press "ArrowRight" end
    local hash = address "episode=%d+&step=3"
    local episode = hash:match "episode=(%d+)"
    page:press "Home"
    address "step=0"
    page:value(("location.hash = %q"):format(hash))             -- as where somebody pastes another one
    says(page, ("\nepisode %s, 3 of %%d+"):format(episode))
    page:close()
    kill(program, "TERM")

    other = start "view kept web=1"
    local yesterday = program.url:gsub("localhost:%d+", other.url:match "localhost:%d+") .. hash:gsub("#", "#run=one&")
    page = chromium.open(yesterday)
    t.ok(page:value "document.body.textContent":find "Paste the link")
    page:value(("(i => { i.value = %q; i.oninput({ target: i }); })(document.querySelector('input'))"):format(other.url))
    shell.wait("the page of the new link", function() return page:value "typeof mneme === 'object'" end)
    says(page, ("\nepisode %s, 3 of %%d+"):format(episode))
    address "run=one"
    page:press "q"
    says(page, "kept: 1 of 1 runs")
    page:value "location.hash = '#run=../../etc&episode=1'"
    says(page, "there is no run ../../etc in kept")
    page:close()
  end, debug.traceback)
  os.execute(("kill -9 %d %d 2>/dev/null"):format(program.pid, other and other.pid or program.pid))
  if not ok then error(why, 0) end
end)

test("a slow connection is said, a lost one is found again", function()
  local server = engine.check(lib.mn_web_new(engine.ctx, browser_window.document(), TOKEN, 0))
  local port, painter = lib.mn_web_port(server), scene.painter()
  local function show(name)
    painter:draw(scene.load "world", (scene_rig.frame(scene.load "world", LIFE)), W, H)
    local bytes = episode_data.page(painter, { title = name })
    engine.check(lib.mn_web_show(server, bytes, #bytes))
  end
  show "one"
  local page = chromium.open(("http://localhost:%d/?token=%s"):format(port, TOKEN))
  shell.wait("the first page", function() return page:value "document.title" == "one" end)
  page:call("Network.emulateNetworkConditions", { offline = false, latency = 1500, downloadThroughput = -1, uploadThroughput = -1 })
  page:press "h"
  status(page, "A slow connection")
  page:value "(() => { window.kept = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost')); })()"
  show "another"                                               -- answers what is waiting; the next request finds no connection
  status(page, "No connection to the program; trying again")
  page:value "(() => { window.fetch = window.kept; })()"
  show "two"
  shell.wait("the page after it", function() return page:value "document.title" == "two" end)
  page:close()
  lib.mn_web_free(server)
end)

test("the runs of a folder as the first page: a click opens one, Esc comes back", function()
  local said, code = shell.mneme(folder, "run demo corridor=6 core=gru core.d_model=12 steps=2000 num_steps=64 threads=1 where=0 run=shelf/one")
  t.eq(code, 0, said)
  local program = start "view shelf web=1"
  local ok, why = xpcall(function()
    local page = chromium.open(program.url)
    says(page, "shelf: 1 of 1 runs")
    local x, y = place(page, "one")
    page:pointer(x, y, true)
    says(page, "h: help")
    page:press "Escape"
    says(page, "shelf: 1 of 1 runs")
    for c in ("core=gru"):gmatch "." do page:press(c) end
    says(page, "filter: core=gru_")
    t.eq(table.concat(page:problems(), "\n"), "")
    page:close()
  end, debug.traceback)
  kill(program, ok and "TERM" or "KILL")
  if not ok then error(why, 0) end
end)

t.test("what web= accepts", function()
  for _, words in ipairs { "web=x", "web=99999", "web=-1", "web=1 out=x.png" } do
    local said, code = shell.mneme(folder, "view tmaze " .. words)
    t.eq(code, 2, words .. ": " .. said)
  end
end)

chromium.stop()
os.execute("rm -rf '" .. folder .. "'")
