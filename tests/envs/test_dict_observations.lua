-- test_dict_observations.lua -- observations of several arrays: codes, floats and a picture, each with a name, a place in the row and a torso of its own,
-- through all that acts, learns, shows, records and explains; of Lua environments and of Gymnasium's Dict and Tuple.
local t = require "tests.harness"
local ffi = require "ffi"
local credit = require "mneme.insight.measure.credit"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local learner_rig = require "tests.support.learner_rig"
local mn = require "mneme"
local normaliser = require "mneme.learn.normaliser"
local observation_parts = require "mneme.envs.observation_parts"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local observation_torsos = require "mneme.models.observation_torsos"

-- A code and a picture are shown at first, and the answer is whether they agree.
local RULES = [[
local function look(self, random)
  local eye = {}
  for k = 1, 18 do eye[k] = self.time == 0 and self.b * 250 or random(40) - 1 end
  return { card = { self.time == 0 and 300 * self.a or 7, 500 }, eye = eye, place = self.time / 2 }
end
local function spec(n, seed)
  return { name = "agree", observation = { place = { 1 }, eye = { 3, 2, 3, dtype = "u8" }, card = { 2, codes = 501 } }, actions = 2, num_envs = n, seed = seed,
    reset = function(self, random)
      self.a, self.b, self.time = random(2) - 1, random(2) - 1, 0
      return look(self, random)
    end,
    step = function(self, action, random)
      self.time = self.time + 1
      local over, right = self.time == 2, action == (self.a == self.b and 1 or 0)
      return look(self, random), over and (right and 1 or -1) or 0, over, right and 1 or 0
    end,
    truth = function(self) return { a = self.a } end, to_know = { a = "class" }, settable = { a = { "low", "high" } },
    set = function(self, _, value)
      self.a = value
      return { card = { 300 * value, 500 }, eye = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 }, place = { 0 } }
    end }
end
]]
local spec = loadstring(RULES .. " return spec")()
local function world(n, seed) return mn.env(spec(n, seed or 1)) end
local SMALL = { "dict", card = { "embedding", width = 4 }, eye = { "impala", hidden = 8 }, place = "flat" }
local SIZE = 21

local function agent_of(env, torso)
  mn.manual_seed(5)
  return mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 8, torso = torso or SMALL, previous = "action,reward" }
end

t.test("every array has a name, a kind and a place in the row, in the order of the names", function()
  local space, said = world(2).observation_space, {}
  for i, p in ipairs(space.parts) do said[i] = ("%s %s %d+%d [%s] %s"):format(p.name, p.kind, p.from, p.n, table.concat(p.shape, ","), tostring(p.codes)) end
  t.eq(table.concat(said, "; "), "card codes 0+2 [2] 501; eye picture 2+18 [3,2,3] nil; place floats 20+1 [1] nil")
  t.eq(space.shape[1], SIZE)
  t.eq(space.dtype, "f32")
  t.eq(space.groups[2].names[18], "eye 17")
  t.eq(space.groups[3].names[1], "place")
end)

t.test("an environment is the same alone and among two and six, and saved and restored", function()
  local function trace(env, i)
    local text = {}
    env:reset()
    for k = 1, 12 do
      local actions = {}
      for b = 1, env.num_envs do actions[b] = (k + b) % 2 end
      local obs, reward = env:step(actions)
      text[k] = ffi.string(obs:data() + i * SIZE, 4 * SIZE) .. reward:data()[i]
    end
    return table.concat(text)
  end
  t.ok(trace(world(1), 0) == trace(world(2), 0) and trace(world(2), 1) == trace(world(6), 1), "bits depend on how many there are")
  local env = world(3)
  env:reset()
  env:step { 0, 1, 0 }
  local saved = env:save(1)
  local a = env:step({ 1, 1, 1 }):to_table()[2]
  env:restore(2, saved)
  t.eq(table.concat(env:step({ 1, 1, 1 }):to_table()[3], " "), table.concat(a, " "))
end)

