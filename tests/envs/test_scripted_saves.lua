-- test_scripted_saves.lua -- environments made of Lua functions: loops over names have one order in every process, what is saved
-- comes back with its identity, and a rehearsal before the training finds what a resume would change.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local checkpoint_files = require "mneme.runs.checkpoint_files"
local luajit = require "mneme.base.luajit"
local check_resumable = require "mneme.envs.check_resumable"
local shell = require "tests.support.shell"
local env_rig = require "tests.support.env_rig"

-- An environment of one observed number; reset and step are given.
local function small(reset, step, more)
  local spec = { name = "small", observation = { 1 }, actions = 3, num_envs = 1, reset = reset, step = step }
  for key, value in pairs(more or {}) do spec[key] = value end
  return envs.new(spec)
end

local function keys_of(x)
  local keys = {}
  for key in pairs(x) do keys[#keys + 1] = tostring(key) end
  return table.concat(keys, " ")
end

-- ---- pairs ----

t.test("pairs in an environment: numbers, then texts, then booleans, then one key of another kind", function()
  local mixed = { 10, 20, [-1] = 0, [2.5] = 0, [1e6] = 0, zeta = 0, alpha = 0, [""] = 0, Beta = 0, [true] = 0, [false] = 0 }
  t.eq(luajit.ordered(keys_of, mixed), "-1 1 2 2.5 1000000  Beta alpha zeta false true")
  mixed[print] = 0
  t.ok(luajit.ordered(keys_of, mixed):find("true " .. tostring(print), 1, true), "one function as a key comes last")
  mixed[{}] = 0
  t.raises(function() luajit.ordered(keys_of, mixed) end,
    "test_scripted_saves.lua:%d+: pairs: 2 keys are neither numbers nor texts, but a %a+ .-, and have no order %(.-ipairs")
  local n = 0
  for _ in pairs(mixed) do n = n + 1 end
  t.eq(n, 13, "elsewhere pairs takes all keys, also after an error")
  t.eq(luajit.ordered(keys_of, {}), "")
end)

t.test("pairs in an environment: keys may be changed and taken away on the way; f's results and errors pass", function()
  local function take_away(x)
    local seen = {}
    for key, value in pairs(x) do
      seen[#seen + 1] = key .. value
      x[key], x.c = nil, nil
      if x.d then x.d = 9 end
    end
    return unpack(seen)
  end
  t.eq(table.concat({ luajit.ordered(take_away, { a = 1, b = 2, c = 3, d = 4 }) }, " "), "a1 b2 d9")
  local mine = setmetatable({}, {})
  local ok, problem = pcall(luajit.ordered, error, mine)
  t.ok(not ok and problem == mine, "an object that is thrown arrives")
  t.eq(select("#", luajit.ordered(function() return nil, nil end)), 2)
  local inner = luajit.ordered(function()
    pcall(luajit.ordered, error, "x")
    return keys_of { z = 1, y = 1, x = 1, b = 1, a = 1 }
  end)
  t.eq(inner, "a b x y z", "still in order after an inner environment failed")
end)

local HEAD = [[
local mn = require "mneme"
local cfg = mn.config { learner = "a2c", core = { "gru", d_model = 8 }, num_envs = 2, num_steps = 16, hidden = 8, steps = 640, threads = 1 }
local Player = { __index = { move = function() end } }
local kept, calls = {}, 0
local env = mn.env { name = "shop", observation = { 1 }, actions = 3, num_envs = cfg.num_envs, seed = cfg.seed,
]]
local TAIL = [[

}
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }
return mn.learner(cfg, env, agent):train()
]]

local dir = shell.folder()

local function train(run, functions, more)
  files.write(dir .. "/shop.lua", { HEAD .. functions .. TAIL })
  return shell.mneme(dir, ("run shop.lua run=%s seed=3 %s"):format(run, more or ""))
end

t.test("pairs in an environment: processes with other hash seeds end with the same checkpoint", function()
  local want
  for i = 1, 5 do
    local said, status = train("same" .. i, [[
  reset = function(self)
    self.stock = {}
    for _, name in ipairs { "bread", "milk", "cheese", "apples", "tea", "rice", "salt", "oil", "eggs" } do self.stock[name] = 5 end
    return { 0 }
  end,
  step = function(self, action, random)
    local sold = 0
    for name, n in pairs(self.stock) do
      if n > 0 and random() < 0.3 then self.stock[name], sold = n - 1, sold * 2 + n end
    end
    return { sold / 100 }, action == 1 and sold / 100 or 0, random() < 0.1
  end,]])
    t.eq(status, 0, said)
    local checkpoint = files.read(dir .. "/same" .. i .. "/checkpoints/step-640.safetensors")
    want = want or checkpoint
    t.ok(checkpoint == want, "process " .. i .. " ends with other bits")
  end
end)

-- ---- saving ----

t.test("Lua environment: shared tables and tables that hold themselves come back as they were", function()
  local env = small(function(self)
    self.player = { x = 1 }
    self.things = { self.player, { x = 5, owner = self.player } }
    self.me, self.chain = self, {}
    local link = self.chain
    for _ = 1, 500 do
      link.next = { back = link }
      link = link.next
    end
    return { 0 }
  end, function(self)
    self.player.x = self.player.x + 1
    local link, long = self.chain, 0
    while link.next do
      if link.next.back ~= link then return { -1 }, 0 end
      link, long = link.next, long + 1
    end
    return { self.things[1].x * (self.things[2].owner == self.things[1] and self.me == self and long == 500 and 1 or -1) }, 0
  end)
  env:reset(1)
  local bytes = env:save(0)
  env:restore(0, bytes)
  t.eq(env:save(0), bytes)
  t.eq(env:step({ 0 }):data()[0], 2)
  t.eq(env:step({ 0 }):data()[0], 3)
end)

t.test("Lua environment: bytes of an older version still load", function()
  local env = small(function() return { 0 } end, function(self) return { self.t[1] + (self.t.x[1] == "a" and 1 or 0) }, 0 end, { name = "old" })
  env:reset(2)
  local obs = env:restore(0, "mn_lua100000001290345454405{s2:ids6:old-v0s6:lengthn0;s3:obs{n1;n7;}"
    .. "s4:self{s1:t{n1;n1.5;s1:x{n1;s1:a}}}s6:stream{s4:copyn0;s5:drawsn0;s4:seedn1;}s3:sumn0;}")
  t.eq(obs:data()[0], 7)
  t.eq(env:step({ 0 }):data()[0], 2.5)
end)

t.test("Lua environment: what cannot be saved is named by its path", function()
  local deep = {}
  for _ = 1, 1001 do deep = { d = deep } end
  for _, case in ipairs { { setmetatable({}, {}), "save: self%.a%.1 has a metatable, expected plain tables" },
    { print, "save: self%.a%.1 is a function" }, { coroutine.create(print), "self%.a%.1 is a thread" },
    { io.stdout, "self%.a%.1 is a userdata" }, { { [{}] = 1 }, "self%.a%.1 has a table as a key" },
    { deep, "save: self%.a%.1%.d%.d.-%.%.%. has tables more than 1000 deep" } } do
    local env = small(function(self) self.a = { case[1] } return { 0 } end, function() return { 0 }, 0 end)
    env:reset(1)
    t.raises(function() env:save(0) end, case[2])
  end
end)

-- ---- the rehearsal ----

local PASSING = [[
  reset = function(self) self.n = 0 return { 0 } end,
  step = function(self, _, random) self.n, calls = self.n + 1, calls + 1 return { random() }, 0, self.n == 20 end,]]

t.test("rehearsal: what would not resume exactly stops the training at second 0, in one line", function()
  local cases = {
    { [[reset = function(self) self.p = setmetatable({}, Player) return { 0 } end, step = function() return { 0 }, 0 end,]],
      "save: self%.p has a metatable, expected plain tables" },
    { [[reset = function(self) self.f = function() end return { 0 } end, step = function() return { 0 }, 0 end,]], "save: self%.f is a function" },
    { [[reset = function() kept.n = 0 return { 0 } end, step = function() kept.n = kept.n + 1 return { kept.n }, 0 end,]],
      "shop%.lua:6: shop%-v0: saved and restored, it goes on differently: after 1 step place 1 of the observation is 17, in the restored one 18 %(.-upvalue" },
    { [[reset = function() return { 0 } end, step = function() calls = calls + 1 return { 0 }, calls end,]],
      "after 1 step the reward is 17, in the restored one 18" },
    { [[reset = function() return { 0 } end, step = function() calls = calls + 1 return { 0 }, 0, calls % 20 == 0 end,]],
      "after 2 steps the restored episode ends, the other does not" },
    { [[reset = function() return { 0 } end, step = function() return { math.random() }, 0 end,]], "math%.random cannot be saved.-random%(%)" },
  }
  for i, case in ipairs(cases) do
    local said, status = train("bad" .. i, case[1])
    t.eq(status, 1)
    t.ok(said:find(case[2]), case[2] .. " is not in: " .. said)
    t.eq(select(2, said:gsub("\n", "")), 1, said)
    t.eq(files.is_folder(dir .. "/bad" .. i), false, "no run folder is left")
  end
  local said, status = train("good", PASSING)
  t.eq(status, 0, said)
end)

t.test("a resumed training ends with the bits of an undisturbed one, with shared tables and loops over names", function()
  local shop = [[
  reset = function(self)
    self.player = { x = 0 }
    self.things, self.prices = { self.player, { x = 3 } }, { tea = 1, rice = 2, oil = 3, eggs = 4 }
    return { 0 }
  end,
  step = function(self, action, random)
    self.player.x = self.player.x + action
    local sum = 0
    for name, price in pairs(self.prices) do
      if random() < 0.5 then sum, self.prices[name] = sum + price, price * 0.9 end
    end
    return { (self.things[1].x + sum) / 100 }, sum, random() < 0.02
  end,]]
  local said, status = train("whole", shop)
  t.eq(status, 0, said)
  said, status = train("half", shop, "steps=320")
  t.eq(status, 0, said)
  said = shell.fine(dir, "run resume=half steps=640")
  t.ok(said:find("going on at step 320", 1, true), said)
  local function bits(run)                            -- all but the number of lines in the log, which is one more after the stop
    local bytes = files.read(dir .. "/" .. run .. "/checkpoints/step-640.safetensors")
    return (bytes:gsub('\\"lines\\": %d', "", 1):gsub('"crc32c": "%x+"', "", 1))
  end
  t.ok(bits "half" == bits "whole", "other bits")
end)

t.test("an error in the midst of a rollout loses nothing: what was before it is saved, and the resume has the bits of an undisturbed training", function()
  -- calls of step before the error: the first of a rollout, one between, the last of the second environment; the end of an episode is among them
  local functions = [[
  reset = function(self, random)
    self.cards = { random(3), random(3) }
    self.first = self.cards
    return { self.cards[1] }
  end,
  step = function(self, action, random)
    calls = calls + 1
    if calls == tonumber(os.getenv "BREAKS") then error "the sensor is gone" end
    self.cards[1] = random(3)
    return { self.first[1] }, action == self.cards[2] and 1 or 0, random() < 0.2
  end,]]
  for _, learner in ipairs { "a2c", "stream" } do
    local more = ("learner=%s num_envs=2 num_steps=16 norm_obs=1 steps=640"):format(learner)
    local said, status = train("calm_" .. learner, functions, more)
    t.eq(status, 0, said)
    for _, at in ipairs { 321, 340, 352 } do
      local run = ("broken_%s_%d"):format(learner, at)
      said, status = shell.run(dir, ("BREAKS=%d '%s' run shop.lua run=%s seed=3 %s"):format(at, shell.program, run, more))
      t.eq(status, 1, said)
      t.ok(said:find("shop.lua:%d+: the sensor is gone"), said)
      t.eq(checkpoint_files.read(dir .. "/" .. run .. "/checkpoints/step-320.safetensors").step, 320, said)
      shell.fine(dir, "run resume=" .. run)
      local differ = shell.fine(dir, ("diff calm_%s %s"):format(learner, run))
      t.ok(differ:find("checkpoints at step 640 hold equal tensors", 1, true), differ)
    end
  end
end)

t.test("rehearsal: leaves no trace", function()
  local calls, list, random = 0, { n = 0, deep = { "x" } }, math.random
  local env = small(function() calls = calls + 1 return { 0 } end, function(_, _, draw)
    calls, list.n, list.deep[calls] = calls + 1, list.n + 1, calls
    return { draw() }, 0
  end, { num_envs = 3, time_limit = 20 })
  check_resumable.check(env)
  t.eq(calls, 0)
  t.eq(list.n, 0)
  t.eq(keys_of(list.deep), "1")
  t.eq(list.deep[1], "x")
  t.eq(math.random, random)
  local want = env_rig.roll(env, 5, 100)
  local steps = env_rig.rig(env)
  env:reset_raw(steps.obs, 5)
  local log = { [0] = { env_rig.seen(steps, 0) } }
  for _ = 1, 100 do
    check_resumable.check(env)
    env_rig.step(steps)
    log[0][#log[0] + 1] = env_rig.seen(steps, 0) .. ("|%.9g|%d|%d"):format(steps.reward[0], steps.terminated[0], steps.truncated[0])
  end
  t.eq(table.concat(log[0], "\n"), want[0])
  check_resumable.check(envs.new("tmaze", { num_envs = 1 }))               -- in C: nothing to do
end)

-- What a file of engine/envs may get wrong in its reset or step: done here by the world of one that does not.
t.test("rehearsal of environments in C: what one does not declare is named before a training, with its file", function()
  local function spoilt(name, spoil, settings)
    local env = envs.new(name, settings or {})
    local again = env.again
    function env.again(...)
      local other = again(...)
      local step = other.world.step
      function other.world.step(world, action, obs, reward, ...)
        step(world, action, obs, reward, ...)
        spoil(obs, reward, world)
      end
      return other
    end
    return env
  end
  for _, case in ipairs {
    { "tmaze", function(obs) obs[2] = 0 / 0 end, "nan in place 3, expected finite numbers in all %d+" },
    { "tmaze", function(obs) obs[0] = -1 / 0 end, "%-inf in place 1, expected finite numbers" },
    { "tmaze", function(obs, _, world) obs[world.shape[1]] = 0 end, "more numbers than it declares, expected %d+ of an observation" },
    { "tmaze", function(_, reward) reward[0] = 1 / 0 end, "inf as the reward, expected a finite number" },
    { "gridworld", function(obs) obs[0] = 200 end, "200 in place 1, expected codes below %d+" },
    { "tmaze", function(_, _, world) ffi.cast("float *", world.ended.score)[0] = 2 end, "2 as the score, expected 0 to 1", { corridor = 2, time_limit = 4 } },
  } do
    local ok, problem = pcall(check_resumable.check, spoilt(case[1], case[2], case[4]))
    t.eq(ok, false, case[3])
    t.ok(problem.message:find("%-v%d+: step gave " .. case[3]), problem.message)
    t.eq(problem.where, ("engine/envs/%s.c"):format(case[1]))
  end
  for _, e in ipairs(require("mneme.envs.native").list()) do check_resumable.check(envs.new(e.name, { num_envs = 2 })) end
end)

os.execute("rm -rf " .. dir)
