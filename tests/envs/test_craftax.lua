-- test_craftax.lua -- Craftax against the original, step by step: with random=jax and the recorded actions of seven policies, maps,
-- mobs, all other state, observation, reward and end are the same, on all floors.  And with the default random numbers, which have
-- to give the same worlds and the same play in distribution.
local bit = require "bit"
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local forge = require "tests.fuzz.forge"
local lockstep = require "tests.envs.lockstep"
local C = engine.C
local root = require("mneme.base.registry").root
local NUMBERS = 8268

-- engine/envs/craftax/world.h
ffi.cdef [[
typedef struct { float health; int32_t cooldown; uint8_t row, col, alive, type; } craftax_full_mob;
typedef struct { int32_t row, col; int8_t down, right; uint8_t flies, type; } craftax_full_shot;
typedef struct { int32_t age; uint8_t row, col, grows, unused; } craftax_full_plant;
typedef struct {
  uint64_t occupied[48], lit[48];
  uint8_t map[2304], item[2304];
  craftax_full_mob mob[8];
  craftax_full_shot shot[6];
  uint8_t down_ladder[2], up_ladder[2], unused[4];
} craftax_level;
typedef struct {
  uint64_t achieved[2];
  uint32_t world[2], made;
  int32_t steps, boss_timer, killed[9];
  float body[6];
  int16_t row, col;
  int8_t needs[4];
  uint8_t floor, direction, sleeping, resting, xp, dexterity, strength, intelligence;
  uint8_t pickaxe, sword, bow, sword_magic, bow_magic, boss_progress;
  uint8_t has[11], potion[6], effect[6], armour[4], armour_magic[4], learned[2], opened[9];
  craftax_full_plant garden[10];
  craftax_level at[9];
} craftax_full;
]]

local function state_in(bytes) return ffi.cast("craftax_full *", ffi.cast("char *", bytes) + forge.first) end
local function is_made(w, floor) return bit.band(bit.rshift(w.made, floor), 1) == 1 end
local function achieved(w, i) return tonumber(bit.band(bit.rshift(w.achieved[math.floor(i / 64)], i % 64), 1)) end

-- ---- sums of a state ----

local values, floats = ffi.new "double[2000]", ffi.new "float[100]"
local GROUPS = { { 0, 2 }, { 3, 5 }, { 6, 7 } }          -- melee, passive, ranged; of each floor

local function others(w)
  local n = 0
  local function add(x)
    values[n] = x
    n = n + 1
  end
  local function bytes(v, count) for i = 0, count - 1 do add(v[i]) end end
  local function of_levels(first, last, f)
    for floor = 0, 8 do
      for i = first, last do f(w.at[floor], i, is_made(w, floor)) end
    end
  end
  add(w.row) add(w.col) add(w.floor) add(w.direction)
  bytes(w.needs, 4)
  add(w.sleeping) add(w.resting) add(w.xp) add(w.dexterity) add(w.strength) add(w.intelligence)
  bytes(w.has, 11)
  add(w.pickaxe) add(w.sword) add(w.bow) add(w.sword_magic) add(w.bow_magic) add(w.boss_progress)
  bytes(w.potion, 6) bytes(w.effect, 6) bytes(w.armour, 4) bytes(w.armour_magic, 4) bytes(w.learned, 2) bytes(w.opened, 9)
  bytes(w.killed, 9)
  of_levels(0, 1, function(l, i) add(l.down_ladder[i]) end)
  of_levels(0, 1, function(l, i) add(l.up_ladder[i]) end)
  add(w.boss_timer)
  for _, g in ipairs(GROUPS) do
    of_levels(g[1], g[2], function(l, i) add(l.mob[i].row) add(l.mob[i].col) end)
    of_levels(g[1], g[2], function(l, i) add(l.mob[i].alive) end)
    of_levels(g[1], g[2], function(l, i) add(l.mob[i].type) end)
    of_levels(g[1], g[2], function(l, i) add(l.mob[i].cooldown) end)
  end
  for first = 0, 3, 3 do                             -- shots of mobs, of the player; where no floor is yet, they point down and right
    of_levels(first, first + 2, function(l, i) add(l.shot[i].row) add(l.shot[i].col) end)
    of_levels(first, first + 2, function(l, i) add(l.shot[i].flies) end)
    of_levels(first, first + 2, function(l, i) add(l.shot[i].type) end)
    of_levels(first, first + 2, function(l, i, made) add(made and l.shot[i].down or 1) add(made and l.shot[i].right or 1) end)
  end
  for i = 0, 9 do add(w.garden[i].row) add(w.garden[i].col) end
  for i = 0, 9 do add(w.garden[i].age) end
  for i = 0, 9 do add(w.garden[i].grows) end
  for i = 0, 66 do add(achieved(w, i)) end
  add(w.steps)
  local m = 6
  ffi.copy(floats, w.body, 24)
  for _, g in ipairs(GROUPS) do
    of_levels(g[1], g[2], function(l, i, made)
      floats[m] = made and l.mob[i].health or 1
      m = m + 1
    end)
  end
  local half = ffi.cast("const uint16_t *", floats)
  for i = 0, 2 * m - 1 do add(half[i]) end
  return n
