-- test_craftax_classic.lua -- Craftax Classic against the original, step by step: with random=jax and the recorded actions of six
-- policies, map, mobs, all other state, observation, reward and end are the same.  And with the default random numbers, which have
-- to give the same worlds and the same play in distribution.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local lockstep = require "tests.envs.lockstep"
local C = engine.C
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

local WHERE = "%s of environment %d after %d steps, %d of its episode"

local function compare(path)
  local bytes = files.read(path)
  t.eq(bytes:sub(1, 8), "craftax3")
  local head = ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + 8)
  local steps, seed, at, compared = head[1], head[2], 20, 0
  local n = math.min(head[0], math.floor((#bytes - 20) / (4 + 9 * steps)))
  local final = ffi.new "float[1345]"
  for e = 0, n - 1 do
    local rig = forge.rig(envs.new("craftax_classic", { num_envs = 1, random = "jax" }))
    rig.env:reset_raw(rig.obs, seed + e)
    t.eq(lockstep.sum_of_floats(rig.obs, 1345), ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + at)[0], "first observation " .. e)
    at = at + 4
    local action = ffi.cast("const uint8_t *", bytes) + at
    local want = ffi.new("uint32_t[?]", 2 * steps)
    ffi.copy(want, ffi.cast("const char *", bytes) + at + steps, 8 * steps)
    for s = 0, steps - 1 do
      rig.action[0] = action[s]
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      local done = rig.terminated[0]
      ffi.copy(final, done == 1 and rig.env.ended.final_obs or rig.obs, 4 * 1345)
      local result = lockstep.result(final, 1345, rig.reward[0], done)
      if done == 0 then                              -- a save holds the state before the step; where an episode begins, none
        local w = ffi.cast("const craftax_state *", ffi.cast("const char *", rig.env:save(0)) + forge.first)
        local sum = lockstep.sum(w.map, 4096) + lockstep.sum_of_bits(w.occupied, 64, 64) + lockstep.sum_of_whole(values, others(w))
        t.eq(sum % 2 ^ 32, want[2 * s], WHERE:format("state", e, s, w.steps))
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
  t.ok(compared > 10000, compared .. " steps")
  if os.getenv "MNEME_CRAFTAX" then print(("%d steps of %d environments are the original's"):format(compared, n)) end
end)

-- ---- the default random numbers ----

local function state_of(rig) return ffi.cast("craftax_state *", ffi.cast("char *", rig.env:save(0)) + forge.first) end

-- Of n episodes of random play: blocks of their worlds, and length, return and achievements of each.
local function sample(random, n)
  local rig, dice = forge.rig(envs.new("craftax_classic", { num_envs = 1, random = random })), forge.random(11)
  local s = { length = {}, ret = {}, earned = {}, mobs = {}, block = {} }
  for episode = 1, n do
    rig.env:reset_raw(rig.obs, 100 + episode)
    local mobs, steps = 0, 0
    repeat
      forge.step(rig, dice)
      if rig.terminated[0] == 0 then
        local w = state_of(rig)
        if steps == 0 then
          for b = 2, 16 do s.block[b] = s.block[b] or {} s.block[b][episode] = 0 end
          for i = 0, 4095 do s.block[w.map[i]][episode] = s.block[w.map[i]][episode] + 1 end
        end
        for i = 0, 7 do mobs = mobs + w.mob[i].alive end
        steps = steps + 1
      end
    until rig.terminated[0] == 1
    s.length[episode], s.ret[episode] = rig.env.ended.length[0], rig.env.ended.ret[0]
    s.earned[episode], s.mobs[episode] = rig.env.ended.score[0] * 22, mobs / steps
  end
  return s
end

t.test("the default random numbers give the same worlds, mobs and random play in distribution", function()
  local ours, original = sample("philox", 250), sample("jax", 250)
  for b = 2, 16 do lockstep.alike(ours.block[b], original.block[b], "blocks of kind " .. b) end
  t.ok(lockstep.alike(ours.length, original.length, "length") > 50)
  lockstep.alike(ours.mobs, original.mobs, "mobs alive")
  t.ok(lockstep.alike(ours.ret, original.ret, "return") > 0.5)
  t.ok(lockstep.alike(ours.earned, original.earned, "achievements") > 1)
end)

t.test("what an episode has reached when it ends: all that it had before, and as many as its score says", function()
  for game, points in pairs { craftax_classic = 22, craftax = 226 } do
    local rig, dice, sum, n = forge.rig(envs.new(game, { num_envs = 1 })), forge.random(3), 0, 0
    local reached, names = rig.env:keep_outcomes(), rig.env.outcomes
    for episode = 1, 12 do
      rig.env:reset_raw(rig.obs, episode)
      local before
      repeat
        before = rig.env:truth(0).achievements
        forge.step(rig, dice)
      until rig.terminated[0] == 1
      local here = 0
      for i = 0, #names - 1 do
        t.ok(reached[i] >= before[i + 1] and reached[i] <= 1, names[i + 1])
        here = here + reached[i]
      end
      if points == 22 then t.near(rig.env.ended.score[0] * points, here, 1e-4) end
      t.ok(rig.env.ended.score[0] * points > here - 0.01, "each pays 1 at least")
      sum, n = sum + here, n + 1
    end
    t.ok(sum > n / 2, sum .. " in " .. n .. " episodes")
  end
  t.fails(function() envs.new("tmaze", {}):keep_outcomes() end)
end)

-- ---- ends, states, picture ----

-- A copy after some steps, with its state changed as a forger would.
local function forged(change, steps)
  local rig, dice = forge.rig(envs.new("craftax_classic", { num_envs = 1, seed = 4 })), forge.random(2)
  rig.env:reset_raw(rig.obs, 4)
  for _ = 1, steps or 3 do forge.step(rig, dice) end
  local bytes = forge.signed(rig.env:save(0), function(self, stamp)
    stamp.last = 0                                   -- what restore does again
    change(ffi.cast("craftax_state *", self))
  end)
  return rig, bytes
end

t.test("an episode ends after 10,000 steps, in lava and without health", function()
  for what, change in pairs {
    ["10,000 steps"] = function(w) w.steps = 9997 end,
    lava = function(w) for i = 0, 4095 do if w.map[i] ~= 15 then w.map[i] = i == w.row * 64 + w.col and 2 or 14 end end end,
    health = function(w) w.needs[0], w.needs[1], w.needs[4] = 1, 0, -30 end,
  } do
    local rig, bytes = forged(change)
    rig.env:restore(0, bytes, rig.obs)
    local steps = 0
    repeat
      rig.action[0] = what == "lava" and 1 or 0
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      steps = steps + 1
    until rig.terminated[0] == 1 or steps > 5
    t.ok(steps <= 3, what)
    t.eq(rig.truncated[0], 0)
    if what == "lava" then t.near(rig.reward[0], -0.9, 1e-6) end
  end
end)

t.test("iron tools need a table, a furnace and one of each material; a diamond needs the pickaxe", function()
  for _, case in ipairs { { 13, 8, 20 }, { 16, 11, 21 } } do
    for _, lacks in ipairs { "nothing", "furnace", "coal" } do
      local rig, bytes = forged(function(w)
        for i = 0, 4095 do if w.map[i] ~= 15 then w.map[i] = 2 end end
        local at = w.row * 64 + w.col
        w.map[at - 1], w.map[at + 65] = 11, lacks == "furnace" and 2 or 12
        w.achievements, w.sleeping = 0x3FFFFF - 2 ^ case[3], 0
        for i = 0, 11 do w.item[i] = i < 4 and 2 or 0 end
        if lacks == "coal" then w.item[2] = 0 end
        for i = 0, 7 do w.mob[i].alive = 0 end
        for i = 0, 63 do w.occupied[i] = 0 end
      end, 1)
      rig.env:restore(0, bytes, rig.obs)
      rig.action[0] = case[1]
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      local truth = rig.env:truth(0)
      t.eq(truth.inventory[case[2] + 1], lacks == "nothing" and 1 or 0, lacks)
      t.near(rig.reward[0], lacks == "nothing" and 1 or 0, 1e-6)
      t.eq(truth.inventory[4], lacks == "nothing" and 1 or 2)
    end
  end
  for pickaxe = 0, 1 do
    local rig, bytes = forged(function(w)
      w.direction, w.achievements, w.sleeping, w.item[8] = 1, 0x3FFFFF - 2 ^ 19, 0, pickaxe
      w.map[w.row * 64 + w.col - 1] = 10
      for i = 0, 7 do w.mob[i].alive, w.mob[i].health = 0, 0 end
      for i = 0, 63 do w.occupied[i] = 0 end
    end, 1)
    rig.env:restore(0, bytes, rig.obs)
    rig.action[0] = 5
    rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
    t.eq(rig.env:truth(0).inventory[5], pickaxe)
    t.near(rig.reward[0], pickaxe, 1e-6)
  end
end)

t.test("states that no episode reaches are refused", function()
  for what, change in pairs {
    ["a block"] = function(w) w.map[0] = 6 end,
    ["a player in a tree"] = function(w) w.map[w.row * 64 + w.col] = 5 end,
    ["iron that nobody collected"] = function(w) w.item[3] = 1 end,
    ["ten of an item"] = function(w) w.item[0], w.achievements = 10, 1 end,
    ["a place occupied by nobody"] = function(w) w.occupied[0] = 1 end,
    ["a mob off the map"] = function(w) w.mob[1].row = 64 end,
    ["a living mob without health"] = function(w) w.mob[0].alive, w.mob[0].health = 1, 0 end,
    ["a ripe plant that nobody planted"] = function(w) w.map[0] = 16 end,
    ["an arrow that flies slantwise"] = function(w) w.shot[0].flies = 1 end,
    ["no direction"] = function(w) w.direction = 0 end,
    ["too much health"] = function(w) w.needs[0] = 10 end,
    ["a step too many"] = function(w) w.steps = 10000 end,
    ["an achievement too many"] = function(w) w.achievements = 2 ^ 22 end,
  } do
    local rig, bytes = forged(change)
    t.raises(function() rig.env:restore(0, bytes, rig.obs) end, "no episode reaches such a state", what)
  end
  local rig, bytes = forged(function() end)
  rig.env:restore(0, bytes, rig.obs)
end)

t.test("settings: random is philox or jax", function()
  t.raises(function() envs.new("craftax_classic", { random = "numpy" }) end, "random")
  t.raises(function() envs.new("craftax_classic", { size = 9 }) end, "unknown setting")
end)

t.test("the wall lights up where an achievement is reached, and needs are as many lights", function()
  local RECT, LIT, HEALTH = 0, 0xFFC857FF, 0xE0565BFF          -- engine/canvas.h, draw.h
  for _, bits in ipairs { 0, 1, 0x3FFFFF, 0x2A0F11 } do
    local rig, bytes = forged(function(w)
      for i = 0, 11 do w.item[i] = 0 end
      w.achievements, w.needs[0], w.needs[4] = bits, 4, 0
    end)
    rig.env:restore(0, bytes, rig.obs)
    local drawing, truth, lit, health = rig.env:draw(0), rig.env:truth(0), {}, 0
    local shapes = C.mn_canvas_shapes(drawing)
    for i = 0, C.mn_canvas_count(drawing) - 1 do
      local s = shapes[i]
      if s.kind == RECT and s.color == LIT and s.w > 2 then lit[math.floor(s.x / 3.3 + 0.5) + 5 * math.floor((s.y - 10.5) / 0.83 + 0.5)] = true end
      if s.kind == RECT and s.color == HEALTH then health = health + 1 end
    end
    for i = 0, 21 do t.eq(lit[i] == true, truth.achievements[i + 1] == 1, "achievement " .. i) end
    t.eq(health, truth.health)
  end
end)
