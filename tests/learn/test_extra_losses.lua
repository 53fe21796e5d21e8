-- test_extra_losses.lua -- terms that a script adds to a loss (aux): their gradient arrives in the core and in modules of their own, with
-- their weight; they are logged, saved and resumed; without them, or with weight 0, an agent learns as before, bit for bit.
local t = require "tests.harness"
local files = require "mneme.base.files"
local mn = require "mneme"
local learner_rig = require "tests.support.learner_rig"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"

local dir = shell.folder()
local makers = learner_rig.learners "aux_coef"

-- A learner whose core must rebuild the observation; `coef` nil: without that.
local function rebuilding(make, settings, coef, hidden)
  local all = { minibatches = 1, epochs = 1, window = 0, targets = "rollout", steps = 1e4, max_norm = 0, aux_coef = coef }
  for key, value in pairs(settings) do all[key] = value end
  local decoder
  local l = learner_rig.learner(function(cfg, env, agent)
    decoder = mn.nn.linear(agent.core.d_out, 16)
    local extra = coef and { modules = { decoder = decoder }, aux = { rebuild = function(batch)
      return (decoder(batch[hidden or "core_output"]) - batch.observations):square():mean()
    end } }
    return make(cfg, env, agent, extra)
  end, "gru", all)
  return l, decoder
end

