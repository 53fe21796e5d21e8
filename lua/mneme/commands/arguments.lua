-- arguments.lua -- the one reader of the command line: what people type becomes key=value words, for every command.  --key value,
-- --key=value, -key, key = value and --flag all mean key=value; what is a run by its name alone (demo, as `mneme list runs` prints it)
-- becomes its folder.  A command says in command_table.lua which of its settings are switches and what its other words are.
local config = require "mneme.runs.config"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local learner_settings = require "mneme.runs.learner_settings"
local meanings = require "mneme.base.meanings"

local arguments = {}

-- Switches that every script has; a script's own are known when it is read (runs/given_words.lua).
local switches = {}
for _, s in ipairs(config.standard) do switches[s[1]] = type(s[2]) == "boolean" or nil end
for key, about in pairs(learner_settings.keys) do switches[key] = about.switch end
for _, key in ipairs { "debug", "profile" } do switches[key] = true end

local truths = { ["0"] = true, ["1"] = true, ["true"] = true, ["false"] = true, yes = true, no = true, on = true, off = true,
  nan = true, grad = true, jit = true }
local KEY = "^%-*([%a_][%w_.%-]*)"
local has_values = { checkpoints = true, only = true }                 -- switches that may name something, too
local repeats = { intervene = true, view = true, play = true, bench = true }
local numeric = { ["0"] = "0", ["1"] = "1", no = "0", off = "0", ["false"] = "0", yes = "1", on = "1", ["true"] = "1" }

-- Refuse names that end in a dot, values of a command's own switches that are neither yes nor no, and a setting that is given twice.
local function check_words(command, list)
  local given, own = {}, command.switches or {}
  for i, word in ipairs(list) do
    local key, value = word:match "^([%a_][%w_.]*)=(.*)$"
    if key and (key:find "%.$" or key:find("..", 1, true)) then
      errors.usage(("%s: %s: a name is missing at a dot"):format(command.name, word),
        "did you mean " .. key:gsub("%.+", "."):gsub("%.$", "") .. "=" .. value .. "?")
    end
    if key and (own[key] and not has_values[key] or key == "list" and (command.name == "sweep" or command.name == "tune")) then
      if not numeric[value:lower()] then errors.usage(("%s: %s=%s, expected 0 or 1"):format(command.name, key, value)) end
      list[i] = key .. "=" .. numeric[value:lower()]
    end
    if key and given[key] and not command.scripts and not repeats[command.name] then
      errors.usage(("%s: %s is given twice: %s and %s"):format(command.name, key, given[key], word), "write one of them")
    end
    if key then given[key] = word end
  end
end

-- The folder of a run or study by its name alone.
local function place(word)
  local plain = word:gsub("(.)/+$", "%1")
  if files.is_folder(plain) or files.is_file(plain) then return word end
  for _, name in ipairs { "/config.json", "/study.json" } do
    if files.is_file("runs/" .. plain .. name) then return "runs/" .. plain end
  end
  return word
end

local newests, missing = { latest = true, newest = true, last = true, recent = true }, nil

-- Is a name that may be a run's already something else: a scene, or a script's environment?
local function is_scene(word)
  for _, name in ipairs(require("mneme.base.registry").names "scenes") do if name == word then return true end end
end

