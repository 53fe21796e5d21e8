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
local SLACK = 0.002                  -- seconds of a refresh kept free; at least as many are left for tick
window.draw_for = 0.006              -- seconds of a page for computing its contents

---An error where there is no display; `hint`: what to do instead.
function window.need_display(hint)
  if not (os.getenv "DISPLAY" or os.getenv "WAYLAND_DISPLAY" or os.getenv "SDL_VIDEODRIVER") then
    errors.fail("no display to open a window on", hint)
  end
end

-- The loop, in an open window.
local function loop(client, o, lib, painter, shown)
  local event, size = ffi.new "mn_event", ffi.new "int[2]"
  local pointer = { [lib.MN_EVENT_MOUSE] = "press", [lib.MN_EVENT_RELEASE] = "release", [lib.MN_EVENT_MOVE] = "move",
    [lib.MN_EVENT_WHEEL] = "wheel" }
  client.canvas = painter.view
  local function paint()
    engine.check(lib.mn_window_size(shown, size))
    painter.view.scale = o.scale or math.min(4, math.max(1, lib.mn_window_scale(shown)))
    painter.view.theme = canvas.themes[client.theme or o.theme or "dark"]
    local what, frame = client:page()
    painter.view.deadline = engine.C.mn_clock(false) + window.draw_for
    return painter:paint(what, frame, size[0], size[1]), size[0], size[1]
  end
  local quit, page = false, 0                      -- seconds that the last page took
  while not quit do
    local begun = engine.C.mn_clock(false)
    while lib.mn_window_poll(shown, event) == 1 do
      local kind = event.kind
      if kind == lib.MN_EVENT_QUIT then quit = true
      elseif kind == lib.MN_EVENT_KEY then quit = client:key(event.key, begun, paint) or quit
      elseif not pointer[kind] then client.dirty = true
      elseif client.pointer then
        quit = client:pointer(pointer[kind], event.x, event.y, event.key, begun, paint) or quit
      end
    end
    if client.tick then
      client:tick(begun, math.max(begun + client.period - page - SLACK, engine.C.mn_clock(false) + SLACK))
    end
    if client.dirty and not quit then
      local from = engine.C.mn_clock(false)
      local pixels, width, height = paint()
      engine.check(lib.mn_window_show(shown, pixels, width, height))
      client.dirty, page = painter.view.unfinished, engine.C.mn_clock(false) - from
      if client.painted then client:painted(pixels, width, height, begun) end
    end
    if engine.C.mn_interrupted() ~= 0 then quit = true end
    if not quit then lib.mn_window_wait(shown, client.period - (engine.C.mn_clock(false) - begun)) end
  end
end

---Show a client until the user quits or an error is raised; the window is closed either way.
---@param client table see above
---@param o table width, height, theme, scale; hint: what to do where there is no display
function window.run(client, o)
  local lib, painter = scene.library(), scene.painter(nil, o)
  local shown = lib.mn_window_new(engine.ctx, client.title and client.title .. " - Mneme" or "Mneme", o.width, o.height)
  if shown == nil then errors.fail(ffi.string(engine.C.mn_error(engine.ctx)), o.hint) end
  local ok, why = pcall(loop, client, o, lib, painter, shown)
  lib.mn_window_free(shown)
  local last = client.closed and client:closed()         -- a video that was being recorded is kept either way
  if last then print(last) end
  if not ok then error(why, 0) end
end

return window
