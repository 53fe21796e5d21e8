-- check_resumable.lua -- before a training: does an environment give what it declares, and does it go on alike after save and restore?  If not, no
-- checkpoint could be resumed exactly, and the user would learn it much later.  `mneme check env=` asks it of any.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"

local check_resumable = {}
local BEFORE, STEPS = 16, 64           -- random steps before the save, and after it
local MOST_KEPT = 10000                -- entries of tables outside `self` that are put back
local CAUSES = "does it keep something outside self (an upvalue or a global), draw with math.random instead of random, or read a clock?"

-- ---- what the script keeps outside `self`: the rehearsal must leave no trace in it ----

local keep_value

local function keep_function(f, kept)
  if errors.ours(debug.getinfo(f, "S")) then return end
  for i = 1, 255 do
    local name, value = debug.getupvalue(f, i)
    if not name then return end
    kept[#kept + 1] = function() debug.setupvalue(f, i, value) end
    keep_value(value, kept)
  end
end

local function keep_table(t, kept)
  local before = {}
  for key, value in next, t do
    kept.entries = kept.entries + 1
    if kept.entries > MOST_KEPT then return end
    before[key] = value
  end
  kept[#kept + 1] = function()
    for key in next, t do if before[key] == nil then t[key] = nil end end
    for key, value in next, before do t[key] = value end
  end
  for _, value in next, before do keep_value(value, kept) end
end

-- Functions of the script, and tables without a metatable; those of modules stay as they are.
function keep_value(value, kept)
  local kind = type(value)
  if kind ~= "function" and kind ~= "table" or kept.seen[value] then return end
  kept.seen[value] = true
  if kind == "function" then keep_function(value, kept) elseif getmetatable(value) == nil then keep_table(value, kept) end
end

-- A function that puts back what reset and step may change.
local function keep_outside(spec)
  local kept = { seen = { [_G] = true }, entries = 0 }
  for _, module in next, package.loaded do kept.seen[module] = true end
  keep_value(spec.reset, kept)
  keep_value(spec.step, kept)
  return function() for i = 1, #kept do kept[i]() end end
end

-- ---- two environments side by side ----

local GUARD = 64                       -- numbers behind an observation that no step may write to
local UNWRITTEN = { 0xFF, 0 }          -- bytes of an observation before a step: in floats the first is NaN; what is left of both differs

local function rig(env, number)
  local seed, u8, size = env.settings.seed, env.world.dtype == "u8", tables.product(env.world.shape)
  local file = ("engine/envs/%s.c"):format(env.world.what or "")
  return { id = env.id, world = env:again({ num_envs = 1, seed = type(seed) == "table" and seed[1] or seed }).world,
    obs = ffi.new(u8 and "uint8_t[?]" or "float[?]", size + GUARD), size = size, bytes = size * (u8 and 1 or 4), unwritten = UNWRITTEN[number],
    reward = ffi.new "float[1]", terminated = ffi.new "uint8_t[1]", truncated = ffi.new "uint8_t[1]",
    where = env.world.spec and errors.position_of(env.world.spec.step) or env.world.vec and files.is_file(registry.root .. file) and file or nil }
end

-- A step; a reset where there is no action.
local function step(r, action)
  ffi.fill(r.obs, ffi.sizeof(r.obs), r.unwritten)
  if action then r.world:step(action, r.obs, r.reward, r.terminated, r.truncated) else r.world:reset(r.obs) end
  local function refuse(given, expected)
    errors.raise(("%s: %s gave %s, expected %s"):format(r.id, action and "step" or "reset", given, expected), { where = r.where })
  end
  local codes = r.world.codes or math.huge
  for k = 0, r.size - 1 do
    if not (math.abs(r.obs[k]) < math.huge and r.obs[k] < codes) then
      refuse(("%g in place %d"):format(r.obs[k], k + 1), (codes < math.huge and "codes below " .. codes or "finite numbers") .. " in all " .. r.size)
    end
  end
  local beyond = ffi.cast("uint8_t *", r.obs)
  for i = r.bytes, ffi.sizeof(r.obs) - 1 do
    if beyond[i] ~= r.unwritten then refuse("more numbers than it declares", r.size .. " of an observation") end
  end
  if r.reward[0] - r.reward[0] ~= 0 then refuse(("%g as the reward"):format(r.reward[0]), "a finite number") end
  local score = r.terminated[0] + r.truncated[0] > 0 and r.world.ended.score[0] or 0          -- NaN: it gives none
  if score < 0 or score > 1 then refuse(("%g as the score"):format(score), "0 to 1") end
end

-- What two rigs show differently, in words; nil: nothing.
local function difference(a, b)
  if a.terminated[0] ~= b.terminated[0] or a.truncated[0] ~= b.truncated[0] then
    return a.terminated[0] + a.truncated[0] > 0 and "the episode ends, the restored one does not" or "the restored episode ends, the other does not"
  end
  if ffi.string(a.reward, 4) ~= ffi.string(b.reward, 4) then return ("the reward is %g, in the restored one %g"):format(a.reward[0], b.reward[0]) end
  if ffi.string(a.obs, a.bytes) == ffi.string(b.obs, b.bytes) then return nil end
  for k = 0, a.size - 1 do
    if a.obs[k] ~= b.obs[k] then return ("place %d of the observation is %g, in the restored one %g"):format(k + 1, a.obs[k], b.obs[k]) end
  end
end

---Take random steps, save, restore into a second environment of the same settings, and take more in both; an error says what differs.
---@param before integer? steps before the save: 16
---@param after integer? steps in both: 64
function check_resumable.compare(env, before, after)
  local spec, a, b, action, draw = env.world.spec, rig(env, 1), rig(env, 2), env.action_space:room(1), 1
  local function act()
    local mask = (a.world.parts or {}).mask
    repeat
      a.world.actions:any(action, 0, function()
        draw = draw * 16807 % 2147483647
        return draw / 2147483647
      end)
    until not mask or a.obs[mask.from + action[0]] > 0
  end
  step(a)
  for _ = 1, before or BEFORE do
    act()
    step(a, action)
  end
  b.world:restore(0, a.world:save(0), b.obs)
  for i = 1, after or STEPS do
    act()
    step(a, action)
    step(b, action)
    local what = difference(a, b)
    if what then
      errors.raise(("%s: saved and restored, it goes on differently: after %d step%s %s"):format(env.id, i, i == 1 and "" or "s", what),
        { where = a.where, hint = spec and CAUSES })
    end
  end
  a.world:close()
  b.world:close()
end

---Save a new environment of the same settings, restore it into a second one, and take 64 random steps in both; an error says what
---differs, what cannot be saved, or what a step gives that it does not declare.  Leaves the environment, its random streams and what its functions
---hold untouched.  Of environments in C on the processor alone.
function check_resumable.check(env)
  local world = type(env) == "table" and env.world
  if not world or not world.spec and not world.vec then return end
  if world.vec then return engine.device == "cpu" and check_resumable.compare(env) end
  local put_back, random = keep_outside(env.world.spec), math.random
  rawset(math, "random", function()
    errors.raise(env.id .. ": math.random cannot be saved, so a resumed run would differ", { hint = "reset and step get random() for that" })
  end)
  local ok, problem = xpcall(check_resumable.compare, errors.handler, env)
  rawset(math, "random", random)
  put_back()
  if not ok then error(problem, 0) end
end

return check_resumable