---A command's words as key=value words and others.
---@param command table of command_table.lua: { name, switches = { key = true }, places = "runs" or nil }
---@param words string[]
---@return string[]
function arguments.read(command, words)
  local list, i = {}, 1
  local own = command.switches or {}
  local function is_switch(key) if command.scripts then return switches[key] or own[key] end return own[key] end
  local function value_at(k)                       -- a word that can be the value of the one before it
    local word = words[k]
    return word and (not word:find "^%-" or tonumber(word)) and not (word:find(KEY .. "=") and not word:find "^[^=]*/") and word or nil
  end
  local function run_value(key, value)
    if key == "resume" or key == "against" or command.name == "intervene" and key == "donor" then
      if key == "resume" and not files.is_folder(place(value)) then missing(value) end
      return place(value)
    end
    return value
  end
  while words[i] do
    local word = words[i]
    local key, value = word:match(KEY .. "==?(.*)$")
    local bare = word:match(KEY .. "$")
    if word:find "^%-%-?h$" or word:find "^%-%-?help$" then list[#list + 1] = "--help"
    elseif key and not (command.places and word:find "^[%a_]" and files.is_folder(place(word))) then
      if value == "" and command.scripts and value_at(i + 1) and words[i + 1] ~= "=" and list[1] then i, value = i + 1, words[i + 1] end
      key = key:gsub("%-", "_")
      list[#list + 1] = key .. "=" .. run_value(key, value)
    elseif bare and words[i + 1] == "=" and words[i + 2] then                          -- key = value
      list[#list + 1] = bare:gsub("%-", "_") .. "=" .. run_value(bare, words[i + 2])
      i = i + 2
    elseif bare and (words[i + 1] or ""):find "^=[^=]" then                            -- key =value
      list[#list + 1] = bare:gsub("%-", "_") .. words[i + 1]
      i = i + 1
    elseif bare and word:find "^%-" then                                               -- --key value, --flag
      local name = bare:gsub("%-", "_")
      local off = name:match "^no_(.*)$"
      local after = value_at(i + 1)
      if off and is_switch(off) then list[#list + 1] = off .. "=0"
      elseif is_switch(name) and not (after and truths[after:lower()]) or not after then list[#list + 1] = name .. "=1"
      else list[#list + 1], i = name .. "=" .. run_value(name, after), i + 1 end
    elseif own[word] and #list > 0 and not files.is_folder(word) then list[#list + 1] = word .. "=1"      -- eval RUN greedy
    else
      if command.places and not (command.name == "view" and is_scene(word)) then word = place(word) end
      list[#list + 1] = word
    end
    i = i + 1
  end
  check_words(command, list)
  if command.places then arguments.check_places(command, list) end
  return list
end

-- A run that there is not: which was meant, or which is the newest.
function missing(word)
  local name, names = word:match "([^/]*)/*$", files.is_folder "runs" and files.list "runs" or {}
  local near, last = errors.nearest(name, names), -1
  for _, each in ipairs(names) do                                          -- tmaze, for tmaze-1 and tmaze-2
    local n = each:sub(1, #name + 1) == name .. "-" and tonumber(each:sub(#name + 2):match "^%d+$")
    if n and n > last then near, last = each, n end
  end
  local argument = meanings.hint("setting of runs", word)
  local newest = not near and names[1] and require("mneme.commands.run_list").rows "runs"[1]
  errors.usage(word .. ": there is no such run", near and "did you mean runs/" .. near .. "?" or argument
    or newest and (newests[name] and "did you mean the newest, %s?" or "the newest is %s; mneme list runs"):format(newest.path) or "mneme list runs")
end

---Refuse a run that there is not, and a part of a run's folder, before anything else is looked at: what was meant is named.
---@param command table
---@param list string[]
function arguments.check_places(command, list)
  for _, word in ipairs(list) do
    local other = word:find "=" or word:find "^%-" or command.name == "view" and is_scene(word)
    local run = word:match "^(.*)/checkpoints%f[/%z]" or word:match "^(.*)/episodes/*$" or word:match "^(.*)/config%.json$"
    if run and command.name ~= "check" and not other and files.is_file(run .. "/config.json") then
      local step = word:match "/step%-(%d+)"
      errors.usage(word .. ": a part of a run, expected its folder", "did you mean " .. run .. (step and " checkpoint=" .. step or "") .. "?")
    end
    if not other and not files.is_folder(word) and not files.is_file(word) and not word:find "%.%w+$" then missing(word) end
  end
end

return arguments
