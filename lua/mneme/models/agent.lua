-- agent.lua -- a core between an environment and a policy: observations in, logits and values out.
--   observations -> torso -> (with the previous action and reward) -> core -> actor and critic
local ffi = require "ffi"
local cores = require "mneme.models.cores"
local files = require "mneme.base.files"
local errors = require "mneme.base.errors"
local policies = require "mneme.models.policies"
local decays = require "mneme.models.axes.decays"
local feature_maps = require "mneme.models.axes.feature_maps"
local tables = require "mneme.base.tables"
local gates = require "mneme.models.axes.gates"
local default_core_size = require "mneme.models.default_core_size"
local nn = require "mneme.tensor.nn"
local registry = require "mneme.base.registry"
local tensor = require "mneme.tensor.tensor"
local observation_torsos = require "mneme.models.observation_torsos"
local setting_types = require "mneme.base.setting_types"
local ops = tensor.ops
local OWN = "a module of the script"
local FORBIDDEN = 1e9                  -- is subtracted from the logit of an action that is not allowed

---@class Agent
---@field core Core
---@field module Module all parameters: torso, core, actor and critic
---@field heads Module the policy and value heads: logits and values from the core's output
---@field torso Module observations [T,B,...] -> [T,B,d]
---@field script_parameters integer? of the agent with the script's own core, of a core of a config's settings
---@field previous table { action = boolean, reward = boolean }: which parts of the previous step are inputs
---@field statistics table<string, Tensor>? that load_state_dict was given: observation.mean ...
---@field actions integer numbers that the policy head gives of a step, the parameters of its distribution: logits of a discrete space
---@field action_space Space of the environment that it was made for
---@field kind table of its policy's distributions: see policies.lua
---@field observation_space table of the environment that it was made for
local Agent = {}
Agent.__index = Agent
Agent.__tostring = function(self) return tostring(self.module) end

local known = { env = true, core = true, hidden = true, torso = true, previous = true, policy = true, value = true, head_act = true, distribution = true,
  head_norm = true }
local theirs = { actor = "policy", critic = "value" }          -- the names that CleanRL has for heads

-- "action,reward" as a set.
local function read_previous(text)
  local set = { action = false, reward = false }
  if type(text) ~= "string" then
    errors.raise(("agent: previous is a %s, expected a text such as \"action,reward\""):format(type(text)))
  end
  for word in text:gmatch "[^,%s]+" do
    if set[word] == nil then errors.unknown("word in previous:", word, { "action", "reward" }) end
    set[word] = true
  end
  return set
end

-- The core that was given, or one made to fit.
local function fitting_core(given, d_in)
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" or type(given[1]) ~= "string" then
    errors.need("agent: core", given, "module", "mn.core(...), a name, or { name, option = ... }")
  end
  if type(given) == "table" and type(given[1]) == "string" then
    given = cores.new(tables.merged({ d_in = d_in }, given))
  end
  if given.config.d_in ~= d_in then
    errors.raise(("agent: the core takes d_in=%d, but it is given %d numbers a step: the observations as the torso gives them%s"):format(
      given.config.d_in, d_in, ", and what `previous` adds"))
  end
  return given
end

-- A head that the script made, checked on zeros.
local function own_head(name, part, d, expected, fits)
  return (observation_torsos.own("agent: " .. name, part, tensor.new { shape = { 2, 3, d } }, expected, fits))
end

