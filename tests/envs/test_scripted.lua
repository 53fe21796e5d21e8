-- test_scripted.lua -- environments made of Lua functions keep the contract of those made of C.
local t = require "tests.harness"
local C = require("mneme.base.engine").C
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local tensor = require "mneme.tensor.tensor"
local env_rig = require "tests.support.env_rig"

local rig, roll, follow = env_rig.rig, env_rig.roll, env_rig.follow

-- Repeat the number seen first; the score is the share of right answers.
local function repeat_first(more)
  local spec = {
    observation = { 2 }, actions = { "low", "high" }, name = "repeat_first", num_envs = 3, time_limit = 20,
    reset = function(self, random)
      self.first, self.right, self.steps = random(2) - 1, 0, 0
      return { self.first, 1 }
    end,
    step = function(self, action, random)
      self.steps = self.steps + 1
      local good = action == self.first
      self.right = self.right + (good and 1 or 0)
      return { random(), 0 }, good and 1 or -1, self.steps == 6, self.right / 6
    end,
    draw = function(self, view) view:rect(0, 0, 1, 1, self.first == 1 and 0xFF or 0xFFFF) end,
    truth = function(self) return { first = self.first } end,
  }
  for key, value in pairs(more or {}) do spec[key] = value end
  return envs.new(spec)
end

t.test("Lua environment: the same contract", function()
  local env = repeat_first()
  t.eq(env.id, "repeat_first-v0")
  t.eq(table.concat(env.action_space.names, " "), "low high")
  local obs = env:reset(4)
  local first = obs:data()[0]
  t.eq(env:truth(0).first, first)
  t.eq(C.mn_canvas_count(env:draw(0)), 1)
  for s = 1, 6 do
    local _, reward, terminated, truncated, info = env:step { first, 0, 1 }
    t.eq(reward:data()[0], 1)
    t.eq(terminated:data()[0], s == 6 and 1 or 0)
    t.eq(truncated:data()[0], 0)
    t.eq(info.ended, s == 6 and 3 or 0)
    if s == 6 then
      t.eq(info.score:data()[0], 1)
      t.eq(info.ret:data()[0], 6)
      t.eq(info.length:data()[0], 6)
      t.eq(info.final_obs:data()[1], 0)
      t.eq(obs:data()[1], 1, "the next episode's first observation")
    end
  end
  local limited = repeat_first { time_limit = 4 }
  limited:reset(4)
  for s = 1, 4 do t.eq(select(4, limited:step { 0, 0, 0 }):data()[0], s == 4 and 1 or 0, "truncated") end
  for word, fact in pairs { ["nan as x"] = 0 / 0, ["a string as x"] = "s", ["a boolean as x"] = true, ["inf as x"] = { 1, 1 / 0 } } do
    local odd = repeat_first { truth = function() return { x = fact } end }
    odd:reset(4)
    t.raises(function() odd:truth(0) end, "test_scripted.lua:%d+: repeat_first: truth gave " .. word .. ", expected finite numbers by name")
  end
  local plain = envs.new { observation = { 2 }, actions = 2, reset = function() return { 0, 1 } end,
    step = function() return { 0, 0 }, 0 end }
  plain:reset(1)
  t.eq(C.mn_canvas_count(plain:draw(0)), 2, "without a draw function the observation is drawn, in a frame")
end)

t.test("Lua environment: seeds, copies, saving", function()
  local a, b = roll(repeat_first(), 5, 200), roll(repeat_first { num_envs = 9 }, 5, 200)
  local c = roll(repeat_first(), 6, 200)
  for i = 0, 2 do t.eq(a[i], b[i]) end
  t.ok(a[0] ~= c[0] and a[0] ~= a[1], "streams are shared")
  for _, steps in ipairs { 0, 3, 70 } do
    local env = repeat_first()
    local _, r = roll(env, 5, steps)
    local bytes, want = env:save(1), follow(r, { 1 }, 100)[1]
    local other = rig(repeat_first { seed = 9 })
    other.env:restore(0, bytes, other.obs)
    other.env:restore(1, bytes .. ("\0"):rep(9), other.obs + 2)
    other.env:restore(2, bytes, other.obs + 4)
    other.time = steps
    t.eq(follow(other, { 2 }, 100, { [0] = 1, 1, 1 })[1], want)
  end
  local odd = envs.new { observation = { 1 }, actions = 1, num_envs = 1,
    reset = function(self)
      self.t = { 1 / 0, -1 / 0, "a;b", [0.1] = true, deep = { x = false } }
      return { 0 }
    end,
    step = function(self)
      local x = self.t
      return { x[0.1] and x.deep.x == false and x[3] == "a;b" and x[2] == -1 / 0 and 1 or 0 }, 0
    end }
  odd:reset(1)
  odd:restore(0, odd:save(0))
  t.eq(odd:step({ 0 }):data()[0], 1)
end)

t.test("an error in what an environment's file declares names the file's line, one in a setting the script's", function()
  local path = os.tmpname() .. ".lua"
  local function position(text, settings)
    files.write(path, { "-- mine\n" .. text:gsub("THE", "reset = function() return { 0 } end, step = function() return { 0 }, 0 end,") })
    local ok, why = pcall(function() local env = envs.new(path, settings or {}) return env end)
    t.ok(not ok, text)
    return why.where
  end
  for _, text in ipairs { "return { THE observation = 1, actions = 2 }", "return { THE observation = { 1 }, actions = 0 }",
    "return { THE observation = { 1 } }",
    "return { THE observation = { 1 }, actions = 2, acitons = 2 }", "return { observation = { 1 }, actions = 2 }", "return function() return { THE } end",
    "return { THE observation = { 1 }, actions = 2, chance = 2 }", "return { THE observation = { 1 }, actions = 2, draw = 3 }" } do
    t.eq(position(text), path .. ":2")
  end
  local fine = "return { THE observation = { 1 }, actions = 2 }"
  for _, settings in ipairs { { num_envs = 0 }, { time_limit = -1 }, { nosuch = 1 } } do t.ok(position(fine, settings):find "test_scripted.lua:%d+$") end
  os.remove(path)
end)

