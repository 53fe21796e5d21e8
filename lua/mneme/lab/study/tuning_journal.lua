-- tuning_journal.lua -- reads the settings that a tuning picked.  They are checked, since files may be damaged, or written by something else.
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local space = require "mneme.lab.search.space"
local setting_types = require "mneme.base.setting_types"

local journal = {}

local function read_json(path) return files.is_file(path) and json.decode((files.read(path)), path) or nil end

local function is_whole(x, least) return type(x) == "number" and x % 1 == 0 and x >= least and x < 2 ^ 53 end
local function is_finite(x) return type(x) == "number" and x - x == 0 end
local function is_value(x) return type(x) == "string" or type(x) == "boolean" or is_finite(x) end

-- A table of which every value passes.
local function all(t, check)
  if type(t) ~= "table" then return false end
  for _, x in pairs(t) do if not check(x) then return false end end
  return true
end

-- A list of at least `least`, of which every entry passes.
local function list_of(t, least, check)
  if type(t) ~= "table" or #t < least then return false end
  local n = 0
  for _ in pairs(t) do n = n + 1 end
  return n == #t and all(t, check)
end

local function is_pick(x)
  return type(x) == "table" and is_whole(x.setting, 0) and all(x.values, is_value) and is_finite(x.mean) and is_whole(x.seeds, 1)
end

local function is_point(x)
  return type(x) == "table" and type(x.name) == "string" and all(x.labels, function(l) return type(l) == "string" end) and list_of(x.picks, 1, is_pick)
    and is_whole(x.seeds, 1)
end

---Is this what tuned.json holds?
function journal.is_tuned(t)
  local about = type(t) == "table" and t.tune
  return type(about) == "table" and type(about.ranges) == "string" and type(about.by) == "string" and is_whole(t.trials, 1) and is_whole(t.first_seed, 0)
    and (t.steps == nil or is_whole(t.steps, 1)) and list_of(t.points, 1, is_point)
end

---What is known of a study's tuning; nil: it has none, or it is not over.
---@return table? { tune, trials, steps, first_seed, points = { name, labels, picks, default, seeds, trials }, kept = the file that it was taken from }
function journal.tuned(path)
  local t = read_json(path .. "/tune/tuned.json")
  if t ~= nil and not journal.is_tuned(t) then
    errors.fail(path .. "/tune/tuned.json: not the end of a tuning", "remove it: mneme tune writes it again")
  end
  return t
end

---Is something said of a tuning the same, in whatever way its numbers are written?
---@param key string of Tuning.about
function journal.same(key, a, b, schema)
  local texts = {}
  for i, text in ipairs { setting_types.show(a), setting_types.show(b) } do
    if key == "ranges" then text = space.text(space.of_text(text), schema)
    elseif key == "budget" then text = text:gsub("[^x]+", function(n) return setting_types.key(n, 0) end) end
    texts[i] = text
  end
  return texts[1] == texts[2]
end

---An error unless what an imported file picked was tuned as `about` says.
---@param tuned table of journal.tuned, with its `kept`
---@param about table { ranges, budget, seeds, top, by, minimise }
function journal.need_same(tuned, about, schema)
  for _, key in ipairs { "ranges", "budget", "seeds", "top", "by", "minimise" } do
    if not journal.same(key, tuned.tune[key], about[key], schema) then
      errors.usage(("%s: it was tuned with %s=%s, not %s"):format(tuned.kept, key, setting_types.show(tuned.tune[key]), setting_types.show(about[key])),
        "without import= it is tuned again")
    end
  end
end

return journal
