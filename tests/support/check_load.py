"""check_load.py -- mneme.load of a run takes the steps of a recorded greedy episode: check_load.py RUN EPISODE.npz"""
import importlib.util
import sys
from pathlib import Path

import numpy as np

spec = importlib.util.spec_from_file_location("agent", Path(__file__).resolve().parents[2] / "bindings/python/mneme/agent.py")
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)

mine, episode, state = agent.load(sys.argv[1]), np.load(sys.argv[2]), None
actions, rewards = episode["actions"], episode["rewards"]
ends = episode["terminated"] | episode["truncated"]
for t, seen in enumerate(episode["observations"]):
    begins = t == 0 or ends[t - 1]
    before = {} if begins else {"previous_action": actions[t - 1:t], "previous_reward": rewards[t - 1:t]}
    if begins:
        before = {"previous_action": np.array([-1]), "previous_reward": np.array([0.0])}
    action, after = mine.act(seen[None], state, np.array([begins]), **before)
    p, v, _ = mine.step(seen[None], state, np.array([begins]), **before)
    assert action[0] == actions[t], (t, action, actions[t])
    policy = np.exp(p[0] - p[0].max())
    assert np.abs(policy / policy.sum() - episode["policy"][t]).max() < 1e-5 and abs(v[0] - episode["value"][t]) < 1e-5, t
    state = after
print("steps", len(actions), "equal")
