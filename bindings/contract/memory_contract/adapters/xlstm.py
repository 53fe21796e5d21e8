"""xlstm.py -- the layers of the package xlstm, whose forward takes a sequence from its beginning: the layer of an mLSTM takes no state, and none has ends.

    python -m memory_contract memory_contract.adapters.xlstm:memory name=sLSTM
"""
from importlib.metadata import version

import torch
from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig
from xlstm.blocks.slstm.layer import sLSTMLayer, sLSTMLayerConfig

from .. import NotTried
from .with_torch import TorchMemory

D = 8


def memory(name="mLSTM", heads=2, seed=0):
    """A layer by name, with random parameters of a seed, in the backend that needs no GPU."""
    if name not in ("mLSTM", "sLSTM"):
        raise ValueError(f"xlstm has no memory {name!r}, expected mLSTM or sLSTM")
    torch.manual_seed(seed)
    if name == "mLSTM":
        layer = mLSTMLayer(mLSTMLayerConfig(embedding_dim=D, num_heads=heads, context_length=4096))
    else:
        layer = sLSTMLayer(sLSTMLayerConfig(embedding_dim=D, num_heads=heads, backend="vanilla"))
    layer.reset_parameters()
    layer.eval()

    def act(x, starts, state):
        if state is None:
            raise NotTried("the layer's sequence returns no state")
        return layer.step(x, **state)

    def run(x, starts, state):
        if name == "sLSTM":
            return layer(x, **state, return_last_state=True)
        if state != {}:
            raise NotTried("the layer's sequence takes no state")
        return layer(x), None

    return TorchMemory(name, "xlstm", version("xlstm"), D, layer, run, lambda batch: {}, act, ends=False)
