-- declaration_file.lua -- what a study declares, as data: STUDY/declaration.json holds its claims, metrics, figures, axes and texts, so that a report
-- of the folder alone needs no script to be run.
local check_declaration = require "mneme.lab.study.check_declaration"
local lfs = require "lfs"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local grid = require "mneme.lab.study.grid"
local json = require "mneme.base.json"
local authors_texts = require "mneme.lab.study.authors_texts"
local run_folder = require "mneme.runs.run_folder"
local script = require "mneme.runs.script"
local settings_diff = require "mneme.lab.study.settings_diff"
local tables = require "mneme.base.tables"
local setting_types = require "mneme.base.setting_types"

local declaration_file = {}
local numbers = { Infinity = math.huge, ["-Infinity"] = -math.huge }           -- as json.encode writes them

-- ---- Lua tables as JSON and back ----

-- A table with numbers and names as keys, such as { "gru", d_model = 32 }, is an object whose numbers are texts; a name that would read as a number,
-- such as "200" or "inf" of a metric, begins with '; functions are left out.
local function key_text(key) return type(key) == "string" and (tonumber(key) or key:find "^'") and "'" .. key or tostring(key) end
local function to_data(v)
  if type(v) == "function" then return nil end
  if type(v) ~= "table" then return v end
  local count, data = 0, {}
  for _ in pairs(v) do count = count + 1 end
  if count == #v then
    for i, item in ipairs(v) do data[i] = to_data(item) end
    return json.array(data)
  end
  for key, item in pairs(v) do data[key_text(key)] = to_data(item) end
  return data
end

local function from_data(v)
  if v == json.null then return nil end
  if type(v) ~= "table" then return numbers[v] or v end
  local t, array = {}, json.is_array(v)
  for key, item in pairs(v) do t[array and key or key:match "^'(.*)" or tonumber(key) or key] = from_data(item) end
  return t
end

-- ---- of a script ----

---@class Declaration
---@field path string? the script
---@field of string? the script of the experiment that the study is of
---@field spec table? what mn.study was given
---@field defaults table<string, any> the script's settings, flat
---@field texts { path: string, text: string, own: boolean, elsewhere: boolean }[] Markdown next to the scripts, the study's first;
---  elsewhere: of an experiment in another folder than the study

---What a script declares.
---@param core string? the word that chooses the runs' core: published values go with it
function declaration_file.by(path, core)
  local ok, survey = pcall(script.survey, path, { core })
  if not ok then survey = script.survey(path, {}) end               -- values of an axis have other names than cores
  local cfg, texts = tables.each(survey.cfg, setting_types.to_json), {}
  local of = survey.spec and survey.spec.of and script.locate(survey.spec.of)
  local function folder(lua) return lfs.attributes(lua:match "^(.*)/[^/]*$" or ".", "ino") end
  for _, lua in ipairs { path, of } do
    local beside = lua:gsub("%.lua$", "") .. ".md"
    if files.is_file(beside) then
      texts[#texts + 1] = { path = beside, text = (files.read(beside)), own = lua == path, elsewhere = folder(lua) ~= folder(path) }
    end
  end
  return { path = path, of = of, spec = survey.spec, defaults = settings_diff.flat(cfg), texts = texts }
end

-- ---- in a study's folder ----

local function file_of(study) return study .. "/declaration.json" end

---Writes a declaration into a study's folder, if that has another or none.
function declaration_file.write(study, declaration)
  local text = json.sealed.encode { script = declaration.path, of = declaration.of, spec = to_data(declaration.spec), defaults = to_data(declaration.defaults),
    texts = to_data(declaration.texts) }
  if not files.is_file(file_of(study)) or files.read(file_of(study)) ~= text then files.write(file_of(study), { text }) end
end

---Writes what a script declares into a study's folder, if that has no declaration.
function declaration_file.write_once(study, path, words)
  if files.is_file(file_of(study)) then return end
  local core = script.setting(words, "core")
  declaration_file.write(study, declaration_file.by(path, core and "core=" .. core))
end

local SHAPE = { of = "string", spec = { title = "string", question = "string", of = "string", jobs = "number", ["*"] = "table" },
  defaults = {}, texts = { { path = "string", text = "string" } } }

---Reads the declaration that a study's folder holds; nil: it has none.  An error where no script can have given it.
---@param study string the folder
---@return Declaration?
function declaration_file.read(study)
  local path = file_of(study)
  if not files.is_file(path) then return nil end
  local data, problem = json.decode((files.read(path)), path)
  if problem then errors.fail(problem) end
  problem = run_folder.fault(data, SHAPE, "")
  local read = not problem and from_data(data) or {}
  local spec = read.spec
  if spec then
    local ok, wrong = xpcall(function()
      grid.check(spec.axes or {})
      authors_texts.check(spec.report or {})
      spec.axes = spec.axes or {}
      check_declaration.study(spec)
    end, errors.handler)
    problem = not ok and wrong.message
  end
  for _, text in ipairs(read.texts or {}) do if not text.path or not text.text then problem = "a text has no path and text" end end
  if problem then errors.fail(("%s: damaged: %s"):format(path, problem)) end
  return { of = read.of, spec = spec, defaults = read.defaults or {}, texts = read.texts or {} }
end

-- ---- claims, before and after ----

---The claims of a study, as study.json keeps them from its beginning.
---@return table[]? nil: there are none
function declaration_file.claims(spec) return spec and spec.claims and #spec.claims > 0 and to_data(spec.claims) or nil end

---Claims that were not written so when the study began.
---@param before table[]? of study.json; nil: it keeps none
---@param spec table? what the study declares now
function declaration_file.changed(before, spec)
  local function by_id(claims)
    local texts = {}
    for i, claim in ipairs(claims or {}) do texts[setting_types.show(claim.id or i)] = json.encode(claim) end
    return texts
  end
  local then_, now = by_id(before), by_id(declaration_file.claims(spec))
  return tables.map(tables.keys(tables.merged(then_, now)), function(id)
    local what = not then_[id] and "added" or not now[id] and "removed" or then_[id] ~= now[id] and "changed"
    return what and ("claim %s was %s"):format(id, what) or nil
  end)
end

return declaration_file
