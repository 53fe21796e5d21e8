"""memax.py -- the recurrent layers of memax (JAX, Equinox), one in the library's residual model.

    python -m memory_contract memory_contract.adapters.memax:memory name=FFM
"""
from importlib.metadata import version

import equinox as eqx
import jax
from memax.equinox.train_utils import get_residual_memory_models

from .with_jax import JaxMemory

D = 8                                          # inputs and outputs
NAMES = ("Attention", "Attention-ALiBi", "Attention-RoPE", "DeltaNet", "DeltaProduct", "Elman", "ElmanReLU", "FART", "FFM", "FWP", "GDN", "GRU", "LinearRNN",
         "LRU", "LSTM", "MGU", "NMax", "PSpherical", "S6", "Spherical", "Stack")


def memory(name="LRU", hidden=16, seed=0):
    """A model of one layer by name, with random parameters of a seed."""
    if name not in NAMES:
        raise ValueError(f"memax has no memory {name!r} here, expected one of {', '.join(NAMES)}")
    model = get_residual_memory_models(D, hidden, D, 1, [name], key=jax.random.key(seed))[name]
    params, rest = eqx.partition(model, eqx.is_inexact_array)

    def apply(params, x, starts, carry):
        whole = eqx.combine(params, rest)
        states, y = eqx.filter_vmap(whole)(carry, (x, starts))
        return eqx.filter_vmap(whole.latest_recurrent_state)(states), y

    def initial(batch):
        return jax.tree.map(lambda s: s[None].repeat(batch, 0), model.initialize_carry(None))

    return JaxMemory(name, "memax", version("memax"), D, params, apply, initial)
