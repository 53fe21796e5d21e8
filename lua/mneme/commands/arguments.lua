-- arguments.lua -- the one reader of the command line: what people type becomes the options that a command declares (options.lua).
-- --key value, --key=value, -key, key = value and --flag all mean key=value; what is a run by its name alone (demo, as `mneme list runs`
-- prints it) becomes its folder.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local lazy = require "mneme.base.lazy"
local did_you_mean = lazy "mneme.base.did_you_mean"
local options = require "mneme.commands.options"
local tables = require "mneme.base.tables"
local terminal = require "mneme.base.terminal"

local arguments = {}

-- ---- words ----

-- Switches that every script has; a script's own are known when it is read (runs/given_settings.lua).
local function switches_of_scripts()
  local switches = { debug = true, profile = true }
  for _, s in ipairs(require("mneme.runs.config").standard) do switches[s[1]] = type(s[2]) == "boolean" or switches[s[1]] end
  for key, about in pairs(require("mneme.runs.learner_settings").keys) do switches[key] = about.switch end
  return switches
end

local truths = { ["0"] = true, ["1"] = true, ["true"] = true, ["false"] = true, yes = true, no = true, on = true, off = true,
  nan = true, grad = true, jit = true }
local KEY = "^%-*([%a_][%w_.%-]*)"

-- The folder of a run or study by its name alone.
local function place(word)
  local plain = word:gsub("(.)/+$", "%1")
  if files.is_folder(plain) or files.is_file(plain) then return word end
  for _, name in ipairs { "/config.json", "/study.json" } do
    if files.is_file("runs/" .. plain .. name) then return "runs/" .. plain end
  end
  return word
end

local newests = { latest = true, newest = true, last = true, recent = true }

