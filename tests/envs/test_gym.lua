-- test_gym.lua -- environments of Gymnasium keep the contract of ours: the same bits for any number of workers, saved, restored and resumed;
-- every space is read or refused in words; a worker that fails is named.
local t = require "tests.harness"
local ffi = require "ffi"
local python, why = require("tests.support.python")()
if not python then t.test("gym: environments of Gymnasium", function() t.skip(why) end) return end
ffi.cdef "int setenv(const char *name, const char *value, int overwrite); int kill(int pid, int signal);"
ffi.C.setenv("PYTHON", python, 1)

local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local npz_reader = require "tests.support.npz_reader"
local shell = require "tests.support.shell"
local terminal = require "mneme.base.terminal"
local gym_rig = require "tests.support.gym_rig"
local FILE, trace, walk = gym_rig.FILE, gym_rig.trace, gym_rig.walk

t.test("gym: one, two and three workers give the same bits, and an environment with its seed is the same alone", function()
  local texts = {}
  for w = 1, 3 do
    local env = walk { num_envs = 5, seed = 3, workers = w }
    env:reset()
    texts[w] = trace(env, 90)
    env:close()
  end
  t.ok(texts[1] == texts[2] and texts[2] == texts[3], "bits differ with the workers")
  t.ok(#texts[1]:gsub("[^|]", "") > 380, "some episodes must end")
  local five, one = walk { num_envs = 3, seed = 1 }, walk { num_envs = 1, seed = 8 }
  five:reset { 4, 8, 15 }
  one:reset()
  one.at = { 2 }
  for k = 1, 60 do
    local a = five:step { (k * 7 + 3) % 2, (k * 7 + 6) % 2, (k * 7 + 9) % 2 }
    local b = one:step { (k * 7 + 6) % 2 }
    t.eq(a:data()[2], b:data()[0])
  end
  five:close()
  one:close()
end)

t.test("gym: an end keeps the last observation, what was reached, and both kinds of end", function()
  local env = walk { num_envs = 4, time_limit = 6, infos = "far,up,never" }
  t.eq(env.time_limit, 6)
  t.eq(table.concat(env.action_space.names, " "), "5 6")
  env:reset()
  local ends, cuts, up = 0, 0, 0
  for _ = 1, 60 do
    local obs, _, terminated, truncated, info = env:step { 0, 1, 0, 1 }
    for i = 0, 3 do
      local over, cut = terminated:data()[i], truncated:data()[i]
      t.ok(over + cut <= 1)
      if over + cut > 0 then
        ends, cuts = ends + over, cuts + cut
        t.eq(info.final_obs:data()[2 * i + 1], info.length:data()[i])
        t.eq(obs:data()[2 * i + 1], 0)
        local x, score = info.final_obs:data()[2 * i], info.score:data()[i]
        if over == 1 then
          up = up + score
          t.eq(score, x > 0 and 1 or 0)
        else t.ok(score ~= score and info.length:data()[i] == 6, "the info has no score where the time ended it") end
      end
    end
  end
  local told = {}
  env:metrics(told)
  t.eq(told["env/far"], 7)
  t.eq(told["env/never"], nil)
  t.ok(told["env/up"] >= 0 and told["env/up"] <= 1)
  told = {}
  env:metrics(told)
  t.eq(next(told), nil, "since the last call")
  t.ok(ends > 4 and cuts > 4 and up > 1, ("%d ends, %d by time, %d up"):format(ends, cuts, up))
  env:close()
end)

t.test("gym: saved and restored, an environment goes on bit for bit, in its place and in another", function()
  local env = walk { num_envs = 3, workers = 2 }
  env:reset()
  trace(env, 25)
  local saved = {}
  for i = 0, 2 do saved[i] = env:save(i) .. "\0\0\0" end
  local on = trace(env, 60, 26)
  for i = 0, 2 do env:restore(i, saved[i]) end
  t.ok(trace(env, 60, 26) == on, "restored, it goes on differently")
  local other = walk { num_envs = 3, seed = 99, workers = 1 }
  other:reset()
  for i = 0, 2 do other:restore(i, saved[i]) end
  t.ok(trace(other, 60, 26) == on, "restored elsewhere, it goes on differently")
  t.raises(function() env:restore(0, "nothing") end, "not a saved environment")
  t.raises(function() env:restore(0, (saved[0]:gsub("Walk", "Talk"))) end, "the bytes are of")
  for _, e in ipairs { env, other } do e:close() end
  local chance = envs.new(FILE .. "Fails", { how = "random", num_envs = 1 })
  chance:reset()
  for _ = 1, 3 do chance:step { 0 } end
  local place = chance:save(0)
  chance:step { 0 }
  t.raises(function() chance:restore(0, place) end, "not reproducible")
  chance:close()
end)

-- What an observation of each space is at step 1: numbers, or the shape and three places of a picture.
local seen = {
  box = { 1, 2, 3, 4 }, ints = { 1, -1, 7 }, discrete = { 0, 1, 0, 0 }, multi = { 0, 1, 0, 1, 0 }, binary = { 1, 1, 0 },
  dict = { 1, 2, 0, 1, 0 }, tuple = { 0, 1, 0, 1 }, grid = { 1, 2, 3, 1, 0, 1, 0, 0 },
}
local groups = { dict = "a 2, b 3", tuple = "0 2, 1_z 2", box = "observation 4", grid = "grid 4, way 4" }

t.test("gym: each space of observations is read as one array", function()
  for kind, expected in pairs(seen) do
    local env = envs.new(FILE .. "Shows", { kind = kind, num_envs = 2, workers = 1 })
    env:reset()
    local obs = env:step { 0, 0 }
    t.eq(env.observation_space.dtype, "f32")
    t.eq(table.concat(obs:to_table()[2], " "), table.concat(expected, " "))
    local parts = {}
    for i, g in ipairs(env.observation_space.groups) do parts[i] = g.name .. " " .. g.n end
    if groups[kind] then t.eq(table.concat(parts, ", "), groups[kind]) end
    env:close()
  end
  for kind, channels in pairs { last = 3, first = 3, grey = 1 } do
    local env = envs.new(FILE .. "Shows", { kind = kind, num_envs = 1 })
    local obs = env:reset()
    t.eq(table.concat(env.observation_space.shape, "x"), "16x20x" .. channels)
    t.eq(env.observation_space.dtype, "u8")
    for k = 0, 319 do t.eq(obs:data()[k], k % 256) end
    env:close()
  end
  local env = envs.new(FILE .. "Shows", { kind = "grid", codes = 9, num_envs = 1 })
  env:reset()
  t.eq(table.concat(env:step { 0 }:to_table()[1], " "), "1 2 3 1 1")
  t.eq(env.observation_space.codes, 9)
  for _ = 2, 8 do env:step { 0 } end
  t.raises(function() env:step { 0 } end, "environment 0: 'grid' holds 9, expected a code below 9")
  env:close()
  env = envs.new(FILE .. "Shows", { kind = "dict", keys = "b", num_envs = 1 })
  t.eq(table.concat(env:reset():to_table()[1], " "), "1 0 0")
  env:close()
end)

-- What is given, and what the environment makes of it.
local given = {
  discrete = { "Discrete(3)", { { 0, 0 }, { 2, 2 } } },
  multi = { "MultiDiscrete(2): action_0 0..1, action_1 0..2", { { { 0, 2 }, 2 }, { { 1, 1 }, 11 } } },
  binary = { "MultiDiscrete(2): action_0 0..1, action_1 0..1", { { { 1, 0 }, 10 } } },
  tuple = { "MultiDiscrete(2): 0 0..1, 1 0..1", { { { 0, 0 }, 1 }, { { 1, 1 }, 12 } } },
  dict = { "MultiDiscrete(3): a_0 0..1, a_1 0..2, b 0..1", { { { 1, 2, 1 }, 112 }, { { 0, 1, 0 }, 1 } } },
  box = { "Box(2): action_0 -1..1, action_1 -2..2", { { { 0.5, -1.5 }, 3.5 }, { { -7, 7 }, -8 } } },
  boxes = { "Box(2): arm -3e+38..3e+38, go -1..1", { { { 100, 0.5 }, 105 }, { { -3, 9 }, 7 } } },
}

t.test("gym: an environment gets the actions that its space says, floats within their bounds", function()
  for kind, about in pairs(given) do
    local env = envs.new(FILE .. "Shows", { actions = kind, num_envs = 2, workers = 1 })
    env:reset()
    t.eq(tostring(env.action_space), about[1])
    for _, case in ipairs(about[2]) do
      local _, reward = env:step { about[2][1][1], case[1] }
      t.near(reward:data()[1], case[2], 1e-5)
    end
    local saved = env:save(1)
    local _, first = env:step { about[2][1][1], about[2][1][1] }
    first = first:data()[1]
    env:restore(1, saved)
    t.eq(select(2, env:step { about[2][1][1], about[2][1][1] }):data()[1], first)
    env:close()
  end
end)

t.test("gym: what cannot be read is refused in words", function()
  local function refused(words, name, settings)
    settings = settings or {}
    settings.num_envs = settings.num_envs or 1
    t.raises(function() envs.new(name:find "^gym:" and name or FILE .. name, settings) end, words)
  end
  refused("is a Graph, expected Box", "Shows", { kind = "graph" })
  refused("the observation holds no numbers", "Shows", { kind = "empty" })
  refused("is a Sequence, expected Box", "Shows", { kind = "sequence" })
  refused("its actions are a Tuple of whole numbers and floats", "Shows", { actions = "both" })
  refused("its actions are a Box, expected Discrete", "Shows", { actions = "ints" })
  refused("no part of the observation has that name", "Shows", { kind = "dict", keys = "c" })
  refused("expected integers", "Shows", { kind = "dict", codes = 4 })
  refused("ValueError: no such map %(.*gym_envs.py:%d+%)", "Fails", { how = "init" })
  refused("unexpected keyword argument 'size'", "Walk", { size = 3 })
  refused("doesn't exist", "gym:NoSuchTask-v3")
  refused("No module named 'no_such_module'", "gym:no_such_module:Task-v0")
  refused("Several has several agents, expected one", "Several")
  refused("there is no file", "gym:no_such_file.py:Task")
  refused("which environment", "gym:")
  local never = os.tmpname()
  os.remove(never)
  refused("Popen is no gymnasium.Env", "gym:subprocess:Popen", { args = "touch " .. never, shell = true })
  t.ok(not files.is_file(never), "it was called")
  refused("codes=300, expected 1..256", "Shows", { kind = "ints", codes = 300 })
  refused("workers=0", "Walk", { workers = 0 })
  refused("seed=%-1", "Walk", { seed = -1 })
  ffi.C.setenv("PYTHON", "no-such-python", 1)
  refused("no%-such%-python: No such file", "Walk")
  ffi.C.setenv("PYTHON", python, 1)
end)

t.test("gym: a worker that fails is named, with its last words", function()
  for how, words in pairs { old = "step gave another number of values, expected observation, reward, terminated",
    raise = "KeyError: 'door' %(.*gym_envs.py:%d+%)", exit = "SystemExit: 4", nan = "environment 0: 'observation' holds nan",
    reward = "environment 0: the reward is inf", die = "worker %d of 2 was killed by signal 9.*the last words", hang = "has not answered in time" } do
    local env = envs.new(FILE .. "Fails", { how = how, num_envs = 2, workers = 2, timeout = how == "hang" and 1 or 60 })
    env:reset()
    for _ = 1, 2 do env:step { 0, 1 } end
    t.raises(function() env:step { 0, 1 } end, words)
    env:close()
  end
end)

t.test("gym: what is not of its space is an error, not read as something else", function()
  for how, words in pairs { none = "'observation' is None, expected %(2,%)", long = "is of shape %(3,%), expected %(2,%)",
    short = "is of shape %(1,%), expected %(2,%)", below = "'observation' holds %-1, expected 0 to 2", beyond = "holds 5, expected 2 to 4",
    multi = "holds %[0, 3%], expected %[0, 0%] to %[2, 2%]", reward = "environment 0: the reward is array%(%[0.%]%), expected a number",
    reset = "reset gave int64, expected an observation and a dict" } do
    local env
    t.raises(function()
      env = envs.new(FILE .. "Odd", { how = how, num_envs = 2, workers = 1 })
      env:reset()
      for _ = 1, 2 do env:step { 0, 1 } end
    end, words)
    env:close()
  end
end)

t.test("gym: last observations are checked, numbers of environments are those of the vector, and what has failed stays so", function()
  local left = os.tmpname()
  local env = envs.new(FILE .. "Ends", { num_envs = 4, workers = 4, left = left })
  env:reset()
  env:step { { 7 }, { 0.1 }, { 0 }, { -1 } }
  t.raises(function() env:step { { 0 }, { 0 }, { 0 }, { 0 } } end, "environment 0: 'observation' holds nan, expected a finite number")
  t.raises(function() env:step { { 0 }, { 0 }, { 0 }, { 0 } } end, "its workers have failed")
  t.raises(function() env:reset() end, "its workers have failed")
  env:close()
  t.eq(files.text(left), "closed")
  os.remove(left)
  env = envs.new(FILE .. "Shows", { kind = "ints", codes = 9, num_envs = 1 })
  env:reset()
  t.raises(function() env:step { 0 } end, "'observation' holds %-1, expected a code below 9")
  env:close()
end)

t.test("gym: where an environment cuts an episode off by itself, what would have followed is in the reward", function()
  local mn = require "mneme"
  for _, n in ipairs { 1, 2, 6 } do
    local env = envs.new(FILE .. "Ends", { num_envs = n, bad = false, workers = 1 })          -- cut off after two steps, which pay nothing
    local agent = mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 }
    local l = mn.a2c({ num_envs = n, num_steps = 4, steps = 4 * n, gamma = 0.5 }, env, agent)
    t.eq(env.time_limit, 0)
    l:begin()
    l:rollout()
    for b = 0, n - 1 do
      t.eq(l.rewards:data()[b], 0)
      t.ok(l.rewards:data()[n + b] ~= 0, "V of the last observation")
      t.eq(l.done:data()[2 * n + b], 1)
    end
    env:close()
  end
end)

