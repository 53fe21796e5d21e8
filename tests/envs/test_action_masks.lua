-- test_action_masks.lua -- masks of actions: what is not allowed is never drawn, in acting, learning, evaluation and play, whatever the agent prefers.
local t = require "tests.harness"
local ffi = require "ffi"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local human_play = require "mneme.insight.view.human_play"
local mn = require "mneme"
local check_resumable = require "mneme.envs.check_resumable"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"
local stepper = require "mneme.insight.episodes.stepper"

-- One of three doors is open, which an observation does not say; a closed one is an error.
local RULES = [[
local function spec(n, several)
  local codes = several == "codes"
  local function look(self) return codes and { self.time } or several and { place = { self.time / 6 }, last = self.open } or { self.time / 6 } end
  return { name = "doors", observation = several and not codes and { place = { 1 }, last = { 1, codes = 3 } } or { 1 },
    codes = codes and 7 or nil, dtype = codes and "u8" or nil, actions = { "a", "b", "c" }, num_envs = n,
    reset = function(self, random)
      self.open, self.time = random(3) - 1, 0
      return look(self)
    end,
    step = function(self, action, random)
      if action ~= self.open and action ~= (self.open + 1) % 3 then error "a closed door" end
      local right = action == self.open
      self.open, self.time = random(3) - 1, self.time + 1
      return look(self), right and 1 or -1, self.time == 6, right and 1 or 0
    end,
    action_mask = function(self) return { self.open ~= 1, self.open ~= 2, self.open ~= 0 } end }
end
]]
local spec = loadstring(RULES .. " return spec")()

for _, several in ipairs { false, true, "codes" } do
  for _, n in ipairs { 1, 2, 6 } do
    local arrays = several == "codes" and "one array of codes" or several and "several arrays" or "one array"
    t.test(("%d environments, %s: only what is allowed is drawn, and it is the likeliest, too"):format(n, arrays), function()
      local env = mn.env(spec(n, several))
      mn.manual_seed(n)
      local agent = mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8 }
      local mask = env.observation_space.parts.mask
      t.eq(agent.mask, mask)
      t.eq(agent.torso.arrays[#agent.torso.arrays].name ~= "action_mask", true)
      for _, greedy in ipairs { false, true } do
        local p = stepper.new(env, agent, { seed = 3, greedy = greedy })
        for _ = 1, 40 do
          local now = p:next()
          local seen = p:observations()
          for a = 0, 2 do
            t.ok((now.policy[a] or now.policy[a + 1]) >= 0)
            if seen[mask.from + a] == 0 then t.eq(now.policy[a], 0) end
          end
          p:step()
          p.acted = false
        end
      end
    end)
  end
end

t.test("a mask that allows nothing or is no list is an error; so are masks of several numbers", function()
  local function refused(change, words)
    local own = spec(1)
    change(own)
    local ok, e = pcall(function() mn.env(own):reset() end)
    t.ok(not ok and e.message:find(words), ok and "accepted" or e.message)
  end
  refused(function(s) s.action_mask = function() return { false, false, false } end end, "no action that is allowed")
  refused(function(s) s.action_mask = function() return { true } end end, "a list of 1 as action_mask, expected a list of 3")
  refused(function(s) s.action_mask = function() return 3 end end, "a number, expected a list of 3")
  refused(function(s) s.actions = mn.multi_discrete { 2, 2 } end, "action_mask is of one choice")
  check_resumable.check(mn.env(spec(2)))
end)

t.test("play: a key of an action that is not allowed takes no step, and the page says so", function()
  local env = mn.env(spec(1))
  local game = human_play.new(env, { scene = scene.load "world" })
  local mask, closed, open = env.observation_space.parts.mask, nil, nil
  for a = 0, 2 do if game.obs[mask.from + a] == 0 then closed = a else open = a end end
  game:move(closed)
  t.eq(game.step, 0)
  t.eq(game.refused, ("abc"):sub(closed + 1, closed + 1) .. " is not allowed now")
  game:move(open)
  t.eq(game.step, 1)
  t.eq(game.refused, nil)
end)

t.test("play keys=: each press of an action that is not allowed is named, by number, by name, again, and no other press", function()
  local folder = shell.folder()
  files.write(folder .. "/fixed.lua", { [[
local mn = require "mneme"
local cfg = mn.config { steps = 16, num_envs = 1, num_steps = 8 }
local env = mn.env { name = "fixed", observation = { 1 }, actions = { "near", "shut", "far" }, num_envs = 1,
  reset = function(self) self.t = 0 return { 0 } end, step = function(self) self.t = self.t + 1 return { 0 }, 1, self.t == 9, 1 end,
  action_mask = function() return { true, false, true } end }
return mn.a2c(cfg, env, mn.agent { env = env, core = { "gru", d_model = 4 } }):train()
]] })
  for keys, wanted in pairs { ["2,1"] = { "1 of 2, at step 0" }, ["near,shut,far"] = { "2 of 3, at step 1" }, ["1,2,tab,2*2,3"] = { "2 of 6, at step 1",
    "4 of 6, at step 1", "5 of 6, at step 1" }, ["1,3,tab"] = {} } do
    local said, found = shell.fine(folder, "play fixed.lua keys=" .. keys), {}
    for at in said:gmatch "key (%d+ of %d+, at step %d+): shut is not allowed now" do found[#found + 1] = at end
    t.eq(table.concat(found, "; "), table.concat(wanted, "; "), keys .. ": " .. said)
  end
end)

t.test("A2C and PPO learn with a mask, evaluate and resume", function()
  local folder = shell.folder()
  files.write(folder .. "/doors.lua", { RULES, [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 8 }, learner = "a2c", steps = 384, num_envs = 4, num_steps = 16, hidden = 8, threads = 1 }
local env = mn.env(spec(cfg.num_envs))
return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })
  for _, learner in ipairs { "a2c", "ppo" } do
    for _, words in ipairs { "run doors.lua learner=%s run=%s", "eval %2$s episodes=4" } do
      words = words:gsub("%%2%$s", learner):format(learner, learner)
      local said = shell.fine(folder, words)
      t.ok(not said:find "nan", said)
    end
  end
end)

local python, why = require("tests.support.python")()
t.test("gym: a mask is an info, a method or a part of the observation", function()
  if not python then t.skip(why) end
  ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"
  ffi.C.setenv("PYTHON", python, 1)
  local FILE = "gym:" .. shell.root:gsub("/$", "") .. "/tests/envs/gym_envs.py:Masked"
  for _, name in ipairs { "can", "may", "action_mask" } do
    local env = envs.new(FILE, { num_envs = 2, workers = 1, mask = name, keys = "t" })
    local mask, obs = env.observation_space.parts.mask, env:reset()
    local size = env.observation_space.shape[1]
    t.eq(size, 1 + 3)
    for _ = 1, 5 do
      local a = {}
      for i = 0, 1 do
        for k = 0, 2 do if obs:data()[i * size + mask.from + k] > 0 then a[i + 1] = k end end
      end
      obs = env:step(a)
    end
    local saved = env:save(1)
    env:restore(0, saved)
    for k = 0, size - 1 do t.eq(obs:data()[k], obs:data()[size + k]) end
    env:close()
  end
  t.raises(function() envs.new(FILE, { num_envs = 1, mask = "never" }):reset() end, "no part of the observation, no info and no method")
end)
