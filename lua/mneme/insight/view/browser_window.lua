-- browser_window.lua -- a window in a browser: the loop of window.lua, whose pages browser.js gets as lists of shapes, served by scenes/view/web_server.c.
local ffi = require "ffi"
local moment_links = require "mneme.insight.view.moment_links"
local engine = require "mneme.base.engine"
local episode_data = require "mneme.insight.view.episode_data"
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local scene = require "mneme.insight.view.scene"
local window = require "mneme.insight.view.window"

ffi.cdef "int gethostname(char *name, size_t bytes);"

local C = engine.C
local browser_window = {}
local PORT, PORTS = 8650, 50                 -- where a free one is looked for, so that a forwarded port serves again
local LEAST, MOST = 320, 8192                -- pixels of a side of a page
local PAUSED, ALONE = 0.5, 1                 -- seconds between two looks at the clock while nothing moves, and while nobody looks

-- What window.lua draws on: see there.
local Surface = {}
Surface.__index = Surface

function Surface:poll(event)
  if self.lib.mn_web_poll(self.server, event) == 0 then return false end
  if event.kind == self.lib.MN_EVENT_RESIZE then
    local function side(x) return math.max(LEAST, math.min(MOST, x)) end
    self.width, self.height, self.fine = side(event.x), side(event.y), event.key / 1000
  elseif event.kind == self.lib.MN_EVENT_ADDRESS and self.client.go then
    self.client:go(moment_links.read(ffi.string(self.lib.mn_web_address(self.server))), C.mn_clock(false))
  end
  return true
end

function Surface:size() return self.width, self.height end
function Surface:scale() return self.fine end
function Surface:ready() return self.lib.mn_web_readers(self.server) > 0 end

function Surface:wait(seconds, client, worked)
  local alone, rests = self.lib.mn_web_readers(self.server) < 0, client.playing == false and not worked
  if alone then seconds = ALONE elseif rests then seconds = PAUSED end
  self.lib.mn_web_wait(self.server, seconds, (alone or client.dirty) and true or false)      -- who comes for a page that is due wakes it
end

function Surface:show(painter, client)
  local page = episode_data.page(painter, { title = client.title and client.title .. " - Mneme" or "Mneme",
    address = client.address and moment_links.write(client:address()) or nil })
  engine.check(self.lib.mn_web_show(self.server, page, #page))
  return client.screen_capture and client.screen_capture.path and painter:fill()          -- a video that is being recorded
end

local function token()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- A server at the wanted port, or at a free one.
local function serve(lib, html, secret, wanted)
  for port = wanted or PORT, wanted or PORT + PORTS do
    local server = lib.mn_web_new(engine.ctx, html, secret, port)
    if server ~= nil then return server end
  end
  errors.fail(ffi.string(C.mn_error(engine.ctx)), not wanted and "web=PORT names another port" or nil)
end

---What a browser loads: it then asks for pages.
function browser_window.document()
  local scripts = registry.text "insight/view/painter.js" .. "\n" .. registry.text "insight/view/browser.js"
  return (registry.text "insight/view/browser.html":gsub("SCRIPTS", function() return scripts end))
end

---Show a client to browsers, at a port of this machine and to those who have the link, until Ctrl-C.
---@param client table see window.lua
---@param o table web = a port, 1: any that is free; width, height of a page until a browser says its own, theme, scale
function browser_window.run(client, o)
  local lib, secret = scene.library(), token()
  if not pcall(function() return lib.mn_web_new end) then
    errors.fail("this build has no server for browsers", "make deps, then make")
  end
  local surface = setmetatable({ client = client, lib = lib, server = serve(lib, browser_window.document(), secret, o.web > 1 and o.web or nil),
    width = o.width, height = o.height, fine = 1 }, Surface)
  local port = lib.mn_web_port(surface.server)
  print(("http://localhost:%d/?token=%s"):format(port, secret))
  local host = ffi.new "char[256]"
  print(("from another machine: ssh -L %d:localhost:%d %s@%s, then the same link there; Ctrl-C ends this"):format(port, port,
    os.getenv "USER" or os.getenv "LOGNAME" or "USER", ffi.C.gethostname(host, 255) == 0 and ffi.string(host) or "HOST"))
  io.stdout:flush()
  window.show(client, o, surface, function() lib.mn_web_free(surface.server) end)
end

return browser_window
