-- test_initial_parameters.lua -- init=RUN|FILE.safetensors: what has the name and the shape is taken, the rest is new, and both are said; freeze=PART: it
-- gets no gradient and keeps its bits, by every learner, and a resume takes nothing again.
local ffi = require "ffi"
local t = require "tests.harness"
local config = require "mneme.runs.config"
local learner_rig = require "tests.support.learner_rig"
local files = require "mneme.base.files"
local mn = require "mneme"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"

local dir = shell.folder()
local function run(words)
  local said = shell.fine(dir, "run train env=tmaze env.corridor=3 num_envs=2 num_steps=16 " .. words)
  return said
end
local function refused(words, ...)
  local said, status = shell.mneme(dir, "run train env=tmaze num_envs=2 steps=64 " .. words)
  t.eq(status, 2, said)
  for _, word in ipairs { ... } do t.ok(said:find(word, 1, true), said) end
end

-- Bytes of a run's parameters by name, as they are at a step; those of one part, or of all others.
local function bytes(name, step)
  local list = {}
  for key, x in pairs(safetensors.read(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, name, step)).tensors) do
    if key:find "^agent%." then list[key:sub(7)] = ffi.string(x.data, x.bytes) end
  end
  return list
end

local SMALL = " core=gru core.d_model=8 hidden=8 "
run("steps=64 run=first" .. SMALL)
local first = bytes("first", 64)

t.test("init.map: parameters of other names, the longest beginning up to a dot; a name that nothing begins with is refused", function()
  local tensors = {}
  for key, x in pairs(mn.run.state_dict(dir .. "/first")) do
    local part, rest = key:match "^(%l+)(%..*)$"
    if part == "core" or part == "actor" then tensors[({ core = "memory", actor = "net.policy" })[part] .. rest] = x end
  end
  mn.save(dir .. "/other.safetensors", tensors)
  for key in pairs(tensors) do t.ok(not key:find "^core", key) end
  local said = run("steps=32 lr=0 init=other.safetensors init.map=memory:core,net.policy:actor freeze=core run=mapped" .. SMALL)
  t.ok(said:find("begins with " .. #require("mneme.base.tables").keys(tensors) .. " parameters of other", 1, true), said)
  local n = 0
  for key, x in pairs(bytes("mapped", 32)) do
    if key:find "^core" or key:find "^actor" then
      t.ok(x == first[key], key)
      n = n + 1
    end
  end
  t.ok(n > 4, n)
  refused("init=other.safetensors init.map=memory" .. SMALL, "THEIRS:OURS")
  refused("init=other.safetensors init.map=mem:core" .. SMALL, "no parameter begins with mem", "memory.layers.0")
  refused("init=first init.map=core:core,core:actor" .. SMALL, "'core:actor'", "each of theirs once")
  refused("init=first init.map=actor:critic" .. SMALL, "init.map: critic.0.bias would be both actor.0.bias and critic.0.bias")
  refused("init.map=core:core" .. SMALL, "init.map without init")
  for _, words in ipairs { "actor:critic,critic:actor", "critic:actor,actor:critic", "core:elsewhere,core.layers.0:core.layers.0,actor:critic,critic:actor" } do
    run("steps=32 lr=0 init=first freeze=core run=swapped init.map=" .. words .. SMALL)           -- at once, whatever the order
    local swapped = bytes("swapped", 32)
    for key, x in pairs(first) do
      local part, rest = key:match "^(%l+)(.*)$"
      if part == "core" then t.ok(swapped[key] == x, key) end
      if rest == ".0.weight" then t.ok(swapped[(part == "actor" and "critic" or "actor") .. rest] == x, key) end
    end
    os.execute(("rm -r '%s/swapped'"):format(dir))
  end
end)

for name, class in pairs(learner_rig.learners "lr") do
  t.test(name .. ": the memory of another run, frozen, keeps its bits; the rest trains; a resume begins with nothing again", function()
    local words = ("learner=%s %s init=first freeze=core%s"):format(name, SMALL, class.defaults.epsilon_end and " epsilon_start=0.1 epsilon_end=0.1" or "")
      .. (class.defaults.minibatches and " minibatches=1" or "")
    local said = run(words .. " steps=128 run=whole_" .. name)
    t.ok(said:find "parameters of first, step 64", said)
    t.ok(said:find "frozen: core", said)
    local whole, n, moved = bytes("whole_" .. name, 128), 0, 0
    for key, x in pairs(whole) do
      if key:find "^core%." then
        t.ok(x == first[key], key)
        n = n + 1
      elseif x ~= first[key] then moved = moved + 1 end
    end
    t.ok(n >= 4 and moved >= 2, ("%d of the core, %d moved"):format(n, moved))
    run(words .. " steps=64 run=parts_" .. name)
    shell.run(dir, "mv first hidden")
    local going_on, status = shell.mneme(dir, ("run train resume=parts_%s steps=128"):format(name))
    shell.run(dir, "mv hidden first")
    t.eq(status, 0, going_on)
    for key, x in pairs(bytes("parts_" .. name, 128)) do t.ok(x == whole[key], key) end
  end)
end

t.test("what has another shape is new, and is named; a file gives the same as its run", function()
  local said = run "core=gru core.d_model=8 hidden=12 init=first steps=32 run=wider"
  for _, word in ipairs { "new: ", "actor.0.weight ([12,8], not [8,8])", "critic.0.bias ([12], not [8])" } do t.ok(said:find(word, 1, true), said) end
  said = run "core=lstm core.d_model=8 hidden=8 init=first steps=32 run=other"
  t.ok(said:find "left out: core.layers.0" and said:find "new: core.layers.0", said)
  t.eq(select(2, shell.mneme(dir, "export first to=first.safetensors")), 0)
  run("init=first steps=32 run=of_run" .. SMALL)
  run("init=first.safetensors steps=32 run=of_file" .. SMALL)
  run("init=first/checkpoints/step-64.safetensors steps=32 run=of_checkpoint" .. SMALL)
  local a, b, c = bytes("of_run", 32), bytes("of_file", 32), bytes("of_checkpoint", 32)
  for key, x in pairs(a) do t.ok(b[key] == x and c[key] == x, key) end
end)

-- An environment, a memory, a head and a learner of the user's own.
for _, folder in ipairs { "cores", "learners" } do files.make_folder(dir .. "/" .. folder) end
files.write(dir .. "/learners/plain.lua", { [[
local mn = require "mneme"
return mn.on_policy { doc = "policy gradients", source = "Williams 1992", config = { num_steps = 8 }, loss = function(self, batch)
  local policy = -(mn.categorical(batch.logits):log_prob(batch.actions) * batch.advantages):mean()
  return policy + mn.mse_loss(batch.values, batch.returns)
end }
]] })
files.write(dir .. "/own.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "mine", d_model = 8 }, num_envs = 2, learner = "plain" }
local env = mn.env { name = "signs", observation = { 3 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 5,
  reset = function(self, random) self.sign = random(2) return { self.sign, random(), 1 } end,
  step = function(self, action, random) return { 0, random(), 0 }, action + 1 == self.sign and 1 or -0.5, random(6) == 1 end }
mn.manual_seed(cfg.seed)
local head = mn.nn.module { layer = mn.nn.linear(8, 2), forward = function(self, y) return self.layer(y) end }
return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, policy = head, hidden = 8 }):train()
]] })
files.write(dir .. "/cores/mine.lua", { files.read(shell.root .. "docs/write-a-core.md"):match "as `cores/mygru.lua`:\n```lua\n(.-)\n```" })

