-- test_craftax_classic.lua -- Craftax Classic against the original, step by step: with random=jax and the recorded actions of five
-- policies, map, mobs, all other state, observation, reward and end are the same.  And with the default random numbers, which have
-- to give the same worlds and the same play in distribution.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs.env"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local root = require("mneme.base.registry").root

-- engine/envs/craftax_classic/world.h
ffi.cdef [[
typedef struct { int16_t row, col, cooldown; int8_t health; uint8_t alive; } craftax_mob;
typedef struct { int16_t row, col; int8_t down, right; uint8_t flies, unused; } craftax_arrow;
typedef struct { int16_t age; uint8_t row, col, grows, unused; } craftax_plant;
typedef struct {
  uint64_t occupied[64];
  uint8_t map[4096];
  int16_t row, col, steps;
  uint8_t direction, sleeping;
  int8_t needs[8];
  uint32_t achievements;
  uint8_t item[12];
  craftax_mob mob[8];
  craftax_arrow shot[3];
  craftax_plant garden[10];
} craftax_state;
]]

-- The sums of tests/reference/craftax_classic.py: values below 2^16 times weights, modulo 2^32.
local weight = ffi.new "double[8192]"
local function times(a, b) return tonumber(ffi.cast("uint32_t", ffi.cast("uint64_t", a) * ffi.cast("uint64_t", b))) end
for k = 0, 8191 do
  local x = times(k + 1, 0x9E3779B1)
  x = times(bit.bxor(x, bit.rshift(x, 15)) % 2 ^ 32, 0x2C1B3C6D)
  weight[k] = bit.bor(bit.bxor(x, bit.rshift(x, 12)), 1) % 2 ^ 32
end

local function sum_of_bytes(v, n)
  local s = 0
  for k = 0, n - 1 do s = (s + v[k] * weight[k]) % 2 ^ 32 end
  return s
end

local function sum_of_floats(v, n)
  local s, half = 0, ffi.cast("const uint16_t *", v)
  for k = 0, 2 * n - 1 do s = (s + half[k] * weight[k]) % 2 ^ 32 end
  return s
end

local function sum_of_occupied(w)
  local s = 0
  for row = 0, 63 do
    if w.occupied[row] ~= 0 then
      for col = 0, 63 do
        if bit.band(bit.rshift(w.occupied[row], col), 1) ~= 0 then s = (s + weight[row * 64 + col]) % 2 ^ 32 end
      end
    end
  end
  return s
end

local values = ffi.new "double[200]"
local function others(w)
  local n = 0
  local function add(x)
    values[n] = x
    n = n + 1
  end
  add(w.row) add(w.col) add(w.direction)
  for i = 0, 3 do add(w.needs[i]) end
  add(w.sleeping)
  for i = 4, 7 do add(w.needs[i]) end
  for i = 0, 11 do add(w.item[i]) end
  for _, group in ipairs { { 0, 2 }, { 3, 5 }, { 6, 7 } } do
    for i = group[1], group[2] do add(w.mob[i].row) add(w.mob[i].col) end
    for i = group[1], group[2] do add(w.mob[i].health) end
    for i = group[1], group[2] do add(w.mob[i].alive) end
    for i = group[1], group[2] do add(w.mob[i].cooldown) end
  end
  for i = 0, 2 do add(w.shot[i].row) add(w.shot[i].col) end
  for i = 0, 2 do add(w.shot[i].flies) end
  for i = 0, 2 do add(w.shot[i].down) add(w.shot[i].right) end
  for i = 0, 9 do add(w.garden[i].row) add(w.garden[i].col) end
  for i = 0, 9 do add(w.garden[i].age) end
  for i = 0, 9 do add(w.garden[i].grows) end
  for i = 0, 21 do add(bit.band(bit.rshift(w.achievements, i), 1)) end
  add(w.steps)
  return n
end

local function sum_of_others(w)
  local s = 0
  for k = 0, others(w) - 1 do s = (s + values[k] * weight[k]) % 2 ^ 32 end
  return s
end

local last = ffi.new "struct { float reward; uint16_t done; }"
local function sum_of_end(reward, done)
  last.reward, last.done = reward, done
  local half = ffi.cast("const uint16_t *", last)
  return (half[0] * weight[0] + half[1] * weight[1] + done * weight[2]) % 2 ^ 32
end

local WHERE = "%s of environment %d after %d steps, %d of its episode"

local function compare(path)
  local bytes = files.read(path)
  t.eq(bytes:sub(1, 8), "craftax1")
  local head = ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + 8)
  local n, steps, seed, at, compared = head[0], head[1], head[2], 20, 0
  local final = ffi.new "float[1345]"
  for e = 0, n - 1 do
    local rig = forge.rig(envs.new("craftax_classic", { num_envs = 1, random = "jax" }))
    rig.env:reset_raw(rig.obs, seed + e)
    local action = ffi.cast("const uint8_t *", bytes) + at
    local want = ffi.new("uint32_t[?]", 2 * steps)
    ffi.copy(want, ffi.cast("const char *", bytes) + at + steps, 8 * steps)
    for s = 0, steps - 1 do
      rig.action[0] = action[s]
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      local done = rig.terminated[0]
      ffi.copy(final, done == 1 and rig.env.ended.final_obs or rig.obs, 4 * 1345)
      local result = (sum_of_floats(final, 1345) + sum_of_end(rig.reward[0], done)) % 2 ^ 32
      if done == 0 then                              -- a save holds the state before the step; where an episode begins, none
        local w = ffi.cast("const craftax_state *", ffi.cast("const char *", rig.env:save(0)) + forge.first)
        t.eq((sum_of_bytes(w.map, 4096) + sum_of_occupied(w) + sum_of_others(w)) % 2 ^ 32, want[2 * s], WHERE:format("state", e, s, w.steps))
      end
      t.eq(result, want[2 * s + 1], WHERE:format("result", e, s, rig.env:truth(0).day_step))
      compared = compared + 1
    end
    at = at + 9 * steps
    rig.env:close()
  end
  return compared, n
end

t.test("with random=jax every step is the original's, in state, observation, reward and end", function()
  local path = os.getenv "MNEME_CRAFTAX" or root .. "tests/fixtures/envs/craftax_classic.bin"
  local compared, n = compare(path)
  t.ok(compared > 1000)
  if os.getenv "MNEME_CRAFTAX" then print(("%d steps of %d environments are the original's"):format(compared, n)) end
end)
