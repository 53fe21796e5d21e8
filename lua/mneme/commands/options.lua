-- options.lua -- what commands declare: their options and arguments, read from a command line, shown by help and offered by completion.
local errors = require "mneme.base.errors"
local lazy = require "mneme.base.lazy"
local did_you_mean = lazy "mneme.base.did_you_mean"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"
local engine = lazy "mneme.base.engine"
local layout = lazy "mneme.base.layout"
local registry = lazy "mneme.base.registry"
local run_sources = lazy "mneme.runs.run_sources"
local version = require "mneme.base.version"

local options = {}

---@class Command
---@field name string
---@field doc string one line
---@field about string? more, in sentences; a line that begins with two blanks stays as it is
---@field arguments table[]? { field, shown, meaning, noun =, optional = true, several = true, choices = words }: what is no key=value.  `shown` has
---  capitals where completion knows words: "RUN|SCENE"
---@field options Option[]? its own; those of every command that loads stored code besides, where `loads` is true
---@field others string? what another key=value is: "script", "core" or "env": of its script, of a core, of an environment; nil: a mistake
---@field loads boolean? it runs code of a stored run
---@field draws string? how its episodes follow from seed=, where other commands do it in another way
---@field raw (true|"but help")? its words are handed over as they were typed, "but help": --help alone asks for its help
---@field ask string? what an error says where an argument is missing
---@field run fun(o: table): integer? with what arguments.read gives; the exit status

---@class Option { name, meaning }
---@field type string "whole", "wholes" (a list), "number", "switch", "text", "choice", "list" (of names), "seeds", "file", "folder", "run", "size"
---@field range number[]? least and largest of a number
---@field multiple integer? a whole number is divisible by this
---@field choices string[]?
---@field endings string[]? of a file
---@field default any? the value where it is not given
---@field unless string? what is done without it, in words
---@field example string? a value, where neither default nor choices give one
---@field with string? it counts only beside this option
---@field passes string? pattern of a text that is not the option's but a setting's of the environment
---@field many boolean? it may be given several times
---@field required boolean?
---@field also string? of a number: a word that it may be instead
---@field hint string? what an error advises
---@field pattern string? of a text, with `expected`, what it is in words
---@field none boolean? of seeds: 0 means none
---@field set (fun(o: table, value: any, option: Option, command: Command, text: string))? in place of o[name] = value

-- ---- types ----

-- "a number from 1 to 4": what a number may be.
local function number_words(option)
  local lo, hi = unpack(option.range or {})
  lo = lo or option.type ~= "number" and 0 or nil
  local what = option.type == "number" and "a number" or "a whole number"
  if not lo then return what end
  return what .. ((hi or math.huge) >= 2 ^ 53 and " of at least %s" or " from %s to %s"):format(setting_types.show(lo), setting_types.show(hi or 0))
    .. (option.multiple and ", divisible by " .. option.multiple or "")
end

local function number(text, option)
  if text == option.also then return text end
  local n, beyond = setting_types.number(text)
  local lo, hi = unpack(option.range or {})
  if not n or beyond or n - n ~= 0 or n < (lo or option.type == "whole" and 0 or -math.huge) or n > (hi or option.type == "whole" and 2 ^ 53 or math.huge)
    or option.type ~= "number" and n % 1 ~= 0 or option.multiple and n % option.multiple ~= 0 then return nil, number_words(option) end
  return n
end

local function word(what) return function(text) if text ~= "" and not text:find "^/[/.]*$" then return text end return nil, what end end      -- / is not one

-- type -> function(text, option) -> the value; nil and what is expected.
local types = { whole = number, number = number, folder = word "the name of a folder", run = word "a run's folder" }

function types.text(text, option)
  if text:find(option.pattern or ".") then return text end
  return nil, option.expected or "a text"
end

function types.switch(text)
  local value = setting_types.switches[text:lower()]
  if value ~= nil then return value end
  return nil, "0 or 1"
end

function types.choice(text, option)
  if tables.has(option.choices, text) then return text end
  return nil, "one of " .. table.concat(option.choices, ", "), errors.nearest(text, option.choices)
end

