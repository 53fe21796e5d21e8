"""torchrl.py -- LSTMModule and GRUModule of TorchRL: steps as they act, sequences in their recurrent mode.

    python -m memory_contract memory_contract.adapters.torchrl:memory name=LSTM
"""
from importlib.metadata import version

import torch
from tensordict import TensorDict
from torchrl.modules import GRUModule, LSTMModule, set_recurrent_mode

from .with_torch import TorchMemory

D = 5
MODULES = {"LSTM": (LSTMModule, ("h", "c")), "GRU": (GRUModule, ("h",))}


def memory(name="LSTM", hidden=8, seed=0):
    """A module by name, with random parameters of a seed."""
    if name not in MODULES:
        raise ValueError(f"TorchRL has no memory {name!r} here, expected one of {', '.join(MODULES)}")
    torch.manual_seed(seed)
    make, states = MODULES[name]
    module = make(input_size=D, hidden_size=hidden, in_keys=["x", *states], out_keys=["y", *(("next", s) for s in states)])

    def initial(batch):
        return {s: torch.zeros(batch, 1, hidden) for s in states}

    def act(x, starts, state):
        with set_recurrent_mode(False):
            td = module(TensorDict({"x": x[:, 0], "is_init": starts, **state}, [len(x)]))
        return td["y"][:, None], {s: td["next", s] for s in states}

    def run(x, starts, state):                 # the state of a row is read where the row begins
        B, T = starts.shape
        rows = {s: torch.cat([h[:, None], torch.zeros(B, T - 1, *h.shape[1:])], 1) for s, h in state.items()}
        with set_recurrent_mode(True):
            td = module(TensorDict({"x": x, "is_init": starts[..., None], **rows}, [B, T]))
        return td["y"], {s: td["next", s][:, -1] for s in states}

    return TorchMemory(name, "TorchRL", version("torchrl"), D, module, run, initial, act)
