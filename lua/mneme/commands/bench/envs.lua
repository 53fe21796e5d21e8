-- envs.lua -- `mneme bench envs`.
local lazy = require "mneme.base.lazy"
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local envs = lazy "mneme.envs"
local errors = require "mneme.base.errors"
local progress = require "mneme.base.progress"
local tables = require "mneme.base.tables"
local C = engine.C

local command = { name = "bench envs", doc = "steps per second of every environment with random actions, on one thread, or on a GPU", about = [[
Three loops: in C (on a GPU with one launch per step; it waits only at its end); through Lua, with every result on the host; and with tensors, as
in a script.  Next to them, the speed of other programs on this kind of machine (one core, measured as in docs/environments.md).]],
  arguments = { { "names", "ENV", "environments", noun = "environment", several = true, optional = true } },
  options = { { "device", "where it is computed", type = "text", default = "cpu" } } }
local SETS = 64          -- sets of random actions, used over and over
local COPIES = { cpu = { 8, 256, 1024 }, cuda = { 1024, 4096, 16384 }, emu = { 64 } }

-- What to measure besides the defaults: environment -> { label, settings, reference in steps/s and whose, target }.
-- A row without settings replaces the defaults' row.
local rows = {
  tmaze = { { "", {}, { 144e6, "PufferLib's tmaze in C, 4 bytes seen" }, 100e6 } },
  tmaze_bakker = { { "", {}, { 40e3, "the released T-Maze in Python" } } },
  noisy_cartpole = {
    { "", {}, { 41.6e3, "POPGym" } },
    { "no noise", { noise = 0, velocities = 1 }, { 38.4e6, "PufferLib's in C; Gymnasium 0.11 M" }, 40e6 },
  },
  mystery_path_grid = {
    { "vector", { observation = "vector" }, { 9.28e3, "memory-gym, pixels" }, 20e6 },
    { "pixels", { observation = "pixels" }, { 9.28e3, "memory-gym" }, 300e3 },
  },
  mystery_path = {
    { "vector", { observation = "vector" }, { 9.82e3, "memory-gym, pixels" } },
    { "pixels", { observation = "pixels" }, { 9.82e3, "memory-gym" } },
  },
  memory_maze = {
    { "grid, 1,000 levels", { observation = "grid", levels = 1000 }, { 140, "memory-maze without camera" }, 5e6 },
    { "grid, fresh mazes", { observation = "grid" }, { 140, "memory-maze without camera" }, 2e6 },
    { "continuous, vector", { mode = "continuous", observation = "vector" }, { 140, "memory-maze without camera" } },
    { "pixels", { mode = "continuous", observation = "pixels" }, { 72, "memory-maze" }, 150e3 },
  },
  craftax_classic = {
    { "", {}, { 1380, "the original in JAX" }, 1.5e6 },
    { "random=jax", { random = "jax" }, { 1380, "the original in JAX" } },
  },
  craftax = {
    { "", {}, { 362, "the original in JAX" }, 300e3 },
    { "random=jax", { random = "jax" }, { 362, "the original in JAX" } },
  },
  repeat_previous = { { "", {}, { 138e3, "POPGym" } } },
  repeat_first = { { "", {}, { 162e3, "POPGym" } } },
}

---The rows of one environment, for the tests: { label, settings, reference, target }.
function command.rows(name) return rows[name] or { { "", {} } } end

-- Buffers of a learner for this many environments.
local function workplace(name, settings, num_envs)
  local env = envs.new(name, tables.merged({ num_envs = num_envs }, settings))
  local size, u8 = num_envs * tables.product(env.observation_space.shape), env.observation_space.dtype == "u8"
  local w = { env = env, num_envs = num_envs, obs = ffi.new(u8 and "uint8_t[?]" or "float[?]", size),
    reward = ffi.new("float[?]", num_envs), action = env.action_space:room(SETS * num_envs),
    terminated = ffi.new("uint8_t[?]", num_envs), truncated = ffi.new("uint8_t[?]", num_envs) }
  local random, at = ffi.new("float[?]", SETS * num_envs * env.action_space.size), -1
  C.mn_random_uniform(1, 0, 0, random, SETS * num_envs * env.action_space.size)
  local function uniform()
    at = at + 1
    return random[at]
  end
  for i = 0, SETS * num_envs - 1 do env.action_space:any(w.action, i, uniform) end
  env:reset_raw(w.obs)
  return w
