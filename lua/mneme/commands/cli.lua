-- cli.lua -- the command line: `mneme COMMAND ...`.  Each command declares its options (options.lua); arguments.lua reads them, and errors
-- carry their exit status.
require "mneme.base.luajit"                 -- first: the files of Mneme that are loaded after it have a pairs() without fault
local trusted_code = require "mneme.base.trusted_code"
trusted_code.install()                            -- what scripts load is noted for their runs
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local did_you_mean = lazy "mneme.base.did_you_mean"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local version = require "mneme.base.version"

ffi.cdef "int ferror(void *stream);"
errors.about = function(kind, name) return require("mneme.commands.help").meaning(kind, name) end
local cli = {}
local commands = require("mneme.commands.options").commands

-- A command that there is not: what was meant.
local function unknown_command(name, rest, names)
  local after = #rest > 0 and " " .. table.concat(rest, " ") or ""
  local function meant(command) errors.usage(("unknown command '%s'"):format(name), ("did you mean mneme %s%s?"):format(command, after)) end
  local bare = name:gsub("^%-+", "")
  if bare ~= name and tables.has(names, bare) then meant(bare) end
  local field = did_you_mean.of_field("command", name)
  if field then
    local one = field:match "^mneme ([%l %-]+)$" or field == "mneme list WORD" and "list " .. name
    if one then meant(one) end
    errors.usage(("unknown command '%s'"):format(name), field)
  end
  if name == "resume" or name == "continue" then errors.usage(("unknown command '%s'"):format(name), "did you mean mneme run resume=" ..
    (rest[1] and table.concat(rest, " ") or "RUN") .. "?") end
  local plain = name:gsub("%.lua$", "")
  if name ~= plain then meant("run " .. name) end
  for _, experiment in ipairs(require("mneme.base.registry").names "experiments") do if experiment == name then meant("run " .. name) end end
  local files = require "mneme.base.files"
  if files.is_file(name .. "/study.json") then meant("report " .. name) elseif files.is_file(name .. "/config.json") then meant("view " .. name) end
  for _, row in ipairs(require "mneme.base.names_elsewhere") do                 -- "trian"
    for word in (row[1] == "command" and row[3]:find "^mneme %l+$" and row[2] or ""):gmatch "%S+" do
      if errors.nearest(name, { word }) then meant(row[3]:sub(7)) end
    end
  end
  errors.unknown("command", name, names)
end

local function show_help(name)
  local words = { name }
  return commands.find("help").run { topics = words, words = words }
end

local function dispatch(words)
  local name = words[1]
  local rest = { unpack(words, 2) }
  local command = name and commands.find(name)
  if name == nil then
    io.stderr:write(commands.find("help").overview())
    return 2
  elseif name:lower() == "-v" or name == "--version" or rest[1] == "--version" and not (command and command.raw) then
    return io.stdout:write("mneme ", version, "\n") and 0
  elseif name == "--help" or name == "-h" then return show_help()
  elseif not command then unknown_command(name, rest, commands.names) end
  local o = require("mneme.commands.arguments").read(command, rest)
  if o.help then return show_help(name) end
  trusted_code.only_named(command.names_code and command.names_code(o.words) or o.words)
  return command.run(o)
end

-- Commands that run code of the user's, or print a file, whose printing is left as it is.
local prints_as_it_is = { run = true, complete = true, ["help api"] = true, ["help man"] = true, ["help annotations"] = true,
  ["help commands"] = true }

-- The ranks, for commands that several processes share.
local function joined()
  local ranks = package.loaded["mneme.tensor.ranks"]
  return ranks and ranks.begun and ranks or nil
end

-- Status 1 and a message if standard output failed: a truncated file must not look complete.
local function printed(status)
  local ok, problem = io.stdout:flush()
  if ok and ffi.C.ferror(terminal.stdout) == 0 then return status end
  terminal.note(("mneme: standard output: %s"):format(problem or "not everything could be written"))
  return status == 0 and 1 or status
end

---Run a command; an error becomes one line on stderr.
---@param words string[] the command line after the program's name
---@param who string? prefix of an error message, if several processes print
---@return integer status of the process
function cli.main(words, who)
  terminal.called(words[0])
  terminal.stdout:setvbuf "line"                 -- so that logs have stdout and stderr in order
  if not (prints_as_it_is[words[1]] or prints_as_it_is[table.concat(words, " ", 1, math.min(2, #words))]) then terminal.fold_output() end
  local ok, result = xpcall(dispatch, errors.handler, words)
  if ok then
    local status = printed(type(result) == "number" and result or 0)
    if joined() then joined().finish(true, status) end
    return status
  end
  local e = errors.is(result) and result or errors.handler(result)
  if not e.silent then
    local text = tostring(e):gsub("%s*\n%s*", " ")
    local whole = (who or "") .. (joined() and joined().speaker() or "") .. (e.where and "" or text:find "^[^%s:]+%.lua:%d+:" and "" or "mneme: ") .. text
    terminal.note(whole)
    local debug_on = (" " .. table.concat(words, " ") .. " "):find " %-*debug=1 "
    if debug_on and e.traceback then io.stderr:write(e.traceback, "\n") end
  end
  io.stdout:flush()
  if joined() then joined().finish(e.silent == true, e.status) end
  return e.status
end

return cli
