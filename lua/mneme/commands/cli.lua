-- cli.lua -- the command line: `mneme COMMAND ...`.  Settings are key=value arguments, so only the command's name is
-- parsed here; each command reads its own arguments, and errors carry their exit status.
require "mneme.base.luajit_pairs"                 -- first: the files of Mneme that are loaded after it have a pairs() without fault
local source_files = require "mneme.base.source_files"
source_files.install()                            -- what scripts load is noted for their runs
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local meanings = require "mneme.base.meanings"
local next_step = require "mneme.base.next_step"
local script = require "mneme.runs.script"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"
local version = require "mneme.base.version"

ffi.cdef "int ferror(void *stream);"
meanings.about = function(kind, name) return require("mneme.commands.help").meaning(kind, name) end
local cli = {}
local ranks                        -- the module, for commands that several processes may share
local commands = require "mneme.commands.command_table"

local function usage_text()
  local rows = {}
  for i, c in ipairs(commands) do rows[i] = { c.name .. c.usage, c.doc } end
  local layout = require "mneme.base.layout"
  return layout.prose("mneme " .. version .. ": a research sandbox for memory in agents") .. "\nusage: mneme COMMAND [key=value ...]\n\n"
    .. layout.columns(rows, 34) .. "\n" .. layout.columns({ { "mneme help COMMAND", "explains a command" },
      { "mneme help TOPIC", "explains a core, environment, op, experiment, scene or setting: mneme help gate" },
      { "mneme run SCRIPT --help", "lists the settings of a script" } })
end

-- ---- run ----

local function join_ranks()
  ranks = require "mneme.tensor.ranks"
  ranks.begin()
end

-- One run per seed.
local function several(name, first, seeds, rest)
  local list = require "mneme.runs.seed_list"("run", seeds)
  if ranks.size > 1 then errors.usage "run: seeds=: the processes of mpirun train one agent together, expected one seed" end
  if first == 1 or script.setting(rest, "resume") then errors.usage "run: seeds= starts new runs, expected no resume= (resume=RUN resumes one run)" end
  if script.setting(rest, "seed") then errors.usage "run: seed= and seeds=, expected one of them" end
  if (script.setting(rest, "view") or "0") ~= "0" then errors.usage "run: view=1 shows one run, expected one seed instead of seeds=" end
  return require("mneme.commands.run_seeds").run(script.named(name), rest, list, cli.main)
end

local function run(words)
  join_ranks()
  local name, first = words[1], 2
  if not name or name == "--help" or name == "-h" then
    errors.usage("run: which script?", "mneme run SCRIPT [key=value ...]; mneme list experiments")
  elseif name:find "^%-*resume=" then
    local folder = script.setting(words, "resume")
    local about = script.peek(folder)
    name, first = about.script, 1
    if name then require("mneme.runs.run_sources").adopt(folder, about) end
    if not name then
      require("mneme.runs.folder").read_info(folder)           -- its error says what is wrong
      errors.usage("run: which script made this run?", "mneme run SCRIPT resume=" .. folder)
    end
  end
  local seeds, rest = script.setting(words, "seeds"), {}
  for i = first, #words do if not words[i]:find "^%-*seeds=" then rest[#rest + 1] = words[i] end end
  if seeds then return several(name, first, seeds, rest) end
  local result = script.run(first == 2 and script.named(name) or script.locate(name), rest)
  local path = type(result) == "table" and type(result.path) == "string" and ranks.rank == 0 and result.path
  if not path or not require("mneme.base.files").is_file(path .. "/config.json") then return end
  local trained = require("mneme.runs.checkpoints").list(path)[1]
  if not trained then next_step.note({ "compare", path }, "list runs")
  elseif require("mneme.runs.folder").read_info(path).sequence_task then next_step.note({ "eval", path }, { "compare", path })
  else next_step.note({ "view", path }, { "eval", path }) end
end

-- ---- the others ----

-- Every rank would run the whole grid.
local function sweep(words)
  join_ranks()
  if ranks.size > 1 then
    errors.usage(("sweep: mpirun started %d processes, but a sweep starts its own"):format(ranks.size),
      "mneme sweep ... jobs=N; for several machines see docs/clusters.md")
  end
  return require("mneme.study.sweep").main(words)
end

local show_help

-- Its help, and the settings of the script, which are what can be tuned.
local function tune(words)
  if words[2] == "--help" or words[2] == "-h" then
    show_help { "tune" }
    io.stdout:write "\n"
    return script.run(script.locate(words[1]), { "--help" })
  end
  join_ranks()
  if ranks.size > 1 then errors.usage(("tune: mpirun started %d processes, but a tuning starts its own"):format(ranks.size), "mneme tune ... jobs=N") end
  return require("mneme.commands.tune").main(words)