end

local function sum_of_state(w)
  local s = lockstep.sum_of_whole(values, others(w))
  for floor = 0, 8 do
    if is_made(w, floor) then
      local l, from = w.at[floor], 2304 * floor
      s = s + lockstep.sum(l.map, 2304, from) + lockstep.sum(l.item, 2304, from) + lockstep.sum_of_bits(l.occupied, 48, 48, from) +
        lockstep.sum_of_bits(l.lit, 48, 48, from)
    end
  end
  return s % 2 ^ 32
end

-- ---- gifts, as the script of the original gives them ----

local LADDER, ALL = 64, 128
local EARNED = { 0, 9, 17, 18, 19, 59, 54, 3, 22, 23, 5, 13, 20, 60, 6, 14, 21, 25, 26, 27, 52, 55, 57 }

local function give(w, gift)
  local down = bit.band(gift, LADDER) ~= 0
  if down then
    local ladder = w.at[w.floor].down_ladder
    w.row, w.col, w.sleeping, w.resting = ladder[0], ladder[1], 0, 0
    for f = 0, 8 do w.killed[f] = math.max(w.killed[f], 10) end
  end
  if bit.band(gift, ALL) == 0 then return end
  local below = w.floor + (down and 1 or 0)
  ffi.fill(w.has, 10, 50)
  w.has[10], w.pickaxe, w.sword, w.bow, w.strength, w.xp, w.sword_magic = 2, 4, 4, 1, 5, 3, below == 6 and 2 or 1
  ffi.fill(w.potion, 6, 5)
  ffi.fill(w.armour, 4, 2)
  ffi.fill(w.armour_magic, 4, below == 7 and 2 or 1)
  ffi.fill(w.learned, 2, 1)
  ffi.fill(w.needs, 4, 9)
  w.body[0] = 13
  for _, i in ipairs(EARNED) do
    local k = math.floor(i / 64)
    w.achieved[k] = bit.bor(w.achieved[k], bit.lshift(1ULL, i % 64))
  end
end

-- A copy that was changed from outside is saved as it is: so it can be changed further.
local function change(rig, f)
  local food = rig.env:truth(0).food
  rig.env:set(0, "food", 9, rig.obs)
  rig.env:restore(0, forge.signed(rig.env:save(0), function(self)
    local w = ffi.cast("craftax_full *", self)
    w.needs[0] = food
    f(w)
  end), rig.obs)
end

local WHERE = "%s of environment %d after %d steps, %d of its episode"