-- A run that there is not: which was meant, or which is the newest.  Next to another word it may be a setting: eval RUN episodes 10.
local function missing(word, beside)
  local name, names = word:match "([^/]*)/*$", files.is_folder "runs" and files.list "runs" or {}
  local near, last = errors.nearest(name, names), -1
  for _, each in ipairs(names) do                                          -- tmaze, for tmaze-1 and tmaze-2
    local n = each:sub(1, #name + 1) == name .. "-" and tonumber(each:sub(#name + 2):match "^%d+$")
    if n and n > last then near, last = each, n end
  end
  local argument = word:find "^[^=]+,[^=]+$" and "several are written apart: " .. word:gsub(",+", " ") or beside and did_you_mean.hint("setting of runs", word)
  local newest = not near and names[1] and require("mneme.commands.run_list").rows "runs"[1]
  newest = newest and terminal.shell_quote(newest.path)
  errors.usage(word .. ": there is no such run", near and "did you mean runs/" .. near .. "?" or argument
    or newest and (newests[name] and "did you mean the newest, %s?" or "the newest is %s; mneme list runs"):format(newest) or "mneme list runs")
end

-- Is a name that may be a run's already something else: a scene?
local function is_scene(command, word)
  return options.takes(command, "SCENE") and tables.has(require("mneme.base.registry").names "scenes", word)
end

local function asks_help(word) return word:find "^%-%-?h$" or word:find "^%-%-?help$" end

-- What was typed, as { key, text, word = "key=text" } and { word = another }.
local function items_of(command, words)
  local list, i = {}, 1
  local own, scripts, places = options.by_name(command), command.others == "script", options.takes(command, "RUN") or options.takes(command, "STUDY")
  local switches = scripts and switches_of_scripts() or {}
  local function is_switch(key) return own[key] and own[key].type == "switch" or switches[key] end
  local function value_at(k)                       -- a word that can be the value of the one before it
    local word = words[k]
    return word and (not word:find "^%-" or tonumber(word)) and not (word:find(KEY .. "=") and not word:find "^[^=]*/") and word or nil
  end
  local function add(key, text)
    key = key:gsub("%-", "_")
    if own[key] and own[key].type == "run" or scripts and key == "resume" then
      text = place(text)
      if key == "resume" and not files.is_folder(text) then missing(text) end
    end
    if key:find "%.$" or key:find("..", 1, true) then
      errors.usage(("%s: %s=%s: a name is missing at a dot"):format(command.name, key, text),
        "did you mean " .. key:gsub("%.+", "."):gsub("%.$", "") .. "=" .. text .. "?")
    end
    list[#list + 1] = { key, text, word = key .. "=" .. text }
  end
  while words[i] do
    local word = words[i]
    local key, value = word:match(KEY .. "==?(.*)$")
    local bare = word:match(KEY .. "$")
    if asks_help(word) then list[#list + 1] = { word = "--help" }
    elseif key and not (places and word:find "^[%a_]" and files.is_folder(place(word))) then
      if value == "" and scripts and value_at(i + 1) and words[i + 1] ~= "=" and list[1] then i, value = i + 1, words[i + 1] end
      add(key, value)
    elseif bare and words[i + 1] == "=" and words[i + 2] then                          -- key = value
      add(bare, words[i + 2])
      i = i + 2
    elseif bare and (words[i + 1] or ""):find "^=[^=]" then                            -- key =value
      add(bare, words[i + 1]:sub(2))
      i = i + 1
    elseif bare and word:find "^%-" then                                               -- --key value, --flag
      local name = bare:gsub("%-", "_")
      local off = name:match "^no_(.*)$"
      local after = value_at(i + 1)
      if off and is_switch(off) then add(off, "0")
      elseif is_switch(name) and not (after and truths[after:lower()]) then add(name, "1")
      elseif not after and own[name] then
        errors.usage(("%s: '%s' has no value"):format(command.name, word),
        ("write %s=%s"):format(name, own[name].example or "VALUE"))
      elseif not after and scripts and list[1] then list[#list + 1] = { word = "--" .. name }      -- the script knows whether it needs one
      elseif not after then add(name, "1")
      else
        add(name, after)
        i = i + 1
      end
    elseif not scripts and is_switch(word) and #list > 0 and not files.is_folder(word) then add(word, "1")      -- eval RUN greedy
    else list[#list + 1] = { word = places and not is_scene(command, word) and place(word) or word } end
    i = i + 1
  end
  return list
end

-- ---- options ----

-- Refuse a run that there is not, and a part of a run's folder, before anything else is looked at: what was meant is named.
local function check_place(command, word, beside)
  if word:find "^%-" or is_scene(command, word) then return end
  local run = word:match "^(.*)/checkpoints%f[/%z]" or word:match "^(.*)/config%.json$" or not options.takes(command, "FILE") and word:match "^(.+)/[^/]+/*$"
  if run and command.name ~= "check" and files.is_file(run .. "/config.json") and not files.is_file(word .. "/config.json") then
    local step = word:match "/step%-(%d+)"
    errors.usage(word .. ": a part of a run, expected its folder", "did you mean " .. run .. (step and " checkpoint=" .. step or "") .. "?")
  end
  if not files.is_folder(word) and not files.is_file(word) and not word:find "%.%w+$" then missing(word, beside) end
end

-- Puts what is no key=value where the command's arguments have it.
local function position(command, o, list)
  local filled = 1
  for _, word in ipairs(list) do
    local argument = command.arguments and command.arguments[filled]
    if not argument then
      local before = command.arguments and command.arguments[1]
      if not before then errors.usage(("%s: '%s' is not expected"):format(command.name, word), options.usage(command)) end
      local first = o[before[1]]
      errors.usage(("%s: one %s, got '%s' and '%s'"):format(command.name, before.noun, first, word), options.takes(command, "RUN")
        and ("one after the other; mneme compare %s %s compares them"):format(first, word) or options.usage(command))
    end
    if argument[2]:find "RUN" or argument[2]:find "STUDY" then check_place(command, word, list[2] ~= nil) end
    if argument.several then table.insert(o[argument[1]], word)
    else o[argument[1]], filled = word, filled + 1 end
  end
  for _, argument in ipairs(command.arguments or {}) do
    local value = o[argument[1]]
    if not argument.optional and (value == nil or argument.several and #value == 0) then
      errors.usage(("%s: which %s?"):format(command.name, argument.noun), command.ask or options.usage(command))
    end
  end
end

-- The setting of an environment or data set: it may have its name in front, as the script that trained the run may want it.
local function env_setting(command, o, item)
  local key, text = item[1]:gsub("^env%.", ""):gsub("^dataset%.", ""), item[2]
  if key:find(".", 1, true) then errors.usage(("unknown setting '%s'"):format(key), "a setting of the environment has no parts: corridor=20") end
  if text:find "^[%d.]+,[%d.,]+$" then
    errors.raise(("%s: %s=%s, expected one value"):format(command.name, key, text), { status = 2, setting = key, given = text, expected = "one value",
      hint = "once for each: " .. key .. "=" .. text:match "^[^,]*" })
  end
  o.env_settings[key], o.items[#o.items + 1] = tonumber(text) or text, { key, text, word = key .. "=" .. text }
end

-- An option that there is not: what another program's word means, or the nearest one with its meaning.
local function unknown(command, key, own)
  local what, names = ("setting of %s"):format(command.name), options.names(command)
  local near = not did_you_mean.hint(what, key) and errors.nearest(key, names)
  if near then errors.usage(("unknown %s '%s'; did you mean '%s' (%s)?"):format(what, key, near, own[near][2])) end
  errors.unknown(what, key, names)
end

---Read a command line.
---@param words string[] what was typed after the command
---@return table o the value of each option that was given or has a default; the arguments under their names; all = all words as { key, text,
---  word = "key=text" } or { word = another }, words = their words; items and rest = those of them for a script (others = "script"),
---  core_settings = texts of a core's (others = "core"), env_settings = settings of an environment (others = "env"); help = true: --help was among
---  them, and nothing else was read
function arguments.read(command, words)
  local o, others, given = { words = {}, rest = {}, items = {}, env_settings = {}, core_settings = {} }, {}, {}
  if command.raw then
    o.words, o[command.arguments[1][1]] = words, words
    o.help = command.raw == "but help" and asks_help(words[1] or "") ~= nil
    return o
  end
  local items, own = items_of(command, words), options.by_name(command)
  o.all = items
  for i, item in ipairs(items) do
    o.words[i], given[item[1] or item.word] = item.word, item
    if item.word == "--help" and not (command.others == "script" and items[2]) then return { help = true, words = words } end
  end
  for _, argument in ipairs(command.arguments or {}) do if argument.several then o[argument[1]] = {} end end
  for key, option in pairs(own) do if option.default ~= nil then o[key] = option.default end end
  local seen, script = {}, command.others == "script"
  for _, item in ipairs(items) do
    local key, option = item[1], own[item[1]]
    if option and (not option.with or given[option.with]) and not (option.passes and item[2]:find(option.passes)) then
      if seen[key] and not option.many then
        errors.usage(("%s: %s is given twice: %s and %s"):format(command.name, key, seen[key], item.word), "write one of them")
      end
      seen[key] = item.word
      options.set(command, o, option, item[2])
    elseif key and command.others == "env" then env_setting(command, o, item)
    elseif script and (key or others[1]) then o.rest[#o.rest + 1], o.items[#o.items + 1] = item.word, item
    elseif key and command.others == "core" then o.core_settings[key:gsub("^core%.", "")] = item[2]
    elseif key then unknown(command, key, own)
    else others[#others + 1] = item.word end
  end
  position(command, o, others)
  for key, option in pairs(own) do
    if option.required and not seen[key] then
      errors.usage(("%s: %s= is missing"):format(command.name, key), options.usage(command))
    end
  end
  if seen.seed and command.draws then terminal.note(("note: %s: %s; their episodes are not the same"):format(seen.seed, command.draws)) end
  return o
end

---Run a command with what was typed after it.
---@return integer? status
function arguments.run(command, words) return command.run(arguments.read(command, words)) end

-- ---- settings of an environment ----

---Refuse settings that neither the command nor a run's environment has.  One in Lua has those of its script, which script_agent.lua refuses to
---change.
---@param path string the run
---@param given table<string, any> settings for the environment
function arguments.check_env(command, path, given)
  if not next(given) then return end
  local info, known, own = require("mneme.runs.run_folder").read_info(path), { time_limit = true }, options.names(command)
  local all = { unpack(own) }
  for _, env in ipairs(require("mneme.base.catalogue").list "envs") do
    if env.name == info.env then
      for key in ffi.string(require("mneme.base.engine").C.mn_env_params(env.index)):gmatch "([%w_]+)=" do known[key], all[#all + 1] = true, key end
    end
  end
  for key in pairs(info.env_of_script and info.config or {}) do known[key] = true end
  if #all == #own and not info.env_of_script then return end
  table.sort(all)
  for key in pairs(given) do
    if not known[key] then errors.unknown(("setting of %s and %s"):format(command.name, info.env), key, all) end
  end
end

---Refuse a run without episodes, and settings that nothing has.
---@param o table of read
---@param what string "to probe": what its episodes are for
function arguments.check_run(command, o, what)
  if require("mneme.runs.run_folder").read_info(o.folder).sequence_task then errors.usage(o.folder .. ": a run on sequences has no episodes " .. what) end
  arguments.check_env(command, o.folder, o.env_settings)
end

return arguments
