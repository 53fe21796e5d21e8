-- learner_fixtures.lua -- the fixtures learn.NAME: losses, returns, optimisers, whole updates.
local ffi = require "ffi"
local fixture_parts = require "tests.support.fixture_parts"
local cores = require "mneme.models.cores"
local errors = require "mneme.base.errors"
local json = require "mneme.base.json"
local nn = require "mneme.tensor.nn"
local optim = require "mneme.tensor.optim"
local state_files = require "tests.support.state_files"
local tensor = require "mneme.tensor.tensor"

local ops = tensor.ops
local below, flags, gradients, need = fixture_parts.below, fixture_parts.flags, fixture_parts.gradients, fixture_parts.need
local value_of = fixture_parts.value_of

---A number that the config must have.
local function setting(config, key)
  if type(config[key]) ~= "number" then errors.fail(("config.%s is %s, expected a number"):format(key, json.encode(config[key] or json.null))) end
  return config[key]
end

---A true or false that the config must have.
local function switch(config, key)
  if type(config[key]) ~= "boolean" then errors.fail(("config.%s is %s, expected true or false"):format(key, json.encode(config[key] or json.null))) end
  return config[key]
end

local function a2c_results(config, logits, values, file, got, append)
  local returns, advantages = ops.lambda_returns { rewards = need(file, "input.rewards"), values = values,
    done = flags(need(file, "input.done")), gamma = setting(config, "gamma"), lambda = setting(config, "lambda") }
  local loss, actor, value, entropy = ops.a2c_loss { logits = logits, values = values, returns = returns,
    actions = need(file, "input.actions"), entropy_coef = setting(config, "entropy_coef"),
    value_coef = setting(config, "value_coef") }
  loss:backward()
  for name, t in pairs { loss = loss, actor_loss = actor, value_loss = value, entropy = entropy } do
    local key = "output." .. name
    got[key] = got[key] or { shape = { 0 }, values = {} }
    got[key].values[#got[key].values + 1] = t:item()
    got[key].shape[1] = got[key].shape[1] + 1
  end
  if not append then
    got["output.returns"] = value_of(returns)
    if file["output.advantages"] then got["output.advantages"] = value_of(advantages) end
  end
end

local function adam_of(list, config, decays)
  local options = {}
  for _, key in ipairs { "lr", "beta1", "beta2", "eps", "max_norm" } do options[key] = setting(config, key) end
  if decays then options.weight_decay = setting(config, "weight_decay") end
  return (decays and optim.adamw or optim.adam)(list, options)
end

---Runners by name: f(config, file's tensors) -> results.
local learn = {}

function learn.a2c(config, file)
  local got = {}
  local leaf = below(file, "input.", true)
  a2c_results(config, leaf.logits, leaf.values, file, got)
  gradients(got, "grad.input.", { logits = leaf.logits, values = leaf.values })
  return got
end

-- Of the policy that acted, PPO keeps only the log-probabilities of the chosen actions.
function learn.ppo(config, file)
  local done, actions, old_values = flags(need(file, "input.done")), need(file, "input.actions"), need(file, "input.old_values")
  local leaf = below(file, "input.", true)
  local returns, advantages = ops.lambda_returns { rewards = need(file, "input.rewards"), values = old_values,
    done = done, gamma = setting(config, "gamma"), lambda = setting(config, "lambda") }
  local settings = {}
  for _, key in ipairs { "clip", "entropy_coef", "value_coef" } do settings[key] = setting(config, key) end
  for _, key in ipairs { "clip_values", "normalise_advantages" } do settings[key] = switch(config, key) end
  local got = { ["output.returns"] = value_of(returns), ["output.advantages"] = value_of(advantages) }
  local args = { logits = need(leaf, "logits"), values = need(leaf, "values"), actions = actions,
    old_log_probs = ops.pick(ops.log_softmax(need(file, "input.old_logits")), actions),
    old_values = ops.slice(old_values, { to = -1 }), advantages = advantages, returns = returns }
  for key, value in pairs(settings) do args[key] = value end
  local results = { ops.ppo_loss(args) }
  for i, name in ipairs { "loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction" } do
    got["output." .. name] = value_of(results[i])
  end
  results[1]:backward()
  gradients(got, "grad.input.", { logits = leaf.logits, values = leaf.values })
  return got
end

local function steps_of_adam(config, file, decays)
  local got, parameters, names, list = {}, below(file, "param.", true), {}, {}
  for name in pairs(parameters) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = parameters[name] end
  local adam = adam_of(list, config, decays)
  local norms = {}
  for step = 1, setting(config, "steps") do
    for i, name in ipairs(names) do
      local g = need(file, "input.grad" .. step .. "." .. name)
      ffi.copy(list[i]:grad_data(), g:data(), g:size() * 4)
    end
    adam:step()
    norms[step] = adam:grad_norm()
    for i, name in ipairs(names) do got["output.step" .. step .. "." .. name] = value_of(list[i]) end
  end
  for i, name in ipairs(names) do got["final.m." .. name], got["final.v." .. name] = value_of(adam.m[i]), value_of(adam.v[i]) end
  got["output.norm"] = { shape = { #norms }, values = norms }
  return got
end

function learn.adam(config, file) return steps_of_adam(config, file, false) end
function learn.adamw(config, file) return steps_of_adam(config, file, true) end

function learn.a2c_train(config, file)
  if type(config.core_config) ~= "table" then errors.fail "config.core_config is not an object" end
  local c = cores.new(config.core, config.core_config, true)
  local wide = need(file, "param.actor.0.weight"):shape()
  local heads = nn.heads(c.d_out, wide[1], need(file, "param.actor.1.weight"):shape()[1])
  local agent = nn.container { { "core", c.module }, heads.children[1], heads.children[2] }
  local named = {}
  agent:each(function(name, t, buffer) if not buffer then named[name:gsub("^core%.", "")] = t end end)
  local given, renamed = below(file, "param."), {}
  for name, t in pairs(given) do renamed[name:match "^actor%." and name or name:match "^critic%." and name or "core." .. name] = t end
  agent:load_state_dict(renamed)
  local adam = adam_of(agent:parameters(), config)
  local got, start = {}, below(file, "state.")
  if state_files.mirrors_differ(c, start) then c.store_all_channels() end
  for update = 1, setting(config, "updates") do
    adam:zero_grad()
    local y, final = c(need(file, "input.x"), flags(need(file, "input.done")), state_files.fold(c, start))
    local logits, values = heads(y)
    a2c_results(config, logits, values, file, got, update > 1)
    if update == 1 then
      got["output.logits"], got["output.values"] = value_of(logits), value_of(values)
      gradients(got, "grad.param.", named)
      for key, t in pairs(state_files.unfold(c, final, "value")) do got["final." .. key] = t end
    end
    adam:step()
    if update == 1 then got["output.norm"] = { shape = { 1 }, values = { adam:grad_norm() } } end
    for name, t in pairs(named) do got["output.step" .. update .. "." .. name] = value_of(t) end
    tensor.clear_tape()
  end
  return got
end

return learn
