-- test_own_learner.lua -- learner= and mn.on_policy: which learner a script gets, which settings it has, learners of one's own.
local t = require "tests.harness"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local mn = require "mneme"
local learner_rig = require "tests.support.learner_rig"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"

local dir = shell.folder()
local function write(name, text) files.write(dir .. "/" .. name, { text }) end
local function mneme(words) return shell.mneme(dir, words) end
local function fine(words) return shell.fine(dir, words) end
local function refused(words, what) shell.refused(dir, words, what) end
local function tensors(run, step)
  local list = {}
  for name, tensor in pairs(safetensors.load(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, run, step)).tensors) do
    list[#list + 1] = name .. learner_rig.bytes(tensor)
  end
  table.sort(list)
  return table.concat(list)
end

-- ---- the example ----

t.test("a learner of forty lines has a run folder, a log, exact resume, eval and view", function()
  local _, lines = files.read(shell.root .. "experiments/reinforce.lua"):gsub("\n", "")
  t.ok(lines <= 45, lines .. " lines")
  local words = "corridor=3 core.d_model=16 hidden=16 stop_score=-1 checkpoint_every=2048"
  fine(("run reinforce %s steps=8192 run=whole"):format(words))
  fine(("run reinforce %s steps=4096 run=torn"):format(words))
  fine "run reinforce resume=torn steps=8192 threads=2"
  t.ok(tensors("whole", 8192) == tensors("torn", 8192), "resuming matters")
  local log = files.read(dir .. "/whole/metrics.jsonl")
  for _, name in ipairs { "losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/loss", "charts/score", "grad/actor" } do
    t.ok(log:find(name, 1, true), name)
  end
  t.ok(fine "eval whole episodes=50":find "success %d", "no success")
  fine "view whole out=there.png"
  fine "intervene whole erase=layers.0 at=2 episodes=20"
end)

t.test("it learns", function()
  local score = tonumber(fine("run reinforce quick=1 run=learned"):match "score (%S+) over the last")
  t.ok(score > 0.85, score)
end)

t.test("A2C's loss, written out, is A2C", function()
  local mine = mn.on_policy {
    config = { num_steps = 256, entropy_coef = 0.001, lr = 1e-4, adam_eps = 1e-8 },
    loss = function(self, batch)
      local log_probs = mn.log_softmax(batch.logits)
      local advantage = mn.detach(batch.returns - batch.values)
      local policy = -(mn.pick(log_probs, batch.actions) * advantage):mean()
      local value = (batch.values - batch.returns):square():mean()
      local entropy = -(mn.softmax(batch.logits) * log_probs):sum { axis = -1 }:mean()
      return policy + value * self.value_coef - entropy * self.entropy_coef, { policy_loss = policy, value_loss = value, entropy = entropy }
    end,
  }
  for _, more in ipairs { {}, { horizon = 5, previous = "action,reward", context = 7 } } do
    local a, b = learner_rig.learner(mn.a2c, "gru", more), learner_rig.learner(mine, "gru", more)
    for _ = 1, 3 do
      for _, l in ipairs { a, b } do
        l:rollout()
        t.ok(l:update())
      end
      t.ok(learner_rig.gradients_apart(learner_rig.gradients(b), learner_rig.gradients(a)) < 1e-4, learner_rig.gradients_apart(learner_rig.gradients(b),
        learner_rig.gradients(a)))
      for name, value in pairs(a.losses) do t.near(b.losses[name], value, 1e-4, name) end
    end
  end
end)

t.test("a variant of PPO has its minibatches, and with PPO's own loss its bits", function()
  local ppo = mn.learners.ppo
  local seen = {}
  local same = mn.on_policy { base = ppo, loss = function(self, batch)
    for _, name in ipairs { "observations", "done", "actions", "rewards", "features", "core_output", "logits", "values", "returns", "advantages",
      "old_log_probs", "old_values" } do seen[name] = table.concat(batch[name]:shape(), ",") end
    seen.previous = table.concat(batch.previous.action:shape(), ",")
    return ppo.loss(self, batch)
  end }
  local settings = { num_envs = 4, minibatches = 2, epochs = 2, previous = "action,reward" }
  t.ok(learner_rig.trained(learner_rig.learner(same, "gru", settings), 3) == learner_rig.trained(learner_rig.learner(mn.ppo, "gru", settings), 3), "other bits")
  t.eq(seen.observations, "16,2,16")
  t.eq(seen.features, "16,2,21")
  t.eq(seen.core_output, "16,2,16")
  t.eq(seen.logits, "16,2,4")
  for _, name in ipairs { "done", "actions", "rewards", "values", "returns", "advantages", "old_log_probs", "old_values", "previous" } do
    t.eq(seen[name], "16,2", name)
  end
  local bare = mn.on_policy { base = ppo, loss = function(_, batch) return batch.values:square():mean() end }
  t.ok(learner_rig.trained(learner_rig.learner(bare, "gru", settings), 2))
  settings.target_kl = 0.1
  t.fails(function() learner_rig.trained(learner_rig.learner(bare, "gru", settings), 1) end)
end)

t.test("a variant without a name is no base to compare with: every learner", function()
  local settings = { num_envs = 4, minibatches = 2 }
  local function name_of(class) return learner_rig.learner(class, "gru", settings):describe().learner.name end
  local learners = require "mneme.learn.learners"
  for _, name in ipairs(learners.names()) do
    local base = mn.learners[name]
    local function loss(_, batch) return batch.values:square():mean() end
    t.eq(name_of(base), name)
    t.eq(name_of(mn.on_policy { base = base, loss = loss }), "variant of " .. name)
    t.eq(name_of(mn.on_policy { base = base, loss = loss, name = "mine" }), "mine")
  end
  local kept = mn.on_policy { base = mn.learners.a2c, loss = function(_, batch) return batch.values:square():mean() end }
  mn.learners.registered_variant = kept
  t.eq(name_of(learners.find "registered_variant"), "registered_variant")
  mn.learners.registered_variant = nil
end)

t.test("a batch of a rollout has the rollout's rows; what it has not is an error", function()
  local checked = 0
  local mine = mn.on_policy { loss = function(self, batch)
    local T, B = self.T, self.B
    local function is(name, shape) checked = checked + 1 t.eq(table.concat(batch[name]:shape(), ","), shape, name) end
    for _, name in ipairs { "done", "actions", "rewards", "values", "returns", "advantages" } do is(name, T .. "," .. B) end
    is("observations", "16,3,16")
    is("core_output", "16,3,16")
    is("features", "16,3,16")
    is("logits", "16,3,4")
    t.eq(batch.previous, nil)
    for k = 0, T * B - 1 do
      t.eq(batch.done:data()[k], self.done:data()[k])
      t.eq(batch.actions:data()[k], self.played:data()[k])
    end
    t.fails(function() return batch.observation end)
    return batch.values:square():mean()
  end }
  for _, horizon in ipairs { 0, 4 } do
    local l = learner_rig.learner(mine, "gru", { horizon = horizon })
    l:rollout()
    t.ok(l:update())
    mn.clear_tape()
  end
  t.eq(checked, 20)
end)

-- ---- definitions ----

t.test("a definition that cannot be meant is refused in words", function()
  local loss = function(_, batch) return batch.values:mean() end
  local function define(d) return function() mn.on_policy(d) end end
  t.fails(define(nil))
  t.fails(define {})
  t.fails(define { loss = 3 })
  t.fails(define { loss = loss, los = loss })
  t.fails(define { loss = loss, config = { bta = 3 } })
  t.fails(define { loss = loss, config = { clip = "wide" } })
  t.fails(define { loss = loss, config = { lr = -1 } })
  t.fails(define { loss = loss, config = { lr = 1 }, about = { lr = "mine" } })
  t.fails(define { loss = loss, about = { beta = "mine" } })
  t.fails(define { loss = loss, config = { mood = "calm" }, about = { mood = "mine" } })
  t.fails(define { loss = loss, base = {} })
  t.fails(define { loss = loss, base = mn.ppo })
  t.fails(define { loss = loss, new = loss })
  t.fails(define { loss = loss, optimiser = "sgd" })
  for _, name in ipairs { "agent", "T", "x", "rollout", "update", "losses" } do
    t.raises(define { loss = loss, config = { [name] = 1 }, about = { [name] = "x" } }, "a setting called '" .. name .. "'")
  end
  for what, gives in pairs { ["gave nothing"] = function() end, ["gave a number"] = function() return 3 end,
    ["gave a tensor %[16,3%] %(f32%), expected one element %(f32%) %(x:mean%(%)%)"] = function(_, batch) return batch.values end,
    ["what loss gave to log is a number"] = function(_, batch) return batch.values:mean(), 3 end,
    ["loss, all gave a tensor %[16,3%]"] = function(_, batch) return batch.values:mean(), { all = batch.values } end } do
    t.raises(function() learner_rig.trained(learner_rig.learner(mn.on_policy { loss = gives }, "gru", {}), 1) end, what)
    mn.clear_tape()
  end
end)

t.test("setup makes an optimiser of the learner's leaves, at its rate, in any order; update gives true or false: every learner", function()
  local settings, foreign = { num_envs = 4, minibatches = 2, lr = 0.25, steps = 1e4 }, mn.tensor { data = { 1 }, grad = true }
  local function turned(self)
    local leaves, list = self.agent:parameters(), {}
    for i = #leaves, 1, -1 do list[#list + 1] = leaves[i] end
    return list
  end
  for name, base in pairs(learner_rig.learners()) do
    local function with(make)
      return learner_rig.learner(mn.on_policy { base = base, setup = function(self) self.optimiser = make(self) end }, "gru", settings)
    end
    local wrong = { three = 3, none = {}, leaf = foreign, text = "sgd", other = function(self) return mn.sgd(self.agent:parameters(), { lr = 0.5 }) end,
      unsaved = function(self) return mn.sgd(self.agent:parameters { foreign }) end, kept_none = function() end }
    for what, value in pairs(wrong) do
      local _, err = pcall(with, type(value) == "function" and value or function() return value end)
      t.ok(tostring(err):find "setup made self.optimiser, ", name .. ", " .. what .. ": " .. tostring(err))
    end
    if not name:find "stream" then
      local logged = {}
      for i, list in ipairs { function(self) return self.agent:parameters() end, turned } do
        local l = with(function(self) return mn.sgd(list(self), { lr = self.lr, max_norm = 2 }) end)
        l:advance()
        logged[i] = {}
        l:metrics(logged[i])
        t.eq(l:describe().max_norm, 2)
      end
      for key, value in pairs(logged[1]) do if key:find "^grad/" then t.near(logged[2][key], value, 1e-5 * value, name .. ": " .. key) end end
    end
  end
  write("silent.lua", [[
local mn = require "mneme"
mn.learners.silent = mn.on_policy { base = mn.learners.a2c, update = function(self) self:optimiser_step() end }
local cfg = mn.config { learner = "silent", core = { "gru", d_model = 4 }, hidden = 4, steps = 64, num_envs = 2, num_steps = 8 }
local env = mn.env("tmaze", { corridor = 3, num_envs = cfg.num_envs })
return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()]])
  local said, status = mneme "run silent.lua"
  t.ok(status == 1 and said:find("silent.lua:2: silent: update gave no true or false", 1, true), said)
end)

t.test("parameters(into) adds to a list: of an agent, a core, a sequence model and a layer", function()
  local leaf, core = mn.tensor { data = { 1 }, grad = true }, mn.core("gru", { d_in = 16, d_model = 4 })
  local agent = mn.agent { env = mn.env("tmaze", { corridor = 3 }), core = { "gru", d_model = 4 }, hidden = 4 }
  local model = mn.sequence_model { dataset = mn.dataset("copy", { batch = 2 }), core = mn.core("gru", { d_in = 4, d_model = 4 }) }
  for i, has in ipairs { agent, core, model, mn.nn.linear(2, 2) } do
    local all, alone = has:parameters { leaf }, has:parameters()
    t.ok(#all == #alone + 1 and all[1] == leaf and all[2] == alone[1], i)
  end
end)

t.test("what a learner trains or logs has names, of a class and of a script", function()
  local function loss(_, batch) return batch.values:mean(), { batch.values:mean() } end
  local list = { mn.nn.linear(2, 2) }
  local wrong = { { {}, { loss = loss } }, { {}, { base = mn.learners.a2c, modules = function() return list end } },
    { { modules = list }, { base = mn.learners.a2c } }, { { aux = { function(batch) return batch.values:mean() end } }, { base = mn.learners.a2c } } }
  for _, case in ipairs(wrong) do
    local make = mn.on_policy(case[2])
    t.raises(function() learner_rig.learner(function(cfg, env, agent) return make(cfg, env, agent, case[1]) end, "gru"):advance() end, "%[1%] has no name")
  end
end)

t.test("settings of one's own are checked, and read by the learner", function()
  local mine = mn.on_policy { config = { beta2 = 0.5, calm = true, mood = "low", share = 0.25, count = 3 },
    about = { calm = "c", mood = { "m", choices = { "low", "high" } }, share = { "s", range = { 0, 1 } }, count = { "n", whole = true } },
    loss = function(_, batch) return batch.values:mean() end }
  local l = learner_rig.learner(mine, "gru", { mood = "high", calm = 0 })
  t.eq(l.mood, "high")
  t.eq(l.calm, false)
  t.eq(l.share, 0.25)
  t.eq(l.beta2, 0.5)
  t.fails(function() learner_rig.learner(mine, "gru", { mood = "hgh" }) end)
  t.fails(function() learner_rig.learner(mine, "gru", { share = 2 }) end)
  t.fails(function() learner_rig.learner(mine, "gru", { count = 2.5 }) end)
  t.fails(function() learner_rig.learner(mn.ppo, "gru", { clip_coef = 0.2 }) end)
end)

-- ---- which learner ----

t.test("mn.learners has ours by name, nothing under another name, and takes those of a script", function()
  t.eq(mn.learners.a2c.new, mn.a2c)
  t.eq(mn.learners.ppo.new, mn.ppo)
  t.fails(function() return mn.learners.dqn end)
  local agent = mn.agent { env = mn.env("tmaze", { num_envs = 2 }), core = { "gru", d_model = 4 } }
  local env = mn.env("tmaze", { num_envs = 2 })
  t.eq(mn.learner({ learner = "ppo", num_steps = 4, minibatches = 2 }, env, agent).what, "ppo")
  t.fails(function() mn.learner({ learner = "pp" }, env, agent) end)
  t.fails(function() mn.learner({ learner = 3 }, env, agent) end)
  t.fails(function() mn.learner({}, env, agent) end)
  t.fails(function() mn.learner(nil, env, agent) end)
  mn.learners.odd = { 1 }
  t.fails(function() mn.learner({ learner = "odd" }, env, agent) end)
  mn.learners.odd = nil
  local ok, e = pcall(function() mn.a2c({ num_steps = 4 }, env, agent, { aus = 1 }) end)
  t.ok(not ok and errors.is(e), e)
end)

t.test("learner= is a setting of the training scripts, with the settings of the one that is chosen", function()
  fine "run tmaze quick=1 core=gru core.d_model=8 learner=ppo clip_coef=0.1 update_epochs=2 num_minibatches=2 steps=4096 run=ppo threads=1"
  local config = files.read(dir .. "/ppo/config.json")
  for _, pair in ipairs { '"learner": "ppo"', '"clip": 0.1', '"epochs": 2', '"minibatches": 2' } do t.ok(config:find(pair, 1, true), pair) end
  t.ok(files.read(dir .. "/ppo/metrics.jsonl"):find "losses/approx_kl", "not PPO")
  fine "run noisy_cartpole quick=1 learner=a2c steps=2048 run=a2c"
  config = files.read(dir .. "/a2c/config.json")
  t.ok(config:find('"learner": "a2c"', 1, true) and not config:find '"epochs"' and not config:find '"clip"', config)
  refused("run noisy_cartpole learner=a2c epochs=4", "epochs is a setting of ppo and pqn, and the learner of this run is a2c")
  refused("run tmaze eval_every=4", "eval_every is a setting of supervised, and the learner of this run is a2c")
  refused("run tmaze learner=pp", "unknown learner 'pp'; did you mean 'ppo'")
  refused("sweep tmaze learner=a2c,pp estimate=0", "unknown learner 'pp'")
  refused("run recall learner=ppo", "this script chooses its learner itself")
  fine "run fig2_noisy_cartpole quick=1 learner=a2c steps=2048 run=fig"            -- a study's own settings of PPO are no mistake of the user
  local help = fine "run tmaze learner=ppo --help"
  for _, what in ipairs { "settings of the learner %(ppo%)", "PPO: clip range of the probability ratio %(CleanRL: clip_coef%)", "\n  learner +ppo " } do
    t.ok(help:find(what), what .. " is not in " .. help)
  end
  help = fine "run noisy_cartpole learner=a2c --help"
  t.ok(help:find("settings of the learner (a2c)", 1, true) and not help:find "\n  epochs", help)
  t.ok(fine "run memory_maze --help":find "\n  learner +ppo ", "a study has none")
  t.ok(fine "list learners":find "a2c.*ppo", "no list")
end)

t.test("a learner is a file of learners/, like a core; its settings are those of scripts", function()
  files.make_folder(dir .. "/learners")
  write("learners/calm.lua", [[
-- calm.lua -- values and nothing else.
return require("mneme").on_policy { doc = "values alone", source = "a test", config = { lr = 1e-2, haste = 0.5 },
  about = { haste = { "how much of it", range = { 0, 1 } } },
  loss = function(self, batch) return (batch.values - batch.returns):square():mean() * self.haste end }
]])
  local small = "quick=1 core=gru core.d_model=8 steps=4096 threads=1 "
  fine("run tmaze " .. small .. "learner=calm haste=0.25 run=calm")
  t.ok(files.read(dir .. "/calm/config.json"):find('"haste": 0.25', 1, true))
  fine "run tmaze resume=calm steps=8192"
  fine("run tmaze " .. small .. "learner=learners/calm.lua haste=0.25 run=path")
  t.ok(tensors("calm", 4096) == tensors("path", 4096))
  refused("run tmaze " .. small .. "learner=calm haste=2", "haste=2: expected 0..1")
  refused("run tmaze " .. small .. "learner=calm clip=1", "clip is a setting of ppo, and the learner of this run is calm")
  refused("run tmaze " .. small .. "haste=0.5", "unknown setting 'haste'")
  write("learners/mine.lua", [[
local mn = require "mneme"

return mn.on_policy {
  config = { norm_adv = true }, about = { norm_adv = "whether advantages are normalised" },
  loss = function(self, batch) return (batch.values - batch.returns):square():mean() end,
}
]])
  fine("run tmaze " .. small .. "learner=mine norm_adv=0 run=mine")
  t.ok(files.read(dir .. "/mine/config.json"):find('"norm_adv": false', 1, true), "a learner's own key wins over CleanRL's name")
  refused("run tmaze " .. small .. "learner=calm norm_adv=0", "norm_adv is a setting of ppo, and the learner of this run is calm")
  local help = fine "run tmaze learner=calm --help"
  t.ok(help:find("settings of the learner (calm)", 1, true) and help:find "haste +0.5 +how much of it %(0..1%)", help)
  t.ok(fine "list learners":find "calm +values and nothing else", "no list")
  t.ok(fine "help calm":find "learner=calm %-%- values alone", "no help")
  write("learners/ppo.lua", "error 'mine was loaded'")
  refused("run tmaze learner=ppo", "learner 'ppo' is there twice")
  os.remove(dir .. "/learners/ppo.lua")
  local function at_line(learner, text, where)
    write(("learners/%s.lua"):format(learner), 'local mn = require "mneme"\n\n' .. text)
    local said, status = mneme(("run tmaze %slearner=%s run=%s"):format(small, learner, learner))
    t.ok(status ~= 0 and said:find(where, 1, true), said)
  end
  at_line("told", "return mn.on_policy { config = { speed = 1 },\n  loss = function(_, batch) return batch.values:mean() end }",
    "learners/told.lua:3: on_policy: speed: about does not say what it means")
  at_line("none", "return mn.on_policy {\n  loss = function() end }", "learners/none.lua:4: none: loss gave nothing")
  at_line("item", "return mn.on_policy {\n  loss = function(_, batch) return batch.values:mean():item() end }",
    "learners/item.lua:4: item: while a plan records")
  at_line("bonus", "return mn.on_policy { config = { bonus = 1 }, about = { bonus = 'it' },\n  loss = function(self, batch)\n"
    .. "    return batch.values:mean() * self.bnus\n  end }", "learners/bonus.lua:5: mul: b is missing (self.bnus is nil; did you mean 'bonus'?)")
  write("learners/odd.lua", "return 3")
  local said, status = mneme "run tmaze learner=odd"
  t.ok(status == 1 and said:find("learners/odd.lua is a number, expected what mn.on_policy", 1, true), said)
end)

os.execute("rm -rf '" .. dir .. "'")
