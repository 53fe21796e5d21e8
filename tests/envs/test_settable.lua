-- test_settable.lua -- facts of a world changed from outside: in every environment that lets one, and in rules in Lua.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs.env"
local env_rig = require "tests.support.env_rig"

local C = engine.C
local rig, seen, hidden, roll, follow = env_rig.rig, env_rig.seen, env_rig.hidden, env_rig.roll, env_rig.follow

local function place(r, i) return ffi.cast("char *", r.obs) + i * r.bytes end

-- Values of a fact to try: all of few, else some, the ends among them.
local function values_of(fact)
  local list, n = {}, fact.whole and math.min(fact.hi - fact.lo, 40) or 8
  for i = 0, n do list[i + 1] = fact.lo + (fact.hi - fact.lo) * i / n end
  for i, v in ipairs(list) do if fact.whole then list[i] = math.floor(v) end end
  return list
end

local able = 0
for _, e in ipairs(envs.list()) do
  local env = envs.new(e.name, { num_envs = 3 })
  if #env.settable == 0 then
    t.test(e.name .. ": nothing can be set, and that is said", function()
      env:reset(1)
      t.raises(function() env:set(0, "cue", 1) end, e.name .. "%-v%d+: no fact of this environment can be changed")
    end)
  else
    able = able + 1
    t.test(e.name .. ": a fact set to what it is changes nothing that is seen or known", function()
      for _, steps in ipairs { 0, 1, 4 } do
        local _, r = roll(env, 3, steps)
        for _, fact in ipairs(env.settable) do
          local before, secret, value = ffi.string(r.obs, 3 * r.bytes), hidden(env, 1), env:truth(1)[fact.name]
          t.ok(value, fact.name .. " is not among the facts of truth")
          t.eq(env:set(1, fact.name, value, place(r, 1)), true, fact.name)
          t.ok(ffi.string(r.obs, 3 * r.bytes) == before, fact.name .. ": another observation")
          t.eq(hidden(env, 1), secret, fact.name)
        end
      end
    end)

    t.test(e.name .. ": what is set is so, in its copy alone; what cannot be changes nothing", function()
      local differs = 0
      for _, steps in ipairs { 0, 5 } do
        for _, fact in ipairs(env.settable) do
          local refused = 0
          for _, value in ipairs(values_of(fact)) do
            local _, r = roll(env, 3, steps)
            local before, others, saved = seen(r, 1), seen(r, 0) .. seen(r, 2) .. env:save(0) .. env:save(2), env:save(1)
            if env:set(1, fact.name, value, place(r, 1)) then
              t.near(env:truth(1)[fact.name], value, 0.5, fact.name)
              if fact.whole then t.eq(env:truth(1)[fact.name], value, fact.name) end
              differs = differs + (seen(r, 1) ~= before and 1 or 0)
            else
              refused = refused + 1
              t.eq(seen(r, 1), before)
              t.eq(env:save(1), saved)
            end
            t.eq(seen(r, 0) .. seen(r, 2) .. env:save(0) .. env:save(2), others, "another copy")
          end
          t.ok(refused < #values_of(fact), fact.name .. " can never be set")
        end
      end
      t.ok(differs > 0 or e.name == "multiarmed_bandit", "no fact is ever seen")          -- an arm shows nothing until it is pulled
    end)

    t.test(e.name .. ": a copy that was changed is saved, restored and goes on bit for bit; a reset forgets it", function()
      for _, steps in ipairs { 0, 5 } do
        for _, fact in ipairs(env.settable) do
          local _, r = roll(env, 3, steps)
          local done
          for _, value in ipairs(values_of(fact)) do
            if value ~= env:truth(1)[fact.name] then done = env:set(1, fact.name, value, place(r, 1)) or done end
          end
          t.ok(done, fact.name)
          local bytes, here, secret = env:save(1), seen(r, 1), hidden(env, 1)
          local there = rig(envs.new(e.name, { num_envs = 2, seed = 4 }))
          there.env:reset_raw(there.obs, 9)
          there.env:restore(0, bytes, place(there, 0))
          t.ok(seen(there, 0) == here, "the observation")
          t.eq(hidden(there.env, 0), secret)
          t.eq(there.env:save(0), bytes, "saved again")
          there.time = steps
          t.eq(follow(there, { 0 }, 40, { [0] = 1, 1 })[1], follow(r, { 1 }, 40)[1], fact.name)
          t.ok(roll(env, 3, 30)[1] == roll(envs.new(e.name, { num_envs = 3 }), 3, 30)[1], "a reset does not forget it")
        end
      end
    end)

    t.test(e.name .. ": what is wrong is refused", function()
      local fresh = envs.new(e.name, { num_envs = 2 })
      local fact = fresh.settable[1]
      local obs = rig(fresh).obs
      t.raises(function() fresh:set(0, fact.name, fact.lo, obs) end, "set before reset")
      fresh:reset(1)
      for _, bad in ipairs { fact.lo - 1, fact.hi + 1, 0 / 0, 1e300, "nonsense" } do
        t.raises(function() fresh:set(0, fact.name, bad) end, fact.name)
      end
      t.raises(function() fresh:set(0, fact.name) end, fact.name)
      t.raises(function() fresh:set(2, fact.name, fact.lo) end, "environment 2, expected 0..1")
      t.raises(function() fresh:set(0, "colour of hope", 1) end, "unknown fact of " .. e.name)
      local vec = fresh.world.vec                -- the engine checks for itself
      for _, bad in ipairs { { "colour of hope", 1 }, { fact.name, fact.hi + 1 }, { fact.name, 0 / 0 } } do
        t.eq(C.mn_vec_set(vec, 0, bad[1], bad[2], obs), -1)
      end
      t.eq(C.mn_vec_set(vec, 7, fact.name, fact.lo, obs), -1)
      t.eq(C.mn_vec_set(vec, 0, fact.name, fresh:truth(0)[fact.name], nil), 1, "nobody wants the observation")
      local bytes = fresh:save(0)
      fresh:set(0, fact.name, fresh:truth(0)[fact.name])
      t.eq(#fresh:save(0), #bytes)
    end)
  end
end

t.test("several environments can be changed, and what they mean by it", function()
  t.ok(able >= 5)
  local maze = envs.new("tmaze", { corridor = 6, num_envs = 1 })
  local obs = maze:reset(1)
  t.eq(maze:set(0, "cue", "down"), true)
  t.eq(obs:data()[0] - obs:data()[1], 1, "at the start it is seen")
  maze:set(0, "cue", "up")
  t.eq(obs:data()[0] - obs:data()[1], -1)
  t.eq(maze:set(0, "position", 5), true)
  t.eq(maze:set(0, "position", 6), false, "beyond the junction")
  local _, reward, over = maze:step { 0 }
  t.ok(reward:data()[0] == 4 and over:data()[0] == 1)
  local grid = envs.new("gridworld", { num_envs = 1, map = "#######\n#S?.1.#\n#..2..#\n#######" })
  grid:reset(1)
  t.ok(grid:set(0, "right", 2) and not grid:set(0, "right", 3), "choices that the map has")
  t.ok(grid:set(0, "x", 3) and not grid:set(0, "x", 4) and not grid:set(0, "x", 0) and not grid:set(0, "x", 60), "onto floor alone")
  _, reward = grid:step { 3 }
  t.eq(reward:data()[0], -1, "choice 1 is no longer the right one")
  local ball = envs.new("memory_maze", { num_envs = 1, mode = "continuous", observation = "vector" })
  ball:reset(1)
  local done = 0
  for x = 0, 8 do
    if ball:set(0, "x", x) then
      done = done + 1
      t.eq(ball:truth(0).x, x, "the middle of the cell")
    end
  end
  t.ok(done >= 1 and done < 9)
end)

-- ---- rules in Lua ----

local function lamp(more)
  local spec = { name = "lamp", observation = { 2 }, actions = 2, num_envs = 2,
    reset = function(self) self.on, self.at = 0, 5 return { self.on, self.at } end,
    step = function(self, action) self.at = self.at + action return { self.on, self.at }, self.on, self.at >= 9 end,
    truth = function(self) return { on = self.on, at = self.at } end,
    settable = { on = { "off", "on" }, at = { 0, 9, whole = true } },
    set = function(self, name, value)
      if name == "at" and value == 7 then return nil end
      self[name] = value
      return { self.on, self.at }
    end }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

t.test("rules in Lua: facts set, saved, and refused", function()
  local env = envs.new(lamp())
  local obs = env:reset(1)
  t.eq(env.settable[1].name .. env.settable[2].name, "aton")
  t.ok(env:set(1, "on", "on") and env:set(1, "at", 3))
  t.eq(table.concat({ obs:data()[0], obs:data()[1], obs:data()[2], obs:data()[3] }, " "), "0 5 1 3")
  t.eq(env:set(1, "at", 7), false)
  t.eq(env:truth(1).at, 3)
  env:restore(0, env:save(1))
  t.eq(obs:data()[1], 3)
  local _, reward = env:step { 1, 1 }
  t.eq(reward:data()[0], 1)
  t.fails(function() env:set(0, "on", "dim") end)
  t.fails(function() env:set(0, "at", 9.5) end)
  t.fails(function() envs.new(lamp { set = 3 }) end)
  local alone = lamp()
  alone.set = nil
  t.fails(function() envs.new(alone) end)
  t.fails(function() envs.new(lamp { settable = { on = { true } } }) end)
  t.fails(function() envs.new(lamp { settable = 3 }) end)
  local wrong = envs.new(lamp { set = function() return { 1 } end })
  wrong:reset(1)
  t.fails(function() wrong:set(0, "at", 1) end)
end)
