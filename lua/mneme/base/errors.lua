-- errors.lua -- the one kind of error for users' mistakes, and the position it names.
-- An error raised inside this library names the line of the user's script that led to it, because that
-- is the line to change.  It carries the exit status, which only the place of failure knows.
local traps = require "mneme.base.lua_traps"
local meanings = require "mneme.base.meanings"
local nearest = require "mneme.base.nearest"
local tables = require "mneme.base.tables"
local errors = { nearest = nearest.one, closest = nearest.several }
local ours = traps.ours

local Error = {}
Error.__index = Error

---"script.lua:12: message (hint)"
function Error:__tostring()
  local hint = self.hint and " (" .. self.hint .. ")" or ""
  return (self.where and self.where .. ": " or "") .. self.message .. hint
end

-- "file:line".
local function position(info, line) return (info.source:match "^@(.*)" or info.short_src):gsub("^%./", "") .. ":" .. line end

local callers = setmetatable({}, { __mode = "k" })         -- functions of the library that call one of the user's -> that one

---`caller` calls a function of the user's.  One that ends with `return mn.study { ... }` leaves no frame; then errors name the place where
---it is defined.
---@param caller function
---@param f function? nil: the first argument of `caller`
function errors.calls(caller, f) callers[caller] = f or true end

local function all(...) return ... end

---Call a function of the user's, such as a loss.
---@param f function
---@return any ... what f gives
function errors.call(f, ...) return all(f(...)) end            -- not a tail call: this frame stands for the user's
errors.calls(errors.call)

-- The line of a file's last `return`, with which it hands over what it declares; else the first.
local function return_line(source)
  local line, last = 0, 1
  for text in (traps.text_of(source) .. "\n"):gmatch "(.-)\n" do
    line = line + 1
    if text:find "^return%f[%W]" then last = line end
  end
  return last
end

---Where a function is defined, or where a file returns: "file:line".
---@param f function
---@return string
function errors.position_of(f)
  local info = debug.getinfo(f, "S")
  return position(info, info.what == "main" and return_line(info.source) or info.linedefined)
end

-- "file:line" of the nearest frame that belongs to the user, or nil.
local function user_position()
  for level = 3, 200 do
    local info = debug.getinfo(level, "Slf")
    if not info then return nil end
    if not ours(info) and info.currentline > 0 then return position(info, info.currentline) end
    local f, _ = callers[info.func]
    if f == true then _, f = debug.getlocal(level, 1) end
    if type(f) == "function" and not ours(debug.getinfo(f, "S")) then return errors.position_of(f) end
  end
end

---Where the user's code led here: "file:line", or nil.
function errors.position() return user_position() end

---Is the caller of the calling function in the user's code, not in the library?
---@return boolean
function errors.asked_by_user()
  local info = debug.getinfo(3, "S")
  return info ~= nil and not ours(info)
end

---Throw an error that names the user's line.
---@param message string what was given and what was expected, on one line
---@param options table? `hint`: what to do about it; `status`: exit status (1 failed, 2 usage or a bad
---  setting, 3 diverged; default 1); `where`: "file:line" instead of the user's line, false for none; `setting`, `given`, `expected`: the same
---  as the message, for programs
function errors.raise(message, options)
  options = options or {}
  local where, hint = options.where, options.hint
  if where == nil then
    local trap, sure = traps.call()
    if trap then message, hint = trap, not sure and tostring(message) or nil end
    where = user_position()
  end
  error(setmetatable({ message = tostring(message), hint = hint, status = options.status or 1,
    where = where or nil, traceback = debug.traceback("", 2), setting = options.setting, given = options.given, expected = options.expected }, Error), 0)
end

---Refuse what is not the table that is expected.
---@param what string "agent: env"
---@param value any
---@param field string? that such a table has
---@param expected string how one is made: "mn.env(...)"
function errors.need(what, value, field, expected)
  if type(value) == "table" and (not field or value[field] ~= nil) then return end
  local given = type(value) == "table" and "a table without " .. field or value == nil and "missing" or "a " .. type(value)
  errors.raise(("%s is %s, expected %s"):format(what, given, expected))
