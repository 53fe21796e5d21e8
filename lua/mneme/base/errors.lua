-- errors.lua -- the one kind of error for users' mistakes, and the position it names.
-- An error raised inside this library names the line of the user's script that led to it, because that
-- is the line to change.  It carries the exit status, which only the place of failure knows.
local lazy = require "mneme.base.lazy"
local did_you_mean = lazy "mneme.base.did_you_mean"
local tables = require "mneme.base.tables"

local errors = {
  about = nil,             -- function(kind, name) -> the meaning of a name of Mneme, or nil; the door (init.lua) sets it
  beside = nil,            -- what every error says besides, as it may be its cause: a run's code that has changed
}

-- What was probably meant, where code fails as it does for those who come from Python or C: lua_mistakes.lua, once an error asks.
local traps = setmetatable({}, { __index = function(t, key)
  for name, f in pairs(require("mneme.base.lua_mistakes")(errors)) do t[name] = f end
  return rawget(t, key)
end })
errors.traps = traps

-- Sources below lua/mneme are ours.
local library = debug.getinfo(1, "S").source:match "^(@.*)base/errors%.lua$" or "@lua/mneme/"

---Is this frame of the stack (`debug.getinfo` with "S") the library's own code?
function errors.ours(info) return info.what == "C" or info.source:sub(1, #library) == library end
local ours = errors.ours

---The text of a chunk, or of a file of the kernel (files.text refuses one); "" where it cannot be read.
---@param source string as debug.getinfo has it: "@" and a path
function errors.text_of(source)
  local path = source:match "^@(.*)"
  local f = path and io.open(path)
  local text = f and f:read "*a" or ""
  if f then f:close() end
  return text
end

local Error = {}
Error.__index = Error

---"script.lua:12: message (hint)"
function Error:__tostring()
  local hint = self.hint and errors.beside and self.hint .. "; " .. errors.beside or self.hint or errors.beside
  hint = hint and " (" .. hint .. ")" or ""
  return (self.where and self.where .. ": " or "") .. self.message .. hint
end

-- "file:line".
local function position(info, line) return (info.source:match "^@(.*)" or info.short_src):gsub("^%./", "") .. ":" .. line end

local callers = setmetatable({}, { __mode = "k" })         -- functions of the library that call one of the user's -> that one

---`caller` calls a function of the user's.  One that ends with `return mn.study { ... }` leaves no frame; then errors name the place where
---it is defined.
---@param f function? nil: the first argument of `caller`
function errors.calls(caller, f) callers[caller] = f or true end

local function all(...) return ... end

---Call a function of the user's, such as a loss.
---@return any ... what f gives
function errors.call(f, ...) return all(f(...)) end            -- not a tail call: this frame stands for the user's
errors.calls(errors.call)

-- The line of a file's last `return`, with which it hands over what it declares; else the first.
local function return_line(source)
  local last = 1
  for line, text in ipairs(tables.found(errors.text_of(source) .. "\n", "(.-)\n")) do if text:find "^return%f[%W]" then last = line end end
  return last
end

---Where a function is defined, or where a file returns: "file:line".
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

local at_work = { envs = true, learn = true, models = true, tensor = true, insight = true, lab = true }          -- rooms whose callers wait for what they give

---os.exit of users' files: where a room calls them, it would end a training or an evaluation half-way as if all were well.
function errors.exit(...)
  for level = 2, math.huge do
    local info = debug.getinfo(level, "S")
    if not info then return os.exit(...) end
    if ours(info) and at_work[info.source:match("^%a+", #library + 1)] then
      errors.raise(("os.exit(%s) in the midst of the work, which would be lost"):format(tostring((...))), { hint = 'error("why") stops it',
        status = (...) ~= 0 and tonumber((...)) or nil })
    end
  end
end

---Is it an error made here?
function errors.is(e) return getmetatable(e) == Error end

---As pcall, of users' mistakes alone: another error is raised again.
---@return boolean ok
---@return any result what f gives, else the error
function errors.try(f, ...)
  local ok, result = pcall(f, ...)
  if not ok and not errors.is(result) then error(result, 0) end
  return ok, result
end

local function explained(e)
  local given = (e == nil or type(e) == "table" and not (getmetatable(e) or {}).__tostring) and tables.in_words(e)
  local message, where, hint = given and "error was given " .. given .. ", expected a text" or tostring(e):gsub("\n.*", "")
  local file = message:match "^(.-):%d+: "
  if not file or file:find("lua/mneme/", 1, true) then
    local trap = traps.call()
    message, hint = trap or message, not trap and traps.signature() or nil
    where = user_position()
  else hint = traps.running(message) end
  local traceback = debug.traceback("", 2)
  local method = message:match "attempt to [%l ]+ field '([%w_]+)' %(a function value%)"         -- x.shape[1], x.grad * 2
  hint = hint or method and ("%s is a method: x:%s()"):format(method, method) or nil
  return setmetatable({ message = message, hint = hint, status = 1, where = where, traceback = traceback }, Error)
end

---A handler for xpcall: any error value becomes one of ours, with its traceback.  A plain Lua error keeps
---the position it has; one from inside the library gets the user's line in front.
function errors.handler(e)
  if type(e) == "string" and e:sub(-14) == "stack overflow" then                 -- no room for a call; of compiled code, no place either
    return setmetatable({ message = e, hint = "a function that calls itself without end", status = 1 }, Error)
  end
  if errors.is(e) then return e end
  return explained(e)
end

---"unknown WHAT 'name'": what to write for a word of another program; else "did you mean 'x' (what x is)?", and the known ones where none
---is near.  Exit status 2.
---@param what string "setting", "core", ...; "figure 2: kind": of what comes before ": "
---@param others string[]? known, too, but not listed
---@param where string? "file:line" instead of the user's line
function errors.unknown(what, name, known, others, where)
  name = tostring(name)
  local field = did_you_mean.hint(what, name, known)
  local function head() return field and what:find "^setting of %l" and field:match "^write ([%a_]+)=" end
  while head() and not tables.has(known, head()) and not tables.has(others or {}, head()) do field = did_you_mean.hint(what, head()) end
  local near = not field and (errors.nearest(name, known) or others and errors.nearest(name, others)) or nil
  local guess = near and ("; did you mean '%s'%s?"):format(near, did_you_mean.shown(what, near, errors.about)) or ""
  local of, thing = what:match "^(.*: )(.+)$"
  errors.raise(("%sunknown %s '%s'%s"):format(of or "", thing or what, name, guess), { status = 2, where = where,
    hint = field or not near and #known > 0 and "known: " .. table.concat(known, " ") or nil })
end

---Refuse a member of a user's table that nothing reads, or of another type.
---@param what string "core mine"
---@param words string the members that there are, "NAME" or "NAME:TYPE"
---@param f function? of the user's file, whose place the error names
function errors.members(what, t, words, f)
  local known, types, where = {}, {}, f and errors.position_of(f)
  for name, kind in words:gmatch "([^%s:]+):?(%a*)" do known[#known + 1], types[name] = name, kind end
  for key, value in pairs(t) do
    local kind = types[key] or errors.unknown(("key of %s:"):format(what), key, known, nil, where)
    if kind ~= "" and type(value) ~= kind then
      errors.raise(("%s: %s is a %s, expected a %s"):format(what, key, type(value), kind), { where = where })
    end
  end
end

-- Call f.  An error that blames the line of the script which led to it gets none instead, or the line where the file `path` returned.
local function blaming(path, f, ...)
  local here, list = user_position(), { xpcall(f, errors.handler, ...) }
  if list[1] then return unpack(list, 2) end
  if list[2].status == 2 and list[2].where == here then list[2].where = path and path .. ":" .. return_line("@" .. path) end
  error(list[2], 0)
end

---Call f.  A mistake that it finds is on the command line, and the line of the script that led to f is not to blame; an error in another
---file keeps its place.
---@return any ... what f gives
function errors.of_command_line(f, ...) return blaming(nil, f, ...) end

---Call f with what the file `path` has returned, whose mistake it is.
---@return any ... what f gives
function errors.of_file(path, f, ...) return blaming(path, f, ...) end

---Refuse what is no whole number of at least `least`.
---@param what string whose it is: "core rmt"
---@param name string "num_envs"; with its verb "segment =" or "axis 0 is"
---@param options table? of errors.raise; default { status = 2 }
---@return integer x
function errors.whole(what, name, x, least, options)
  if type(x) ~= "number" or x % 1 ~= 0 or x < least or x >= 2 ^ 31 then
    local shown = (type(x) == "table" or type(x) == "function") and "a " .. type(x) or tostring(x)
    local large = type(x) == "number" and x % 1 == 0 and x >= 2 ^ 31
    errors.raise(("%s: %s%s%s, expected a whole number %s"):format(what, name, (name:find " =$" or name:find " is$") and " " or "=", shown,
      (large and "from %d to 2147483647" or "of at least %d"):format(least)), options or { status = 2 })
  end
  return x
end

-- ---- the name of which a word is a slip of the keyboard: "corridr" -> "corridor" ----

-- Only the same word counts: its parts one by one, the same first letter, the same digits.  Another word of few other letters, such as max_steps
-- for num_steps, is another thing, and has its entry in names_elsewhere.lua or none.

-- Edits (insert, delete, change, swap neighbours) that turn a into b.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- "num_stpes" -> { "num", "stpes" }
local function parts_of(text) return tables.found(text, "[^_%-. /]+") end

-- Edits between two parts; nil: they are two words.  Of three letters two may have changed places.  Other digits, or another first
-- letter, are another word, unless `loosely`.
local function slips(a, b, loosely)
  if a == b then return 0 end
  local most = math.min(#a, #b) >= 2 and math.max(#a, #b) == 3 and 1 or math.min(2, math.floor(math.max(#a, #b) / 4))
  local swapped = #a == #b and #a > 2 and a:sub(1, 1) == b:sub(2, 2) and a:sub(2, 2) == b:sub(1, 1)
  if math.abs(#a - #b) > 2 or not loosely and a:gsub("%D", "") ~= b:gsub("%D", "") or not (loosely or swapped or a:sub(1, 1) == b:sub(1, 1)) then return nil end
  if #a > #b + 1 and a:sub(1, #b) == b then return nil end                  -- more was written on purpose: transformerxl
  local d = distance(a, b)
  if loosely then return d <= math.max(1, most) and d or nil end
  local doubled = d == 1 and a:gsub("(.)%1", "%1") == b:gsub("(.)%1", "%1")
  return (d <= most or doubled or swapped and d == 1) and d or nil
end

-- Edits between two names; nil: they are two names.
local function between(name, candidate, loosely)
  local a, b, total = parts_of(name), parts_of(candidate), 0
  if table.concat(a) == table.concat(b) then return 0 end                    -- numsteps, T-Maze
  if #a ~= #b then return nil end
  for i = 1, #a do
    local d = slips(a[i], b[i], loosely)
    if not d then return nil end
    total = total + d
  end
  return total <= 2 and total or nil
end

---Up to n known names of which this is a slip, the nearest first; those of a word that was cut off ("corr") after them.
function errors.closest(name, known, n)
  name = tostring(name):lower()
  local list, seen, rival = {}, {}, math.huge
  for i, candidate in ipairs(known) do
    local whole = candidate:lower()
    local d = math.abs(#name - #whole) <= 3 and between(name, whole) or nil
    if not d and whole:match "[^/.]*$" == name then d = 3 end                                  -- "loss" for "losses/loss"
    local cut = #name >= 4 and #name * 2 >= #whole and whole:sub(1, #name) == name and whole:find("^%a", #name + 1)
    if not d and cut and name:find "%a$" then d = 4 end                                        -- "corr" for "corridor"
    if not d and math.abs(#name - #whole) <= 3 then rival = math.min(rival, between(name, whole, true) or rival) end
    if d and not seen[candidate] then seen[candidate], list[#list + 1] = true, { candidate, d, i } end
  end
  table.sort(list, function(a, b) if a[2] ~= b[2] then return a[2] < b[2] end return a[3] < b[3] end)
  local names = tables.map(list, function(entry, i) return i <= n and entry[1] or nil end)
  names.tie = list[1] ~= nil and (rival <= list[1][2] or list[2] ~= nil and list[1][2] == list[2][2])
  return names
end

---The known name that was probably meant; nil: none is near, or two are as near.
---@return string?
function errors.nearest(name, known)
  local names = errors.closest(name, known, 1)
  return not names.tie and names[1] or nil
end

return errors