end

local function list(words)
  local catalogue, help = require "mneme.base.catalogue", require "mneme.commands.help"
  local kind = words[1]
  if kind == "complexity" then
    require("mneme.base.renamed").note("list complexity", "list costs")
    kind = "costs"
  end
  if kind == "runs" then
    local text, newest = require("mneme.commands.run_list").text { unpack(words, 2) }
    io.stdout:write(text)
    if newest then next_step.say({ newest.study and "report" or "view", newest.path }) else next_step.say "run demo" end
    return
  end
  if kind == "costs" or kind == "cores" then
    local costs = require "mneme.models.costs"
    local given = { unpack(words, 2) }
    if given[1] and not given[1]:find "=" then errors.usage(("list %s: '%s' is not a setting"):format(kind, given[1]), "mneme help core " .. given[1]) end
    if kind == "cores" then io.stdout:write(costs.list(given))
    elseif terminal.columns(1) then io.stdout:write(require("mneme.base.layout").table(costs.table(given, true)))
    else io.stdout:write(costs.table(given)) end          -- Markdown
    return next_step.say "help core NAME"
  elseif kind then
    local known = false
    for _, name in ipairs(catalogue.kinds) do known = known or name == kind end
    local folder = not known and require("mneme.base.files").is_folder(kind)
    if folder then errors.usage(("list: '%s' is a folder"):format(kind), "mneme list runs " .. kind) end
    local means = not known and meanings.of_field("kind of thing", kind)
    if means then errors.usage(("unknown kind of thing '%s'"):format(kind), means:find " " and means or "mneme list " .. means) end
    local one = not known and require("mneme.base.nearest").one(kind, catalogue.kinds) == nil and help.is_topic(kind)
    if one then errors.usage(("unknown kind of thing '%s'"):format(kind), "mneme help " .. kind) end
    if not known then errors.unknown("kind of thing", kind, { "costs", "runs", unpack(catalogue.kinds) }) end
    io.stdout:write(help.kind(kind))
    return next_step.say(kind == "experiments" and "run NAME --help" or "help NAME")
  end
  for i, name in ipairs(catalogue.kinds) do
    io.stdout:write(i > 1 and "\n" or "", name, "\n", help.kind(name))
  end
  next_step.say "help NAME"
end

-- The help of a command: the header of its file.
local function header(command)
  return require("mneme.base.layout").prose(require("mneme.base.catalogue").help(command))
end

function show_help(words)
  if #words == 0 then
    io.stdout:write(usage_text())
    return next_step.say("run demo", "list")
  end
  local page = { man = function() return require("mneme.commands.man").page(commands) end,
    api = function() return require("mneme.commands.api").page() end }
  if words[1] == "annotations" then return require("mneme.commands.annotations").main { unpack(words, 2) } end
  if page[words[1]] then io.stdout:write(page[words[1]]()) return end
  for _, c in ipairs(commands) do
    if c.name == words[1] then
      io.stdout:write(terminal.fold(terminal.pasted(("usage: mneme %s%s\n\n%s"):format(c.name, c.usage, c.comment and header(c) or c.doc .. "\n")),
        terminal.width()))
      if c.loads then
        io.stdout:write("\nof a stored run or study:\n", terminal.pasted(require("mneme.base.layout").columns(require("mneme.runs.run_sources").help)))
      end
      return
    end
  end
  local help = require "mneme.commands.help"
  if help.named[words[1]] and words[2] then
    local settings = {}
    for i = #words, 3, -1 do if words[1] == "core" and words[i]:find "=" then table.insert(settings, 1, table.remove(words, i)) end end
    for i = 2, #words do help.show(words[i], words[1], settings) end
    return
  end
  for _, topic in ipairs(words) do help.show(topic) end
end

local function complete(words)
  for _, offer in ipairs(require("mneme.commands.complete").list(words, commands)) do io.stdout:write(offer, "\n") end
end

-- A command in its own module: main(words) -> exit status.
local function module(name) return function(words) return require(name).main(words) end end