local function compare(path)
  local bytes = files.read(path)
  t.eq(bytes:sub(1, 8), "craftax3")
  local head = ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + 8)
  local steps, seed, at, compared, floors = head[1], head[2], 20, 0, 0
  local n, final = math.min(head[0], math.floor((#bytes - 20) / (4 + 9 * steps))), ffi.new("float[?]", NUMBERS)
  for e = 0, n - 1 do
    local rig = forge.rig(envs.new("craftax", { num_envs = 1, random = "jax" }))
    rig.env:reset_raw(rig.obs, seed + e)
    t.eq(lockstep.sum_of_floats(rig.obs, NUMBERS), ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + at)[0], "first observation " .. e)
    at = at + 4
    local action = ffi.cast("const uint8_t *", bytes) + at
    local want = ffi.new("uint32_t[?]", 2 * steps)
    ffi.copy(want, ffi.cast("const char *", bytes) + at + steps, 8 * steps)
    for s = 0, steps - 1 do
      local gift = bit.band(action[s], LADDER + ALL)
      if gift ~= 0 then change(rig, function(w) give(w, gift) end) end
      rig.action[0] = action[s] - gift
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      local done = rig.terminated[0]
      ffi.copy(final, done == 1 and rig.env.ended.final_obs or rig.obs, 4 * NUMBERS)
      if done == 0 then                              -- a save holds the state before the step; where an episode begins, none
        local kept = rig.env:save(0)
        local w = state_in(kept)
        floors = math.max(floors, w.floor)
        t.eq(sum_of_state(w), want[2 * s], WHERE:format("state", e, s, w.steps))
      end
      t.eq(lockstep.result(final, NUMBERS, rig.reward[0], done), want[2 * s + 1], WHERE:format("result", e, s, rig.env:truth(0).day_step))
      compared = compared + 1
    end
    at = at + 9 * steps
    rig.env:close()
  end
  return compared, n, floors
end

t.test("with random=jax every step is the original's, in state, observation, reward and end, on all floors", function()
  local path = os.getenv "MNEME_CRAFTAX_FULL" or root .. "tests/fixtures/envs/craftax.bin"
  local compared, n, floors = compare(path)
  t.ok(compared > 5000, compared .. " steps")
  t.eq(floors, 8, "lowest floor")
  if os.getenv "MNEME_CRAFTAX_FULL" then print(("%d steps of %d environments are the original's"):format(compared, n)) end
end)

-- ---- the default random numbers ----

-- Of n episodes of random play: blocks of their worlds, mobs alive, length, return and achievements of each.
local function sample(random, n)
  local rig, dice = forge.rig(envs.new("craftax", { num_envs = 1, random = random })), forge.random(11)
  local s = { length = {}, ret = {}, earned = {}, mobs = {}, block = {} }
  for b = 2, 36 do s.block[b] = {} end
  for episode = 1, n do
    rig.env:reset_raw(rig.obs, 100 + episode)
    local mobs, looks, steps = 0, 0, 0
    repeat
      forge.step(rig, dice)
      steps = steps + 1
      if rig.terminated[0] == 0 and steps % 10 == 2 then
        local kept = rig.env:save(0)
        local w = state_in(kept)
        if steps == 2 then
          for b = 2, 36 do s.block[b][episode] = 0 end
          for i = 0, 2303 do s.block[w.at[0].map[i]][episode] = s.block[w.at[0].map[i]][episode] + 1 end
        end
        for i = 0, 7 do mobs = mobs + w.at[0].mob[i].alive end
        looks = looks + 1
      end
    until rig.terminated[0] == 1
    s.length[episode], s.ret[episode] = rig.env.ended.length[0], rig.env.ended.ret[0]
    s.earned[episode], s.mobs[episode] = rig.env.ended.score[0] * 226, mobs / math.max(looks, 1)
    t.near(s.ret[episode], s.earned[episode] - 0.9, 1e-3)          -- nine points of health are lost in every episode
  end
  return s
end

t.test("the default random numbers give the same worlds, mobs and random play in distribution", function()
  local alike, ours, original = lockstep.alike, sample("philox", 150), sample("jax", 150)
  for b = 2, 36 do alike(ours.block[b], original.block[b], "blocks of kind " .. b) end
  t.ok(alike(ours.length, original.length, "length") > 50)
  alike(ours.mobs, original.mobs, "mobs alive")
  t.ok(alike(ours.ret, original.ret, "return") > 0.2)
  t.ok(alike(ours.earned, original.earned, "achievements") > 0.5)
end)

-- Down through all floors by gifts, with random play on each: monsters killed and alive, and health lost there.
local function dive(random, n)
  local rig, dice, s = forge.rig(envs.new("craftax", { num_envs = 1, random = random })), forge.random(5), {}
  for floor = 1, 8 do s[floor] = { mobs = {}, shots = {}, health = {} } end
  for episode = 1, n do
    rig.env:reset_raw(rig.obs, episode)
    for floor = 1, 8 do
      change(rig, function(w) give(w, LADDER + ALL) end)
      rig.action[0] = 18                             -- descend
      local mobs, shots, health = 0, 0, 0
      for k = 1, 40 do
        rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
        health = health + rig.reward[0]
        if rig.terminated[0] == 1 then break end
        if k % 8 == 0 then
          local kept = rig.env:save(0)
          local l = state_in(kept).at[floor]
          for i = 0, 7 do mobs = mobs + l.mob[i].alive end
          for i = 0, 2 do shots = shots + l.shot[i].flies end
        end
        rig.action[0] = 1 + dice(5)
      end
      if rig.terminated[0] == 1 then break end
      table.insert(s[floor].mobs, mobs) table.insert(s[floor].shots, shots) table.insert(s[floor].health, health)
    end
  end
  return s
end

t.test("on all floors they give as many mobs, projectiles and wounds", function()
  local ours, original = dive("philox", 60), dive("jax", 60)
  for floor = 1, 8 do
    for what, x in pairs(ours[floor]) do
      t.ok(#x > 5, ("%d episodes on floor %d"):format(#x, floor))
      lockstep.alike(x, original[floor][what], what .. " on floor " .. floor)
    end
  end
end)

-- ---- ends, states, picture ----

local function played(steps)
  local rig, dice = forge.rig(envs.new("craftax", { num_envs = 1, seed = 4 })), forge.random(2)
  rig.env:reset_raw(rig.obs, 4)
  for _ = 1, steps or 3 do forge.step(rig, dice) end
  return rig
end

local function go_down(rig, floor)
  for _ = 1, floor do
    change(rig, function(w) give(w, LADDER + ALL) end)
    rig.action[0] = 18
    rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
  end
  t.eq(rig.env:truth(0).floor, floor)
end

t.test("an episode ends after 100,000 steps, without health and with the boss beaten", function()
  for what, f in pairs {
    ["100,000 steps"] = function(w) w.steps = 99998 end,
    health = function(w) w.body[0], w.body[1], w.needs[0] = 1, -14.5, 0 end,
    boss = function(w) w.boss_progress = 7 end,
  } do
    local rig = played()
    if what == "boss" then
      go_down(rig, 8)
      change(rig, function(w)                        -- face to face, and nobody else
        w.row, w.col, w.direction, w.boss_timer, w.at[8].map[24 * 48 + 25] = 24, 25, 1, 0, 7
        for i = 0, 7 do w.at[8].mob[i].alive = 0 end
        for i = 0, 5 do w.at[8].shot[i].flies = 0 end
        ffi.fill(w.at[8].occupied, 8 * 48)
        f(w)
      end)
    else
      change(rig, f)
    end
    local steps, pays = 0, 0
    repeat
      rig.action[0] = what == "boss" and 5 or 0
      rig.env:step_raw(rig.action, rig.obs, rig.reward, rig.terminated, rig.truncated)
      steps, pays = steps + 1, pays + rig.reward[0]
    until rig.terminated[0] == 1 or steps > 5
    t.ok(steps <= 3, what .. ": " .. steps .. " steps")
    t.eq(rig.truncated[0], 0)
    if what == "boss" then t.ok(pays > 7.9, "the necromancer pays " .. pays) end
  end
end)

t.test("states that no episode reaches are refused", function()
  local rig = played(20)
  for what, f in pairs {
    ["a block"] = function(w) w.at[0].map[0] = 27 end,
    ["a number that is no block"] = function(w) w.at[0].map[0] = 37 end,
    ["a player in a wall"] = function(w) w.at[0].map[w.row * 48 + w.col] = 17 end,
    ["ruby that nobody collected"] = function(w) w.has[6] = 1 end,
    ["a hundred of an item"] = function(w) w.has[0] = 100 end,
    ["two potions that do the same"] = function(w) w.effect[0] = w.effect[1] end,
    ["a place occupied by nobody"] = function(w) w.at[0].occupied[0] = bit.bxor(w.at[0].occupied[0], 0x800000000000ULL) end,
    ["a mob off the map"] = function(w) w.at[0].mob[1].row = 48 end,
    ["a living mob without health"] = function(w) w.at[0].mob[0].alive, w.at[0].mob[0].health = 1, 0 end,
    ["a troll on the first floor"] = function(w) w.at[0].mob[0].alive, w.at[0].mob[0].health, w.at[0].mob[0].type = 1, 5, 5 end,
    ["a ripe plant that nobody planted"] = function(w) w.at[0].map[0] = 16 end,
    ["an arrow that flies slantwise"] = function(w) w.at[0].shot[0].flies = 1 end,
    ["no direction"] = function(w) w.direction = 0 end,
    ["too much health"] = function(w) w.body[0] = 10 end,
    ["health that is no number"] = function(w) w.body[0] = 0 / 0 end,
    ["hunger that is no number"] = function(w) w.body[2] = 0 / 0 end,
    ["a step too many"] = function(w) w.steps = 100000 end,
    ["an achievement too many"] = function(w) w.achieved[1] = 8 end,
    ["a second ladder"] = function(w) w.at[0].item[w.at[0].down_ladder[0] == 0 and 100 or 0] = 2 end,
    ["a floor that was never entered"] = function(w) w.floor = 3 end,
    ["something on a floor that was never entered"] = function(w) w.at[5].map[7] = 2 end,
    ["a beaten boss"] = function(w) w.boss_progress = 8 end,
  } do
    t.raises(function() change(rig, f) end, "no episode reaches such a state", what)
  end
  change(rig, function() end)
end)

-- A byte that is not of a map: of the player, of a mob or of a projectile.
local function numbers(dice, floor)
  local head = ffi.offsetof("craftax_full", "at")
  if dice(2) == 0 then return dice(head) end
  return head + dice(floor + 1) * ffi.sizeof "craftax_level" + ffi.offsetof("craftax_level", "mob") + dice(8 * 12 + 6 * 12)
end

t.test("forged bytes of the lower floors are refused, or lived on from: fifty steps, a picture and all facts", function()
  local dice, refused, went_on = forge.random(7), 0, 0
  for floor = 2, 8, 3 do
    local rig = played()
    go_down(rig, floor)
    local start = rig.env:save(0)
    for _ = 1, 100 do
      forge.restore(rig, start)
      for _ = 1, dice(12) do forge.step(rig, dice) end
      local ok, why = pcall(forge.restore, rig, forge.signed(rig.env:save(0), function(self)
        for _ = 1, 1 + dice(2) do self[numbers(dice, floor)] = dice(11) end
      end))
      t.ok(ok or errors.is(why), tostring(why))
      if ok then went_on = went_on + 1 else refused = refused + 1 end
      if ok then forge.live(rig, dice, 50) end
    end
  end
  t.ok(refused > 50 and went_on > 50, refused .. " refused, " .. went_on .. " went on")
end)

t.test("as many environments as no cache holds: the same observations and states as few have", function()
  local function play(n)
    local env, log, ended = envs.new("craftax", { num_envs = n, seed = 4 }), {}, 0
    local obs, reward, action = ffi.new("float[?]", n * NUMBERS), ffi.new("float[?]", n), ffi.new("int32_t[?]", n)
    local terminated, truncated = ffi.new("uint8_t[?]", n), ffi.new("uint8_t[?]", n)
    env:reset_raw(obs)
    for k = 1, 150 do
      for i = 0, n - 1 do action[i] = k % 3 == 0 and 5 or (7 * i + 5 * math.floor(k / 3)) % 43 end
      env:step_raw(action, obs, reward, terminated, truncated)
      log[#log + 1] = ffi.string(reward, 4 * 48) .. ffi.string(terminated, 48)
      for i = 0, 47 do ended = ended + terminated[i] end
      if k % 10 == 0 then log[#log + 1] = ffi.string(obs, 4 * NUMBERS * 48) end
    end
    for i = 0, 47 do log[#log + 1] = env:save(i) end
    env:close()
    t.ok(ended > 0, "an episode ended")
    return table.concat(log)
  end
  t.ok(512 * NUMBERS * 4 > 2 ^ 24, "engine/sim/vec.c: FAR_BYTES")
  t.ok(play(48) == play(512))
end)

t.test("settings: random is philox or jax", function()
  t.raises(function() envs.new("craftax", { random = "numpy" }) end, "random")
  t.raises(function() envs.new("craftax", { size = 9 }) end, "unknown setting")
end)

t.test("the wall lights up where an achievement is reached, and needs are as many lights", function()
  local RECT, DARK, HEALTH = 0, 0x222B35FF, 0xE0565BFF          -- engine/canvas.h, draw.h
  for _, gift in ipairs { 0, ALL } do
    local rig = played(12)
    change(rig, function(w) give(w, gift) end)
    local drawing, truth, dark, health = rig.env:draw(0), rig.env:truth(0), {}, 0
    local shapes = C.mn_canvas_shapes(drawing)
    for i = 0, C.mn_canvas_count(drawing) - 1 do
      local s = shapes[i]
      local light = math.abs(s.h - 0.36) < 1e-3 and math.abs(s.w - 0.8 * 9 * 2.29 / 67) < 1e-3
      if s.kind == RECT and light then dark[#dark + 1] = s.color == DARK end              -- one after another
      if s.kind == RECT and s.color == HEALTH then health = health + 1 end
    end
    t.eq(#dark, 67)
    for i = 1, 67 do t.eq(not dark[i], truth.achievements[i] == 1, "achievement " .. i - 1) end
    t.eq(health, math.ceil(truth.health))
  end
end)
