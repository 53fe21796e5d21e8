"""normalise.py -- Gymnasium's wrappers NormalizeObservation and NormalizeReward over a stream of made-up steps.

    python3 -m venv ~/gym && ~/gym/bin/pip install gymnasium==1.4.0
    ~/gym/bin/python tests/reference/normalise.py > tests/fixtures/normalise.json
"""
import json

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward

T, B, N, GAMMA = 40, 3, 2, 0.9
random = np.random.default_rng(1)
obs = (random.normal(size=(T + 1, B, N)) * [0.01, 30] + [100, -5]).astype(np.float32)
reward = (random.exponential(size=(T, B)) * 7 - 3).astype(np.float32)
terminated, truncated = random.random((T, B)) < 0.1, random.random((T, B)) < 0.1
truncated &= ~terminated


class Stream(VectorEnv):
    """Environments whose steps are in the tables above, whatever is done."""

    def __init__(self, mode):
        self.num_envs, self.metadata = B, {'autoreset_mode': mode}
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (N,), np.float64)
        self.single_action_space = gym.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, B)
        self.action_space = batch_space(self.single_action_space, B)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return obs[0].astype(np.float64), {}

    def step(self, actions):
        self.t += 1
        return obs[self.t].astype(np.float64), reward[self.t - 1].astype(np.float64), terminated[self.t - 1], truncated[self.t - 1], {}


seen, paid = NormalizeObservation(Stream(AutoresetMode.NEXT_STEP)), NormalizeReward(Stream(AutoresetMode.SAME_STEP), gamma=GAMMA)
paid.accumulated_reward = np.zeros(B)              # double precision, as the statistics are
out_obs, out_reward = [seen.reset()[0].tolist()], []
paid.reset()
for t in range(T):
    out_obs.append(seen.step(None)[0].tolist())
    out_reward.append(paid.step(None)[1].tolist())
print(json.dumps({
    'gymnasium': gym.__version__, 'T': T, 'B': B, 'n': N, 'gamma': GAMMA, 'obs': obs.tolist(), 'reward': reward.tolist(),
    'terminated': terminated.astype(int).tolist(), 'truncated': truncated.astype(int).tolist(), 'normalised_obs': out_obs, 'normalised_reward': out_reward,
    'obs_mean': seen.obs_rms.mean.tolist(), 'obs_var': seen.obs_rms.var.tolist(), 'obs_count': seen.obs_rms.count,
    'return_mean': float(paid.return_rms.mean), 'return_var': float(paid.return_rms.var), 'return_count': paid.return_rms.count,
}))