-- The same with device=: the device is opened before the module is loaded.
local function on_device(name)
  return function(words)
    local device, rest = script.setting(words, "device"), {}
    for _, word in ipairs(words) do if not word:find "^%-*device=" then rest[#rest + 1] = word end end
    if device then require("mneme.base.engine").open(device) end
    return require(name).main(rest)
  end
end

-- The device has to be opened before anything allocates memory.
local function bench(words)
  local device = script.setting(words, "device")
  if device then require("mneme.base.engine").open(device, 1) end
  local there = device and (words[1] == "train" or words[1] == "cores" or words[1] == "kernels")
  return require(there and "mneme.commands.bench.parts.device" or "mneme.commands.bench").main(words)
end

-- What each command runs: words -> status.
local runs = {
  run = run,
  eval = module "mneme.commands.eval",
  view = module "mneme.commands.view",
  play = module "mneme.commands.play",
  diff = module "mneme.commands.diff",
  intervene = module "mneme.commands.intervene",
  credit = module "mneme.commands.credit",
  probe = module "mneme.commands.probe",
  where = module "mneme.commands.where",
  sweep = sweep,
  tune = tune,
  report = module "mneme.reports.report",
  compare = module "mneme.commands.compare",
  export = module "mneme.commands.export",
  check = on_device "mneme.commands.check",
  bench = bench,
  list = list,
  repl = module "mneme.commands.repl",
  doctor = module "mneme.commands.doctor",
  help = show_help,
  complete = complete,
}

-- A command that there is not: what was meant.
local function unknown_command(name, rest, names)
  local after = #rest > 0 and " " .. table.concat(rest, " ") or ""
  local function meant(command) errors.usage(("unknown command '%s'"):format(name), ("did you mean mneme %s%s?"):format(command, after)) end
  local bare = name:gsub("^%-+", "")
  if bare ~= name and tables.has(names, bare) then meant(bare) end
  local field = meanings.of_field("command", name)
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
  for _, row in ipairs(require "mneme.base.field_words") do                 -- "trian"
    for word in (row[1] == "command" and row[3]:find "^mneme %l+$" and row[2] or ""):gmatch "%S+" do
      if errors.nearest(name, { word }) then meant(row[3]:sub(7)) end
    end
  end
  errors.unknown("command", name, names)
end

-- The words of a help that name code: `help core mine`, a file.
local function help_names(words)
  local names = {}
  for i, word in ipairs(words) do
    if word:find "%.lua$" or i > 1 and require("mneme.commands.help").named[words[1]] then names[#names + 1] = word end
  end
  return names
end

local as_typed = { complete = true, help = true }      -- words that are no settings

local function dispatch(words)
  local name = words[1]
  local rest = { unpack(words, 2) }
  if name == nil then
    io.stderr:write(terminal.pasted(usage_text()))
    return 2
  elseif name:lower() == "-v" or name == "--version" or rest[1] == "--version" and not as_typed[name] then
    return io.stdout:write("mneme ", version, "\n") and 0
  elseif name == "--help" or name == "-h" then return show_help {} end
  local names = {}
  for i, c in ipairs(commands) do
    if c.name == name then
      rest = as_typed[name] and rest or require("mneme.commands.arguments").read(c, rest)
      local asks
      for _, word in ipairs(rest) do asks = asks or word == "--help" end
      if asks and not (c.scripts and #rest > 1) then return show_help { name } end
      if c.scripts then script.once(rest) end
      if name == "repl" then source_files.free = true
      elseif name == "help" then source_files.only_named(help_names(rest)) elseif name == "complete" or name == "list" then source_files.only_named {}
      else source_files.only_named(rest) end
      local take = c.loads and require("mneme.runs.run_sources").take
      return runs[name](take and take(rest, name == "run" and not script.setting(rest, "resume")) or rest)
    end
    names[i] = c.name
  end
  unknown_command(name, rest, names)
end

-- Commands that run code of the user's, or print a file, whose printing is left as it is.
local prints_as_it_is = { run = true, repl = true, complete = true, ["help api"] = true, ["help man"] = true, ["help annotations"] = true }

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
    if ranks then ranks.finish(true, status) end
    return status
  end
  local e = errors.is(result) and result or errors.handler(result)
  if not e.silent then
    local text = tostring(e):gsub("%s*\n%s*", " ")
    local whole = (who or "") .. (ranks and ranks.speaker() or "") .. (e.where and "" or text:find "^[^%s:]+%.lua:%d+:" and "" or "mneme: ") .. text
    terminal.note(whole)
    local debug_on = script.setting(words, "debug")
    if debug_on == "1" and e.traceback then io.stderr:write(e.traceback, "\n") end
  end
  io.stdout:flush()
  if ranks then ranks.finish(e.silent == true, e.status) end
  return e.status
end

return cli
