-- test_gpu_envs.lua -- environments on a device: whatever engine/envs holds is stepped by kernels, and
-- has the same bits as on the CPU in all that it shows and keeps.  A rollout is stepped without looking.
local ffi = require "ffi"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local t = require "tests.harness"
local devices = require "tests.gpu.device"

local action_spaces = require "mneme.envs.action_spaces"
local C = engine.C

local contexts = {}
local function context(device)
  if not contexts[device] then
    contexts[device] = C.mn_ctx_new(device, 1)
    assert(contexts[device] ~= nil, ffi.string(C.mn_error(nil)))
  end
  return contexts[device]
end

-- Settings that the benchmarks measure, and some that have rules of their own.
local more = {
  tmaze = { { corridor = 5, distractors = 64 } }, tmaze_bakker = { { corridor = 3 } },
  noisy_cartpole = { { noise = 0.3, velocities = 1 }, { noise = 0, velocities = 1 } },
  gridworld = { { view = 7, occlusion = 0, cue_steps = 3, step_reward = -0.125 } },
  mystery_path = { { level = "easy" }, { observation = "pixels", level = "easy" } },
  mystery_path_grid = { { level = "easy", visual_feedback = "no", reward_fall_off = -0.3 } },
  mystery_path_endless = { { observation = "pixels" } }, mortar_mayhem_endless = { { observation = "pixels" } },
  memory_maze = { { size = 13, levels = 5, cue_frames = 2, minimap = 1, randomize_colors = 1 },
    { mode = "continuous", observation = "vector", actions = 4, view = 5 } },
  repeat_previous = { { level = "hard" } }, repeat_first = { { decks = 2 } }, autoencode = { { decks = 3 } },
  concentration = { { level = "medium" } }, count_recall = { { level = "hard" } },
  associative_recall = { { pairs = 40, symbols = 7, questions = 9 } }, selective_copy = { { tokens = 5, length = 5 } },
  craftax_classic = { { random = "jax" } }, craftax = { { random = "jax" } },
}

