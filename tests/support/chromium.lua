-- chromium.lua -- a page in Chromium without a screen, driven by the DevTools protocol through two pipes: JSON texts that end with a zero.
local ffi = require "ffi"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

ffi.cdef [[
  int mkfifo(const char *path, unsigned int mode);
  long getdelim(char **text, size_t *room, int last, void *file);
]]

local chromium = {}
local Page = {}
Page.__index = Page

---Is a Chromium installed?
---@return string? program
function chromium.program()
  for _, name in ipairs { "chromium", "chromium-browser", "google-chrome", "chrome" } do
    if shell.has(name) then return name end
  end
end

-- The next message of the browser.
local text, room = ffi.new "char *[1]", ffi.new "size_t[1]"
local function read(self)
  local n = tonumber(ffi.C.getdelim(text, room, 0, self.from))
  if n < 1 then error("Chromium ended: " .. shell.run(self.folder, "tail -3 log"), 2) end
  return json.decode(ffi.string(text[0], n - 1))
end

---Send a command and wait for its answer; events in between are collected in `events`.
---@param method string "Page.navigate"
---@param given table?
---@return table result
function Page:call(method, given)
  self.id = self.id + 1
  self.to:write(json.encode { id = self.id, method = method, params = given or { _ = 0 }, sessionId = self.session }, "\0")
  self.to:flush()
  while true do
    local said = read(self)
    if said.method then self.events[#self.events + 1] = said
    elseif said.id == self.id then
      if said.error then error(("%s: %s"):format(method, said.error.message), 2) end
      return said.result
    end
  end
end

-- Waits until an event of this name has come.
local function wait_for(self, name)
  while true do
    for i, event in ipairs(self.events) do
      if event.method == name then return table.remove(self.events, i) end
    end
    self.events[#self.events + 1] = read(self)
  end
end

local browser

-- Starts the browser, which all pages of a test file share.
local function start()
  local self = setmetatable({ folder = shell.folder(), id = 0, events = {} }, Page)
  local to, from = self.folder .. "/to", self.folder .. "/from"
  assert(ffi.C.mkfifo(to, 384) == 0 and ffi.C.mkfifo(from, 384) == 0)                       -- 0600
  os.execute(("cd '%s'; HOME='%s' timeout 1500 %s --headless --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe "
    .. "--user-data-dir='%s/data' about:blank 3<to 4>from >log 2>&1 &"):format(self.folder, self.folder, chromium.program(), self.folder))
  self.to, self.from = assert(io.open(to, "w")), assert(io.open(from, "r"))
  return self
end

---Open a file, or an address, in a page of its own.
---@param path string
---@param options table? { width = 1280, height = 900, fine = 1: pixels per point, dark = false, calm = false: as prefers-reduced-motion }
---@return table page
function chromium.open(path, options)
  options = options or {}
  browser = browser or start()
  local self = browser
  self.session, self.events = nil, {}
  self.target = self:call("Target.createTarget", { url = "about:blank" }).targetId
  self.session = self:call("Target.attachToTarget", { targetId = self.target, flatten = true }).sessionId
  self:call "Page.enable" self:call "Runtime.enable" self:call "Network.enable"
  self:call("Emulation.setEmulatedMedia", { features = { { name = "prefers-color-scheme", value = options.dark and "dark" or "light" },
    { name = "prefers-reduced-motion", value = options.calm and "reduce" or "no-preference" } } })
  self:call("Emulation.setDeviceMetricsOverride", {
    width = options.width or 1280, height = options.height or 900, deviceScaleFactor = options.fine or 1, mobile = false })
  self:call("Page.navigate", { url = path:find "^http:" and path or "file://" .. shell.absolute(path) })
  wait_for(self, "Page.loadEventFired")
  return self
end

---The value of an expression in the page; asked again where another page takes its place meanwhile.
function Page:value(expression)
  local ok, said
  repeat
    ok, said = pcall(self.call, self, "Runtime.evaluate", { expression = expression, returnByValue = true, awaitPromise = true })
  until ok or not said:find("navigated", 1, true)
  if not ok then error(said, 2) end
  if said.exceptionDetails then
    local e = said.exceptionDetails
    error(("%s: %s"):format(expression, e.exception and e.exception.description or e.text), 2)
  end
  return said.result.value
end

local codes = { ArrowRight = 39, ArrowLeft = 37, ArrowUp = 38, ArrowDown = 40, Home = 36, End = 35, PageDown = 34, PageUp = 33, Tab = 9, Enter = 13 }

---Press a key: "ArrowRight", "2", " ".
function Page:press(key)
  local given = { key = key, code = key, windowsVirtualKeyCode = codes[key] or key:upper():byte(), text = #key == 1 and key or nil }
  given.type = "keyDown"
  self:call("Input.dispatchKeyEvent", given)
  given.type, given.text = "keyUp", nil
  self:call("Input.dispatchKeyEvent", given)
end

---Move the pointer to a place of the window, or click there.
function Page:pointer(x, y, click)
  local function send(what, buttons) self:call("Input.dispatchMouseEvent", { type = what, x = x, y = y, button = click and "left" or "none",
    buttons = buttons, clickCount = click and 1 or 0 }) end
  send("mouseMoved", 0)
  if click then send("mousePressed", 1) send("mouseReleased", 0) end
end

---The middle of an element, of a share of its width and height.
---@return number x, number y
function Page:place(selector, across, down)
  local box = self:value(("(e => { e.scrollIntoView({ block: 'center' }); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })"
    .. "(document.querySelector(%q))"):format(selector))
  return box[1] + box[3] * (across or 0.5), box[2] + box[4] * (down or 0.5)
end

---Everything that the page asked for, besides itself and what it carries.
---@return string[] addresses
function Page:requests()
  local list = {}
  for _, event in ipairs(self.events) do
    local request = event.method == "Network.requestWillBeSent" and event.params.request
    if request and not request.url:find "^file://.*%.html$" and not request.url:find "^data:" then list[#list + 1] = request.url end
  end
  return list
end

---What the page complained about: exceptions, errors of the console.
---@return string[] texts
function Page:problems()
  local list = {}
  for _, event in ipairs(self.events) do
    if event.method == "Runtime.exceptionThrown" then
      local e = event.params.exceptionDetails
      list[#list + 1] = e.exception and e.exception.description or e.text
    elseif event.method == "Runtime.consoleAPICalled" and event.params.type == "error" then list[#list + 1] = json.encode(event.params.args) end
  end
  return list
end

---A picture of the page as a PNG file.
function Page:screenshot(path)
  local data = self:call("Page.captureScreenshot", { format = "png" }).data
  local file = assert(io.popen("base64 -d >'" .. path .. "'", "w"))
  file:write(data)
  file:close()
end

function Page:close()
  self.session = nil
  self:call("Target.closeTarget", { targetId = self.target })
end

---End the browser, if one was started.
function chromium.stop()
  if not browser then return end
  browser.session = nil
  pcall(browser.call, browser, "Browser.close")
  browser.to:close()
  browser.from:close()
  -- what it leaves behind is written by processes that end a little later
  os.execute(("for i in $(seq 50); do rm -rf '%s' 2>/dev/null && break; sleep 0.1; done"):format(browser.folder))
  browser = nil
end

return chromium