t.test("what does not fit is an error that names the array, at the function of the script", function()
  local function refused(change, words)
    local own = spec(1)
    change(own)
    local ok, e = pcall(function() mn.env(own):reset() end)
    t.ok(not ok and e.message:find(words), ok and "accepted" or e.message)
  end
  local function gives(x) return function(s) s.reset = function() return x end end end
  local eye = {}
  for k = 1, 18 do eye[k] = 0 end
  refused(gives { 1, 2, 3 }, "agree: reset gave a list of 3 as the observation, expected a table of card, eye, place")
  refused(gives { card = { 1, 2 }, eye = eye }, "gave nothing as place, expected a number")
  refused(gives { card = { 1 }, eye = eye, place = 0 }, "gave a list of 1 as card, expected a list of 2 numbers")
  refused(gives { card = { 1, 501 }, eye = eye, place = 0 }, "gave 501 in place 2 of card, expected a whole number from 0 to 500")
  refused(gives { card = { 1, 0.5 }, eye = eye, place = 0 }, "gave 0.5 in place 2 of card")
  refused(gives { card = { 1, 2 }, eye = eye, place = 0 / 0 }, "in place 1 of place, expected a finite number")
  refused(gives { card = { 1, 2 }, eye = eye, place = 0, more = 1 }, "gave 'more' in the observation, expected only card, eye, place")
  refused(function(s) s.observation.card = 2 end, "observation.card is a number, expected its sizes")
  refused(function(s) s.observation.card = { inner = { 2 } } end, "observation.card is a table with inner, expected its sizes")
  refused(function(s) s.observation.card.kind = "sequence" end, "key")
  refused(function(s) s.observation.eye = { 9, dtype = "u8" } end, "is a picture with 1 sizes")
  refused(function(s) s.observation.card.codes = 2 ^ 21 end, "codes=2097152")
  refused(function(s) s.codes = 4 end, "codes says what one array is")
end)

t.test("each array reaches the torso of its name, and the features stand side by side", function()
  local env = world(2)
  local x = env:reset():reshape(1, 2, SIZE)
  local m = observation_torsos.for_space(env.observation_space, { "dict", card = "codes", place = "flat", eye = function(eye)
    t.eq(table.concat(eye:shape(), ","):match "3,2,3$", "3,2,3")
    return eye:reshape(eye:shape()[1], eye:shape()[2], 18)
  end })
  t.eq(m.d_out, 2 * 501 + 18 + 1)
  local row, y = x:data(), m(x):data()
  for b = 0, 1 do
    local at, from = b * m.d_out, b * SIZE
    for k = 0, 1 do for code = 0, 500 do t.eq(y[at + k * 501 + code], row[from + k] == code and 1 or 0) end end
    for k = 0, 17 do t.near(y[at + 1002 + k], row[from + 2 + k] / 255, 1e-6) end
    t.eq(y[at + 1020], row[from + 20])
  end
  for _, torso in ipairs { false, SMALL } do                     -- the usual ones, and those chosen
    local agent = agent_of(env, torso or "dict")
    local at = 0
    for i, part in ipairs(agent.torso.arrays) do
      t.eq(part.name, env.observation_space.parts[i].name)
      t.eq(part.from, at)
      at = at + part.n
    end
    t.eq(agent.torso.d_out, at)
    t.ok(agent:state_dict()["torso.card.0.weight"], "card has no table")
  end
  t.raises(function() agent_of(env, { "dict", ear = "flat" }) end, "part of the observation in torso dict: 'ear'")
  t.raises(function() agent_of(env, { "dict", card = "conv" }) end, "torso conv reads pictures")
  t.raises(function() agent_of(mn.env("tmaze"), "dict") end, "torso dict reads several arrays by name")
end)

t.test("an own torso gets the arrays by name, and an own module of one of them is trained and saved", function()
  local env = world(2)
  local own = agent_of(env, function(seen)
    t.eq(seen.card:dtype(), "i32")
    return seen.place * 2
  end)
  t.eq(own.torso.d_out, 1)
  local net = mn.nn.linear(18, 3)
  local m = mn.nn.module { net = net, forward = function(_, eye) return net(eye:reshape(eye:shape()[1], eye:shape()[2], 18)) end }
  local agent = agent_of(env, { "dict", eye = m, card = { "embedding", width = 2 }, place = "flat" })
  t.eq(agent.torso.d_out, 4 + 3 + 1)
  t.ok(agent:state_dict()["torso.eye.net.weight"])
  t.eq(agent:describe().torso, "a module of the script")
end)

t.test("running statistics are of the floats alone: codes and pictures stay as they are", function()
  local env = world(2)
  local n = normaliser.of_learner("a2c", { env = env, B = 2, norm_obs = true, norm_reward = false, clip_obs = 10, clip_reward = 0 })
  local learner = { T = 1, B = 2, row = { x = {}, inputs = {} } }
  local x, into = env:reset(), ffi.new("float[?]", 2 * SIZE)
  learner.row.x[1], learner.row.inputs[1] = x:data(), into
  x:data()[20], x:data()[SIZE + 20] = 3, 5
  n:begin(learner)
  for b = 0, 1 do
    for k = 0, 19 do t.eq(into[b * SIZE + k], x:data()[b * SIZE + k]) end
    t.near(into[b * SIZE + 20], b == 0 and -1 or 1, 1e-2)
  end
  local bare = spec(1)
  bare.observation.place = nil
  t.raises(function()
    normaliser.of_learner("a2c", { env = mn.env(bare), B = 1, norm_obs = true, clip_reward = 0 })
  end, "codes and pictures, expected floats")
end)

-- ---- a run ----