for _, n in ipairs { 1, 2, 6 } do
  t.test(("own parts, %d environments: a memory or a head that was taken and is frozen keeps its bits"):format(n), function()
    local function own(words, steps)
      shell.fine(dir, ("run own.lua num_envs=%d steps=%d %s"):format(n, steps, words))
    end
    own("run=own" .. n, 16 * n)
    local before = bytes("own" .. n, 16 * n)
    for _, part in ipairs { "core", "actor" } do
      own(("run=%s%d init=own%d freeze=%s"):format(part, n, n, part), 32 * n)
      local kept, moved = 0, 0
      for key, x in pairs(bytes(part .. n, 32 * n)) do
        if key:match "^%l+" == part then
          t.ok(x == before[key], key)
          kept = kept + 1
        elseif x ~= before[key] then moved = moved + 1 end
      end
      t.ok(kept >= 2 and moved >= 2, ("%s: %d kept, %d moved"):format(part, kept, moved))
    end
  end)
end

t.test("what cannot be meant is refused before training", function()
  refused("init=nobody" .. SMALL, "no such run or file", "init=nobody")
  refused("freeze=cores" .. SMALL, "cores", "did you mean 'core'")
  refused("freeze=core,actor,critic" .. SMALL, "nothing is left that trains")
  refused("freeze=core credit=exact core=mingru core.d_model=8 hidden=8", "credit=exact", "freeze=core")
  mn.save(dir .. "/other.safetensors", { other = mn.zeros(2) })
  refused("init=other.safetensors" .. SMALL, "none of its parameters", "other")
  refused("freeze=," .. SMALL, "freeze=,: names no part")
  for _, wrong in ipairs { 0 / 0, math.huge, -math.huge } do
    for key, x in pairs(mn.run.state_dict(dir .. "/first")) do
      x:data()[x:size() - 1] = wrong
      mn.save(dir .. "/wrong.safetensors", { [key] = x })
      refused("init=wrong.safetensors" .. SMALL, key .. " holds", "expected finite numbers")
    end
  end
end)

t.test("supervised: begins with a file, and a frozen layer keeps its numbers", function()
  local dataset = mn.dataset("mqar", { length = 16, pairs = 2, vocab = 16, batch = 2 })
  local function model()
    mn.manual_seed(1)
    return mn.sequence_model { dataset = dataset, core = mn.core("gru", { d_in = 8, d_model = 8, n_layers = 2 }) }
  end
  local path = dir .. "/model.safetensors"
  local given = model()
  given.core:state_dict()["layers.0.ir.weight"]:fill(0.25)
  mn.save(path, given.module:state_dict())
  local made = model()
  local cfg = { steps = 64, init = path, freeze = "core.layers.0", lr = 0.1 }
  t.eq(config.meta(cfg), nil)
  local learner = mn.supervised(cfg, dataset, made)
  local before = given.module:state_dict()
  learner:begin()
  for _ = 1, 3 do learner:advance() end
  local moved = 0
  for name, x in pairs(made.module:state_dict()) do
    local same = ffi.string(x:data(), 4 * x:size()) == ffi.string(before[name]:data(), 4 * x:size())
    if name:find "^core%.layers%.0%." then t.ok(same, name) elseif not same then moved = moved + 1 end
  end
  t.ok(moved > 3, moved .. " moved")
end)

os.execute("rm -rf '" .. dir .. "'")
