-- look_matrix.lua -- runs of everybody's own parts, and every command that shows, measures or hands on a run: a case is one
-- learner, environment, agent and num_envs, with the script that trains it; `look` runs a command and says what went wrong.
local files = require "mneme.base.files"
local shell = require "tests.support.shell"

local matrix = {
  learners = { "a2c", "ppo", "ppo_horizon", "own", "own_file" }, envs = { "library", "lua" },
  agents = { "library", "core_file", "decay", "gate", "feature", "heads" }, num_envs = { 1, 2, 6 },
}

-- A learner of the user's, which asks more of its environments than a tool gives it: each part of them has as many.
local LEARNER = [[mn.on_policy {
  %sconfig = { lr = 1e-3, parts = 1 }, about = { parts = { "groups of environments", range = { 1, 64 }, whole = true } },
  setup = function(self)
    assert(self.B %% self.parts == 0 and self.T == self.x:shape()[1] - 1, "parts do not divide the environments")
    %s
    self.weights = mn.ones(self.parts, self.B / self.parts)
  end,
  loss = function(self, batch)
    local chosen = mn.pick(mn.log_softmax(batch.logits), batch.actions)
    return -(chosen * batch.advantages):mean() + self.value_coef * (batch.returns - batch.values):square():mean() * self.weights:mean()
  end,
}]]

local LEAKY = [[
local mn = require "mneme"
return { doc = "a leaky average", config = { d_in = 16, d_model = 8, reset = true }, build = function(cfg)
  local gate, value = mn.nn.linear(cfg.d_in, cfg.d_model, { act = "sigmoid" }), mn.nn.linear(cfg.d_in, cfg.d_model)
  return { module = mn.nn.container { { "gate", gate }, { "value", value } }, d_out = cfg.d_model, states = { h = "[B,D]" }, sizes = { D = cfg.d_model },
    forward = function(x, done, state, probe)
      local z = gate(x)
      if probe then z = probe("gate", z) end
      local y, h = mn.gated_scan { x = z * value(x), a = 1 - z, done = cfg.reset and done or nil, h = state.h }
      return y, { h = h }
    end }
end }
]]