-- Q of every action, whose largest is the value: the script's own policy head, or one with a hidden layer, normalised unless head_norm = false;
-- with head_act = "leaky_relu" that of learner=stream.
local function make_q_head(options, d, hidden, actions)
  if options.value then errors.usage("agent: value is a head of its own, expected none: the value of an agent that acts by Q is the largest Q") end
  local q = options.policy and own_head("policy", options.policy, d, ("[2,3,%d]: Q of each of %d actions"):format(actions, actions),
    function(sizes) return #sizes == 1 and sizes[1] == actions end)
  if not q and options.head_act == "leaky_relu" then q = nn.heads(d, hidden, actions, "leaky_relu").children[1][2] end
  if not q then
    local first = nn.linear(d, hidden)
    local norm = options.head_norm ~= false and nn.layer_norm(hidden) or nil
    local last = nn.linear(hidden, actions, { init = nn.init.orthogonal(1) })
    local parts = norm and { { "0", first }, { "norm", norm }, { "1", last } } or { { "0", first }, { "1", last } }
    q = nn.container(parts, function(_, y)
      y = first(y)
      return last(ops.relu(norm and norm(y) or y))
    end)
  end
  return nn.container({ { "actor", q } }, function(_, y)
    local all = q(y)
    return all, (ops.max(all, { axis = -1 }))
  end)
end

-- Policy and value: the script's own, or else the usual.
local function make_heads(options, d, hidden, actions, kind)
  if kind.values then return make_q_head(options, d, hidden, actions) end
  local means = kind.means and actions / 2           -- then the other half are log-deviations, learned beside the head
  local heads = nn.heads(d, hidden, means or actions, options.head_act, means and 0.01)
  if not options.policy and not options.value and not means then return heads end
  local actor, critic = heads.children[1][2], heads.children[2][2]
  if means and not options.policy then actor = policies.with_deviation(actor, means) end
  if options.policy then
    local what = options.env.action_space.kind == "discrete" and "a logit for each of %d actions" or "the %d parameters of its distribution"
    actor = own_head("policy", options.policy, d, ("[2,3,%d]: " .. what):format(actions, actions),
      function(sizes) return #sizes == 1 and sizes[1] == actions end)
  end
  if options.value then
    critic = own_head("value", options.value, d, "[2,3,1] or [2,3]: one value a step",
      function(sizes) return #sizes == 0 or #sizes == 1 and sizes[1] == 1 end)
  end
  return nn.container({ { "actor", actor }, { "critic", critic } }, function(_, y)
    local value = critic(y)
    return actor(y), #value:shape() == 2 and value or value:squeeze(-1)
  end)
end

local function whole(torso, core, heads)
  return nn.container { { "torso", torso }, { "core", core.module }, heads.children[1], heads.children[2] }
end

-- The settings of a core with remember = "chrono" as chrono:STEPS, by the steps that the environment asks its agent to remember.
local function reaching_back(core, env)
  local steps = env.horizon and env:horizon()
  if not steps then
    errors.usage(("core.remember=chrono: it is not known how far back %s asks to remember"):format(tostring(env.id)),
      "core.remember=chrono:STEPS, such as chrono:200")
  end
  return tables.merged(core, { remember = ("chrono:%d"):format(math.max(2, steps)) })
end

---An agent: torso, core, policy head and value head.
---@param options table env = mn.env(...) (for its observation and action space); core: mn.core(...), or its name or settings,
---  { "gru", d_model = 64 }, made to fit the observations; hidden = 128, units of the actor and the critic; head_act = "tanh", "relu" or "leaky_relu":
---  their activation, and how they begin (mn.nn.heads); torso: what
---  turns observations into numbers (mn.torso): a name, { "conv", option = ... }, default by the observation space, or your
---  own, a module or function from [T,B,...] (of several arrays: from a table of them by name) to [T,B,d]; policy, value: own heads, modules or functions
---  from the core's output
---  [T,B,core.d_out] to logits [T,B,actions] (of other spaces the parameters of the distribution) and values [T,B,1] or [T,B] (a function has no parameters);
---  previous = "action,reward": what of the step before is an input too (the action as a one-hot; floats as they are); "" or nil is what the
---  environment needs (env.needs: "action" where an observation says nothing without it), "none" nothing;
---  distribution: of the policy, "normal" or "tanh_normal" for a box, "epsilon_greedy": it acts by the largest of the Q values that its policy head
---  gives, which are its values, too; or a kind of your own (policies.lua); head_norm = false: no layer norm in the hidden layer of Q
---@return Agent
local function agent(options)
  errors.need("agent: what it is made of", options, nil, "{ env = mn.env(...), core = mn.core(...) }")
  for key in pairs(options) do
    if theirs[key] then errors.usage(("agent: %s is called %s here"):format(key, theirs[key])) end
    if not known[key] then errors.unknown("key of agent:", key, tables.keys(known)) end
  end
  local env, core = options.env, options.core
  if not env or not core then errors.raise "agent: expected { env = mn.env(...), core = mn.core(...) }" end
  errors.need("agent: env", env, "observation_space", "mn.env(...)")
  local hidden = errors.whole("agent", "hidden", options.hidden or 128, 1)
  local told_of_step = (options.previous or "") == "" and env.needs or options.previous or ""
  local previous = read_previous(told_of_step == "none" and "" or told_of_step)
  local torso = observation_torsos.for_space(env.observation_space, options.torso)
  local space = env.action_space
  local kind, kind_name = policies.for_space(space, options.distribution)
  local mask = (env.observation_space.parts or {}).mask
  if mask and kind_name ~= "categorical" then errors.usage(("agent: %s masks actions, which a softmax over them can, distribution=%s cannot"):format(env.id,
    kind_name or "of your own")) end
  local actions = errors.whole("agent", "size of its distribution", kind.size(space), 1)
  local told = space.kind == "box" and space.size or space.kind == "discrete" and space.n or policies.for_space(space).size(space)
  local d_in = torso.d_out + (previous.action and told or 0) + (previous.reward and 1 or 0)
  local function like(c)
    local usual = make_heads({ env = env, head_act = options.head_act, head_norm = options.head_norm }, c.d_out, hidden, actions, kind)
    return nn.container { { "torso", torso }, { "core", c.module }, { "heads", usual } }
  end
  if type(core) == "table" and core.remember == "chrono" then core = reaching_back(core, env) end
  local sizing = default_core_size.fit(core, d_in, like)
  core = fitting_core(core, d_in)
  core.sized = sizing or core.sized
  local heads = make_heads(options, core.d_out, hidden, actions, kind)
  local module = whole(torso, core, heads)
  return setmetatable({ core = core, torso = torso, heads = heads, module = module, hidden = hidden, previous = previous, actions = actions, kind = kind,
    kind_name = kind_name, mask = mask, action_space = space, told = told,
    observation_space = env.observation_space, asked = options, script_parameters = default_core_size.of_script(module, core, like) }, Agent)
end

---Make it act by the largest of the Q values that its policy head gives, for learners of Q: a new head, unless the script made one, and no critic.
---@param what string the learner, for errors
---@param norm boolean? is the hidden layer normalised? nil: as head_act has it
function Agent:act_by_values(what, norm)
  if self.kind.values then return end
  local space, asked = self.action_space, self.asked
  if space.kind ~= "discrete" then
    errors.usage(("%s: the actions of this environment are %s, expected one choice among a few: it takes the largest of their Q values"):format(what,
      tostring(space)), "learner=ppo")
  end
  if asked.distribution then
    errors.usage(("%s: agent: distribution=%s, expected none: this learner acts by the largest Q"):format(what, tostring(asked.distribution)))
  end
  self.kind, self.kind_name = policies.for_space(space, "epsilon_greedy")
  self.asked = tables.merged({ head_norm = norm }, asked)
  self.heads = make_heads(self.asked, self.core.d_out, self.hidden, self.actions, self.kind)
  self.module = whole(self.torso, self.core, self.heads)
end

---Is part of it made by the run's script alone?
---@param about table from describe
local function of_script(about)
  return about.torso == OWN or about.policy ~= nil or about.distribution == OWN or about.value ~= nil or about.own_words ~= nil
end

---Can environment and agent of a run be made without any code of the user's?
---@param about table its config.json
local function of_library(about)
  local name = type(about.core) == "table" and about.core.name
  return not about.env_of_script and not of_script(about) and type(name) == "string" and not name:find "[^%w_]"
    and files.is_file(registry.library .. "cores/" .. name .. ".lua")
end

---Make the agent of a run again; not one that is of_script.
---@param about table from describe
---@return Agent
local function remade(about, env)
  return agent { env = env, core = cores.of_run(about.core), hidden = about.hidden, head_act = about.head_act,
    head_norm = about.head_norm,
    torso = about.torso and setting_types.from_json(about.torso, { "name" }), previous = about.previous, distribution = about.distribution }
end

-- The action of the step before as the memory reads it.
local function told_of(space, action)
  if space.kind == "discrete" then return (ops.one_hot { index = action, classes = space.n }) end
  if space.kind == "box" then return action end
  local all
  for k, n in ipairs(space.counts) do
    local one = ops.one_hot { index = action:select(-1, k - 1), classes = n }
    all = all and ops.concat(all, one) or one
  end
  return all
end

---What goes into the memory: the torso's view of an observation, with what was done and paid before.
---@param x Tensor [T,B,...]
---@param previous table<string, Tensor>? [T,B] each
---@return Tensor [T,B,D]
function Agent:features(x, previous)
  local y = self.torso(x)
  if self.previous.action then y = ops.concat(y, told_of(self.action_space, previous.action)) end
  if self.previous.reward then
    y = ops.concat(y, previous.reward:unsqueeze(-1))
  end
  return y
end

-- Logits of actions that are not allowed where x was observed are too small for any draw: their probability is 0.
local function masked(self, x, logits)
  local mask = self.mask
  if not mask then return logits end
  local allowed = ops.slice { x = x, axis = -1, from = mask.from, to = mask.from + mask.n }
  return logits + (allowed - 1) * FORBIDDEN
end

---Policy and value of every step.
---@param x Tensor [T,B,...] observations as the environment gives them
---@param done Tensor? [T,B] u8: the memory is cleared before this observation
---@param state table? the core's, before the first step; nil: its initial one
---@param probe function? see Core
---@param previous table? { action = [T,B] i32, reward = [T,B] }, of the step before; -1 and 0 if there is none
---@return Tensor logits [T,B,actions], the parameters of its policy: see Agent:distribution
---@return Tensor values [T,B]
---@return table state after the last step
---@return Tensor core_output [T,B,core.d_out], which the heads read
---@return Tensor features [T,B,core.d_in], which the core reads
function Agent:__call(x, done, state, probe, previous)
  local read = self:features(x, previous)
  local y, new = self.core(read, done, state, probe)
  local logits, value = self.heads(y)
  return masked(self, x, logits), value, new, y, read
end

---The policy of every step.
---@param logits Tensor [T,B,actions] what the policy head gave
---@param epsilon Tensor? [1], of Q values: the share of random actions; nil: none
---@return Policy sample, log_prob, entropy, kl, mode, describe: see policies.lua
function Agent:distribution(logits, epsilon)
  return self.kind.of(logits, self.action_space, epsilon)
end

---What a person reads of the policy's parameters: probabilities of actions, of a box means and deviations.
---@param logits ffi.cdata* float[actions] of one step
---@param into ffi.cdata* float[actions]
---@return ffi.cdata* into
function Agent:show_policy(logits, into)
  if self.kind.show then self.kind.show(logits, self.action_space, into)
  else for k = 0, self.actions - 1 do into[k] = logits[k] end end
  return into
end

---Names of these numbers.
---@return string[]
function Agent:policy_names()
  if self.kind.names then return self.kind.names(self.action_space) end
  return tables.filled(self.actions, function(k) return tostring(k - 1) end)
end

---How far one policy is from another: KL(was || now), in nats.
---@param was ffi.cdata* float[n * actions], parameters of n steps
---@param now ffi.cdata* likewise
---@param n integer
---@return ffi.cdata* float[n], until the next call
function Agent:divergence(was, now, n)
  local pair = self.compared
  if not pair or pair.n ~= n then
    pair = { n = n, was = tensor.new { shape = { 1, n, self.actions } }, now = tensor.new { shape = { 1, n, self.actions } } }
    self.compared = pair
  end
  ffi.copy(pair.was:data(), was, 4 * n * self.actions)
  ffi.copy(pair.now:data(), now, 4 * n * self.actions)
  local p = self:distribution(pair.was)
  pair.kl = tensor.no_grad(function() return p:kl(self:distribution(pair.now)) end)
  return pair.kl:data()
end

---Draws an action of every step, with random numbers that depend on the seed, the environment and its time alone.
---@param logits Tensor [T,B,actions]
---@param clock Tensor [3] i32: the seed, then the time of the first row
---@param options table? { greedy = true: the likeliest, first = number of the first environment, place = Tensor [B] of each, epsilon = Tensor [1] }
---@return Tensor actions [T,B], of several numbers [T,B,size]
function Agent:choose(logits, clock, options)
  options = options or {}
  local draw = policies.draw(clock, options.first, options.place)
  local policy = self:distribution(logits, options.epsilon)
  if options.greedy then return policy:mode(draw) end
  return policy:sample(draw)
end

---The same as agents act: see Core:act.
---@param x Tensor [T,B,...]
---@param done Tensor?
---@param state table?
---@param probe function?
---@param previous table?
---@return Tensor logits [T,B,actions]
---@return Tensor values [T,B]
---@return table state after the last step
---@return Tensor core_output [T,B,core.d_out]
function Agent:act(x, done, state, probe, previous)
  local y, new = self.core:act(self:features(x, previous), done, state, probe)
  local logits, value = self.heads(y)
  return masked(self, x, logits), value, new, y
end

---Does a step of acting see less than the same row of a sequence, so that learners must run the sequence again?
---@return boolean
function Agent:acts_apart() return self.core.acts == "steps" end

---Leaves for the previous action and reward, [T,B] each (actions of several numbers [T,B,size]): the third argument of plans;
---nil if the agent has no such inputs.
---@param T integer rows of time
---@param B integer environments
---@return table? { action = Tensor, reward = Tensor }
function Agent:previous_leaves(T, B)
  local leaves = {}
  local space = self.action_space
  if self.previous.action then
    leaves.action = tensor.new { shape = space:shape(T, B), dtype = space.dtype, time = true }:fill(space.dtype == "f32" and 0 or -1)
  end
  if self.previous.reward then leaves.reward = tensor.new { shape = { T, B }, time = true } end
  return next(leaves) and leaves
end

---Gates, decays and feature maps of a core that the script has put into the library's tables, which only the script can do again.
---@param config table of the core
---@return string? "gate=mine,feature=relu"; nil: there are none
local function own_words(config)
  local own = {}
  for _, of in ipairs { { "gate", gates }, { "decay", decays }, { "feature", feature_maps } } do
    local word, list, ours = config[of[1]], of[2].list, of[2].ours
    if type(word) == "string" and rawget(list, word) ~= ours[word] then own[#own + 1] = of[1] .. "=" .. word end
  end
  return own[1] and table.concat(own, ",") or nil
end

---The description for a run's config.json: enough for agent.remade.
---@return table { core = { name, config }, hidden, torso, previous, parameters, size, script_core, script_parameters }
function Agent:describe()
  local torso, asked = self.asked.torso, self.asked
  if observation_torsos.is_own(torso) then torso = OWN end
  local sized = self.core.sized or {}
  return { core = { name = self.core.file or self.core.name, config = self.core.config },
    size = sized.size, size_why = sized.why, script_core = sized.script and sized.script[1], script_parameters = self.script_parameters,
    own_words = own_words(self.core.config), hidden = self.hidden, head_act = asked.head_act, head_norm = self.kind.values and asked.head_norm,
    parameters = self.module:count(),
    torso = torso and setting_types.to_json(torso), policy = asked.policy and OWN,
    distribution = not self.kind_name and OWN or (self.action_space.kind ~= "discrete" or self.kind.values) and self.kind_name or nil,
    value = asked.value and OWN, previous = asked.previous }
end

---What a picture of it is called: "agalite on tmaze-v0, corridor 20", naming what is not as it is by default.
---@param env Env
---@return string
function Agent:title(env) return ("%s on %s%s"):format(self.core.name, env:title(), self.kind.values and "; argmax of Q" or "") end

---The leaves that an optimiser moves.
---@param into Tensor[]? a list to add to
---@return Tensor[]
function Agent:parameters(into) return self.module:parameters(into) end
---Names and tensors; see Module:state_dict.
---@return table<string, Tensor>
function Agent:state_dict() return self.module:state_dict() end

---Load values by name, those of mn.run.state_dict or of a file that `mneme export` wrote: see Module:load_state_dict.  Statistics
---(normalise.*) are where a learner with norm_obs or norm_reward begins.
---@param dict table<string, Tensor>
---@param options { strict: boolean }?
---@return string[] missing, string[] unexpected
function Agent:load_state_dict(dict, options)
  errors.need("load_state_dict", dict, nil, "tensors by name")
  local parameters, statistics = {}, nil
  for name, t in pairs(dict) do
    local key = type(name) == "string" and name:match "^normalise%.(.+)$"
    if key then
      statistics = statistics or {}
      statistics[key] = t
    else parameters[name] = t end
  end
  local missing, unexpected = self.module:load_state_dict(parameters, options)
  self.statistics = statistics
  return missing, unexpected
end

return { new = agent, remade = remade, of_script = of_script, of_library = of_library, own_words = own_words }
