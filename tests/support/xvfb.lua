-- xvfb.lua -- a screen of a test's own, which Xvfb keeps in a file, and a user in front of it: xdotool types and
-- clicks, and windows are closed as a window manager closes them.
local ffi = require "ffi"
local files = require "mneme.base.files"
local shell = require "tests.support.shell"
local t = require "tests.harness"

local setenv = t.need("posix.stdlib", "lua-posix").setenv

ffi.cdef [[
void *XOpenDisplay(const char *name);
int XCloseDisplay(void *display);
unsigned long XInternAtom(void *display, const char *name, int only_if_exists);
int XSendEvent(void *display, unsigned long window, int propagate, long mask, void *event);
typedef struct mn_test_message {           /* XClientMessageEvent, and what a union of all events has beyond it */
  int type; unsigned long serial; int send_event; void *display; unsigned long window, message_type;
  int format; long data[5]; long beyond[12];
} mn_test_message;
]]

local display = {}
local Display = {}
Display.__index = Display

display.wait = shell.wait

---Start a screen, and let $DISPLAY name it until it is stopped.  No key repeats (-r): a busy machine is late with releases.
---@return table? display nil where a program is missing
---@return string? why
function display.start(width, height)
  for _, program in ipairs { "Xvfb", "xdotool" } do
    if not shell.has(program) then return nil, program .. " is not installed" end
  end
  local self = setmetatable({ folder = shell.folder(), kept = os.getenv "DISPLAY" }, Display)
  local server = io.popen(("exec Xvfb -displayfd 1 -fbdir '%s' -screen 0 %dx%dx24 -r -noreset -nolisten tcp 2>/dev/null & echo $!; wait")
    :format(self.folder, width, height))
  self.pid, self.server = tonumber(server:read "*l"), server
  self.name = ":" .. assert(server:read "*l", "Xvfb does not start")
  setenv("DISPLAY", self.name)
  return self
end

function Display:stop()
  require("posix.signal").kill(self.pid, 15)
  self.server:close()
  setenv("DISPLAY", self.kept)
  os.execute("rm -r '" .. self.folder .. "'")
end

---@param words string what xdotool is to do
---@return string? said nil where it could not
function Display:xdotool(words)
  local said, status = shell.run(self.folder, "timeout 20 xdotool " .. words)
  return status == 0 and said or nil
end

---The window of this name, once it is on the screen, with the keyboard.
---@return table window id, x, y, w, h
function Display:window(name)
  local id = display.wait("a window called " .. name, function()
    return (self:xdotool("search --onlyvisible --name '" .. name .. "$'") or ""):match "%d+"
  end)
  self:xdotool("windowfocus --sync " .. id)
  local said = self:xdotool("getwindowgeometry --shell " .. id)
  local function number(key) return tonumber(said:match(key .. "=(%d+)")) end
  return { id = id, x = number "X", y = number "Y", w = number "WIDTH", h = number "HEIGHT" }
end

---Press keys, as X calls them: "space", "shift+l", "Page_Up".
function Display:keys(words) assert(self:xdotool("key " .. words), "xdotool cannot type " .. words) end

---Click at a place of a window.
function Display:click(window, x, y, button)
  assert(self:xdotool(("mousemove %d %d click %d"):format(window.x + x, window.y + y, button or 1)), "xdotool cannot click")
end

---Ask a window to close, as the cross in its corner does.
function Display:close(window)
  local X = ffi.load "libX11.so.6"
  local link = X.XOpenDisplay(self.name)
  assert(link ~= nil, "no way to the display")
  local message = ffi.new "mn_test_message"
  message.type, message.window, message.format = 33, tonumber(window.id), 32              -- ClientMessage
  message.message_type = X.XInternAtom(link, "WM_PROTOCOLS", 0)
  message.data[0] = X.XInternAtom(link, "WM_DELETE_WINDOW", 0)
  X.XSendEvent(link, tonumber(window.id), 0, 0, message)
  X.XCloseDisplay(link)
end

---What a window shows: rgba rows from the top, as painters give them.  The screen is a file in XWD's format.
---@return string rgba
function Display:picture(window)
  local xwd = files.read(self.folder .. "/Xvfb_screen0")
  local function u32(i)
    local a, b, c, d = xwd:byte(4 * i + 1, 4 * i + 4)
    return ((a * 256 + b) * 256 + c) * 256 + d
  end
  local from, stride = u32(0) + u32(19) * 12, u32(12)
  assert(u32(7) == 0 and u32(11) == 32, "a screen of blue, green, red and nothing")
  local rgba = ffi.new("uint8_t[?]", window.w * window.h * 4)
  local screen = ffi.cast("const uint8_t *", xwd) + from
  for y = 0, window.h - 1 do
    local row, to = screen + (window.y + y) * stride + window.x * 4, rgba + y * window.w * 4
    for x = 0, 4 * window.w - 4, 4 do to[x], to[x + 1], to[x + 2], to[x + 3] = row[x + 2], row[x + 1], row[x], 255 end
  end
  return ffi.string(rgba, window.w * window.h * 4)
end

return display
