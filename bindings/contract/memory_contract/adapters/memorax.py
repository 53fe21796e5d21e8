"""memorax.py -- the sequence models of Memorax (JAX, Flax).

    python -m memory_contract memory_contract.adapters.memorax:memory name=FFM
"""
from importlib.metadata import version

import flax.linen as nn
import jax
import jax.numpy as jnp
from memorax.networks import sequence_models as of

from .with_jax import JaxMemory

D = 8                                          # inputs and features
MODELS = {
    "FFM": lambda: of.Memoroid(cell=of.FFMCell(features=D, memory_size=8, context_size=4)),
    "GRU": lambda: of.RNN(cell=nn.GRUCell(features=D)),
    "LinearAttention": lambda: of.Memoroid(cell=of.LinearAttentionCell(4, 2, nn.initializers.lecun_normal(), nn.initializers.zeros_init(), jnp.float32)),
    "LRU": lambda: of.Memoroid(cell=of.LRUCell(features=D, hidden_dim=16)),
    "Mamba": lambda: of.Memoroid(cell=of.MambaCell(features=D, num_heads=2, head_dim=4, hidden_dim=4)),
    "MinGRU": lambda: of.Memoroid(cell=of.MinGRUCell(features=D)),
    "mLSTM": lambda: of.Memoroid(cell=of.mLSTMCell(features=D, hidden_dim=16, num_heads=2)),
    "S5": lambda: of.Memoroid(cell=of.S5Cell(features=D, state_size=16)),
    "SelfAttention": lambda: of.SelfAttention(D, 2, 64, jnp.float32, jnp.float32, nn.initializers.lecun_normal(), nn.initializers.zeros_init()),
    "SHM": lambda: of.RNN(cell=of.SHMCell(features=D, output_features=D, sample_theta=False)),
    "sLSTM": lambda: of.RNN(cell=of.sLSTMCell(features=D, hidden_dim=16, num_heads=2)),
}


def memory(name="LRU", seed=0):
    """A sequence model by name, with random parameters of a seed."""
    if name not in MODELS:
        raise ValueError(f"Memorax has no memory {name!r} here, expected one of {', '.join(MODELS)}")
    model = MODELS[name]()

    def initial(batch):
        return model.initialize_carry(jax.random.key(0), (batch, D))

    params = model.init(jax.random.key(seed), jnp.zeros((1, 4, D)), jnp.zeros((1, 4), bool), initial(1))
    return JaxMemory(name, "Memorax", version("memorax"), D, params, model.apply, initial)
