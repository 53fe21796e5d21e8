-- window.lua -- the event loop of a window.  The contents are a client:
--   page()                   -> a scene and its frame
--   key(key, clock, paint)   -> true: quit.  paint() gives the page's pixels, width and height
--   pointer(what, x, y, by, clock, paint)   optional, -> true: quit.  what = "press", "release", "move" or
--                            "wheel", at x, y of the page; by = the button, 1 left, 2 middle, 3 right, or the
--                            wheel's steps, > 0 away from the user.  A client that it changes sets dirty
--   canvas                   set by the window: the page as last drawn; its spot_at returns the spot under the pointer
--   dirty                    set where the page has changed
--   title                    optional: what the window is called, before " - Mneme" (ASCII: SDL garbles other letters where the locale is C)
--   theme                    optional: "dark" or "light", in place of the command line's
--   tick(clock, deadline)    optional: work until the deadline at most; the rest of a refresh is for drawing
--   painted(pixels, width, height, clock)   optional: a page was shown
--   closed()                 optional: the window was closed; -> a last line for the terminal, or nil
--   period                   seconds between two looks at the clock; keys wake it earlier
local ffi = require "ffi"
local canvas = require "mneme.base.canvas"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local scene = require "mneme.insight.view.scene"

local window = {}
local WORK = 0.0005                  -- seconds of a tick that does nothing, at most
local SLACK = 0.002                  -- seconds of a refresh kept free; at least as many are left for tick
window.draw_for = 0.006              -- seconds of a page for computing its contents

---An error where there is no display; `hint`: what to do instead.
function window.need_display(hint)
  if not (os.getenv "DISPLAY" or os.getenv "WAYLAND_DISPLAY" or os.getenv "SDL_VIDEODRIVER") then
    errors.fail("no display to open a window on", hint)
  end
end

-- A window as the loop draws on it.  browser_window.lua has another: what users do, its size, whether it takes a page now, and how to show one.
local Surface = { closes = true }
Surface.__index = Surface
function Surface:poll(event) return self.lib.mn_window_poll(self.shown, event) == 1 end
function Surface:scale() return self.lib.mn_window_scale(self.shown) end
function Surface.ready() return true end
function Surface:wait(seconds) self.lib.mn_window_wait(self.shown, seconds) end
function Surface:size()
  engine.check(self.lib.mn_window_size(self.shown, self.sides))
  return self.sides[0], self.sides[1]
end
function Surface:show(painter)
  local pixels = painter:fill()
  engine.check(self.lib.mn_window_show(self.shown, pixels, painter.view.width, painter.view.height))
  return pixels
end

local function loop(client, o, painter, surface)
  local event, lib = ffi.new "mn_event", painter.lib
  local pointer = { [lib.MN_EVENT_MOUSE] = "press", [lib.MN_EVENT_RELEASE] = "release", [lib.MN_EVENT_MOVE] = "move",
    [lib.MN_EVENT_WHEEL] = "wheel" }
  local function draw()
    local width, height = surface:size()
    painter.view.scale = o.scale or math.min(4, math.max(1, surface:scale()))
    painter.view.theme = canvas.themes[client.theme or o.theme or "dark"]
    local what, frame = client:page()
    painter.view.deadline = engine.C.mn_clock(false) + window.draw_for
    painter:draw(what, frame, width, height)
    return width, height
  end
  local function paint()
    local width, height = draw()
    return painter:fill(), width, height
  end
  local quit, page = false, 0                      -- seconds that the last page took
  while not quit do
    local begun = engine.C.mn_clock(false)
    local worked = client.dirty
    while surface:poll(event) do
      local kind = event.kind
      worked = true
      if kind == lib.MN_EVENT_QUIT then quit = true
      elseif kind == lib.MN_EVENT_KEY then quit = client:key(event.key, begun, paint) and surface.closes or quit
      elseif not pointer[kind] then client.dirty = true
      elseif client.pointer then
        quit = client:pointer(pointer[kind], event.x, event.y, event.key, begun, paint) and surface.closes or quit
      end
    end
    if client.tick then
      local from = engine.C.mn_clock(false)
      client:tick(begun, math.max(begun + client.period - page - SLACK, from + SLACK))
      worked = worked or engine.C.mn_clock(false) - from > WORK
    end
    if client.dirty and not quit and surface:ready() then
      local from = engine.C.mn_clock(false)
      local width, height = draw()
      local pixels = surface:show(painter, client)
      client.dirty, page = painter.view.unfinished, engine.C.mn_clock(false) - from
      if client.painted then client:painted(pixels, width, height, begun) end
    end
    if engine.C.mn_interrupted() ~= 0 then quit = true end
    if not quit then surface:wait(client.period - (engine.C.mn_clock(false) - begun), client, worked) end
  end
end

---Show a client on a surface until the user quits or an error is raised, then `free` it.
function window.show(client, o, surface, free)
  local ok, why = pcall(function()
    local painter = scene.painter(nil, o)
    client.canvas = painter.view
    loop(client, o, painter, surface)
  end)
  free()
  local last = client.closed and client:closed()         -- a video that was being recorded is kept either way
  if last then print(last) end
  if not ok then error(why, 0) end
end

---Show a client in a window until the user quits or an error is raised; the window is closed either way.
---@param client table see above
---@param o table width, height, theme, scale; hint: what to do where there is no display
function window.run(client, o)
  local lib = scene.library()
  local shown = lib.mn_window_new(engine.ctx, client.title and client.title .. " - Mneme" or "Mneme", o.width, o.height)
  if shown == nil then errors.fail(ffi.string(engine.C.mn_error(engine.ctx)), o.hint) end
  window.show(client, o, setmetatable({ lib = lib, shown = shown, sides = ffi.new "int[2]" }, Surface), function() lib.mn_window_free(shown) end)
end

return window