-- Gradients of the term alone, of the agent's parameters and the decoder's, as a call of the agent has them.
local function alone(l, decoder, before)
  local after = learner_rig.parameters(l)
  learner_rig.put(l, before)
  local list = l.agent:parameters()
  for _, p in ipairs(decoder:parameters()) do list[#list + 1] = p end
  for _, p in ipairs(list) do p:zero_grad() end
  local T = l.T
  local _, _, _, y = l.agent(learner_rig.rows(l.x, 0, T), learner_rig.rows(l.resets, 0, T), mn.keep(l.pieces[1].state))
  local loss = (decoder(y) - learner_rig.rows(l.x, 0, T)):square():mean()
  loss:backward()
  local gradients, value = {}, loss:item()
  for i, p in ipairs(list) do gradients[i] = mn.keep(p:grad()) end
  learner_rig.put(l, after)
  mn.clear_tape()
  return gradients, value
end

for name, make in pairs(makers) do
  t.test(name .. ": the gradient is the loss's and, with the weight aux_coef, the term's", function()
    for _, coef in ipairs { 0.5, 2 } do
      local with, decoder = rebuilding(make, { lr = 0 }, coef)
      local without = rebuilding(make, { lr = 0 })
      for _, l in ipairs { with, without } do
        l:rollout()
        t.ok(l:update())
      end
      local total, plain = learner_rig.gradients(with), learner_rig.gradients(without)
      local moved, kept = {}, {}
      for i, g in ipairs(total) do moved[i] = mn.keep(g) end
      for i, g in ipairs(plain) do kept[i] = mn.keep(g) end
      local of_decoder = {}
      for i, p in ipairs(decoder:parameters()) do of_decoder[i] = mn.keep(p:grad()) end
      local term, value = alone(with, decoder, learner_rig.parameters(with))
      local largest, apart = 0, 0
      for i, g in ipairs(moved) do
        for k = 0, g:size() - 1 do
          local want = kept[i]:data()[k] + coef * (term[i] and term[i]:data()[k] or 0)
          largest, apart = math.max(largest, math.abs(coef * term[i]:data()[k])), math.max(apart, math.abs(g:data()[k] - want))
        end
      end
      t.ok(largest > 1e-3 and apart < 1e-5, ("gradients up to %g, apart by %g"):format(largest, apart))
      for i, g in ipairs(of_decoder) do
        for k = 0, g:size() - 1 do t.near(g:data()[k], coef * term[#moved + i]:data()[k], 1e-5) end
      end
      t.near(with.losses.rebuild, value, 1e-5)
      t.near(with.losses.loss, without.losses.loss + coef * value, 1e-4)
      t.eq(without.losses.rebuild, nil)
    end
  end)

  t.test(name .. ": with weight 0 the agent learns as without, bit for bit; with another it does not", function()
    local function trained(coef)
      local l = rebuilding(make, { num_envs = 4, minibatches = 2, epochs = 2, previous = "action,reward" }, coef)
      learner_rig.trained(l, 4)
      return table.concat(learner_rig.parameters(l))
    end
    t.ok(trained(0) == trained(nil), "a weight of 0 matters")
    t.ok(trained(0.5) ~= trained(nil), "a weight of 0.5 does not")
  end)

  t.test(name .. ": pieces of a rollout (horizon) and the torso's features are there, too", function()
    local l = rebuilding(make, { horizon = 4, num_envs = 2 }, 1)
    learner_rig.trained(l, 2)
    t.ok(l.losses.rebuild > 0)
    l = rebuilding(make, { horizon = 4, num_envs = 2, lr = 0.02 }, 1, "features")
    learner_rig.trained(l, 1)
    local first = l.losses.rebuild
    for _ = 1, 20 do                       -- RAdam begins slowly
      learner_rig.trained(l, 10)
      if l.losses.rebuild < 0.3 * first then break end
    end
    t.ok(l.losses.rebuild < 0.3 * first, ("%g, then %g"):format(first, l.losses.rebuild))
  end)

  t.test(name .. ": what is no loss is refused in words", function()
    local function with(extra, more)
      return function()
        local l = rebuilding(function(cfg, env, agent) return make(cfg, env, agent, extra) end, more or {})
        l:rollout()
        l:update()
      end
    end
    local function aux(f) return with { aux = f } end
    t.raises(aux(function() end), "aux: aux gave nothing, expected a tensor of one element")
    local temperature = mn.tensor { data = { 1 }, grad = true }
    t.raises(aux(function(batch) return (batch.values * temperature):square():mean() end),
      "temperature %[1%] has a gradient in the loss, but belongs to no module")
    t.raises(aux(function() return 3 end), "aux: aux gave a number, expected a tensor of one element")
    t.raises(with { aux = { mine = function(batch) return batch.values end } },
      "aux: mine gave a tensor %[16,3%] %(f32%), expected one element %(f32%) %(x:mean%(%)%)")
    local logged = make.defaults.entropy_coef and "entropy" or "td_loss"
    t.raises(with { aux = { [logged] = function(batch) return batch.values:mean() end } },
      ("aux: %s is logged by %s itself, expected another name"):format(logged, name))
    t.raises(with { aux = { loss = function(batch) return batch.values:mean() end } }, "aux: loss is logged by")
    t.raises(with { aux = 3 }, name .. ": aux is a number, expected function%(batch%)")
    t.raises(with { aux = { mine = 3 } }, name .. ": aux.mine is a number")
    t.raises(with { axu = function() end }, "unknown key of the fourth argument of " .. name .. ": 'axu'; did you mean 'aux'")
    t.raises(with(3), name .. ": the fourth argument is a number")
    t.raises(with { modules = { decoder = 3 } }, name .. ": modules.decoder is a number, expected a module")
    t.raises(with(nil, { aux_coef = 2 }), name .. ": aux_coef: there is no aux")
    t.raises(aux(function(batch) return batch.memory end), "unknown field of batch: 'memory'")
    t.raises(function()
      rebuilding(function(cfg, env, agent) return make(cfg, env, agent, { modules = { memory = agent.core.module } }) end, {})
    end, "is parameter %d+ again: is a module in two places")
    mn.clear_tape()
  end)
end

t.test("a module that no term uses stays as it is", function()
  for _, make in pairs(makers) do
    local idle
    local l = learner_rig.learner(function(cfg, env, agent)
      idle = mn.nn.linear(3, 2)
      return make(cfg, env, agent, { modules = { idle = idle }, aux = function(batch) return batch.values:mean() end })
    end, "gru", { minibatches = 1, epochs = 1, steps = 1e4 })
    local before = learner_rig.bytes(idle.weight)
    learner_rig.trained(l, 2)
    t.eq(learner_rig.bytes(idle.weight), before)
    t.ok(l.losses.aux ~= nil)
  end
end)

t.test("the shipped example: logged, saved, resumed bit for bit, and evaluated without its decoder", function()
  local words = "run rebuild_observation corridor=3 core.d_model=16 hidden=16 stop_score=-1 checkpoint_every=4096 threads=1"
  local function fine(line) return shell.fine(dir, line) end
  for learner, class in pairs(makers) do
    local run, given = learner .. "-", words .. (class.defaults.epsilon_end and " epsilon_start=0.1 epsilon_end=0.1" or "")
    fine(("%s learner=%s steps=16384 run=%swhole"):format(given, learner, run))
    fine(("%s learner=%s steps=8192 run=%storn"):format(given, learner, run))
    fine(("run rebuild_observation resume=%storn steps=16384"):format(run))
    local function tensors(of) return safetensors.load(("%s/%s%s/checkpoints/step-16384.safetensors"):format(dir, run, of)).tensors end
    local whole, torn, decoders = tensors "whole", tensors "torn", 0
    for name, tensor in pairs(whole) do
      t.ok(learner_rig.bytes(tensor) == learner_rig.bytes(torn[name]), name)
      if name:find "^extra%.decoder%." then decoders = decoders + 1 end
    end
    t.eq(decoders, 4)
    local first, last = nil, nil
    for line in files.read(dir .. "/" .. run .. "whole/metrics.jsonl"):gmatch "[^\n]+" do
      last = tonumber(line:match '"losses/rebuild": ([%d.e+-]+)')
      first = first or last
      t.ok(line:find('"grad/extra.decoder"', 1, true), line)
    end
    t.ok(last < first, ("it rebuilds no better: %g, then %g"):format(first, last))
    fine(("eval %swhole episodes=20"):format(run))
  end
end)

os.execute("rm -rf '" .. dir .. "'")
