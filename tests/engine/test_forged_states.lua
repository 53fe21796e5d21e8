-- test_forged_states.lua -- a saved copy comes from a file, which anybody may have written: whatever bytes are restored, the
-- engine refuses them, or goes on as from any other state.  What episodes come to is never refused.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local errors = require "mneme.base.errors"
local forge = require "tests.fuzz.forge"

-- Settings that bring other code to run, besides each environment's own.
local more = {
  memory_maze = { { observation = "pixels" }, { observation = "vector", minimap = 1 }, { mode = "continuous" }, { levels = 3 },
    { minimap = 1, randomize_colors = 1 }, { size = 31, mode = "continuous", observation = "pixels" } },
  mystery_path = { { observation = "pixels", level = "easy" } }, mystery_path_grid = { { level = "easy" } },
  mystery_path_endless = { { observation = "pixels" } }, mortar_mayhem_endless = { { observation = "pixels", allowed_commands = 5 } },
  gridworld = { { map = "########\n#SaA?.1#\n#.....2#\n########", view = 3 }, { occlusion = 0, view = 15 } },
  noisy_cartpole = { { velocities = 1 } }, concentration = { { level = "hard" } }, selective_copy = { { tokens = 5, length = 5 } },
  associative_recall = { { pairs = 20, symbols = 3 } }, tmaze = { { corridor = 2, distractors = 64 } },
  craftax_classic = { { random = "jax" } }, craftax = { { random = "jax" } },
}

local function each(f)
  for _, e in ipairs(envs.list()) do
    f(e.name, {})
    for _, settings in ipairs(more[e.name] or {}) do f(e.name, settings) end
  end
end

local function make(name, settings)
  local all = { num_envs = 1, seed = 3 }
  for key, value in pairs(settings) do all[key] = value end
  local rig = forge.rig(envs.new(name, all))
  rig.env:reset_raw(rig.obs, 3)
  return rig
end

t.test("what episodes come to is never refused, changed from outside or not", function()
  each(function(name, settings)
    local rig, random = make(name, settings), forge.random(1)
    for k = 1, 400 do
      forge.step(rig, random)
      local fact = k % 3 == 0 and rig.env.settable[1 + random(#rig.env.settable)]
      if fact then
        local to = fact.words and fact.words[1 + random(#fact.words)] or fact.lo + (fact.hi - fact.lo) * random(1000) / 999
        rig.env:set(0, fact.name, type(to) == "number" and fact.whole and math.floor(to) or to, rig.obs)
      end
      rig.env:restore(0, rig.env:save(0), rig.obs)
    end
  end)
end)

t.test("forged bytes are refused, or lived on from: fifty steps, a picture and all facts", function()
  each(function(name, settings)
    local rig, random = make(name, settings), forge.random(7)
    local refused, went_on = 0, 0
    for round = 1, 150 do
      rig.env:reset_raw(rig.obs, round)
      for _ = 1, random(30) do forge.step(rig, random) end
      local ok, why = pcall(forge.restore, rig, forge.changed(rig.env:save(0), random))
      t.ok(ok or errors.is(why), name .. ": " .. tostring(why))
      if ok then went_on = went_on + 1 else refused = refused + 1 end
      if ok then forge.live(rig, random, 50) end
    end
    t.ok(refused > 20 and went_on > 0, ("%s: %d refused, %d went on"):format(name, refused, went_on))
  end)
end)

t.test("a copy that stands outside of its maze is told so", function()
  local rig = make("tmaze", { corridor = 9, distractors = 0 })
  forge.step(rig, function() return 3 end)
  local bytes = forge.signed(rig.env:save(0), function(self) ffi.cast("int16_t *", self)[2] = 30000 end)
  t.fails(function() rig.env:restore(0, bytes, rig.obs) end)
end)
