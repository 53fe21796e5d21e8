-- native.lua -- environments whose rules are a C file of engine/envs: their settings, and what each offers to init.lua.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local action_spaces = require "mneme.envs.action_spaces"
local tables = require "mneme.base.tables"

local C, check = engine.C, engine.check
local LARGEST = 3.4028234663852886e38         -- that float32 holds
local dtypes = { [C.MN_F32] = "f32", [C.MN_I32] = "i32", [C.MN_U8] = "u8" }

-- ---- what the numbers of a flat observation are: "cue=down,up place[8] noise[*]" ----

---@class ObservationGroup numbers of an observation that belong together
---@field name string "place"
---@field from integer the first, from 0
---@field n integer
---@field names string[] of each: "cue down", "place 3"; of one alone the group's

-- The alternative for a dtype: "u8: a b f32: c"; a text without them holds for all.
local function alternative(text, dtype)
  if not text:find "%f[%w][uf]%d+:" then return text end
  return text:match("%f[%w]" .. dtype .. ":([^:]*)%f[%w][uf]%d+:") or text:match("%f[%w]" .. dtype .. ":([^:]*)$") or ""
end

-- "view*view" with the settings of the environment; "*": what is left, "*-51": but for the last 51.
local function size_of(what, text, settings, left)
  if text == "*" then return left end
  local last = text:match "^%*%-(%d+)$"
  if last then return left - last end
  local n = 1
  for part in text:gmatch "[^*]+" do
    local factor = tonumber(part) or tonumber(settings[part])
    if not factor then errors.usage(("%s: observes has the size %s, expected integers and settings, with * between"):format(what, text)) end
    n = n * factor
  end
  return n
end