end

---The command line or a setting is wrong: exit status 2.
function errors.usage(message, hint) errors.raise(message, { hint = hint, status = 2 }) end

---The world failed (a file, a device): exit status 1.  No line of the script is to blame.
function errors.fail(message, hint) errors.raise(message, { hint = hint, status = 1, where = false }) end

---Training met a NaN: exit status 3.
function errors.diverged(message, hint) errors.raise(message, { hint = hint, status = 3, where = false }) end

---The exit status of what a signal stopped.
---@param signal integer from mn_interrupted(); 0: none
function errors.status_of(signal) return signal == 0 and 0 or 128 + signal end

---Leave the program with a status; what there was to say has been said.  130 and 143: stopped by a signal.
function errors.stop(status)
  local message = status == 0 and "nothing to do" or "stopped"
  error(setmetatable({ message = message, status = status, silent = true }, Error), 0)
end

---Is it an error made here?
function errors.is(e) return getmetatable(e) == Error end

---A handler for xpcall: any error value becomes one of ours, with its traceback.  A plain Lua error keeps
---the position it has; one from inside the library gets the user's line in front.
function errors.handler(e)
  if errors.is(e) then return e end
  local given = type(e) == "table" and not (getmetatable(e) or {}).__tostring and tables.in_words(e)
  local message, where, hint = given and "error was given " .. given .. ", expected a text" or tostring(e):gsub("\n.*", ""), nil, nil
  local file = message:match "^(.-):%d+: "
  if not file or file:find("lua/mneme/", 1, true) then
    message = traps.call() or message
    where = user_position()
  else hint = traps.running(message) end
  local traceback = debug.traceback("", 2)
  local method = message:match "attempt to [%l ]+ field '([%w_]+)' %(a function value%)"         -- x.shape[1], x.grad * 2
  hint = hint or method and ("%s is a method: x:%s()"):format(method, method) or nil
  return setmetatable({ message = message, hint = hint, status = 1, where = where, traceback = traceback }, Error)
end

---"unknown WHAT 'name'": what to write for a word of another program; else "did you mean 'x' (what x is)?", and the known ones where none
---is near.  Exit status 2.
---@param what string "setting", "core", ...; "figure 2: kind": of what comes before ": "
---@param name any
---@param known string[]
---@param others string[]? known, too, but not listed
---@param where string? "file:line" instead of the user's line
function errors.unknown(what, name, known, others, where)
  name = tostring(name)
  local field = meanings.hint(what, name)
  local head = field and what:find "^setting of %l" and field:match "^write ([%a_]+)="
  if head and not tables.has(known, head) and not tables.has(others or {}, head) then field = meanings.hint(what, head) end
  local near = not field and (errors.nearest(name, known) or others and errors.nearest(name, others)) or nil
  local guess = near and ("; did you mean '%s'%s?"):format(near, meanings.shown(what, near)) or ""
  local of, thing = what:match "^(.*: )(.+)$"
  errors.raise(("%sunknown %s '%s'%s"):format(of or "", thing or what, name, guess), { status = 2, where = where,
    hint = field or not near and #known > 0 and "known: " .. table.concat(known, " ") or nil })
end

---Refuse a member of a user's table that nothing reads.
---@param what string "core mine"
---@param t table
---@param words string the members that there are
---@param f function of the user's file, whose place the error names
function errors.members(what, t, words, f)
  local known = {}
  for word in words:gmatch "%S+" do known[#known + 1], known[word] = word, true end
  for key in pairs(t) do
    if not known[key] then errors.unknown(("key of %s:"):format(what), key, known, nil, errors.position_of(f)) end
  end
end

---Call f.  A mistake that it finds is on the command line, and the line of the script that led to f is not to blame; an error in another
---file keeps its place.
---@param f function
---@return any ... what f gives
function errors.of_command_line(f, ...)
  local here, list = user_position(), { xpcall(f, errors.handler, ...) }
  if list[1] then return unpack(list, 2) end
  if list[2].status == 2 and list[2].where == here then list[2].where = nil end
  error(list[2], 0)
end

return errors