t.test("gym: an environment's own picture is drawn, at the step that it is at; what is no picture is refused", function()
  local note, notes = terminal.note, {}
  for shows, told in pairs { colour = false, grey = false, floats = "render gives float64 of shape %(6, 9, 3%)", none = "render gives none" } do
    local env = walk { num_envs = 2, shows = shows }
    env:reset()
    for _ = 1, 2 do env:step { 0, 1 } end
    local rows, cols = ffi.new "int[1]", ffi.new "int[1]"
    terminal.note = function(text) notes[#notes + 1] = text end
    local shape = engine.C.mn_canvas_shapes(env:draw(1))[0]
    terminal.note = note
    if told then t.ok(table.remove(notes):find(told), told) else
      local pixels = engine.C.mn_canvas_pixels(env:draw(1), shape.text, rows, cols)
      t.eq(rows[0], 6)
      t.eq(cols[0], 9)
      local step = env.tensors.obs:data()[3]
      for x = 0, 8 do for channel = 0, 2 do t.eq(pixels[(2 * 9 + x) * 3 + channel], x == step and 255 or 0) end end
    end
    env:close()
  end
end)

local here = shell.folder()
shell.run(here, ("cp '%s' envs.py"):format((FILE:match "^gym:(.*):$")))
local function mneme(words) return shell.run(here, ("PYTHON='%s' '%s' %s"):format(python, shell.program, words)) end
local TRAIN = "run train env=gym:envs.py:Walk env.score=up core=gru core.d_model=8 hidden=8 num_envs=%d num_steps=16 learner=%s minibatches=1 "

t.test("gym: trained, resumed, evaluated, replayed and intervened on as ours are", function()
  for learner, n in pairs { a2c = 2, ppo = 6 } do
    local words = TRAIN:format(n, learner):gsub(learner == "a2c" and "minibatches=1 " or "%z", "")
    local steps = 16 * n
    local said, status = mneme(words .. ("steps=%d run=whole-%s threads=1"):format(6 * steps, learner))
    t.ok(status == 0, said)
    mneme(words .. ("steps=%d run=part-%s threads=1"):format(3 * steps, learner))
    said, status = mneme(("run resume=part-%s steps=%d threads=1"):format(learner, 6 * steps))
    t.ok(status == 0, said)
    local values = {}
    for i, name in ipairs { "whole", "part" } do
      local text = files.text(("%s/%s-%s/checkpoints/step-%d.safetensors"):format(here, name, learner, 6 * steps))
      values[i] = text:sub(9 + tonumber(ffi.cast("const uint64_t *", text)[0]))              -- after the header, which tells seconds
    end
    t.ok(#values[1] > 4000 and values[1] == values[2], learner .. ": resumed, it has other values")
  end
  local packages = json.decode(files.text(here .. "/whole-ppo/config.json")).packages
  t.ok(packages.gymnasium:find "^%d+%.%d" and packages.python and packages.numpy)
  for _, words in ipairs { "eval whole-ppo episodes=20", "view whole-ppo out=p.png", "intervene whole-ppo erase=all at=3 episodes=10", "list runs .",
    "report whole-ppo out=r.html", "play gym:envs.py:Walk keys=5,6 out=q.png", "where whole-ppo episodes=4" } do
    local said, status = mneme(words)
    t.ok(status == 0, words .. "\n" .. said)
  end
end)

t.test("gym: check says whether an environment can be repeated", function()
  local said, status = mneme "check env=gym:envs.py:Walk"
  t.ok(status == 0 and said:find "goes on alike for 500", said)
  shell.run(here, "sed 's/how=\"raise\"/how=\"random\"/' envs.py > chance.py")
  t.eq(select(2, mneme "check env=gym:envs.py:Shows env.kind=grid env.codes=200"), 1, "there is no such code")
  said, status = mneme "check env=gym:envs.py:Fails env.how=beyond"
  t.ok(status == 0 and said:find "'observation' holds 1.5 in environment 0, beyond the bounds of its space, %-1 to 1", said)
  said, status = mneme "check env=gym:envs.py:Walk env.score=upp env.infos=up,hits"
  t.ok(status == 0 and said:find "no info 'upp' %(infos there: [%w, ]*up" and said:find "no info 'hits'" and not said:find "no info 'up'", said)
  said, status = mneme "check env=gym:chance.py:Fails"
  t.ok(status == 1 and said:find "not reproducible", said)
  said, status = mneme((TRAIN:gsub("minibatches=1 ", ""):gsub("envs.py:Walk env.score=up", "chance.py:Fails env.time_limit=5") .. "steps=64 run=luck"):format(2,
    "a2c"))
  t.eq(status, 0, said)
  said, status = mneme "intervene luck erase=all at=2 episodes=4"
  t.ok(status == 1 and said:find "not reproducible, so its episodes are no pairs", said)
  said, status = mneme "eval luck episodes=2 record=seen"
  t.eq(status, 0, said)
  local recorded = npz_reader(here .. "/seen/episode-1.npz")
  t.eq(recorded.observations.shape[1], 5)
  t.ok(recorded.observations.values[0] == 0 and recorded.observations.values[4] > 0, "what was observed before each action")
  said, status = mneme "check luck"
  t.ok(status == 0, said)
end)

-- Of each class: in which form its copies go on alike.
local forms = { { "Free", "free", "pickle" }, { "Free", "deep", "deepcopy" }, { "Free", "loses", nil }, { "Declared", "loses", "state" },
  { "Declared", "free", "pickle" } }

t.test("gym: copies of an environment stand for seed and actions where it is not reproducible; one that loses its state is found out", function()
  for _, case in ipairs(forms) do
    local class, how, form = unpack(case, 1, 3)
    local env = envs.new(FILE .. class, { how = how, num_envs = 2, workers = 1 })
    local other = envs.new(FILE .. class, { how = how, num_envs = 2, workers = 2 })
    env:reset()
    other:reset()
    t.eq(env:copied(), form, class .. " " .. how)
    local saved, apart = {}, {}
    for k = 1, 12 do
      for i = 0, 1 do saved[i], apart[i] = env:save(i, true), env:save(i, "apart") end
      t.ok(#apart[1] < 400, "the state itself is not in it, and so in no file")
      env:step { k % 2, 1 }
    end
    local function on(e)
      local all = {}
      for k = 1, 20 do
        local obs, reward, terminated, truncated = e:step { k % 3 % 2, 0 }
        if terminated:data()[0] + truncated:data()[0] + terminated:data()[1] > 0 then return table.concat(all, " ") end
        for i = 0, 1 do all[#all + 1] = ("%.9g %g"):format(obs:data()[i], reward:data()[i]) end
      end
    end
    local function back(e, from)
      for i = 0, 1 do e:restore(i, from[i]) end
      return on(e)
    end
    if form then
      local first = back(env, saved)
      t.ok(#first > 40 and first == back(env, saved) and first == back(env, saved))
      if form == "deepcopy" then t.raises(function() back(other, apart) end, "not reproducible")
      else t.ok(first == back(other, apart) and first == back(other, apart) and first == back(env, apart), class .. ": another process takes it") end
    else t.raises(function() back(env, saved) end, "not reproducible") end
    env:close()
    other:close()
  end
  local env = envs.new("gym:CartPole-v1", { num_envs = 1 })
  t.eq(env:copied(), "pickle")
  env:close()
end)

t.test("gym: where and intervene of an environment that cannot be played again, by its copies", function()
  for name, works in pairs { ["Free env.how=free"] = true, ["Declared env.how=loses"] = true, ["Free env.how=loses"] = false } do
    local run = name:gsub("%W", "")
    local train = TRAIN:gsub("minibatches=1 ", ""):gsub("Walk env.score=up", name .. " env.score=success"):format(2, "a2c")
    local said, status = mneme(train .. "steps=64 run=" .. run)
    t.eq(status, 0, said)
    for _, line in ipairs { "intervene %s erase=all at=5 episodes=4", "where %s episodes=3 columns=3" } do
      said, status = mneme(line:format(run))
      t.ok(works and status == 0 or status == 1 and said:find "not reproducible", name .. ": " .. said)
    end
  end
  local said, status = mneme "check env=gym:envs.py:Declared env.how=loses"
  t.ok(status == 1 and said:find "get_state" and said:find "not reproducible", said)
end)

t.test("gym: a worker that dies in a training: it is named at once, and all that was learned is saved, bit for bit", function()
  for learner, more in pairs { a2c = "norm_obs=1 norm_reward=1 horizon=5 context=9", ppo = "minibatches=1 previous=action,reward", stream = "" } do
    local n = learner == "stream" and 1 or 4
    local words = TRAIN:gsub("minibatches=1 ", ""):gsub("Walk", "Mortal env.at=103"):format(n, learner) .. more .. " threads=2 "
    local said, status = mneme(words .. ("steps=%d run=dies-%s"):format(64 * 16 * n, learner))
    t.ok(status == 1 and said:find "was killed by signal 9" and said:find "the last words" and said:find(("as it was at step %d, .*resume=dies%%-%s"):format(
      96 * n, learner)), said)
    said, status = mneme(words:gsub("env.at=%d+", "env.at=0") .. ("steps=%d run=lives-%s"):format(96 * n, learner))
    t.eq(status, 0, said)
    local values = {}
    for i, name in ipairs { "dies", "lives" } do
      local text = files.text(("%s/%s-%s/checkpoints/step-%d.safetensors"):format(here, name, learner, 96 * n))
      values[i] = text:sub(9 + tonumber(ffi.cast("const uint64_t *", text)[0]))
    end
    t.ok(#values[1] > 2000 and values[1] == values[2], learner .. ": what was saved is not what was")
  end
  local env = envs.new(FILE .. "Mortal", { at = 2, num_envs = 2, workers = 2, slow = 3 })        -- one dies while the other takes its time
  env:reset { 3, 1 }                            -- an odd seed, an even one
  env:step { 0, 0 }
  local began = engine.C.mn_clock(false)
  t.raises(function() env:step { 0, 0 } end, "worker 1 of 2 was killed by signal 9")
  t.ok(engine.C.mn_clock(false) - began < 2.5, "it was not noticed before the other was done")
  env:close()
end)

t.test("gym: a file of Python that a folder brings is not run", function()
  shell.run(here, "mkdir given && cp -r whole-ppo given/there && cp envs.py keep.py && rm envs.py")
  local said, status = shell.run(here, ("XDG_STATE_HOME='%s/other' PYTHON='%s' '%s' eval given/there episodes=2"):format(here, python, shell.program))
  t.ok(status ~= 0 and said:find "envs.py" and said:find "trust=1", said)
end)

t.test("gym: of a file of Python the text runs that Mneme has read, and no bytecode beside it", function()
  shell.run(here, "cp -r whole-ppo evil && cp keep.py envs.py && mkdir -p evil/source/__pycache__ __pycache__")
  shell.run(here, ([[printf 'open("ran", "w")\n' > x.py && '%s' -c 'import py_compile
for at in ("evil/source/__pycache__", "__pycache__"):
    name = at + "/envs.cpython-" + "".join(map(str, __import__("sys").version_info[:2])) + ".pyc"
    py_compile.compile("x.py", name, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)']]):format(python))
  local said, status = mneme "eval evil episodes=2"
  t.ok(status == 0 and not files.is_file(here .. "/ran"), said)
end)

t.test("gym: a run whose FILE.py is gone is played from its copy; without that, too, check and eval name the file", function()
  shell.run(here, "[ -f envs.py ] || cp keep.py envs.py; cp envs.py gone.py")
  local said, status = mneme(TRAIN:format(4, "ppo"):gsub("envs%.py", "gone.py") .. " steps=256 run=gone")
  t.eq(status, 0, said)
  shell.run(here, "rm gone.py")
  said, status = mneme "check gone"
  t.ok(status == 0 and said:find "note: gone.py is gone since the run began", said)
  t.eq(select(2, mneme "eval gone episodes=2"), 0)
  shell.run(here, "rm gone/source/gone.py")
  said, status = mneme "check gone"
  t.ok(status == 1 and said:find "DAMAGED.*source/gone.py: is not there", said)
  said, status = mneme "eval gone episodes=2"
  t.ok(status ~= 0 and said:find "source/gone.py is not there, and its run needs it", said)
end)

t.test("gym: an interrupted training saves, and leaves no process behind", function()
  shell.run(here, "cp keep.py envs.py")
  local said = shell.run(here, ("PYTHON='%s' setsid '%s' %s steps=100000000 run=cut & p=$!; "):format(python, shell.program, TRAIN:format(4, "ppo"))
    .. "while kill -0 $p && [ ! -s cut/metrics.jsonl ]; do sleep 0.05; done; kill -TERM $p; wait $p")
  t.ok(said:find "resume", said)
  t.ok(shell.run(here, "ls cut/checkpoints"):find "safetensors", said)
  shell.run(here, ("PYTHON='%s' setsid timeout -s KILL 3 '%s' %s steps=100000000 run=killed"):format(python, shell.program, TRAIN:format(4, "ppo")))
  local left = "for p in $(pgrep -f [g]ym_worker.py); do readlink /proc/$p/cwd; done | grep -cx \"$(pwd -P)\" || true"
  shell.wait("the workers to end", function() return shell.run(here, left):match "^0" end)
end)

shell.run("/", ("rm -rf '%s'"):format(here))
