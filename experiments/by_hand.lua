-- An actor-critic written by hand, as in torch: no agent, no learner, only tensors.   mneme run by_hand corridor=8
-- A GRU acts in a T-Maze for `num_steps` steps, then learns from them; no gradient passes the rollout's beginning.
local mn = require "mneme"
local nn = mn.nn

local cfg = mn.config({ corridor = 5, num_envs = 32, num_steps = 16, hidden = 32, lr = 3e-3, gamma = 0.95, updates = 600, threads = 1,
  quick = { updates = 200 } }, { updates = "updates of the agent, each from one rollout" })
local B, T = cfg.num_envs, cfg.num_steps
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = B, seed = cfg.seed })
mn.manual_seed(cfg.seed)

local core = mn.core("gru", { d_in = env.observation_space.shape[1], d_model = cfg.hidden })
local heads = nn.linear(cfg.hidden, env.action_space.n + 1)                -- logits and a value
local parameters = core:parameters()
for _, p in ipairs(heads:parameters()) do parameters[#parameters + 1] = p end
local opt = mn.adam(parameters, { lr = cfg.lr, max_norm = 0.5 })

-- One step of the network: observations [B,D], done [B] of the step before.
local function forward(obs, done, state)
  local y, after = core(obs:unsqueeze(0), done:unsqueeze(0), state)
  local out = heads(y:squeeze(0))
  return mn.categorical(out:slice(-1, 0, -1)), out:slice(-1, -1):squeeze(-1), after
end

local function copy(x) return mn.keep(x) end              -- the environment overwrites its tensors at every step
local obs, done, state = copy((env:reset())), mn.zeros(B, { dtype = "u8" }), core:initial(B)
local solved, episodes = 0, 0
for update = 1, cfg.updates do
  local log_probs, entropies, values, rewards, ends = {}, {}, {}, {}, {}
  for t = 1, T do
    local pi, value, after = forward(obs, done, state)
    local action = pi:sample()
    log_probs[t], entropies[t], values[t], state = pi:log_prob(action), pi:entropy(), value, after
    local seen, reward, terminated, truncated, info = env:step(action)
    obs, done, rewards[t] = copy(seen), terminated:logical_or(truncated), copy(reward)
    ends[t] = 1 - done:to "f32"
    if info.ended > 0 then
      solved, episodes = solved + (info.score * done:to "f32"):sum():item(), episodes + info.ended
    end
  end
  local _, following = mn.no_grad(forward, obs, done, state)
  local returns = {}
  for t = T, 1, -1 do
    following = rewards[t] + ends[t] * following * cfg.gamma
    returns[t] = following
  end
  values, returns = mn.stack(values), mn.stack(returns)
  local advantage = returns - values:detach()
  local loss = mn.mse_loss(values, returns) * 0.5 - (mn.stack(log_probs) * advantage):mean() - mn.stack(entropies):mean() * 0.01
  opt:zero_grad()
  loss:backward()
  opt:step()
  state = mn.keep(state)                                   -- the next rollout begins here, without gradients
  if update % 100 == 0 then
    print(("update %d: %.2f of %d episodes solved"):format(update, solved / math.max(episodes, 1), episodes))
    solved, episodes = 0, 0
  end
end