function types.file(text, option)
  for _, ending in ipairs(option.endings or { "" }) do
    if text:lower():sub(-#ending - 1) == "." .. ending or ending == "" and text ~= "" then return text end
  end
  return nil, option.endings and "a name ending in ." .. table.concat(option.endings, ", ."):gsub(", (%S+)$", " or %1") or "the name of a file"
end

function types.wholes(text, option)
  local items = setting_types.items(text)
  local list = tables.map(items, function(item) return (number(item, option)) end)
  if #list == #items then return list end
  return nil, number_words(option):gsub("a whole number", "whole numbers") .. ", with commas between"
end

function types.list(text)
  local list = tables.found(text, "[^,%s]+")
  if list[1] then return list end
  return nil, "names with commas between"
end

function types.seeds(text, option, command) return option.none and text == "0" and {} or require "mneme.runs.parse_seeds"(command.name, text, option[1]) end

function types.size(text)
  local w, h = text:match "^(%d+)x(%d+)$"
  w, h = tonumber(w), tonumber(h)
  if w and w >= 320 and h >= 240 and w <= 7680 and h <= 4320 then return { w, h } end
  return nil, "WIDTHxHEIGHT in pixels, 320x240 .. 7680x4320"
end

---Refuse the value of an option.
---@param hint string?
function options.refuse(command, option, text, expected, hint)
  errors.raise(("%s: %s=%s, expected %s"):format(command.name, option[1], text, expected), { status = 2, setting = option[1], given = text,
    expected = expected, hint = hint or did_you_mean.hint(option[1] .. " =", text) or option.hint })
end

---Set an option from a text, or an error that names what was given and what is expected.
---@param o table gets the value
function options.set(command, o, option, text)
  local value, expected, near = types[option.type](text, option, command)
  if value == nil then options.refuse(command, option, text, expected, near and ("did you mean '%s'?"):format(near)) end
  if option.set then option.set(o, value, option, command, text) else o[option[1]] = value end
end

-- ---- options that several commands have ----

local function put_size(o, value) o.width, o.height = value[1], value[2] end

local function threads(unless)
  return { "threads", "CPU threads", type = "whole", range = { 1, 2 ^ 31 - 1 }, unless = unless, example = "2", set = function(o, n)
    o.threads = n
    engine.check(engine.C.mn_set_threads(engine.ctx, n))
  end }
end

---Options of commands that play a stored agent, that draw, that read stored code.
options.common = {
  seed = { "seed", "which episodes: number k begins with seed + k; mneme eval seed=N plays others", type = "whole", default = 12345 },
  greedy = { "greedy", "take the most probable action instead of sampling", type = "switch", default = false },
  best = { "best", "the best checkpoint instead of the newest", type = "switch", default = false },
  checkpoint = { "checkpoint", "the checkpoint at this step instead of the newest", type = "whole", example = "4096" },
  num_envs = { "num_envs", "environments that are stepped together", type = "whole", range = { 1 }, unless = "64", example = "64" },
  threads = threads "all processors",
  threads_that_pay = threads "as many as pay, tried while it measures",           -- learn/thread_choice.lua
  device = { "device", "where it is computed: cpu or cuda", type = "text", example = "cpu", set = function(o, device)
    o.device = device
    engine.open(device)
  end },
  size = { "size", "width and height: of a picture in pixels, of a window in points", type = "size", example = "1280x800", set = put_size },
  theme = { "theme", "colours", type = "choice", choices = { "dark", "light" } },
  scale = { "scale", "pixels for each of the design: 2 on a screen of twice as many; without it a window takes its screen's",
    type = "number", range = { 1, 4 } },
}
options.web = { "web", "in place of a window pages for a browser: 1, or the port on this machine; it prints a link, and how to open it from another",
  type = "whole", range = { 0, 65535 }, example = "1", set = function(o, port) o.web = port > 0 and port or nil end }

---Options and lists of options as one list.
---@return Option[]
function options.join(...)
  local list = {}
  for _, part in ipairs { ... } do
    for _, option in ipairs(type(part[1]) == "table" and part or { part }) do list[#list + 1] = option end
  end
  return list
end

---Options of a command that plays a stored agent, and its argument.
options.played = { options.common.seed, options.common.greedy, options.common.best, options.common.checkpoint }
options.agent = options.join(options.played, options.common.threads_that_pay)
options.run = { { "folder", "RUN", "a run's folder", noun = "run" } }

---@param n integer default
---@return Option
function options.episodes(n) return { "episodes", "how many episodes", type = "whole", range = { 1 }, default = n } end

local function change(name, meaning, example)
  return { name, meaning, type = "text", many = true, example = example, set = function(o, text, option, command)
    o.list = o.list or {}
    require("mneme.insight.episodes.intervention_options").read(o.list, option[1], text, command.name)
  end }
end

---What is done to a memory or to the world at a step; several, with commas between or repeated, apply at the same step.
options.interventions = {
  change("erase", "set a part of the memory to its initial value: all, layers.2, layers.2.head.1, a state's name", "layers.0"),
  change("swap", "set a part of the memory to that of another episode", "layers.0"),
  change("hold", "a part of the memory keeps what it holds before step `at`: what did it lose later?", "layers.0"),
  change("force", "clamp a gate (layers.0.beta, layers.0.head.1.beta) from step `at` on", "layers.0.beta:0.5"),
  change("freeze", "keep a gate as it is from step `at` on", "layers.0.beta"),
  change("set", "set a fact of the environment (mneme help ENV lists them)", "cue:1"),
  change("shift", "add to a fact of the environment", "position:1"),
  change("flip", "flip a fact of the environment; 1: the first", "cue"),
  { "for", "steps that hold, force and freeze last", type = "whole", range = { 1 }, unless = "to the end", example = "10" },
}

---Options of a figure in a file.
options.drawing = {
  { "width", "width of a figure, in mm, cm, in, pt or pixels", type = "text", example = "84mm",
    pattern = "^%d+%.?%d*%s*%a*$", expected = "40mm to 1000mm as in 84mm, 3.3in, 240pt or 600 (pixels)" },
  { "font", "font of a figure", type = "text", example = "Times" },
  { "title", "of a figure: 0: without title and note", type = "switch" },
  { "panels", "of a figure: a panel for each line", type = "switch", unless = "where lines are many" },
}

---Options of benchmarks.
options.bench = {
  threads = { "threads", "CPU threads", type = "whole", range = { 1 }, default = 1 },
  rounds = { "rounds", "rounds, of which the median counts", type = "whole", range = { 1 }, default = 5 },
  torch = { "torch", "a Python with PyTorch, to put next to it", type = "text", example = "python3" },
}

local stored_code = {
  { "use", "changed code and data: stored: the run's own copies (not of data beyond 1 MiB); now: the files as they are",
    type = "choice", choices = { "stored", "now" }, set = function(_, value) run_sources.choice = value end },
  { "trust", "run any code; without it only Mneme's own, what the command line names, and the code of your own runs on this machine",
    type = "switch", set = function(_, value) require("mneme.base.trusted_code").trusted = value end },
}
local stored_by_run = { setmetatable({ with = "resume" }, { __index = stored_code[1] }), stored_code[2] }

-- ---- what a command has ----

---The options of a command: its own, and those of every command that reads stored code.
---@return Option[]
function options.of(command)
  local list = { unpack(command.options or {}) }
  for _, option in ipairs(command.loads and (command.name == "run" and stored_by_run or stored_code) or {}) do list[#list + 1] = option end
  return list
end

---@return table<string, Option>
function options.by_name(command)
  local map = {}
  for _, option in ipairs(options.of(command)) do map[option[1]] = option end
  return map
end

---@return string[] names sorted
function options.names(command) return tables.keys(options.by_name(command)) end

---Does a command take such an argument: "RUN", "STUDY", "SCENE"?
function options.takes(command, what)
  for _, argument in ipairs(command.arguments or {}) do if argument[2]:find("%f[%u]" .. what .. "%f[%U]") then return true end end
  return false
end

---The values that completion offers; {} for others than choices.
function options.values(option) return option.type == "switch" and { "0", "1" } or option.choices or {} end

-- ---- shown ----

local of_type = { switch = "1", folder = "FOLDER", run = "RUN", size = "1280x800", seeds = "3..7", text = "TEXT", list = "A,B" }

---A value of an option, as help shows and the tests read it.
function options.example(option)
  if option.example then return option.example end
  if option.type == "switch" then return option.default == true and "0" or "1" end
  if option.default ~= nil and type(option.default) ~= "table" then return setting_types.show(option.default) end
  if option.choices then return option.choices[1] end
  if option.type == "file" then return "FILE" .. (option.endings and "." .. option.endings[1] or "") end
  return of_type[option.type] or setting_types.show((option.range or {})[1] or 1)
end

-- What it means, which values it takes, and what is done without it.
local function meaning_of(option)
  local more = {}
  if option.choices then more[1] = table.concat(option.choices, " ")
  elseif option.endings then more[1] = "." .. table.concat(option.endings, " .")
  elseif (option.range or {})[2] and option.range[2] < 2 ^ 24 then more[1] = ("%s..%s"):format(setting_types.show(option.range[1]),
    setting_types.show(option.range[2])) end
  if option.unless then more[#more + 1] = "default: " .. option.unless
  elseif option.default ~= nil and type(option.default) ~= "boolean" and type(option.default) ~= "table" then
    more[#more + 1] = "default " .. setting_types.show(option.default)
  elseif option.default == true then more[#more + 1] = "default 1" end
  if option.with then more[#more + 1] = ("with %s="):format(option.with) end
  return option[2] .. (more[1] and " (" .. table.concat(more, "; ") .. ")" or "")
end

---The options as rows { "key=example", what it means }.
---@return string[][]
function options.rows(list)
  return tables.map(list, function(option) return { option[1] .. "=" .. options.example(option), meaning_of(option) } end)
end

---"mneme export RUN to=FILE [key=value ...]"
function options.usage(command)
  local parts, own, more = { "mneme " .. command.name }, options.of(command), command.others ~= nil
  for _, argument in ipairs(command.arguments or {}) do
    local shown = argument[2] .. (argument.several and " ..." or "")
    parts[#parts + 1] = argument.optional and "[" .. shown .. "]" or shown
  end
  for _, option in ipairs(own) do
    if option.required then parts[#parts + 1] = option[1] .. "=" .. options.example(option) else more = true end
  end
  return table.concat(parts, " ") .. (more and " [key=value ...]" or "")
end

local other_settings = { script = "Other keys are settings of the script: mneme run SCRIPT --help lists them.", core = "Other keys are settings of the core.",
  env = "Other keys are settings of the environment or data set: corridor=200, or env.corridor=200." }

---What a command is, and its options.
function options.section(command)
  local text = { layout.prose(options.usage(command)), "\n", layout.prose(command.doc) }
  if command.about then text[#text + 1] = layout.prose(command.about) end
  local rows = tables.map(command.arguments or {}, function(argument) return argument[3] and { argument[2], argument[3] } end)
  for _, row in ipairs(options.rows(command.options or {})) do rows[#rows + 1] = row end
  if rows[1] then text[#text + 1] = "\n" .. layout.columns(rows, 26) end
  return table.concat(text)
end

---The help of a command.
function options.page(command)
  local text = { "usage: ", options.section(command) }
  if command.others then text[#text + 1] = "\n" .. layout.prose(other_settings[command.others]) end
  if command.loads then text[#text + 1] = "\nof a stored run or study\n" .. layout.columns(options.rows(stored_code), 26) end
  if command.more then text[#text + 1] = "\n" .. command.more() end
  return table.concat(text)
end

---All commands and their options as Markdown: docs/commands.md.
function options.markdown(list)
  local out = { "# Commands\n\nWhat each command takes; `mneme help commands` prints this page.\n" }
  local function rows(of)
    if #of > 0 then out[#out + 1] = "| option | meaning |\n|---|---|" end
    for _, row in ipairs(options.rows(of)) do out[#out + 1] = ("| `%s` | %s |"):format(row[1]:gsub("|", "\\|"), (row[2]:gsub("|", "\\|"))) end
    if #of > 0 then out[#out + 1] = "" end
  end
  local function put(level, of)
    for _, command in ipairs(of) do
      out[#out + 1] = ("%s %s\n\n`%s`\n\n%s.\n"):format(level, command.name, options.usage(command), (command.doc:gsub("^%l", string.upper)))
      rows(command.options or {})
      put(level .. "#", command.parts and command.parts() or {})
    end
  end
  put("##", list)
  out[#out + 1] = "## Commands that read stored runs\n"
  rows(stored_code)
  return (table.concat(out, "\n"):gsub("\n+$", "\n"))
end

-- A line of text: backslashes, dashes and a leading dot are escaped for man.
local function plain(text) return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1")) end

---The same as a manual page in man(7) format: manual_page.txt, with the commands in their place.
function options.man(list)
  local out = {}
  for _, c in ipairs(list) do
    out[#out + 1] = (".TP\n.B %s\\fR%s\n%s\n.RS"):format(c.name, plain(options.usage(c):sub(#c.name + 7)), plain(c.doc))
    for line in (c.about or ""):gmatch "[^\n]+" do out[#out + 1] = plain(line) end
    for _, row in ipairs(options.rows(options.of(c))) do out[#out + 1] = (".TP\n.B %s\n%s"):format(plain(row[1]), plain(row[2])) end
    out[#out + 1] = ".RE"
  end
  return (registry.text "commands/manual_page.txt":gsub("{{(%l+)}}", { version = version, commands = table.concat(out, "\n") }))
end

-- ---- the commands of mneme, in the order of help ----

local commands = { names = { "run", "eval", "view", "play", "diff", "intervene", "credit", "probe", "where", "sweep", "report", "compare",
  "export", "new", "check", "bench", "list", "doctor", "help", "complete" } }
---@return Command? nil: there is none
function commands.find(name) return tables.has(commands.names, name) and require("mneme.commands." .. name) or nil end

---@param parts boolean? benchmarks, too, and what else is a part of a command
---@return Command[]
function commands.all(parts)
  local list = {}
  for _, name in ipairs(commands.names) do
    local command = commands.find(name)
    list[#list + 1] = command
    for _, part in ipairs(parts and command.parts and command.parts() or {}) do list[#list + 1] = part end
  end
  return list
end

options.commands = commands

return options
