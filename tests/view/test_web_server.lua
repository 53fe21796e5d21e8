-- test_web_server.lua -- the server of scenes/view/web_server.c, without a browser: who may ask for what, events, pages for the quick and the slow, limits, and
-- bytes that no browser sends.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local http = require "tests.support.http"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"

local C, lib = engine.C, scene.library()
local has = pcall(function() return lib.mn_web_new end)
local TOKEN = ("0123456789abcdef"):rep(2)

-- A test with a server of its own.
local function test(name, f)
  t.test(name, function()
    if not has then t.skip "this build has no server (apt-get install libmicrohttpd-dev, then make)" end
    local w = engine.check(lib.mn_web_new(engine.ctx, "<html>the document</html>", TOKEN, 0))
    local given = { w = w, port = lib.mn_web_port(w) }
    function given.free()
      if given.w then lib.mn_web_free(given.w) end
      given.w = nil
    end
    -- A request with what is right, but for what is changed; false: without it.
    function given.send(method, path, change, body)
      local head = { Host = "localhost:" .. given.port, ["X-Token"] = TOKEN }
      for key, value in pairs(change or {}) do head[key] = value or nil end
      return http.send(given.port, http.text(method, path, head, body))
    end
    function given.ask(...) return http.answer(given.send(...)) end
    local ok, why = xpcall(f, debug.traceback, given)
    given.free()
    if not ok then error(why, 0) end
  end)
end