end

local loops = {}
function loops.c(w, rounds)
  engine.check(C.mn_vec_run(w.env.world.vec, rounds, w.action, SETS, w.obs, w.reward, w.terminated, w.truncated))
end
function loops.lua(w, rounds)
  local env, action, num_envs = w.env, w.action, w.num_envs
  for k = 0, rounds - 1 do env:step_raw(action + k % SETS * num_envs * env.action_space.size, w.obs, w.reward, w.terminated, w.truncated) end
end
function loops.tensors(w, rounds)
  local tensor = require "mneme.tensor.tensor"
  w.actions = w.actions or tensor.new { shape = w.env.action_space:shape(w.num_envs), dtype = w.env.action_space.dtype }
  local to = w.actions:data()
  for k = 0, rounds - 1 do
    local n = w.num_envs * w.env.action_space.size
    ffi.copy(to, w.action + k % SETS * n, 4 * n)
    w.env:step(w.actions)
  end
end

---Steps per second of each loop: the best of short runs in turn, so that load of other programs affects all alike.
---@param kinds string[] of c, lua, tensors
function command.rates(name, settings, num_envs, kinds, seconds)
  local w, best = workplace(name, settings, num_envs), {}
  local rounds = 1
  local function timed(kind)
    local start = C.mn_clock(false)
    loops[kind](w, rounds)
    return C.mn_clock(false) - start
  end
  while timed "c" < 5e-3 do rounds = rounds * 2 end
  local till = C.mn_clock(false) + seconds
  repeat
    for _, kind in ipairs(kinds) do best[kind] = math.max(best[kind] or 0, rounds * num_envs / timed(kind)) end
  until C.mn_clock(false) > till
  w.env:close()
  return best
end

local function speed(x)
  if not x then return "" end
  if x >= 1e6 then return ("%.1f M"):format(x / 1e6) end
  if x >= 1e4 then return ("%.0f k"):format(x / 1e3) end
  return ("%.0f"):format(x)
end

local FORM = "%-18s %-20s %6s %9s %9s %9s  %s"

-- One row for several numbers of environments; the best is compared with other programs and the target.
local function measure(name, row)
  local best, about, reference, target = {}, {}, row[3], row[4]
  local numbers = COPIES[engine.device]
  for i, num_envs in ipairs(numbers) do
    local r = command.rates(name, row[2], num_envs, { "c", "lua", "tensors" }, 0.5)
    for kind, rate in pairs(r) do best[kind] = math.max(best[kind] or 0, rate) end
    local compared = i == #numbers and engine.device == "cpu"      -- all figures are of one core
    if compared and reference then
      about[1] = ("%.3g x %s (%s)"):format(best.lua / reference[1], reference[2], speed(reference[1]))
    end
    if compared and target then
      about[#about + 1] = ("target %s: %s"):format(speed(target), best.c >= target and "met" or "missed")
    end
    print((FORM:format(name, row[1], num_envs, speed(r.c), speed(r.lua), speed(r.tensors), table.concat(about, "; ")):gsub("%s+$", "")))
  end
end

function command.run(o)
  engine.open(o.device, 1)                       -- before anything allocates memory
  local all, device = tables.map(envs.list(), function(e) return e.name end), o.device
  for _, name in ipairs(o.names) do if not tables.has(all, name) then errors.unknown("environment", name, all) end end
  local chosen = o.names[1] and o.names or all
  print(("environments, %s, random actions, steps per second:"):format(device == "cpu" and "one thread" or "device=" .. device))
  print(FORM:format("", "", "envs", "C", "Lua", "tensors", "through Lua, next to others"))
  for _, name in progress.each(chosen, "environments") do
    for _, row in ipairs(command.rows(name)) do measure(name, row) end
  end
  return 0
end

return command