local envs = {
  library = [[mn.env("tmaze", { corridor = 3, time_limit = 9, num_envs = cfg.num_envs, seed = cfg.seed })]],
  lua = [[mn.env {
  name = "sign", observation = { 3 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, to_know = { sign = "class" },
  settable = { sign = { 0, 1, whole = true } }, set = function(self, _, value) self.sign = value end,
  truth = function(self) return { sign = self.sign } end,
  reset = function(self, random)
    self.sign, self.time = random(2) - 1, 0
    return { 1 - self.sign, self.sign, 0 }
  end,
  step = function(self, action)
    self.time = self.time + 1
    local over, right = self.time == 4, action == self.sign and 1 or 0
    return { 0, 0, self.time == 3 and 1 or 0 }, over and right or 0, over, right
  end,
}]],
}

local galite = '{ "galite", %s, n_layers = 1, d_model = 8, n_heads = 2, d_head = 4, d_ffn = 8 }'
local agents = {
  library = { core = '{ "gru", d_model = 8 }' }, core_file = { core = '{ "leaky", d_model = 8 }' },
  decay = { core = galite:format 'decay = "mine"',
    before = [[mn.decays.mine = { doc = "1-b^2, 1-g^2", keep = function(b, g) return 1 - b * b, 1 - g * g end }]] },
  gate = { core = galite:format 'gate = "mine"', before = [[mn.gates.mine = { doc = "keys alone", gamma = function(_, K) return K end }]] },
  feature = { core = galite:format 'feature = "mine"',
    before = [[mn.features.mine = { doc = "a^2", rows = function(cfg) return cfg.d_head end, map = function(a) return a:square() end }]] },
  heads = { core = '{ "gru", d_model = 8 }', agent = [[
local core = mn.core("gru", { d_in = 6, d_model = 8 })
local agent = mn.agent { env = env, core = core, torso = mn.nn.linear(env.observation_space.shape[1], 6, { act = "relu" }),
  policy = mn.nn.sequential { mn.nn.linear(core.d_out, 8, { act = "tanh" }), mn.nn.linear(8, env.action_space.n) }, value = mn.nn.linear(core.d_out, 1) }]] },
}

-- How a script trains: settings that fit num_envs, and the learner.
local function learner_of(kind, num_envs)
  local divides = ("minibatches = %d, "):format(num_envs % 3 == 0 and 3 or num_envs)
  if kind == "a2c" then return "", "mn.a2c(cfg, env, agent)" end
  if kind == "ppo" then return divides, "mn.ppo(cfg, env, agent)" end
  if kind == "ppo_horizon" then return 'learner = "ppo", horizon = 8, minibatches = ' .. 2 * num_envs .. ", ", "mn.learner(cfg, env, agent)" end
  if kind == "own" then return ("parts = %d, "):format(num_envs), LEARNER:format("", "") .. "(cfg, env, agent)" end
  return ('learner = "grouped", parts = %d, %s'):format(num_envs, divides), "mn.learner(cfg, env, agent)"
end

---The files of the user's that the scripts of all cases use, in a folder.
function matrix.prepare(folder)
  files.make_folder(folder .. "/learners")
  files.make_folder(folder .. "/cores")
  files.write(folder .. "/learners/grouped.lua", { 'local mn = require "mneme"\nreturn ',
    LEARNER:format("base = mn.learners.ppo, ", "mn.learners.ppo.setup(self)"), "\n" })
  files.write(folder .. "/cores/leaky.lua", { LEAKY })
end

---A case's script.
---@param case { learner: string, env: string, agent: string, num_envs: integer }
---@return string
function matrix.script(case)
  local settings, learner = learner_of(case.learner, case.num_envs)
  local part = agents[case.agent]
  return table.concat({ 'local mn = require "mneme"', part.before or "",
    ("local cfg = mn.config { %score = %s, num_envs = %d, num_steps = 16, hidden = 8, steps = 256, lr = 1e-3, threads = 1 }"):format(settings,
      part.core, case.num_envs),
    "local env = " .. envs[case.env], "mn.manual_seed(cfg.seed)",
    part.agent or "local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }",
    ("return %s:train()"):format(learner), "" }, "\n")
end

---Every way to look at a run R: { name, words, out = a file, finds = what it prints }.  Numbers of episodes
---are divided by nothing that training divided.
matrix.tools = {
  { "view png", "view R out=R.png", out = "R.png" },
  { "view html", "view R erase=all at=1 wait=0 out=R.html", out = "R.html" },
  { "eval", "eval R episodes=7", finds = "at %d+ steps, 7 fresh episodes" },
  { "eval num_envs", "eval R episodes=5 num_envs=1 greedy=1 threads=1 time_limit=3", finds = "length  3%.0" },
  { "record", "eval R episodes=3 record=R-kept", out = "R-kept/episode-2.npz" },
  { "record pairs", "intervene R erase=all at=1 episodes=2 record=R-pairs", out = "R-pairs/with/episode-1.npz" },
  { "where", "where R episodes=5 every=2", finds = "all" },
  { "intervene", "intervene R erase=all at=1 episodes=7", finds = "7 " },
  { "credit", "credit R", finds = "a gradient is what" },
  { "probe", "probe R episodes=48 every=2 out=R.json", out = "R.json" },
  { "report", "report R out=R-report.html", out = "R-report.html" },
  { "export", "export R to=R.safetensors", out = "R.safetensors" },
  { "diff", "diff R R", finds = "equal in all" },
  { "window", "view R", window = true },
}

---Train a case in a folder.
---@return string? problem
function matrix.train(folder, name, case)
  files.write(("%s/%s.lua"):format(folder, name), { matrix.script(case) })
  local said, status = shell.mneme(folder, ("run %s.lua run=%s"):format(name, name))
  return status ~= 0 and said or nil
end

---Run a tool on a trained case.
---@return string? problem
function matrix.look(folder, name, tool)
  local words = tool[2]:gsub("R", name)
  local said, status
  if tool.window then
    said, status = shell.run(folder, ("SDL_VIDEODRIVER=dummy timeout -s INT 2 '%s' %s"):format(shell.program, words))
    status = (status == 124 or status == 130) and 0 or status
  else said, status = shell.mneme(folder, words) end
  local made = tool.out and folder .. "/" .. tool.out:gsub("R", name, 1)
  local problem = status ~= 0 and "status " .. status or said:find "warning" and "a warning" or said:find "attempt to" and "a fault"
    or made and not files.is_file(made) and made .. " is missing" or tool.finds and not said:find(tool.finds) and "no " .. tool.finds
  return problem and ("mneme %s: %s: %s"):format(words, problem, said) or nil
end

---All cases: every learner with every environment, agent and num_envs.
function matrix.all()
  local list = {}
  for _, learner in ipairs(matrix.learners) do
    for _, env in ipairs(matrix.envs) do
      for _, agent in ipairs(matrix.agents) do
        for _, n in ipairs(matrix.num_envs) do list[#list + 1] = { learner = learner, env = env, agent = agent, num_envs = n } end
      end
    end
  end
  return list
end

---A case in words, which also name its files.
function matrix.name(case) return ("%s-%s-%s-%d"):format(case.learner, case.env, case.agent, case.num_envs) end

return matrix
