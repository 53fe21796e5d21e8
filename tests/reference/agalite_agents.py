#!/usr/bin/env python3
"""agalite_agents.py -- small agents of AGaLiTe's released code, and what they answer over resets: bindings/python/tests/agalite.npz.

    AGALITE=agalite ~/official/bin/python tests/reference/agalite_agents.py bindings/python/tests/agalite.npz    (see official_agalite.py)

Parameters as flax names them, moved by noise so that no bias is 0; observations [T,B,16], done [T,B], logits [T,B,4], values [T,B].
"""
import functools
import os
import sys

sys.path.insert(0, os.environ['AGALITE'])

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import src.models.rnn
from src.model_fns import actor_model_discete, critic_model, flatten_repr_model, seq_model_agalite, seq_model_gru, seq_model_lstm
from src.models.actor_critic import ActorCriticModel

src.models.rnn.nn.GRUCell = functools.partial(nn.GRUCell, features=8)        # flax of 2023 took the size from the state
T, B = 24, 2
rng = np.random.default_rng(0)
observations, done = rng.random((T, B, 16)).astype(np.float32), rng.random((T, B)) < 0.2
done[0] = True
kept = {'observations': observations, 'done': done.astype(np.float32)}
SIZES = {'n_layers': 2, 'd_model': 8, 'reset_hidden_on_terminate': True}
for kind, function, more in (('agalite', seq_model_agalite, {'d_head': 4, 'd_ffc': 12, 'n_heads': 4, 'eta': 3, 'r': 2}), ('gru', seq_model_gru, {}),
                             ('lstm', seq_model_lstm, {})):
    core, begin = function(**SIZES, **more)
    model = nn.vmap(ActorCriticModel, variable_axes={'params': None}, split_rngs={'params': False})(
        flatten_repr_model(), core, actor_model_discete(6, 4), critic_model(6))
    state = jax.tree_util.tree_map(lambda x: jnp.repeat(jnp.expand_dims(x, 0), B, 0), begin())
    keys = {'params': jax.random.PRNGKey(1), 'random': jax.random.PRNGKey(2)}
    flat = flax.traverse_util.flatten_dict(model.init(keys, observations[0][:, None], done[0][:, None], state), sep='/')
    flat = {name: np.asarray(x) + 0.1 * rng.standard_normal(x.shape).astype(np.float32) for name, x in flat.items()}
    parameters, logits, values = flax.traverse_util.unflatten_dict(flat, sep='/'), [], []
    for t in range(T):
        p, v, state = model.apply(parameters, observations[t][:, None], done[t][:, None], state)
        logits.append(np.asarray(p[:, 0]))
        values.append(np.asarray(v[:, 0]))
    kept.update({f'{kind}/{name}': x for name, x in flat.items()})
    kept.update({f'{kind}/logits': np.stack(logits), f'{kind}/values': np.stack(values)})
np.savez_compressed(sys.argv[1], **kept)