t.test("Lua environment: mistakes are told", function()
  local function broken(key, value)
    return function()
      local env = repeat_first { [key] = value }
      env:reset(1)
      env:step { 0, 0, 0 }
    end
  end
  t.fails(broken("reset", function() return { 1 } end))
  t.fails(broken("reset", function() end))
  t.fails(broken("step", function() return { 1, 2 } end))
  t.fails(broken("step", function() return { 1, "x" }, 0 end))
  t.fails(broken("step", function() return { 1, true }, 0 end))
  local wrong = { { { [0] = 1, 2 }, "a list that begins at 0, of 2 as the observation, expected a list of 2 numbers %(Lua's lists begin at 1" },
    { { [0] = 1, 2, 3 }, "a list that begins at 0, of 3" }, { { 1, nil, 3 }, "a list with nothing in place 2" },
    { { nil, 2 }, "a list with nothing in place 1" },
    { { x = 1, y = 2 }, "a table with x, y as" }, { { { 1, 2 } }, "a list of 1 lists as the observation.*one flat list" },
    { {}, "a list of 0 as" },
    { 3, "a number as" }, { tensor.new { 1, 2 }, "tensor %[2%] f32 %[1, 2%] as the observation.*x:to_table%(%) makes a list" } }
  for _, case in ipairs(wrong) do
    t.raises(broken("reset", function() return case[1] end), "reset gave " .. case[2])
    t.raises(broken("step", function() return case[1], 0 end), "step gave " .. case[2])
  end
  t.fails(broken("step", function() return { 1, 1 }, 0, 0 end))
  t.fails(broken("step", function() return { 1, 1 }, 0, true, false end))
  t.fails(broken("step", function() return { 1, 0 / 0 }, 0 end))
  t.fails(broken("reset", function() return { 1 / 0, 1 } end))
  t.fails(broken("step", function() return { 1, 1 }, 0 / 0 end))
  t.fails(broken("step", function() return { 1, 1 }, 0, true, "all" end))
  t.fails(broken("dtype", "u8"))
  t.fails(function() repeat_first { codes = 3 } end)
  t.fails(function()
    local env = repeat_first { dtype = "u8", codes = 2, reset = function() return { 1, 2 } end }
    t.eq(env.observation_space.codes, 2)
    env:reset(1)
  end)
  t.fails(broken("reset", 3))
  t.raises(broken("observation", {}), "empty list")
  t.raises(broken("actions", 0), "actions=0")
  t.raises(broken("dtype", "f64"), "unknown dtype")
  t.fails(broken("aktions", 3))
  t.raises(broken("time_limit", -1), "time_limit=%-1")
  t.raises(broken("seed", 0.5), "seed=0.5")
  t.fails(broken("name", 3))
  t.fails(broken("name", ""))
  t.fails(broken("actions", {}))
  t.fails(broken("actions", { "low", {} }))
  t.fails(broken("actions", 1e9))
  t.fails(broken("num_envs", 1e9))
  t.fails(broken("observation", { 60000, 60000 }))
  for _, n in ipairs { 0, 1.5, 0 / 0, "3", {} } do
    t.fails(broken("reset", function(_, random) return { random(n), 1 } end))
    t.raises(broken("reset", function(_, random) return { random(2, n), 1 } end), "random%(2, .-one of a..b")
  end
  local env = repeat_first()
  t.raises(function() env:step { 0, 0, 0 } end, "before reset")
  env:reset(1)
  t.raises(function() env:step { 0, 0, 2 } end, "action%[2%]=2")
  t.fails(function() env:step { [0] = 0, 0, 1 } end)
  t.fails(function() tensor.new { [0] = 1, 2 } end)
  local bytes = env:save(0)
  for _, bad in ipairs { "", "mn_lua1", "mn_lua2", bytes:sub(1, -2), bytes:sub(1, 40), bytes .. "x", (bytes:gsub("first", "farst")) } do
    t.raises(function() env:restore(0, bad) end, "restore: ")
  end
  t.fails(function() repeat_first { name = "other" }:restore(0, bytes) end)
  local closure = repeat_first { reset = function(self) self.f = print return { 0, 0 } end }
  closure:reset(1)
  t.fails(function() closure:save(0) end)
  local keyed = repeat_first { reset = function(self) self[{}] = 1 return { 0, 0 } end }
  keyed:reset(1)
  t.fails(function() keyed:save(0) end)
end)

t.test("Lua environment: a mistake of reset or step names that function's own line", function()
  for _, name in ipairs { "reset", "step" } do
    local f = function() return { [0] = 1, 2 }, 0 end
    local line = debug.getinfo(f, "S").linedefined
    local env = envs.new { observation = { 2 }, actions = 1, num_envs = 1, reset = name == "reset" and f or function() return { 0, 0 } end, step = f }
    t.raises(function()
      env:reset(1)
      env:step { 0 }
    end, ("test_scripted.lua:%d: lua: %s gave"):format(line, name))
  end
end)
