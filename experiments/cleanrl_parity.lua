-- Does PPO with a Gaussian policy learn what CleanRL's learns?   CLEANRL=ppo_continuous_action.py mneme sweep cleanrl_parity trust=1
-- CleanRL's own file, run as it is by tests/reference/cleanrl_ppo.py, which says what to install, and ours with its networks and settings.
local mn = require "mneme"
local nn = mn.nn

local reference = debug.getinfo(1, "S").source:match "^@(.-)[^/]*/?[^/]*$" .. "tests/reference/"
local tasks = { pendulum = { id = "Pendulum-v1", within = 100 }, reacher = { id = "MaskedReacher-v0", within = 3 } }
local claims = {}
for i, name in ipairs { "pendulum mean_return", "pendulum learning", "reacher mean_return", "reacher learning" } do
  local task, metric = name:match "(%S+) (%S+)"
  claims[i] = { id = task .. "-" .. metric, source = "ours; bounds set before the runs",
    text = ("%s: the mean return of %s is equal within %g."):format(task, metric == "learning" and "all episodes" or "the last 100", tasks[task].within),
    test = { "equal", metric = metric, within = tasks[task].within, a = { code = "mneme" }, b = { code = "cleanrl" }, where = { task = task } } }
end

local function cleanrl(cfg, id)
  local words = ("'%s' '%scleanrl_ppo.py' '%s' --env-id %s"):format(os.getenv "PYTHON" or "python3", reference, os.getenv "CLEANRL" or "", id)
  for word, value in pairs { seed = cfg.seed, ["total-timesteps"] = cfg.steps, ["num-envs"] = cfg.num_envs, ["num-steps"] = cfg.num_steps,
    ["num-minibatches"] = cfg.minibatches, ["update-epochs"] = cfg.epochs, ["learning-rate"] = cfg.lr, gamma = cfg.gamma, cuda = 0 } do
    words = words .. (" --%s %.14g"):format(word, value)
  end
  local p = assert(io.popen(words))
  local all, returns = p:read "*a", {}
  p:close()
  local last = assert(all:match "%[([^%]\n]*)%]%s*$", "CleanRL's program has failed: tests/reference/cleanrl_ppo.py says what it needs")
  for x in last:gmatch "[^,%s]+" do returns[#returns + 1] = tonumber(x) end
  return { mean_return = returns[1], learning = returns[2] }
end

return mn.study {
  title = "PPO with a Gaussian policy: CleanRL's and ours",
  question = "Does PPO reach the same return, as soon, as CleanRL's ppo_continuous_action.py, with the same networks and settings?",
  axes = { task = { { label = "pendulum", set = { task = "pendulum", gamma = 0.9 } }, { label = "reacher", set = { task = "reacher", gamma = 0.99 } } },
    code = { "mneme", "cleanrl" } },
  settings = { task = "pendulum", code = "mneme", learner = "ppo", steps = 102400, num_envs = 16, num_steps = 64, horizon = 1, minibatches = 4, epochs = 10,
    lr = 1e-3, lr_schedule = "linear", gamma = 0.99, entropy_coef = 0, norm_obs = true, norm_reward = true, clip_reward = 10, bootstrap_truncated = false,
    threads = 1 },
  about = { task = "Pendulum-v1, or Reacher-v5 of MuJoCo without its velocities", code = "whose PPO" },
  seeds = 5,
  run = function(cfg)
    local task = tasks[cfg.task]
    if cfg.code == "cleanrl" then return cleanrl(cfg, task.id) end
    local env = mn.env("gym:" .. (cfg.task == "reacher" and reference .. "cleanrl_ppo.py:Reacher" or task.id), { num_envs = cfg.num_envs, seed = cfg.seed,
      time_limit = cfg.task == "reacher" and 50 or nil, workers = 1 })
    mn.manual_seed(cfg.seed)
    local d, k = env.observation_space.shape[1], env.action_space.size
    local function net(n, gain)
      return nn.sequential { nn.linear(d, 64, { act = "tanh" }), nn.linear(64, 64, { act = "tanh" }), nn.linear(64, n, { init = nn.init.orthogonal(gain) }) }
    end
    local policy = nn.module { mean = net(k, 0.01), log_std = mn.tensor { shape = { k }, grad = true },
      forward = function(self, x) return (mn.concat(self.mean(x), self.mean(x) * 0 + self.log_std)) end }
    local agent = mn.agent { env = env, core = reference .. "identity_core.lua", torso = function(x) return x end, policy = policy, value = net(1, 1) }
    return mn.learner(cfg, env, agent):train()
  end,
  metrics = { mean_return = { "return, last 100 episodes" }, learning = { "return, mean of all episodes", mean_of = "charts/episodic_return" } },
  figures = { { "bars", y = "mean_return", x = "code", where = { task = "pendulum" }, title = "Pendulum, at the end" },
    { "bars", y = "mean_return", x = "code", where = { task = "reacher" }, title = "Reacher without velocities, at the end" } },
  claims = claims,
}
