-- repl.lua -- `mneme repl`: interactive Lua.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local tables = require "mneme.base.tables"
local line_editor = lazy "mneme.commands.line_editor"
local show = lazy "mneme.tensor.show"
local tensor = lazy "mneme.tensor.tensor"
local C = engine.C

local repl = { name = "repl", doc = "interactive Lua with mn loaded", about = [[
The value of a line is printed: elements of tensors, keys of tables; print is mn.print.
Tab completes names, the arrow keys recall lines, ?name prints help, Ctrl-C interrupts, Ctrl-D quits.
  > x = mn.tensor { 1, 2, 3 }
  > x:square():sum()]] }
local EVERY = 1000                                   -- instructions between two checks for Ctrl-C

-- ---- evaluating ----

local NAME = "=repl"

---Compile a piece of Lua; an expression returns its values.
---@return function? chunk
---@return string? problem
---@return boolean? unfinished more lines may complete it
function repl.read(text)
  errors.texts[NAME] = text
  local chunk, as_value = loadstring("return " .. text, NAME)
  -- As an argument it is no tail call, so that an error finds the call.
  if chunk then return loadstring("return (function(...) return ... end)(" .. text .. "\n)", NAME) or chunk end
  local problem
  chunk, problem = loadstring(text, NAME)
  if chunk then return chunk end
  return nil, problem, problem:find "near '<eof>'$" ~= nil or as_value:find "near '<eof>'$" ~= nil
end

local function interrupted()
  if C.mn_interrupted() ~= 0 then
    debug.sethook()
    error("stopped by Ctrl-C", 0)
  end
end

---Run a chunk that Ctrl-C can interrupt; print its results or its error.
---@return boolean ok
function repl.execute(chunk)
  C.mn_watch_signals(true)
  setfenv(chunk, require("mneme.base.source_files").globals)
  jit.off(chunk, true)                            -- compiled loops do not call hooks
  debug.sethook(interrupted, "", EVERY)
  local result = { n = 0 }
  local function take(ok, ...) result.n, result.ok = select("#", ...), ok for i = 1, result.n do result[i] = select(i, ...) end end
  take(xpcall(chunk, errors.handler))
  debug.sethook()
  C.mn_watch_signals(false)
  if not result.ok then
    if not result[1].silent then io.stdout:write("error: ", (tostring(result[1]):gsub("^repl:%d+: ", "")), "\n") end
    return false
  end
  for i = 1, result.n do io.stdout:write(show.text(result[i]), "\n") end
  if result.n == 1 and result[1] ~= nil then _G._ = result[1] end
  return true
end

-- ---- completing ----

local function keys_of(value)
  if tensor.is(value) then return tables.keys(tensor.Tensor) end
  if value == package.loaded.mneme then
    local names = value.names()
    for name in pairs(tensor.ops) do names[#names + 1] = name end
    return names
  end
  if type(value) ~= "table" then return {} end
  local names = tables.keys(value)
  local meta = getmetatable(value)
  local index = meta and rawget(meta, "__index")
  if type(index) == "table" then for _, key in ipairs(tables.keys(index)) do names[#names + 1] = key end end
  return names
end

---Completions of a word: "mn.lin" -> { "mn.linear", "mn.linear_attention" }.
---@param word string names with dots and colons between
function repl.offers(word)
  if word:sub(1, 1) == "?" then
    local list = repl.offers("mn." .. word:sub(2))
    for i, offer in ipairs(list) do list[i] = "?" .. offer:sub(4) end
    return list
  end
  local path, start = word:match "^(.*[.:])([%w_]*)$"
  local value, list, seen = _G, {}, {}
  if path then
    for name in path:gmatch "[%w_]+" do
      local ok, inner = pcall(function() return value[name] end)
      value = ok and inner or nil
      if value == nil then return {} end
    end
  else path, start = "", word end
  for _, name in ipairs(keys_of(value)) do
    if name:sub(1, #start) == start and name:find "^[%a_][%w_]*$" and not seen[name] then
      seen[name], list[#list + 1] = true, path .. name
    end
  end
  table.sort(list)
  return list
end

-- ---- the loop ----

-- ?linear, ?mn.env: print help.
local function explain(name)
  name = name:gsub("^mn%.", ""):gsub("%s", "")
  for _, f in ipairs(require("mneme.commands.api").functions()) do
    if f.name == "mn." .. name then
      io.stdout:write(f.name, "(", f.arguments, ")\n", table.concat(f.comment, "\n"), "\n")
      return
    end
  end
  require("mneme.commands.help").show(name ~= "" and name or nil)
end

-- Words that are typed alone: what they do here.
local alone = { help = "?", ["?"] = "?", exit = "quit", quit = "quit", q = "quit", ["exit()"] = "quit", ["quit()"] = "quit" }

function repl.run()
  require("mneme.base.source_files").free = true
  local mn = require "mneme"
  _G.mn, _G.print = mn, show.print
  local home = os.getenv "XDG_STATE_HOME" or (os.getenv "HOME" or ".") .. "/.local/state"
  local line = line_editor { history = home .. "/mneme/history", offers = repl.offers }
  local talks = ffi.C.isatty(0) == 1
  if talks then io.stdout:write("mneme ", require "mneme.base.version", ": Lua with mn; ?name prints help, Tab completes, Ctrl-D quits\n") end
  local text, fine = nil, true                     -- fine: no error so far
  while true do
    local more = line:read(talks and (text and ">> " or "> ") or "")
    if not more then break end
    text = text and text .. "\n" .. more or more
    local question, word = text:match "^%s*%?%s*(.*)$", alone[text:match "^%s*(.-)%s*;?%s*$"]
    if word == "quit" and rawget(_G, text:match "%a+") == nil then
      text = nil
      break
    elseif word == "?" or question == "" then
      io.stdout:write("?NAME prints help: ?linear, ?mn.env, ?gru; ?config: settings; Tab completes names; Ctrl-D or exit quits\n",
        "mn is loaded: x = mn.tensor { 1, 2, 3 }; mneme help lists the commands of the shell\n")
      text = nil
    elseif question then
      line:keep(text)
      fine = repl.execute(function() explain(question) end) and fine
      text = nil
    elseif not text:find "%S" then text = nil
    else
      local chunk, problem, unfinished = repl.read((text:gsub("^%s*=", "")))
      if chunk or not unfinished then
        line:keep(text)
        if not chunk then io.stdout:write("error: ", (problem:gsub("^repl:", "line ")), "\n") end
        fine = chunk and repl.execute(chunk) and fine or false
        text = nil
      end
    end
  end
  if text then
    fine = false
    io.stdout:write("error: the input ends inside of:\n", text, "\n")
  elseif talks then io.stdout:write "\n" end
  return (fine or talks) and 0 or 1
end

return repl
