"""sb3_contrib.py -- the LSTM of sb3-contrib's RecurrentPPO, through the function of its policy that both acting and learning call.

    python -m memory_contract memory_contract.adapters.sb3_contrib:memory
"""
from importlib.metadata import version

import gymnasium
import numpy as np
import torch
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

from .with_torch import TorchMemory

D = 5


def memory(hidden=8, seed=0):
    """The actor's LSTM of a policy with random parameters of a seed."""
    torch.manual_seed(seed)
    policy = RecurrentActorCriticPolicy(gymnasium.spaces.Box(-np.inf, np.inf, (D,)), gymnasium.spaces.Discrete(2), lambda _: 1e-3, lstm_hidden_size=hidden)

    def initial(batch):
        return torch.zeros(1, batch, hidden), torch.zeros(1, batch, hidden)

    def run(x, starts, state):
        y, state = policy._process_sequence(x.flatten(0, 1), state, starts.float().flatten(), policy.lstm_actor)
        return y.unflatten(0, starts.shape), state

    return TorchMemory("LSTM", "sb3-contrib", version("sb3-contrib"), D, policy.lstm_actor, run, initial)
