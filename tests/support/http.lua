-- http.lua -- the least of HTTP, byte for byte, over sockets of lua-posix: what a browser would never send, too.
local engine = require "mneme.base.engine"
local t = require "tests.harness"
local socket = t.need("posix.sys.socket", "lua-posix")
local poll, unistd = require "posix.poll".rpoll, require "posix.unistd"

local http = {}

---Send bytes to a port of this machine.
---@return integer connection
function http.send(port, bytes)
  local fd = assert(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0))
  assert(socket.connect(fd, { family = socket.AF_INET, addr = "127.0.0.1", port = port }))
  while #bytes > 0 do
    local n = socket.send(fd, bytes)
    if not n then break end                                -- it is closed: the answer may say why
    bytes = bytes:sub(n + 1)
  end
  return fd
end

---Wait until an answer begins.
function http.begun(fd) return poll(fd, 20000) == 1 end

---Everything that comes, until the connection is closed or nothing has come for a while.
---@param seconds number? 5
---@return integer? status
---@return string body
---@return table head by lower-case name
---@return boolean closed
function http.answer(fd, seconds)
  local got, closed = {}, false
  local deadline = engine.C.mn_clock(false) + (seconds or 5)
  while not closed do
    local left = deadline - engine.C.mn_clock(false)
    if left <= 0 or poll(fd, math.ceil(1000 * left)) ~= 1 then break end
    local bytes = socket.recv(fd, 65536)
    closed = not bytes or bytes == ""
    if not closed then got[#got + 1] = bytes end
  end
  unistd.close(fd)
  local text, head = table.concat(got), {}
  local top, body = text:match "^(.-)\r\n\r\n(.*)$"
  for name, value in (top or ""):gmatch "\r\n([%w-]+): ([^\r]*)" do head[name:lower()] = value end
  return tonumber(text:match "^HTTP/1%.1 (%d+)"), body or "", head, closed
end

---A request as text: method, path, { Host = ..., ["X-Token"] = ... }, body.
function http.text(method, path, head, body)
  local lines = { ("%s %s HTTP/1.1"):format(method, path), "Connection: close" }
  for name, value in pairs(head) do lines[#lines + 1] = name .. ": " .. value end
  if body then lines[#lines + 1] = "Content-Length: " .. #body end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or "")
end

return http
