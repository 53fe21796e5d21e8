-- scripted.lua -- environments whose rules are Lua functions of a script: the quickest way to a new
-- environment, and slower than C.  This file supplies random numbers, new episodes, time limits, scores
-- and saving.
local ffi = require "ffi"
local lazy = require "mneme.base.lazy"
local canvas = lazy "mneme.base.canvas"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local ordered = require("mneme.base.luajit").ordered
local trusted_code = require "mneme.base.trusted_code"
local native = require "mneme.envs.native"
local observation_parts = lazy "mneme.envs.observation_parts"
local reference_scores = require "mneme.envs.reference_scores"
local action_spaces = require "mneme.envs.action_spaces"
local saved_tables = lazy "mneme.envs.saved_tables"
local tables = require "mneme.base.tables"
local tensor = require "mneme.tensor.tensor"
local key_lines = require "mneme.base.key_lines"
local setting_types = require "mneme.base.setting_types"

local C = engine.C
local world = {}
world.__index = world

local MEMBERS = [[observation dtype codes actions reset step draw see rules chance memoryless best truth to_know action_mask observes settable set
  outcomes outcome name num_envs seed time_limit]]
local a_table, a_function, a_text = { "table", "a table" }, { "function", "a function" }, { "string", "a text" }
local types = { observation = a_table, reset = a_function, step = a_function, draw = a_function, see = a_function, truth = a_function, set = a_function,
  outcome = a_function, action_mask = a_function, rules = a_text, name = a_text, settable = a_table,
  observes = { "string", "a text: \"cue[4] asked\"" } }
local needed = { observation = true, reset = true, step = true }
local BLOCK, FIRST_STREAM = 64, 2 ^ 31       -- Lua environments use the streams from there on
local KIND = "mn_lua2"                       -- what saved bytes begin with
local KINDS = { mn_lua1 = true, mn_lua2 = true }      -- what can be restored: the first wrote a shared table twice
local LARGEST = native.LARGEST
local MOST_ENVS, MOST_NUMBERS = 2 ^ 20, 2 ^ 28

-- ---- saving ----

-- A digest of a text, so that damage shows.
local function digest(text)
  local sum = 7
  for i = 1, #text do sum = (sum * 31 + text:byte(i)) % 2147483647 end
  return ("%010d"):format(sum)
end

-- ---- one environment ----

-- random() in [0, 1); random(n) one of 1..n, as math.random.  env.stream says where it stands.
local function random_of(env)
  local block, filled = ffi.new("float[?]", BLOCK), -1
  return function(n, last)
    if last ~= nil or n ~= nil and (type(n) ~= "number" or n % 1 ~= 0 or n < 1 or n > 2 ^ 24) then
      errors.raise(("random(%s): expected nothing, or a whole number from 1 to 2^24"):format(tostring(n) .. (last == nil and "" or ", " .. tostring(last))),
        { hint = last and "a - 1 + random(b - a + 1) is one of a..b" })
    end
    local s = env.stream
    local want = math.floor(s.draws / BLOCK)
    if filled ~= want or env.moved then
      C.mn_random_uniform(s.seed, FIRST_STREAM + s.copy, want % 2 ^ 31, block, BLOCK)
      filled, env.moved = want, false
    end
    local u = block[s.draws % BLOCK]
    s.draws = s.draws + 1
    return n and 1 + math.floor(u * n) or u
  end
end

local example = "an environment is { observation = {16}, actions = 4, reset = function(self, random), "
  .. "step = function(self, action, random) }"

