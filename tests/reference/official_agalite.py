#!/usr/bin/env python3
"""official_agalite.py -- learning curves of AGaLiTe's released code on the T-Maze, with gates that begin as published or nearly closed.

    git clone https://github.com/subho406/agalite && git -C agalite checkout 101acbe
    python3 -m venv ~/official && ~/official/bin/pip install jax==0.4.26 jaxlib==0.4.26 flax==0.8.2 'numpy<2' 'scipy<1.13' optax==0.2.2 \\
        rlax==0.1.6 orbax-checkpoint==0.5.9 gymnasium==0.29.1 omegaconf wandb tqdm pytz
    AGALITE=agalite ~/official/bin/python tests/reference/official_agalite.py FILE [start=both|published|long] [seeds=1..5] [corridor=60]
        [steps=1000000] [size=small|published] [stop=0.97]

Its own trainer, agent and environment run unchanged (environments in this process, not in eight others).  start=long adds the biases
-4 (beta), -2 (gamma) and -2 (p_gamma) to a new agent's gates, which is all that core.beta_bias=-4 core.gamma_bias=-2
core.p_gamma_bias=-2 does here.  size=small: one layer of width 32, learning rate 1e-3, entropy 0.01, as experiments/gate_start.lua
quick=1.  FILE is CSV: a line each 10,000 steps of a run, with the success of the last 100 episodes; a run that is there is not made again.
"""
import csv
import os
import sys
import time

os.environ.setdefault('XLA_FLAGS', '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
os.environ['WANDB_MODE'] = 'disabled'
sys.path.insert(0, os.environ['AGALITE'])

import random
import types

import jax
import jax.numpy as jnp
import numpy as np
from omegaconf import OmegaConf

sys.modules.setdefault('memory_gym', types.ModuleType('memory_gym'))
from src.trainers.trainers_control import ControlTrainer

SMALL = {'seq': {'n_layers': 1, 'd_model': 32, 'd_head': 16, 'd_ffc': 32}, 'hidden': 32, 'lr': 1e-3, 'entropy': 0.01}
PUBLISHED = {'seq': {'n_layers': 4, 'd_model': 128, 'd_head': 64, 'd_ffc': 128}, 'hidden': 128, 'lr': 1e-4, 'entropy': 0.001}


def settings(corridor, size, steps):
    return OmegaConf.create({
        'steps': steps, 'log_interval': 10 ** 12,
        'task': {'task': 'tmazev2', 'corridor_len': corridor, 'num_distractors': 6, 'max_episode_steps': 1000},
        'trainer': {
            'agent': 'a2c', 'env_pool': 'sync', 'rollout_len': 256, 'num_envs': 8, 'd_actor': size['hidden'], 'd_critic': size['hidden'],
            'seq_model': {'name': 'agalite', 'n_heads': 4, 'eta': 4, 'r': 2, 'reset_hidden_on_terminate': True, **size['seq']},
            'gamma': 0.99, 'lamb': 0.95, 'entropy_coef': size['entropy'], 'value_coef': 0.5, 'max_grad_norm': 0.5,
            'optimizer': {'learning_rate': size['lr']}, 'arg_max': False}})


def close_gates(params, seq):
    """beta's biases -4, gamma's -2, p_gamma's -2; of each head these are parts 4 and 5 of five, and 3 of three."""
    heads, width, eta = 4, seq['d_head'], 4
    for layer in params['params']['seq_model'].values():
        attention = layer['AttentionORLiTLayer_0']
        gates = np.array(attention['linear_kqvbetagammas']['bias']).reshape(heads, 5, width)
        gates[:, 3], gates[:, 4] = -4, -2
        attention['linear_kqvbetagammas']['bias'] = jnp.asarray(gates.ravel())
        scales = np.array(attention['linear_p1p2p3']['bias']).reshape(heads, 3, eta)
        scales[:, 2] = -2
        attention['linear_p1p2p3']['bias'] = jnp.asarray(scales.ravel())


def train(trainer, seed, start, seq, steps, stop):
    np.random.seed(seed)
    random.seed(seed)
    params_key, trainer.random_key = jax.random.split(jax.random.PRNGKey(seed))
    agent = trainer.agent
    agent.env.reset(seed=[seed * 1000 + i for i in range(8)])
    agent.reset(params_key, trainer.random_key)
    if start == 'long':
        close_gates(agent.params, seq)
        agent.optimizer_state = agent.optimizer.init(agent.params)
    trainer.step_count, trainer.statistic_data = 0, {}
    curve, begun, told = [], time.time(), 0
    while trainer.step_count < steps:
        trainer.step()
        ends = trainer.statistic_data.get('success', [])
        del ends[:-100]
        if trainer.step_count >= told + 10000 or trainer.step_count >= steps:
            told = trainer.step_count
            curve.append([told, round(float(np.mean(ends)), 4) if ends else '', len(ends)])
            if len(curve) % 10 == 1:
                print(start, seed, curve[-1], f'{trainer.step_count / (time.time() - begun):.0f} steps/s', flush=True)
            if len(ends) == 100 and np.mean(ends) >= stop:
                break
    return curve


def main():
    path, given = sys.argv[1], dict(a.split('=') for a in sys.argv[2:])
    start, corridor, steps = given.get('start', 'both'), int(given.get('corridor', 60)), int(given.get('steps', 1000000))
    name, stop = given.get('size', 'small'), float(given.get('stop', 0.97))
    first, _, last = given.get('seeds', '1..5').partition('..')
    size = {'small': SMALL, 'published': PUBLISHED}[name]
    config = settings(corridor, size, steps)
    starts = ('long', 'published') if start == 'both' else (start,)
    with open(path, 'a+', newline='') as out:
        out.seek(0)
        done = {tuple(row[:5]) for row in csv.reader(out)}
        if not done:
            csv.writer(out, lineterminator='\n').writerow(['start', 'corridor', 'size', 'budget', 'seed', 'step', 'success', 'episodes'])
    trainer = ControlTrainer(global_args=config, trainer_config=config.trainer, env_config=config.task, seed=0, key=jax.random.PRNGKey(0),
                             wandb_run=None)
    for seed in range(int(first), int(last or first) + 1):
        for start in starts:
            what = (start, str(corridor), name, str(steps), str(seed))
            if what in done:
                continue
            curve = train(trainer, seed, start, size['seq'], steps, stop)
            with open(path, 'a', newline='') as out:
                csv.writer(out, lineterminator='\n').writerows([*what, *point] for point in curve)


if __name__ == '__main__':
    main()