local folder = shell.folder()
files.write(folder .. "/agree.lua", { RULES, [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 8 }, learner = "a2c", steps = 512, num_envs = 6, num_steps = 16, hidden = 8, threads = 1,
  checkpoint_every = 192, norm_obs = 1 }
local agent = mn.agent { env = mn.env(spec(cfg.num_envs, cfg.seed)), core = cfg.core, hidden = cfg.hidden,
  torso = { "dict", card = { "embedding", width = 4 }, eye = { "impala", hidden = 8 }, place = "flat" } }
return mn.learner(cfg, mn.env(spec(cfg.num_envs, cfg.seed)), agent):train()
]] })
local function fine(words) return shell.fine(folder, words) end
local function tensors(run, step)
  local list = {}
  for name, tensor in pairs(safetensors.load(("%s/%s/checkpoints/step-%d.safetensors"):format(folder, run, step)).tensors) do
    list[#list + 1] = name .. learner_rig.bytes(tensor)
  end
  table.sort(list)
  return table.concat(list)
end

for _, learner in ipairs { "a2c", "ppo" } do
  local words = learner == "ppo" and "ppo minibatches=2" or learner
  t.test(learner .. ": trained, resumed bit for bit, evaluated", function()
    fine(("run agree.lua learner=%s run=%s"):format(words, learner))
    fine(("run agree.lua learner=%s run=%s-torn steps=192"):format(words, learner))
    fine(("run agree.lua resume=%s-torn steps=512"):format(learner))
    t.ok(tensors(learner, 576) == tensors(learner .. "-torn", 576), "resuming matters")
    t.ok(fine(("eval %s episodes=20"):format(learner)):find "success %d")
    local about = json.decode(files.read(folder .. "/" .. learner .. "/config.json"))
    t.eq(about.torso.eye.name, "impala")
  end)
end

t.test("a run with one and with two environments; shown, explained, changed, exported", function()
  for n = 1, 2 do fine(("run agree.lua num_envs=%d steps=64 run=n%d"):format(n, n)) end
  for _, run in ipairs { "a2c", "n1", "n2" } do
    fine(("view %s out=%s.png"):format(run, run))
    t.ok(fine(("credit %s"):format(run)):find "\n  card .*\n  eye .*\n  place ")
  end
  fine "where a2c episodes=4"
  fine "intervene a2c set=a:high at=0 episodes=4"
  fine "intervene n2 erase=all at=1 episodes=4"
  fine "export a2c to=a.h"
  t.ok(files.read(folder .. "/a.h"):find "numbers %d+ to %d+: eye %[3,2,3%] %(picture%)", "its parts are named")
end)

t.test("credit knows the arrays", function()
  local env = world(1)
  local agent = agent_of(env)
  local names = {}
  for i, part in ipairs(credit.parts(agent, env.observation_space)) do names[i] = ("%s %d"):format(part.name, part.to - part.from) end
  t.eq(table.concat(names, ", "), "card 8, eye 8, place 1, previous action 2, previous reward 1")
end)

-- ---- Gymnasium's ----

local python, why = require("tests.support.python")()
t.test("gym: a Dict and a Tuple with a picture are arrays with names; one environment, two and six", function()
  if not python then t.skip(why) end
  ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"
  ffi.C.setenv("PYTHON", python, 1)
  local FILE = "gym:" .. shell.root:gsub("/$", "") .. "/tests/envs/gym_envs.py:Shows"
  for _, case in ipairs { { kind = "mixed", several = { 1, 2, 6 }, said = "eye picture 960, more floats 2, ways codes 3 4" },
    { kind = "mixed_tuple", several = { 1 }, said = "0 codes 1 4, 1 picture 960" } } do
    for _, n in ipairs(case.several) do
      local env = envs.new(FILE, { kind = case.kind, num_envs = n, workers = math.min(n, 2) })
      local said = {}
      for i, p in ipairs(env.observation_space.parts) do said[i] = ("%s %s %d"):format(p.name, p.kind, p.n) .. (p.codes and " " .. p.codes or "") end
      t.eq(table.concat(said, ", "), case.said)
      env:reset()
      local actions = {}
      for i = 1, n do actions[i] = 0 end
      local obs = env:step(actions)
      local by_name = observation_parts.lists(env.observation_space.parts, obs:data() + (n - 1) * env.observation_space.shape[1])
      local eye = by_name.eye or by_name["1"]
      for k = 0, 959 do t.eq(eye[k + 1], k % 256) end
      t.eq(table.concat(by_name.ways or by_name["0"], " "), case.kind == "mixed" and "1 2 0" or "1")
      if by_name.more then t.eq(table.concat(by_name.more, " "), "1 -1") end
      if n == 2 then t.eq(agent_of(env, { "dict", eye = { "impala", hidden = 8 } }).torso.d_out, 8 + 128 + 3 * 16) end
      env:close()
    end
  end
end)