local function show(w, bytes) engine.check(lib.mn_web_show(w, bytes, #bytes)) end

-- Everything that was done: lists of kind, key, x, y.
local function events(w)
  local event, list = ffi.new "mn_event", {}
  while lib.mn_web_poll(w, event) == 1 do list[#list + 1] = ("%d %d %d %d"):format(event.kind, event.key, event.x, event.y) end
  return list
end

local function wait_for_readers(w, n)
  local deadline = C.mn_clock(false) + 20
  while lib.mn_web_readers(w) < n and C.mn_clock(false) < deadline do lib.mn_web_wait(w, 0.01, false) end
  t.eq(lib.mn_web_readers(w), n)
end

test("the document is for those who have the token, and may load nothing", function(s)
  local status, body, head = s.ask("GET", "/?token=" .. TOKEN)
  t.eq(status, 200) t.eq(body, "<html>the document</html>")
  t.ok(head["content-security-policy"]:find "default%-src 'none'")
  t.eq(head["referrer-policy"], "no-referrer") t.eq(head["x-frame-options"], "DENY") t.eq(head["access-control-allow-origin"], nil)
  for _, path in ipairs { "/", "/?token=", "/?token=" .. TOKEN:sub(1, 31), "/?token=" .. TOKEN .. "0", "/?token=" .. TOKEN:upper(), "/?other=" .. TOKEN } do
    status, body = s.ask("GET", path)
    t.eq(status, 403, path)
    t.ok(not body:find "the document", path)
  end
end)

test("a page and events need the token in a header, which no other page of a browser can send", function(s)
  for _, path in ipairs { "/page?after=0", "/events" } do
    local method = path == "/events" and "POST" or "GET"
    for _, bad in ipairs { false, "", "x", TOKEN:sub(2), TOKEN .. "0" } do t.eq(s.ask(method, path, { ["X-Token"] = bad }), 403, path) end
    t.eq(s.ask(method, path .. (path:find "?" and "&" or "?") .. "token=" .. TOKEN, { ["X-Token"] = false }), 403, path)
  end
  t.eq(#events(s.w), 0)
end)

test("a foreign Host or Origin is refused, with the right token, too", function(s)
  show(s.w, "page")
  for _, host in ipairs { "evil.example", "evil.example:" .. s.port, "localhost.evil.example", "127.0.0.1.evil.example:80", "127.0.0.2", "localhost:",
    "localhost:8x", "localhost:123456", "0.0.0.0", "localhost:80:80", "" } do
    local wanted = host == "localhost:" and 200 or 421
    t.eq(s.ask("GET", "/?token=" .. TOKEN, { Host = host }), wanted, host)
    t.eq(s.ask("GET", "/page?after=0", { Host = host }), wanted, host)
  end
  for _, host in ipairs { "localhost", "LOCALHOST:1", "127.0.0.1:" .. s.port, "[::1]:65535" } do
    t.eq(s.ask("GET", "/page?after=0", { Host = host }), 200, host)
    t.eq(s.ask("GET", "/page?after=0", { Host = host, Origin = "http://" .. host }), 200, host)
    for _, origin in ipairs { "null", "http://evil.example", "https://" .. host, "http://" .. host .. ".evil.example", "http://" .. host:sub(1, -2) } do
      t.eq(s.ask("GET", "/page?after=0", { Host = host, Origin = origin }), 403, origin)
      t.eq(s.ask("POST", "/events", { Host = host, Origin = origin }, "2 32 0 0\n"), 403, origin)
    end
  end
  local fd = http.send(s.port, ("GET /page?after=0 HTTP/1.0\r\nX-Token: %s\r\n\r\n"):format(TOKEN))
  t.eq(http.answer(fd), 421, "no Host")
  t.eq(#events(s.w), 0)
end)

test("other addresses and methods", function(s)
  t.eq(s.ask("GET", "/other"), 404)
  t.eq(s.ask("GET", "/page/../../etc/passwd"), 404)
  for _, method in ipairs { "POST", "PUT", "DELETE", "OPTIONS" } do
    t.eq(s.ask(method, "/page?after=0"), 405, method)
    if method ~= "POST" then t.eq(s.ask(method, "/events"), 405, method) end
  end
  t.eq(s.ask("GET", "/events"), 405)
end)

test("events arrive as they were sent; of moves in a row the last", function(s)
  local sent = { "2 32 0 0", "3 1 100 200", "4 1 101 201", "6 -2 5 6", "7 1500 1920 1080", "2 261 0 0" }
  t.eq(s.ask("POST", "/events", nil, table.concat(sent, "\n") .. "\n"), 204)
  t.eq(table.concat(events(s.w), "\n"), table.concat(sent, "\n"))
  t.eq(s.ask("POST", "/events", nil, "5 0 1 1\n5 0 2 2\n2 32 0 0\n5 0 3 3\n"), 204)
  t.eq(s.ask("POST", "/events", nil, "5 0 4 4\n"), 204)
  t.eq(table.concat(events(s.w), "\n"), "5 0 2 2\n2 32 0 0\n5 0 4 4")
  for _, bad in ipairs { "x", "2", "2 32 0\n", "2 32 0 0", "2 32 0 0 0\n", "1 0 0 0\n", "8 0 0 0\n", "0 0 0 0\n", "2 99999 0 0\n",
    "2 99999999999999999999 0 0\n", "5 0 nan 0\n", "2\0 32 0 0\n", "2,32,0,0\n", "\n" } do
    t.eq(s.ask("POST", "/events", nil, bad), 400, bad)
  end
  t.eq(#events(s.w), 0)
  t.eq(s.ask("POST", "/events", nil, ""), 204)
end)

test("an address arrives as it was sent, the last one; what no link can have is refused", function(s)
  t.eq(s.ask("POST", "/address", nil, "run=a&episode=12&step=18"), 204)
  t.eq(s.ask("POST", "/address", nil, "run=%3Cb%3E"), 204)
  t.eq(table.concat(events(s.w), "\n"), "9 0 0 0\n9 0 0 0")
  t.eq(ffi.string(lib.mn_web_address(s.w)), "run=%3Cb%3E")
  for _, bad in ipairs { "a b", "a\nb", "a\0b", "\255", "\27[2J" } do t.eq(s.ask("POST", "/address", nil, bad), 400, bad) end
  t.eq(s.ask("POST", "/address", nil, ("x"):rep(1024)), 413)
  t.eq(s.ask("POST", "/address", nil, ("x"):rep(1023)), 204)
  t.eq(s.ask("POST", "/address", { ["X-Token"] = false }, "x"), 403)
  t.eq(s.ask("POST", "/address", { Origin = "http://evil.example" }, "x"), 403)
  t.eq(s.ask("GET", "/address"), 405)
  t.eq(#ffi.string(lib.mn_web_address(s.w)), 1023)
end)

test("a message of more than 4 kB, and more events than anyone reads, are refused", function(s)
  t.eq(s.ask("POST", "/events", nil, ("2 32 0 0\n"):rep(500)), 413)
  t.eq(#events(s.w), 0)
  local piece = ("1000\r\n%s\r\n"):format(("2 32 0 0\n"):rep(456):sub(1, 4096))          -- by pieces, whose sum nobody says before
  local fd = http.send(s.port, ("POST /events HTTP/1.1\r\nHost: localhost\r\nX-Token: %s\r\nTransfer-Encoding: chunked\r\n\r\n"):format(TOKEN) .. piece:rep(40))
  local status, _, _, closed = http.answer(fd)
  t.ok(closed and status ~= 204, "the connection ends")
  t.ok(#events(s.w) == 0)
  t.eq(s.ask("POST", "/events", nil, ("2 32 0 0\n"):rep(200)), 204)
  t.eq(s.ask("POST", "/events", nil, ("2 32 0 0\n"):rep(200)), 429)
  t.eq(#events(s.w), 256)
  t.eq(s.ask("GET", "/?token=" .. TOKEN, { Long = ("x"):rep(20000) }), 431, "a head of 20 kB")
end)

test("the newest page goes to all who wait, and at once to those who lack it", function(s)
  local first = { s.send("GET", "/page?after=0"), s.send("GET", "/page?after=0") }
  wait_for_readers(s.w, 2)
  show(s.w, "one")
  for i = 1, 2 do
    local status, body, head = http.answer(first[i])
    t.eq(status, 200) t.eq(body, "one") t.eq(head["x-page"], "1") t.eq(head["content-encoding"], "deflate")
  end
  show(s.w, "two")
  show(s.w, "three")
  local _, body, head = s.ask("GET", "/page?after=1")
  t.eq(body, "three", "a slow browser misses pages") t.eq(head["x-page"], "3")
  local late = s.send("GET", "/page?after=3")
  wait_for_readers(s.w, 1)
  s.free()
  t.eq(http.answer(late), 410, "the program has ended")
end)

test("whoever reads nothing delays nobody", function(s)
  local large = ("x"):rep(2 ^ 25)
  show(s.w, large)
  local deaf = {}
  for i = 1, 5 do deaf[i] = s.send("GET", "/page?after=0") end
  for i = 1, 5 do t.ok(http.begun(deaf[i])) end
  for i = 2, 20 do
    show(s.w, "page " .. i)
    t.eq(select(2, s.ask("GET", "/page?after=" .. i - 1)), "page " .. i)          -- within the seconds that an answer may take
  end
  for i = 1, 5 do t.eq(#select(2, http.answer(deaf[i], 20)), #large, "and gets its own page in the end") end
end)

test("a hundred connections that say nothing keep nobody out, and end", function(s)
  show(s.w, "page")
  local mute = {}
  for i = 1, 100 do mute[i] = http.send(s.port, "GET /pa") end
  t.eq(s.ask("GET", "/page?after=0"), 200)
  for i = 1, 100 do t.ok(select(4, http.answer(mute[i], 15)), "within 15 s, and not 20 as of those who have the token") end
end)

test("at most 16 pages wait; the next one is refused", function(s)
  local waiting = {}
  for i = 1, 16 do waiting[i] = s.send("GET", "/page?after=0") end
  wait_for_readers(s.w, 16)
  t.eq(s.ask("GET", "/page?after=0"), 503)
  show(s.w, "page")
  for i = 1, 16 do t.eq(http.answer(waiting[i]), 200) end
end)

test("waiting takes no processor time, and wakes for an event", function(s)
  t.eq(lib.mn_web_readers(s.w), -1, "nobody is there")
  local waiting, begun = s.send("GET", "/page?after=0"), os.clock()
  wait_for_readers(s.w, 1)
  lib.mn_web_wait(s.w, 0.5, false)
  t.ok(os.clock() - begun < 0.1, "processor time")
  local woken = C.mn_clock(false)
  lib.mn_web_wait(s.w, 20, true)
  t.ok(C.mn_clock(false) - woken < 10, "a page is due, and somebody waits for it")
  t.eq(s.ask("POST", "/events", nil, "2 32 0 0\n"), 204)
  lib.mn_web_wait(s.w, 20, false)
  t.ok(C.mn_clock(false) - woken < 10, "an event")
  s.free()
  http.answer(waiting)
end)

t.test("a page that is due is drawn when somebody comes for it, not at the program's next look at the clock", function()
  if not has then t.skip "this build has no server" end
  local dir = shell.folder()
  files.write(dir .. "/client.lua", { [[
    package.path = arg[1] .. "lua/?.lua;" .. arg[1] .. "lua/?/init.lua;" .. package.path
    local client = { playing = true, dirty = true, period = 1000, page = function() return { draw = function() end }, {} end }
    function client:painted() self.dirty = true end
    require("mneme.insight.view.browser_window").run(client, { web = 1, width = 400, height = 300 })
  ]] })
  local pipe = io.popen(("cd '%s'; MNEME_BUILD='%s' luajit client.lua '%s' >said 2>&1 & echo $!"):format(dir, shell.build, shell.root))
  local pid = pipe:read "*n"
  pipe:close()
  local ok, why = xpcall(function()
    local port, token = shell.wait("a link", function()
      return files.is_file(dir .. "/said") and files.read(dir .. "/said"):find "another machine" and files.read(dir .. "/said")
    end):match "localhost:(%d+)/%?token=(%x+)"
    local number = 0
    for _ = 1, 4 do
      local request = http.text("GET", "/page?after=" .. number, { Host = "localhost", ["X-Token"] = token })
      local status, _, head = http.answer(http.send(tonumber(port), request), 60)
      t.eq(status, 200)
      number = tonumber(head["x-page"])
    end
    t.eq(number, 4)
  end, debug.traceback)
  os.execute(("kill -9 %d"):format(pid))
  files.remove_folder(dir)
  if not ok then error(why, 0) end
end)

test("bytes that no browser sends: an answer or none, and the next is served", function(s)
  local random = 12345
  local function draw(n)
    random = (random * 1103515245 + 12345) % 2 ^ 31
    return math.floor(random / 65536) % n
  end
  local seeds = { http.text("GET", "/?token=" .. TOKEN, { Host = "localhost" }), http.text("GET", "/page?after=0", { Host = "localhost", ["X-Token"] = TOKEN }),
    http.text("POST", "/events", { Host = "localhost", ["X-Token"] = TOKEN }, "5 0 10 10\n2 32 0 0\n"),
    http.text("POST", "/address", { Host = "localhost", ["X-Token"] = TOKEN }, "episode=12&step=18") }
  show(s.w, "page")
  for round = 1, 300 do
    local bytes = seeds[1 + draw(#seeds)]
    for _ = 0, draw(4) do
      local at, kind = 1 + draw(#bytes), draw(4)
      if kind == 0 then bytes = bytes:sub(1, at - 1) .. string.char(draw(256)) .. bytes:sub(at + 1)
      elseif kind == 1 then bytes = bytes:sub(1, at)
      elseif kind == 2 then bytes = bytes:sub(1, at) .. bytes:sub(1 + draw(#bytes)) .. bytes:sub(at + 1)
      else bytes = bytes:sub(1, at) .. ("9"):rep(draw(40)) .. bytes:sub(at + 1) end
    end
    http.answer(http.send(s.port, bytes), 0.005)
    if round % 50 == 0 then t.eq(select(2, s.ask("GET", "/page?after=0")), "page") end
  end
  for _, e in ipairs(events(s.w)) do t.ok(e:find "^[2-79] %-?%d+ %-?%d+ %-?%d+$", e) end
end)

t.test("a port that is taken, one out of range, a token that anyone guesses", function()
  if not has then t.skip "this build has no server" end
  local w = engine.check(lib.mn_web_new(engine.ctx, "", TOKEN, 0))
  t.eq(lib.mn_web_new(engine.ctx, "", TOKEN, lib.mn_web_port(w)), nil)
  t.ok(ffi.string(C.mn_error(engine.ctx)):find "^web: no server at port %d+ of 127.0.0.1", ffi.string(C.mn_error(engine.ctx)))
  lib.mn_web_free(w)
  t.eq(lib.mn_web_new(engine.ctx, "", TOKEN, 70000), nil)
  t.eq(lib.mn_web_new(engine.ctx, "", "short", 0), nil)
end)
