-- given_settings.lua -- the arguments of a script as pairs of key and text, with who gave each: the user on the command line, where no line of
-- a script is to blame, or the study whose run this is, whose mistakes are in its own file.
local errors = require "mneme.base.errors"
local learner_settings = require "mneme.runs.learner_settings"
local lazy = require "mneme.base.lazy"
local unknown_settings = lazy "mneme.runs.unknown_settings"
local key_lines = lazy "mneme.base.key_lines"
local setting_types = require "mneme.base.setting_types"
local trusted_code = require "mneme.base.trusted_code"

local given_settings = {}
local nothing = { keys = {}, words = {} }
local preset = nothing           -- what the study gave: keys, words, and where it is declared
local typed = {}                 -- key -> the name that the command line has for it

---The next config gets these arguments from a study, not from the user.
---@param list string[] key=value
function given_settings.note_preset(list)
  preset = { keys = {}, words = {}, where = errors.position() }
  for _, word in ipairs(list) do preset.keys[word:match "^[%w_]*"], preset.words[word] = true, true end
end

---From now on all words are the user's.
function given_settings.forget_preset() preset = nothing end

---Did the study give this key?
function given_settings.of_study(key) return preset.keys[key] or false end

---Call f for a word: a mistake that it finds is where that word was given.
---@param pair table? { key, text, of_study = boolean }; nil: the command line
---@return any ... what f gives
function given_settings.blame(pair, f, ...)
  local list = { pcall(errors.of_command_line, f, ...) }
  if list[1] then return unpack(list, 2) end
  local e = list[2]
  if e.status == 2 and not e.where then
    local key = e.message:match "^[%a_][%w_]*"
    if pair and pair.of_study then e.where = key_lines.of_key(preset.where, pair[1]:match "^[^.]+")
    elseif key and typed[key] then
      e.message, e.hint = typed[key] .. e.message:sub(#key + 1), ("%s is called %s here"):format(typed[key], key) .. (e.hint and "; " .. e.hint or "")
    end
  end
  error(e, 0)
end

---The arguments with CleanRL's names of settings replaced by those here, where neither script nor learner has a setting of that name.
---@param defaults table what the script declares
---@param own table<string, any> settings of the learner, or of all learners where the script chooses it
function given_settings.renamed(arguments, defaults, own)
  local list = {}
  typed = {}
  for i, word in ipairs(arguments) do
    local name = setting_types.pair(word)
    name = name and name:gsub("%-", "_")
    local key = name and learner_settings.cleanrl[name]
    key = key and defaults[name] == nil and own[name] == nil and key
    if key then typed[key] = name end
    list[i] = key and key .. word:match "=.*$" or word
  end
  return list
end

-- The key and text of a word; nil: it asks for help.
local function key_and_text(word, after, schema)
  local key, text = setting_types.pair(word)
  if not key then
    key = word:match "^%-%-([%a_][%w_%-]*)$"
    text = "1"
    if not key or key == "help" then
      if word == "-h" or word == "--help" then return nil end
      local problem, hint = unknown_settings.of_word(word, after, schema)
      errors.usage(problem or "'" .. word .. "' is not a setting", hint or "expected key=value; --help lists the keys")
    end
    local name = key:gsub("%-", "_")
    key = schema[name] and key or learner_settings.cleanrl[name] or key
    local entry = schema[key:gsub("%-", "_"):match "^[^.]+"]
    local like = entry and (entry.default == 0 or entry.default == 1) and (entry.about.range or {})[2] == 1 or entry and type(entry.default) == "boolean"
    if entry and not like then errors.usage("'" .. word .. "' has no value", "write " .. key .. "=VALUE") end
  end
  key = key:gsub("%-", "_")
  local entry = schema[key]
  if key == "learner" and not entry then
    errors.usage("learner=" .. text .. ": this script chooses its learner itself",
      'mn.config { learner = "a2c" } and mn.learner(cfg, env, agent) make it a setting')
  elseif key == "size" and not entry then errors.usage("size=" .. text .. ": this script sizes its cores itself", "parameters=N is its setting")
  end
  local hint = not schema[key:match "^[^.]+"] and unknown_settings.of_key(key, text, schema)
  if hint then errors.usage("unknown setting '" .. key .. "'", hint) end
  return key, text
end

---Words as { { "core.eta", "8", of_study = false }, ... }, names of things that have options first; and whether --help is among them.
---@param schema table<string, table>
---@return table[] given
---@return boolean help
function given_settings.read(arguments, schema)
  local names, rest, help = {}, {}, false
  for i, word in ipairs(arguments) do
    local of_study = preset.words[word] or false
    local key, text = given_settings.blame({ word:match "^[%w_.]*", of_study = of_study }, key_and_text, word, { unpack(arguments, i + 1) }, schema)
    if not key then help = true
    else
      local list = schema[key] and setting_types.is_named(schema[key].default) and names or rest
      list[#list + 1] = { key, text, of_study = of_study }
    end
  end
  for _, pair in ipairs(rest) do names[#names + 1] = pair end
  return names, help
end

-- ---- keys of mn.config ----

-- Does code mention a key other than by setting it?
local function mentions(code, key)
  for after in code:gmatch("%f[%w_]" .. key .. "%f[^%w_]%s*([^\n]?[^\n]?)") do
    if not after:find "^=[^=]" and after ~= "=" then return true end
  end
  return false
end

---Refuse a key of mn.config that is nearly one that Mneme reads, such as num_stpes, where nothing reads it: training would have the default
---instead.  A script may have keys of its own: those that its code reads, or that have a text in `about`.
---@param own string[] keys that the script declares and Mneme does not know
---@param about table<string, any> texts of settings
---@param known string[] the keys that Mneme reads and the script does not declare
function given_settings.check_keys(own, about, known)
  local where, code = errors.position(), nil
  for _, key in ipairs(own) do
    local unsure = about[key] == nil and where
    if unsure and not code then
      local texts = { errors.text_of("@" .. where:match "^(.*):%d+$") }
      for _, file in ipairs((trusted_code.list())) do texts[#texts + 1] = file.text end
      code = table.concat(texts, "\n"):gsub("%-%-[^\n]*", "")
    end
    local near = unsure and code ~= "" and not mentions(code, key) and errors.nearest(key, known)
    if near and math.abs(#near - #key) <= math.max(1, math.floor(#key / 3)) then                     -- "stop" is no slip of "stop_score"
      errors.raise(("unknown setting '%s'; did you mean '%s'?"):format(key, near), { status = 2, where = key_lines.of_key(where, key),
        hint = ("nothing reads %s here; a setting of your own gets a text: mn.config({ ... }, { %s = \"what it is\" })"):format(key, key) })
    end
  end
end

return given_settings