local function describe(settings)
  local words = {}
  for key, value in pairs(settings) do words[#words + 1] = key .. "=" .. tostring(value) end
  table.sort(words)
  return #words > 0 and table.concat(words, " ") or "defaults"
end

local function cases_of(name)
  local list, known = {}, {}
  local function add(settings)
    local key = describe(settings)
    if not known[key] then list[#list + 1] = settings end
    known[key] = true
  end
  add {}
  for _, row in ipairs(require("mneme.commands.bench.envs").rows(name)) do add(row[2]) end
  for _, settings in ipairs(more[name] or {}) do add(settings) end
  return list
end

-- The values of an environment's parameters as the engine takes them.
local function values_of(id, settings)
  local values, n = ffi.new "double[24]", 0
  for key, rule in ffi.string(C.mn_env_params(id)):gmatch "([%w_]+)=(%S+)" do
    local given = settings[key]
    if not rule:find "[%[|]" then values[n] = 0
    elseif rule:find("[", 1, true) then values[n] = given or tonumber(rule:match "^[^%[]+")
    else
      local i = 0
      for word in rule:gmatch "[^|]+" do
        if word == given then values[n] = i end
        i = i + 1
      end
    end
    n = n + 1
  end
  return values
end

local Side = {}
Side.__index = Side

-- Copies on a device, and plain memory of the host for what they show.
local function side(device, name, settings, copies, limit)
  local ctx, id = context(device), C.mn_env_find(name)
  local vec = C.mn_vec_new(ctx, id, copies, 7, values_of(id, settings), nil, limit)
  assert(vec ~= nil, ffi.string(C.mn_error(ctx)))
  local dtype, shape, size = ffi.new "int[1]", ffi.new "int[6]", 1
  for i = 0, C.mn_vec_space(vec, dtype, shape) - 1 do size = size * shape[i] end
  local bytes = size * (dtype[0] == C.MN_U8 and 1 or 4)
  return setmetatable({ ctx = ctx, vec = ffi.gc(vec, C.mn_vec_free), copies = copies, bytes = bytes,
    obs = ffi.new("char[?]", bytes * copies), reward = ffi.new("float[?]", copies), terminated = ffi.new("uint8_t[?]", copies),
    truncated = ffi.new("uint8_t[?]", copies), saved = ffi.new("char[?]", C.mn_vec_bytes(vec)) }, Side)
end

function Side:check(result)
  if result == -1 then error(ffi.string(C.mn_error(self.ctx)), 2) end
  return result
end

function Side:reset(seed) self:check(C.mn_vec_reset(self.vec, seed, self.obs)) end
function Side:step(actions) self:check(C.mn_vec_step(self.vec, actions, self.obs, self.reward, self.terminated, self.truncated)) end

function Side:save(copy)
  self:check(C.mn_vec_save(self.vec, copy, self.saved))
  return ffi.string(self.saved, C.mn_vec_bytes(self.vec))
end

-- All that a step shows.
function Side:shown()
  local n, parts = self.copies, { ffi.string(self.obs, self.bytes * self.copies), ffi.string(self.reward, 4 * self.copies),
    ffi.string(self.terminated, self.copies), ffi.string(self.truncated, self.copies) }
  local final = ffi.cast("const char *", C.mn_vec_final_obs(self.vec))
  local score, ret, length = C.mn_vec_score(self.vec), C.mn_vec_return(self.vec), C.mn_vec_length(self.vec)
  for i = 0, n - 1 do
    if self.terminated[i] + self.truncated[i] > 0 then
      parts[#parts + 1] = ffi.string(final + i * self.bytes, self.bytes) ..
        ffi.string(score + i, 4) .. ffi.string(ret + i, 4) .. ffi.string(length + i, 4)
    end
  end
  return table.concat(parts), #parts - 4
end

local STEPS, SETS = 300, 64
local function actions_for(vec, copies)
  local space = action_spaces.of_vec(vec, {})
  local n = copies * SETS
  local actions, random, at = space:room(n), ffi.new("float[?]", n * space.size), -1
  C.mn_random_uniform(3, 0, 0, random, n * space.size)
  local function uniform()
    at = at + 1
    return random[at]
  end
  for i = 0, n - 1 do space:any(actions, i, uniform) end
  return actions
end

for _, e in ipairs(envs.list()) do
  for _, settings in ipairs(cases_of(e.name)) do
    t.test(("gpu envs: %s, %s"):format(e.name, describe(settings)), function()
      local pictures = settings.observation == "pixels"
      for _, limit in ipairs(pictures and { 9 } or { -1, 11 }) do
        local copies, ends = pictures and 2 or limit < 0 and 67 or 5, 0
        local cpu, other = side("cpu", e.name, settings, copies, limit), side(devices.name, e.name, settings, copies, limit)
        local actions = actions_for(cpu.vec, copies)
        cpu:reset(5)
        other:reset(5)
        t.ok(ffi.string(cpu.obs, cpu.bytes * copies) == ffi.string(other.obs, other.bytes * copies), "the first observations")
        for k = 0, (pictures and 30 or STEPS) - 1 do
          local set = actions + k % SETS * copies
          cpu:step(set)
          other:step(set)
          local want, n = cpu:shown()
          t.ok(want == other:shown(), ("step %d with a time limit of %d"):format(k, limit))
          ends = ends + n
        end
        t.ok(ends > 0 or limit < 0, "no episode has ended")
        for copy = 0, copies - 1 do t.ok(cpu:save(copy) == other:save(copy), "saved bytes of copy " .. copy) end
        local there, here = other:save(0), cpu:save(copies - 1)             -- each goes on where the other was
        cpu:check(C.mn_vec_restore(cpu.vec, 1, there, #there, cpu.obs + cpu.bytes))
        other:check(C.mn_vec_restore(other.vec, 1, here, #here, other.obs + other.bytes))
        other:check(C.mn_vec_restore(other.vec, 1, there, #there, other.obs + other.bytes))
        for k = 1, 20 do
          cpu:step(actions + k * copies)
          other:step(actions + k * copies)
          t.ok(cpu:shown() == other:shown(), "a restored copy, step " .. k)
        end
      end
    end)
  end
end

-- ---- rollouts ----

local dtypes = { ["float *"] = C.MN_F32, ["int32_t *"] = C.MN_I32, ["uint8_t *"] = C.MN_U8 }

-- Buffers of a rollout of T steps in a context's memory: all of them, by name.
local function rollout(s, T)
  local B, r, at = s.copies, ffi.new "mn_rollout", {}
  local function leaf(name, kind, n)
    local handle = ffi.new "mn_tensor"
    s:check(C.mn_leaf_new(s.ctx, dtypes[kind], 1, ffi.new("int[1]", n), false, handle))
    at[name] = { handle = handle, bytes = n * (kind == "uint8_t *" and 1 or 4) }
    r[name] = ffi.cast(kind, C.mn_tensor_data(s.ctx, handle))
  end
  leaf("obs", "uint8_t *", (T + 1) * B * s.bytes)
  leaf("uncut_obs", "uint8_t *", B * s.bytes)
  for name, rows in pairs { done = T + 1, resets = T + 1, terminated = 1, cut = 1, uncut_resets = 1 } do leaf(name, "uint8_t *", rows * B) end
  for name, rows in pairs { told_action = T + 1, played = T, length = T, uncut_action = 1, seen = 1 } do leaf(name, "int32_t *", rows * B) end
  for name, rows in pairs { told_reward = T + 1, reward = T, score = T, ret = T, uncut_reward = 1 } do leaf(name, "float *", rows * B) end
  return r, at
end

local function bytes_of(s, leaf) return ffi.string(C.mn_tensor_data(s.ctx, leaf.handle), leaf.bytes) end

-- Two rollouts, the second where the first ended; a value of 0.3 follows whatever is cut off.
local function rolled(device, name, settings, limit, T)
  local s = side(device, name, settings, 70, limit)
  local r, at = rollout(s, T)
  local values, actions = ffi.new "mn_tensor", ffi.new "mn_tensor"
  local set = actions_for(s.vec, 70)
  s:check(C.mn_leaf_new(s.ctx, C.MN_F32, 1, ffi.new("int[1]", 70), false, values))
  s:check(C.mn_leaf_new(s.ctx, C.MN_I32, 1, ffi.new("int[1]", SETS * 70), false, actions))
  local value, action = ffi.cast("float *", C.mn_tensor_data(s.ctx, values)), ffi.cast("int32_t *", C.mn_tensor_data(s.ctx, actions))
  for i = 0, 69 do value[i] = 0.3 + i end
  ffi.copy(action, set, 4 * SETS * 70)
  r.context, r.reset_on_done = 5, limit ~= 9
  s:check(C.mn_vec_reset(s.vec, 2, ffi.cast("char *", r.obs) + T * 70 * s.bytes))
  local log, cuts = {}, 0
  for _ = 1, 2 do
    s:check(C.mn_rollout_begin(s.ctx, r, 70, T, 70 * s.bytes))
    for k = 0, T - 1 do
      if s:check(C.mn_vec_roll(s.vec, r, k, action + k * 70)) == 1 then
        cuts = cuts + 1
        s:check(C.mn_rollout_uncut(s.ctx, r, 70, k, 0.99, value))
      end
    end
    s:check(C.mn_vec_rolled(s.vec))
    for key, leaf in pairs(at) do log[key] = (log[key] or "") .. bytes_of(s, leaf) end
  end
  log.saved = s:save(69)
  return log, cuts
end

for _, case in ipairs { { "tmaze", { corridor = 4 }, -1, 40 }, { "tmaze", { corridor = 9 }, 9, 40 }, { "memory_maze", { mode = "continuous" }, 30, 20 },
  { "noisy_cartpole", {}, 12, 40 }, { "pendulum", {}, 12, 40 }, { "repeat_first", {}, -1, 60 } } do
  t.test(("gpu envs: a rollout of %s with time limit %d"):format(case[1], case[3]), function()
    local want, cuts = rolled("cpu", unpack(case))
    local got, may = rolled(devices.name, unpack(case))
    t.ok(case[3] < 0 or cuts > 0, "nothing was cut off")
    t.ok(may >= cuts, "fewer steps in which something may be cut off than were")
    t.ok(case[1] ~= "memory_maze" or may == cuts, "where only time ends episodes, it is known when")
    for key, bytes in pairs(want) do t.ok(got[key] == bytes, key) end
  end)
end

t.test("gpu envs: an action that there is not is found after the rollout, and at the next step", function()
  local s = side(devices.name, "tmaze", {}, 3, -1)
  local r, at = rollout(s, 4)
  s:check(C.mn_vec_reset(s.vec, 2, r.obs))
  local wrong = ffi.cast("int32_t *", C.mn_tensor_data(s.ctx, at.played.handle))     -- any memory of a leaf
  wrong[1] = 4
  s:check(C.mn_vec_roll(s.vec, r, 1, wrong))
  t.raises(function() s:check(C.mn_vec_rolled(s.vec)) end, "tmaze: environment 1 got an unknown action, expected 0%.%.3")
  t.raises(function() s:step(ffi.new "int32_t[3]") end, "environment 1 got an unknown action")
  s:reset(1)
  s:step(ffi.new "int32_t[3]")
  t.raises(function() s:step(ffi.new("int32_t[3]", 0, 0, -1)) end, "tmaze: action%[2%]=%-1, expected 0%.%.3 %(up down left right%)")
end)

-- Its own process: one has one context.
t.test("gpu envs: a learner's rollout waits at its ends alone, and its world is the CPU's", function()
  if not devices.emulated then t.skip "only the emulator counts what waits" end
  local shell = require "tests.support.shell"
  local said, status = shell.run(".", ("MNEME_BUILD='%s' luajit tests/gpu/rollout_on_device.lua"):format(engine.build))
  t.eq(status, 0, said)
  local wrong, counted, ends, cut, waits = said:match "^wrong (%d+), counted (%d+) of (%d+), cut (%d+), waits (%d+)\n$"
  t.eq(wrong, "0", said)
  t.eq(counted, ends)
  t.ok(tonumber(cut) > 0 and tonumber(ends) > tonumber(cut), "episodes must end in both ways: " .. said)
  t.ok(tonumber(waits) <= 6, said)
end)

t.test("gpu envs: mneme bench envs device=...", function()
  local shell = require "tests.support.shell"
  local said, status = shell.mneme(".", "bench envs tmaze device=" .. devices.name)
  t.eq(status, 0, said)
  t.ok(said:find("^environments, device=" .. devices.name .. ", random actions, steps per second:\n") and said:find "\ntmaze +%d+ +%d", said)
end)