---The groups of an observation.
---@param what string the environment, for messages
---@param text string? as declared; nil: nothing is known
---@param space table { shape, dtype }
---@param settings table<string, any>
---@return ObservationGroup[] groups {} where nothing is declared, or the observation is not flat
local function groups_of(what, text, space, settings)
  local groups, at, total = {}, 0, space.shape[1]
  if not text or #space.shape ~= 1 then return groups end
  for word in alternative(text, space.dtype):gmatch "%S+" do
    local name, size = word:match "^([%w_]+)%[([%w_*-]+)%]$"
    local words = not name and word:match "^[%w_]+=([%w_,]+)$"
    name = name or word:match "^([%w_]+)"
    if not name or not (size or words or word == name) then
      errors.usage(("%s: observes has '%s', expected name, name[8] or name=one,two"):format(what, word))
    end
    local group = { name = name, from = at, n = 0, names = {} }
    for one in (words or ""):gmatch "[^,]+" do group.names[#group.names + 1] = name .. " " .. one end
    group.n = words and #group.names or size and size_of(what, size, settings, total - at) or 1
    for i = #group.names + 1, group.n do group.names[i] = group.n > 1 and name .. " " .. i - 1 or name end
    if group.n > 0 then groups[#groups + 1] = group end
    at = at + group.n
  end
  if at ~= total and #groups > 0 then
    errors.usage(("%s: observes names %d numbers, but an observation has %d"):format(what, at, total), text)
  end
  return groups
end

-- Scores to compare with, of the engine.
---@param filled ffi.cdata* mn_reference
---@return ReferenceScores?
local function reference_of(filled)
  local r = {}
  for _, name in ipairs { "chance", "memoryless", "best", "best_return" } do
    if filled[name] == filled[name] then r[name] = filled[name] end
  end
  if filled.episodes > 0 then r.episodes = filled.episodes end
  return next(r) and r or nil
end

---What is given as facts, where it is no table of finite numbers, or lists of them, by name; nil: it is one.
---@return string? in words
local function no_facts(given)
  local wrong = type(given) ~= "table" and tables.in_words(given) or nil
  for name, fact in pairs(wrong and {} or given) do
    for _, x in pairs(type(fact) == "table" and fact or { fact }) do
      if type(x) ~= "number" or x - x ~= 0 then wrong = ("%s as %s"):format(type(x) == "number" and tostring(x) or tables.in_words(x), tostring(name)) end
    end
  end
  return wrong
end

-- ---- settings ----

---Parameters in order from 'corridor=160[2..256] mode=grid|torus map=""': { name, default, words or nil }.
local function read_params(text)
  local params = {}
  for name, rule in text:gmatch "([%w_]+)=(%S+)" do
    local param = { name = name, default = "" }
    if rule:find("[", 1, true) then
      param.default = tonumber(rule:match "^[^%[]+")
    elseif rule ~= '""' then
      param.words = {}
      for word in rule:gmatch "[^|]+" do param.words[#param.words + 1] = word end
      param.default = param.words[1]
    end
    params[#params + 1] = param
  end
  return params
end

-- Settable facts, which are written as parameters are.
local function read_facts(text)
  local facts = read_params(text)
  for _, fact in ipairs(facts) do
    local point, lo, hi = (" " .. text):match(" " .. fact.name .. "=%d+(%.?)%d*%[(%S-)%.%.(%S-)%]")
    fact.lo, fact.hi, fact.whole, fact.default = tonumber(lo) or 0, tonumber(hi) or #(fact.words or {}) - 1, point ~= ".", nil
  end
  return facts
end

-- The number that the engine takes for a parameter; it checks ranges itself.
local function number_of(what, param, value)
  if param.words then
    for i, word in ipairs(param.words) do if word == value then return i - 1 end end
    errors.unknown(("%s: value of %s:"):format(what, param.name), value, param.words)
  end
  local kind = type(param.default)
  if type(value) ~= kind then
    errors.usage(("%s: %s is a %s, expected a %s"):format(what, param.name, type(value), kind))
  end
  if kind == "string" and value:find "%z" then
    errors.usage(("%s: %s holds a zero byte at place %d"):format(what, param.name, value:find "%z"))
  end
  return kind == "number" and value or 0
end

-- ---- what there is ----

---Every environment there is: { name, version, doc, params, actions }, in alphabetical order.
local function list()
  local found = {}
  for i = 0, C.mn_env_count() - 1 do
    found[i + 1] = { name = ffi.string(C.mn_env_name(i)), version = C.mn_env_version(i),
      doc = ffi.string(C.mn_env_doc(i)), params = ffi.string(C.mn_env_params(i)),
      actions = ffi.string(C.mn_env_actions(i)) }
  end
  return found
end

---The facts of a truth: name, where its values begin (from 0), how many there are if it is a list.
---@param names string "x y layout[121]"
local function facts(names)
  local next_word, at = names:gmatch "%S+", 0
  return function()
    local word = next_word()
    if not word then return end
    local name, count = word:match "^(.*)%[(%d+)%]$"
    local from = at
    at = at + (tonumber(count) or 1)
    return name or word, from, tonumber(count)
  end
end

---A declared fact.  Kinds: "class", "number"; "action": a class that is the right action now, none where it is below 0; "action@FACT": the right
---action where FACT is 0, none elsewhere; there one may decide again until the episode ends, and the last decision counts.
---@return table? fact { name, kind = "class"|"number", acts = it is the right action, when = FACT or nil }; nil: no such kind
local function fact_of(name, kind)
  if kind == "class" or kind == "number" then return { name = name, kind = kind } end
  local when = kind:match "^action@([%w_]+)$"
  return (when or kind == "action") and { name = name, kind = "class", acts = true, when = when } or nil
end

-- What a memory may know, in the order of the declaration: "cue=action@distance position=number" (fact_of).
local function read_to_know(text)
  local declared = {}
  for name, kind in text:gmatch "([%w_]+)=([%w@_]+)" do declared[#declared + 1] = fact_of(name, kind) end
  return declared
end

local function words(text) return tables.found(text, "%S+") end

-- POPGym's name of a task of ours: minesweeper -> MineSweeper.
local function popgym_name(name)
  return (("_" .. name):gsub("cartpole", "cart_pole"):gsub("minesweeper", "mine_sweeper"):gsub("_(%l)", string.upper))
end

---The environment of that name, or of POPGym's ID, "popgym:BattleshipEasy" or "popgym-BattleshipEasy-v0", which says the level, too.
---@return integer number from 0
---@return string? level
local function find(name)
  local i = type(name) == "string" and C.mn_env_find(name) or -1
  if i >= 0 then return i end
  local id, names, ids, others = tostring(name):match "^popgym[:-](.*)", {}, {}, {}
  local wanted = id and id:lower():gsub("^popgym%-", ""):gsub("%-v0$", "")
  for k, e in ipairs(list()) do
    names[k] = e.name
    for _, level in ipairs(id and e.doc:find("(POPGym)", 1, true) and { "Easy", "Medium", "Hard" } or {}) do
      local theirs, into = popgym_name(e.name) .. level, level == "Easy" and ids or others
      if theirs:lower() == wanted then return k - 1, level:lower() end
      into[#into + 1] = theirs
    end
  end
  errors.unknown(id and "task of POPGym (Easy, Medium or Hard)" or "environment", id and id:gsub("%-v0$", "") or name, id and ids or names, others)
end

-- A World (init.lua) whose rules are C.
local World = {}
World.__index = World

-- Every setting of an environment with its value: the given ones over the defaults.
local function settings_of(what, params, given)
  local settings, known = { num_envs = 8, seed = 1 }, {}
  for i, p in ipairs(params) do known[i], settings[p.name] = p.name, p.default end
  for _, key in ipairs { "num_envs", "seed", "time_limit", "facts" } do known[#known + 1] = key end
  for key, value in pairs(given) do
    if not tables.has(known, key) then errors.unknown("setting of " .. what .. ":", key, known) end
    settings[key] = value
  end
  errors.whole(what, "num_envs", settings.num_envs, 1)
  if settings.time_limit then errors.whole(what, "time_limit", settings.time_limit, 0) end
  if settings.facts == 1 or settings.facts == 0 then settings.facts = settings.facts == 1 end
  if settings.facts ~= nil and type(settings.facts) ~= "boolean" then
    errors.usage(("%s: facts=%s, expected 0 or 1"):format(what, tostring(settings.facts)))
  end
  if type(settings.seed) ~= "number" then
    errors.usage(("%s: seed is a %s, expected a number"):format(what, type(settings.seed)))
  end
  return settings
end

local function new(name, given)
  local number, level = find(name)
  if level and (given.level or level) ~= level then
    errors.usage(("%s: level=%s, expected %s, which its ID says"):format(name, tostring(given.level), level))
  elseif level then given = tables.merged({ level = level }, given) end
  local function told(of)                        -- what its file says; "": nothing
    local text = C["mn_env_" .. of](number)
    return text ~= nil and ffi.string(text) or ""
  end
  local what, params = told "name", read_params(told "params")
  local settings = settings_of(what, params, given)
  local values = ffi.new("double[?]", #params + 1)
  local text
  for i, p in ipairs(params) do
    values[i - 1] = number_of(what, p, settings[p.name])
    if p.default == "" then text = settings[p.name] end
  end
  local vec = C.mn_vec_new(engine.ctx, number, settings.num_envs, settings.seed, values, text,
    settings.time_limit or -1)
  if vec == nil then errors.usage(ffi.string(C.mn_error(engine.ctx))) end
  if settings.facts and C.mn_vec_show_facts(vec) ~= 0 then
    local message = ffi.string(C.mn_error(engine.ctx))
    C.mn_vec_free(vec)
    errors.usage(message)
  end
  local dtype, shape = ffi.new "int[1]", ffi.new("int[?]", C.MN_AXES)
  local axes = C.mn_vec_space(vec, dtype, shape)
  local defaults = {}
  for _, p in ipairs(params) do defaults[p.name] = p.default end
  local world = setmetatable({ vec = ffi.gc(vec, C.mn_vec_free), what = what, settings = settings, defaults = defaults,
    id = what .. "-v" .. C.mn_env_version(number), dtype = dtypes[dtype[0]], shape = {},
    settable = read_facts(told "settable"), to_know = read_to_know(told "to_know"), needs = C.mn_env_needs(number) ~= nil and told "needs" or nil,
    outcomes = words(told "outcomes"), actions = action_spaces.of_vec(vec, words(told "actions")), codes = C.mn_vec_codes(vec),
    rules = C.mn_env_rules(number) ~= nil and told "rules" or nil }, World)
  if world.codes == 0 or world.dtype ~= "u8" then world.codes = nil end
  for i = 1, axes do world.shape[i] = shape[i - 1] end
  world.groups = groups_of(what, not settings.facts and C.mn_env_observes(number) ~= nil and told "observes" or nil, world, settings)     -- facts=1 adds others
  world.own_limit = settings.time_limit == nil             -- nobody gave another
  local filled = ffi.new "mn_reference"
  C.mn_vec_reference(vec, filled)
  world.reference = reference_of(filled)
  settings.time_limit = C.mn_vec_time_limit(vec)
  local pointer = world.dtype == "u8" and "const uint8_t *" or "const float *"
  world.ended = { score = C.mn_vec_score(vec), ret = C.mn_vec_return(vec),
    length = C.mn_vec_length(vec), final_obs = ffi.cast(pointer, C.mn_vec_final_obs(vec)) }
  return world
end

function World:reset(obs, seed)
  if type(seed) ~= "table" then return check(C.mn_vec_reset(self.vec, seed or -1, obs)) end
  check(C.mn_vec_reset_each(self.vec, ffi.new("double[?]", #seed, seed), obs))
end

function World:step(action, obs, reward, terminated, truncated)
  check(C.mn_vec_step(self.vec, action, obs, reward, terminated, truncated))
end

function World:roll(rollout, t, action)
  return check(C.mn_vec_roll(self.vec, rollout, t, action)) ~= 0
end
function World:rolled() check(C.mn_vec_rolled(self.vec)) end

function World:keep(first, count) check(C.mn_vec_keep(self.vec, first, count)) end

function World:save(i)
  local n = C.mn_vec_bytes(self.vec)
  local bytes = ffi.new("char[?]", n)
  check(C.mn_vec_save(self.vec, i, bytes))
  return ffi.string(bytes, n)
end

function World:restore(i, bytes, obs)
  check(C.mn_vec_restore(self.vec, i, bytes, #bytes, obs))
end

function World:set(i, fact, value, obs) return check(C.mn_vec_set(self.vec, i, fact, value, obs)) == 1 end

function World:keep_outcomes()
  local reached = C.mn_vec_outcomes(self.vec)
  return reached ~= nil and reached or check(-1)
end

function World:see(obs)
  local picture = C.mn_vec_see(self.vec, obs)
  return picture ~= nil and picture or nil
end

function World:draw(i) return check(C.mn_vec_draw(self.vec, i)) end

local names_out, values_out = ffi.new "const char *[1]", ffi.new "const float *[1]"

function World:truth(i)
  check(C.mn_vec_truth(self.vec, i, names_out, values_out))
  local truth = {}
  for name, at, count in facts(ffi.string(names_out[0])) do
    local value = values_out[0][at]
    if count then
      value = {}
      for k = 1, count do value[k] = values_out[0][at + k - 1] end
    end
    truth[name] = value
  end
  return truth
end

-- One fact that is a number, of which a vector of environments asks at each step.
function World:truth_of(i, name)
  check(C.mn_vec_truth(self.vec, i, names_out, values_out))
  if not self.places then
    self.places = {}
    for key, at, count in facts(ffi.string(names_out[0])) do self.places[key] = not count and at or nil end
  end
  local at = self.places[name]
  return at and values_out[0][at]
end

function World:close() C.mn_vec_free(ffi.gc(self.vec, nil)) end

-- ---- how many steps must be remembered ----

local CARDS = 52
local decks = { repeat_first = { easy = 1, medium = 8, hard = 16 }, autoencode = { easy = 1, medium = 2, hard = 3 } }
local levels = { repeat_previous = { easy = 4, medium = 32, hard = 64 }, selective_copy = { easy = 20, medium = 72, hard = 272 } }

local function own_or(s, value, level) return value > 0 and value or level[s.level] end
local corridor = { function(s) return s.corridor end, "the corridor is %d" }

-- By the settings, and in words.
local horizons = {
  tmaze = corridor, tmaze_bakker = corridor, tmaze_passive = corridor,
  tmaze_active = { function(s) return s.corridor + 1 end, "the cue is asked for %d steps later" },
  memory_chain = { function(s) return math.max(1, s.memory_length - 1) end, "the bits are asked for %d steps later" },
  repeat_first = { function(s) return own_or(s, s.decks, decks.repeat_first) * CARDS - 1 end, "the first card is asked for %d steps later" },
  repeat_previous = { function(s) return own_or(s, s.k, levels.repeat_previous) - 1 end, "a card is asked for %d steps later" },
  autoencode = { function(s) return 2 * CARDS * own_or(s, s.decks, decks.autoencode) end, "the first card is asked for %d steps later" },
  selective_copy = { function(s) return own_or(s, s.length, levels.selective_copy) end, "the first symbol is asked for up to %d steps later" },
}

---The steps between an observation and its last use.
---@param id string of an environment, or of a stored run's
---@param settings table<string, any>
---@return integer? steps nil: the settings do not determine it
---@return string? words "the corridor is 200"
local function horizon(id, settings)
  local name = id:match "^(.-)%-v%d+$" or id
  local known = C.mn_env_find(name) >= 0 and horizons[name]
  local steps = known and known[1](settings)
  if steps then return steps, known[2]:format(steps) end
end

return { new = new, list = list, find = find, facts = facts, number_of = number_of, horizon = horizon, groups = groups_of, fact = fact_of,
  no_facts = no_facts, LARGEST = LARGEST }