local function check_spec(spec)
  errors.members("an environment", spec, MEMBERS)
  for key, kind in pairs(types) do
    if type(spec[key]) ~= kind[1] and (spec[key] ~= nil or needed[key]) then
      errors.usage(("env: %s is a %s, expected %s"):format(key, type(spec[key]), kind[2]), needed[key] and example)
    end
  end
  if spec.name == "" then errors.usage "env: name is empty, expected a text" end
  for name, kind in pairs(type(spec.to_know) == "table" and spec.to_know or {}) do
    if type(kind) ~= "string" or not native.fact(name, kind) then
      errors.usage(("env: to_know.%s is %s, expected \"class\", \"number\", \"action\" or \"action@FACT\""):format(tostring(name), tostring(kind)))
    end
  end
  if spec.to_know ~= nil and (type(spec.to_know) ~= "table" or not spec.truth) then
    errors.usage "env: to_know names facts of truth, expected { cue = \"class\" } and the function truth"
  end
  if (spec.settable == nil) ~= (spec.set == nil) then
    errors.usage "env: settable and set go together: what can be changed from outside, and the function that does it"
  end
  if (spec.outcomes == nil) ~= (spec.outcome == nil) then
    errors.usage "env: outcomes and outcome go together: names of what an episode can reach, and the function that says which it reached"
  end
  local seen = {}
  for i, name in ipairs(type(spec.outcomes) == "table" and #spec.outcomes > 0 and spec.outcomes or spec.outcomes ~= nil and { 0 } or {}) do
    if type(name) ~= "string" or name == "" or name:find "[%s,\"]" or seen[name] then
      errors.usage(("env: outcomes%s, expected a list of different names without blanks"):format(
        type(spec.outcomes) ~= "table" and " is a " .. type(spec.outcomes) or ("[%d] is %s"):format(i, setting_types.show(spec.outcomes[i]))))
    end
    seen[name] = true
  end
  local several = spec.observation[1] == nil and next(spec.observation) ~= nil
  for _, size in pairs(several and {} or #spec.observation == 0 and { {} } or spec.observation) do
    if type(size) == "table" then
      errors.usage(("env: observation is %s, expected the sizes of one array's axes, such as { 16 }, or several arrays by name"):format(
        next(spec.observation) and tables.in_words(spec.observation) or "an empty list"), next(spec.observation)
        and "{ card = { 2, codes = 52 }, place = { 3 } } are two arrays (docs/write-an-environment.md)" or nil)
    end
  end
  for _, key in ipairs(several and { "dtype", "codes", "observes" } or {}) do
    if spec[key] ~= nil then
      errors.usage(("env: %s says what one array is, observation has several by name"):format(key),
        "{ card = { 2, codes = 52 }, eye = { 64, 64, 3, dtype = \"u8\" } }")
    end
  end
end

-- Settable facts in the order of their names, as envs/init.lua has them.
local function read_facts(list)
  local facts = {}
  for _, name in ipairs(tables.keys(list)) do
    local about = type(list[name]) == "table" and list[name] or {}
    local fact = { name = name, lo = about[1], hi = about[2], whole = about.whole }
    if type(about[1]) == "string" then fact.words, fact.lo, fact.hi, fact.whole = about, 0, #about - 1, true end
    if type(fact.lo) ~= "number" or type(fact.hi) ~= "number" then
      errors.usage(("env: settable.%s: expected { least, greatest, whole = true } or a list of words"):format(name))
    end
    facts[#facts + 1] = fact
  end
  return facts
end

---@class EnvSpec an environment whose rules are Lua functions; self is an empty table, new for each episode, random() is uniform in [0,1),
---random(n) one of 1..n
---@field observation (integer[]|table<string, table>)? { 16 }: sizes of one observation's axes; or several arrays by name, and obs is a table of these
---names: { card = { 2, codes = 52 }, eye = { 64, 64, 3, dtype = "u8" }, place = { 3 } } (observation_parts.lua)
---@field actions (integer|string[]|Space)? how many, their names, or mn.box, mn.multi_discrete, whose actions are lists; they count from 0
---@field reset (fun(self: table, random: fun(n: integer?): number): number[])? gives the first observation, a flat list, or lists by name
---@field step (fun(self: table, action: integer|number[], random: fun(n: integer?): number): number[], number, boolean?, number?)? gives observation,
---reward, whether the episode is over, score, which is 0..1 and counts where an episode ends
---@field draw fun(self: table, view: Canvas)? draws the state
---@field see fun(observation: number[], view: Canvas)? draws an observation for a person who plays, who may not see the state
---@field rules string? one sentence for a person who plays: what is seen, what to do, what pays
---@field chance (number|fun(): number)? the mean score of random actions
---@field memoryless (number|fun(): number)? of the best policy that knows the present observation alone
---@field best (number|fun(): number)? of a perfect memory
---@field action_mask (fun(self: table): boolean[]|number[])? which actions are allowed now; agents draw no other
---@field truth (fun(self: table): table<string, number>)? hidden facts
---@field to_know table<string, string>? facts of truth that a memory may know, for mneme probe: { cue = "class", place = "number" }; "action": a class
---that is the right action now (below 0: none), "action@FACT": where FACT is 0
---@field observes string? what the numbers of a flat observation are: "sign[4] asked", or "place=x,y rest[*]"
---@field settable table? facts of truth that set changes: { cue = { "up", "down" }, place = { 0, 9, whole = true } }
---@field set (fun(self: table, name: string, value: number): number[]?)? gives the new observation; value: a number, of words which, from 0; nil: not now
---@field outcomes string[]? what an episode can have reached when it ends: { "key", "door" }
---@field outcome (fun(self: table): table<string, boolean|number>)? what the episode that ends here has reached: { key = true }
---@field name string?
---@field dtype ("f32"|"u8")? of observations
---@field codes integer? of u8: each is one of 0 .. codes - 1
---@field num_envs integer? 8
---@field seed integer? 1
---@field time_limit integer? 0: none

---An environment made of Lua functions.  What self holds must be numbers, strings, booleans and plain tables, so that it can be saved.  pairs() takes
---keys in a fixed order in these functions.
---@param spec EnvSpec
function world.new(spec)
  check_spec(spec)
  local name, size = spec.name or "lua", 1
  local actions, parts = action_spaces.of_script(name, spec.actions), nil
  for i, n in ipairs(spec.observation) do
    size = size * errors.whole(name, ("observation[%d]"):format(i - 1), n, 1)
  end
  if spec.action_mask and actions.kind ~= "discrete" then
    errors.usage(("%s: action_mask is of one choice of a few, the actions are %s"):format(name, tostring(actions)))
  end
  local masked, own, one = spec.action_mask and actions.n, spec.observation, spec.observation[1] ~= nil
  if masked and one then own = { observation = { codes = spec.codes, dtype = not spec.codes and spec.dtype or nil, unpack(own) } } end
  if masked or not one then parts, size = observation_parts.of_script(name, own, masked or nil) end
  local dtype = spec.dtype or "f32"
  if dtype ~= "f32" and dtype ~= "u8" then errors.unknown("dtype", dtype, { "f32", "u8" }) end
  if spec.codes and (dtype ~= "u8" or errors.whole(name, "codes", spec.codes, 1) > 256) then
    errors.usage(("%s: codes=%s, expected 1..256 with dtype = \"u8\""):format(name, tostring(spec.codes)))
  end
  local n = errors.whole(name, "num_envs", spec.num_envs or 8, 1)
  local limit = errors.whole(name, "time_limit", spec.time_limit or 0, 0)
  if n > MOST_ENVS or n * size > MOST_NUMBERS then
    errors.usage(("%s: %d environments with %.0f observed values each, expected at most %d environments and %.0f values in all"):format(name,
      n, size, MOST_ENVS, MOST_NUMBERS))
  end
  local settings = { num_envs = n, seed = spec.seed or 1, time_limit = limit }
  for _, f in pairs(spec) do              -- of a script that luajit itself runs: their pairs() is to have an order, too
    if type(f) == "function" and getfenv(f) == _G then pcall(setfenv, f, trusted_code.globals) end
  end
  local number = dtype == "u8" and not parts and "uint8_t" or "float"
  local self = setmetatable({ spec = spec, what = name, id = name .. "-v0", settings = settings,
    dtype = not parts and dtype or "f32", codes = not parts and spec.codes or nil, shape = parts and { size } or spec.observation, size = size,
    parts = parts, one = one, row = {}, actions = actions, took = actions:room(1),
    words = ffi.typeof(actions.dtype == "f32" and "const float *" or "const int32_t *"), rules = spec.rules, reference = reference_scores.of_script(spec),
    settable = read_facts(spec.settable or {}), to_know = {}, outcomes = spec.outcomes or {},
    envs = {}, first = 0, last = ffi.new(number .. "[?]", n * size), pointer = ffi.typeof(number .. " *") }, world)
  for i, fact in ipairs(tables.keys(spec.to_know or {})) do self.to_know[i] = native.fact(fact, spec.to_know[fact]) end
  self.groups = parts or native.groups(name, spec.observes, self, settings)
  self.ended = { final_obs = ffi.new(number .. "[?]", n * size), score = ffi.new("float[?]", n), ret = ffi.new("float[?]", n),
    length = ffi.new("int32_t[?]", n) }
  for i = 0, n - 1 do
    local env = { stream = { copy = i, draws = 0 } }
    env.random = random_of(env)
    self.envs[i] = env
  end
  self:seed(settings.seed)
  return self
end

-- One seed for all environments, or a list: then environment i draws as environment 0 with that seed.
-- { seed, number } of each, from 1.
function world:streams_of(seed)
  local list, streams = type(seed) == "table" and seed, {}
  for i = 1, self.settings.num_envs do
    local s = list and list[i] or seed
    if type(s) ~= "number" or s % 1 ~= 0 or s < 0 or s > 2 ^ 53 then
      errors.usage(("%s: seed=%s, expected a whole number from 0 to 2^53"):format(self.what, tostring(s)))
    end
    streams[i] = { s, list and 0 or self.first + i - 1 }
  end
  return streams
end

function world:seed(seed)
  for i, stream in ipairs(self:streams_of(seed)) do
    local env = self.envs[i - 1]
    env.stream, env.moved = { seed = stream[1], copy = stream[2], draws = 0 }, true
  end
end

function world:keep(first, count)
  for i = count, self.settings.num_envs - 1 do self.envs[i] = nil end
  self.first, self.settings.num_envs = self.first + first, count
  self:seed(self.settings.seed)
end

-- What a function of the script gave cannot be: an error at that function.
local function refuse(self, from, given, expected, hint)
  errors.raise(("%s: %s gave %s, expected %s"):format(self.what, from, given, expected), { where = errors.position_of(self.spec[from]), hint = hint })
end
local RESULTS = "step returns observation, reward, whether the episode is over, score; time_limit = N ends long ones"

local function refuse_list(self, from, list)
  local hint = type(list) == "table" and list[0] ~= nil and "Lua's lists begin at 1"
    or type(list) == "table" and type(list[1]) == "table" and "the observation is one flat list, whatever its axes"
    or tensor.is(list) and "x:to_table() makes a list of a tensor" or nil
  refuse(self, from, tables.in_words(list) .. " as the observation", ("a list of %d numbers"):format(self.size), hint)
end

-- The parts of an observation by name: with the mask of actions, of which one at least is allowed unless the episode is over.
function world:with_mask(i, given, over)
  if not self.parts.mask then return given end
  local mask, some, all = ordered(self.spec.action_mask, self.envs[i].self), over, { action_mask = {} }
  if type(mask) ~= "table" then
    refuse(self, "action_mask", tables.in_words(mask), ("a list of %d, true or 1 for an action that is allowed"):format(self.actions.n))
  end
  for k, allowed in ipairs(mask) do
    all.action_mask[k] = allowed == true and 1 or allowed == false and 0 or allowed
    some = some or all.action_mask[k] == 1
  end
  if not some then refuse(self, "action_mask", "no action that is allowed", "one at least, unless the episode is over") end
  if self.one then all.observation = given else for name, value in pairs(type(given) == "table" and given or {}) do all[name] = value end end
  return all
end

-- Write what the script gave as an observation to p, and keep it for saving.
function world:observe(i, list, p, from, over)
  if self.parts then
    local row = self.row
    local wrong, expected = observation_parts.flatten(self.parts, self:with_mask(i, list, over), row)
    if wrong then refuse(self, from, wrong, expected) end
    for k = 1, self.size do p[i * self.size + k - 1], self.last[i * self.size + k - 1] = row[k], row[k] end
    return
  end
  if type(list) ~= "table" or #list ~= self.size or list[0] ~= nil then refuse_list(self, from, list) end
  for k = 1, self.size do
    if type(list[k]) ~= "number" or not (math.abs(list[k]) <= LARGEST) then
      if list[k] == nil then refuse_list(self, from, list) end
      local given = type(list[k]) == "number" and tostring(list[k]) or "a " .. type(list[k])
      refuse(self, from, ("%s in place %d of the observation"):format(given, k), "a finite number",
        type(list[k]) == "boolean" and "x and 1 or 0 makes a number" or nil)
    end
    if self.dtype == "u8" and not (list[k] % 1 == 0 and list[k] >= 0 and list[k] < (self.codes or 256)) then
      refuse(self, from, ("%g in place %d of the observation"):format(list[k], k), ("a whole number from 0 to %d"):format((self.codes or 256) - 1))
    end
    p[i * self.size + k - 1], self.last[i * self.size + k - 1] = list[k], list[k]
  end
end

function world:start(i, obs)
  local env = self.envs[i]
  env.self, env.length, env.sum = {}, 0, 0
  self:observe(i, ordered(self.spec.reset, env.self, env.random), obs, "reset")
end

function world:reset(obs, seed)
  if seed then self:seed(seed) end
  obs = ffi.cast(self.pointer, obs)
  for i = 0, self.settings.num_envs - 1 do self:start(i, obs) end
end

-- From now on what the episodes that end have reached: a byte for each outcome.
function world:keep_outcomes()
  self.reached = self.reached or ffi.new("uint8_t[?]", self.settings.num_envs * #self.outcomes)
  return self.reached
end

function world:note_outcome(i)
  local got, known_names = ordered(self.spec.outcome, self.envs[i].self), #self.outcomes
  if type(got) ~= "table" then refuse(self, "outcome", tables.in_words(got), "a table such as { " .. self.outcomes[1] .. " = true }") end
  local left = {}
  for name in pairs(got) do left[name] = true end
  for k, name in ipairs(self.outcomes) do
    local value = got[name]
    self.reached[i * known_names + k - 1] = value and value ~= 0 and 1 or 0
    left[name] = nil
  end
  if next(left) ~= nil then refuse(self, "outcome", setting_types.show(next(left)), "names of outcomes: " .. table.concat(self.outcomes, " ")) end
end

function world:step(action, obs, reward, terminated, truncated)
  action = ffi.cast(self.words, action)
  for i = 0, self.settings.num_envs - 1 do
    self:need_reset(i, "step")
    self.actions:need(self.what, action, i)
  end
  obs = ffi.cast(self.pointer, obs)
  local limit, size, ended = self.settings.time_limit, self.size, self.ended
  self.at_work = true                  -- until all have stepped without an error
  for i = 0, self.settings.num_envs - 1 do
    local env = self.envs[i]
    self.actions:take(action, i, self.took)
    local seen, r, done, score = ordered(self.spec.step, env.self, self.actions:read(self.took, 0), env.random)
    if type(r) ~= "number" or not (math.abs(r) <= LARGEST) then
      refuse(self, "step", (type(r) == "number" and tostring(r) or tables.in_words(r)) .. " as the reward", "a finite number", RESULTS)
    end
    if done ~= nil and type(done) ~= "boolean" then
      refuse(self, "step", tostring(done) .. " for whether the episode is over", "true, false or nil",
        type(done) == "number" and "0 is true in Lua: step gives true or false" or RESULTS)
    end
    if score ~= nil and (type(score) ~= "number" or not (score >= 0 and score <= 1)) then
      refuse(self, "step", (type(score) ~= "number" and "a " .. type(score) or score ~= score and "NaN" or tostring(score)) .. " as the score",
        "a number from 0 to 1, or nil", RESULTS)
    end
    self:observe(i, seen, obs, "step", done or limit > 0 and env.length + 1 >= limit)
    env.length, env.sum = env.length + 1, env.sum + r
    reward[i], terminated[i] = r, done and 1 or 0
    truncated[i] = not done and limit > 0 and env.length >= limit and 1 or 0
    if terminated[i] + truncated[i] > 0 then
      for k = i * size, (i + 1) * size - 1 do ended.final_obs[k] = self.last[k] end
      ended.score[i] = score or 0 / 0            -- absent
      ended.ret[i], ended.length[i] = env.sum, env.length
      if self.reached then self:note_outcome(i) end
      self:start(i, obs)
    end
  end
  self.at_work = false
end

function world:roll(r, t, action)
  local n, ended = self.settings.num_envs, self.ended
  engine.wait()
  self:step(action, ffi.cast(self.pointer, r.obs) + (t + 1) * n * self.size, r.reward + t * n, r.terminated, r.cut)
  return engine.check(C.mn_rollout_noted(engine.ctx, r, n, t, action, self.size * (self.dtype == "u8" and 1 or 4),
    ended.final_obs, ended.score, ended.ret, ended.length)) ~= 0
end

function world.rolled() end

-- The same value, with tables of its own; those that were shared still are.
local function copied(x, known)
  if type(x) ~= "table" then return x end
  if not known[x] then
    known[x] = {}
    for key, value in next, x do known[x][key] = copied(value, known) end
  end
  return known[x]
end

---A rollout begins: until the next one it is known where each environment is now.
function world:mark()
  self.seen_then = self.seen_then or ffi.new(ffi.typeof(self.last), self.settings.num_envs * self.size)
  ffi.copy(self.seen_then, self.last, ffi.sizeof(self.seen_then))
  for i = 0, self.settings.num_envs - 1 do
    local env = self.envs[i]
    env.was = copied({ self = env.self, stream = env.stream, length = env.length, sum = env.sum }, {})
  end
end

---Has a function of the script raised an error in a step of the rollout?  Then `save` gives what was when that began.
---@return boolean
function world:stopped() return self.at_work and self.seen_then ~= nil or false end

function world:need_reset(i, what)
  local env = self.envs[i]
  if not env.self then errors.raise(("%s: %s before reset"):format(self.what, what)) end
  return env
end

-- Saved environments differ in length: zeros may follow, so that all of them fit into the rows of one tensor.
function world:save(i)
  local env, seen, last = self:need_reset(i, "save"), {}, self.last
  if self:stopped() then env, last = env.was, self.seen_then end
  for k = 1, self.size do seen[k] = last[i * self.size + k - 1] end
  local text = saved_tables.encode({ id = self.id, obs = seen, self = env.self, stream = env.stream, length = env.length, sum = env.sum },
    function(path) return key_lines.of_key(errors.position_of(self.spec.reset), path[2] or "self") end)
  return KIND .. ("%010d"):format(#text) .. digest(text) .. text
end

function world:restore(i, bytes, obs)
  local kind, size, sum, rest = bytes:match("^(.......)" .. ("(%d%d%d%d%d%d%d%d%d%d)"):rep(2) .. "(.*)$")
  local text = rest and rest:sub(1, tonumber(size))
  local whole_text = KINDS[kind] and digest(text) == sum and not rest:find("[^%z]", #text + 1)
  local fine, state = pcall(saved_tables.decode, whole_text and text or "")
  if not fine or type(state) ~= "table" or type(state.obs) ~= "table" or type(state.self) ~= "table" or type(state.stream) ~= "table" then
    errors.raise(("%s: restore: these %d bytes are not a saved environment, or damaged"):format(self.what, #bytes))
  end
  local env = self.envs[i]
  if state.id ~= self.id or #state.obs ~= self.size then
    errors.raise(("%s: restore: the bytes are of %s with %d numbers seen, this is %s with %d"):format(
      self.what, tostring(state.id), #state.obs, self.id, self.size))
  end
  env.self, env.stream, env.length, env.sum = state.self, state.stream, state.length, state.sum
  env.moved, obs = true, ffi.cast(self.pointer, obs)
  for k = 1, self.size do obs[k - 1], self.last[i * self.size + k - 1] = state.obs[k], state.obs[k] end
end

-- Draws on the world's canvas with the methods of a scene's view.
local function on_canvas(self, f, ...)
  self.canvas = self.canvas or ffi.gc(engine.check(C.mn_canvas_new(engine.ctx)), C.mn_canvas_free)
  C.mn_canvas_clear(self.canvas)
  ordered(f, (...), setmetatable({ shapes = self.canvas, unit = 1, theme = canvas.theme }, canvas.metatable))
  return self.canvas
end

function world:see(obs)
  if not self.spec.see then return nil end
  local seen, row = {}, ffi.cast(self.pointer, obs)
  if self.parts then
    seen = observation_parts.lists(self.parts, row)
    seen = self.one and seen.observation or seen
  else for k = 1, self.size do seen[k] = tonumber(row[k - 1]) end end
  return on_canvas(self, self.spec.see, seen)
end

-- With the methods of a scene's view; without a draw function, the observation as a row of colours.
function world:draw(i)
  local env = self:need_reset(i, "draw")
  return self.spec.draw and on_canvas(self, self.spec.draw, env.self) or self:draw_row(self.last + i * self.size)
end

-- An observation as a row of colours.
function world:draw_row(observation)
  local seen, most, signed = ffi.new("float[?]", self.size), 1, false
  for k = 0, self.size - 1 do
    seen[k] = observation[k]
    most, signed = math.max(most, math.abs(seen[k])), signed or seen[k] < 0
  end
  return on_canvas(self, function(_, view)
    view:heat({ x = 0, y = 0, w = self.size, h = 1 }, 1, self.size, seen, signed and -most or 0, most, canvas[signed and "DIVERGING" or "SEQUENTIAL"], false)
    view:frame(0, 0, self.size, 1, view.theme.line, 0)
  end)
end

function world:truth_of(i, name) return self:truth(i)[name] end

function world:truth(i)
  local env = self:need_reset(i, "truth")
  local facts = not self.spec.truth and {} or ordered(self.spec.truth, env.self)
  local wrong = native.no_facts(facts)
  if wrong then refuse(self, "truth", wrong, "finite numbers by name, such as { cue = 1 }") end
  return facts
end

function world:set(i, name, value, obs)
  local env, size = self:need_reset(i, "set"), self.size
  local before, seen = self:save(i), ordered(self.spec.set, env.self, name, value)
  if not seen and self:save(i) ~= before then refuse(self, "set", "nothing, and changed self", "the observation now, or self as it was") end
  if seen then self:observe(i, seen, ffi.cast(self.pointer, obs) - i * size, "set") end
  return seen ~= nil and seen ~= false
end

function world:close() self.envs = {} end

return world
