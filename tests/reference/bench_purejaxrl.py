#!/usr/bin/env python3
"""bench_purejaxrl.py -- training speed of PureJaxRL's recurrent PPO: its ppo_rnn.py, a GRU of 128 on gymnax's CartPole, 8 environments x 128 steps,
4 epochs of 4 minibatches, on one thread.

    PUREJAXRL=purejaxrl PYTHON tests/reference/bench_purejaxrl.py [UPDATES=4]

PUREJAXRL is a clone of luchris429/purejaxrl; PYTHON has jax 0.4.20, flax 0.6.11, gymnax 0.0.6, distrax 0.1.5, optax 0.1.7, scipy 1.12 and numpy 1.26.
Lines are as those of bench_official.py.
"""
import os
import sys
import time
import types

os.environ.setdefault('XLA_FLAGS', '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
sys.path.insert(0, os.path.join(os.environ['PUREJAXRL'], 'purejaxrl'))

import jax

# Its wrappers import two suites of environments that CartPole does without.
for name in ('brax', 'brax.envs', 'brax.envs.wrappers', 'brax.envs.wrappers.training', 'navix'):
    module = sys.modules.setdefault(name, types.ModuleType(name))
    module.envs = module.EpisodeWrapper = module.AutoResetWrapper = None
import ppo_rnn

ENVS, STEPS = 8, 128


def main():
    steps = ENVS * STEPS * (int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    train = jax.jit(ppo_rnn.make_train(dict(
        LR=2.5e-4, NUM_ENVS=ENVS, NUM_STEPS=STEPS, TOTAL_TIMESTEPS=steps, UPDATE_EPOCHS=4, NUM_MINIBATCHES=4, GAMMA=0.99, GAE_LAMBDA=0.95, CLIP_EPS=0.2,
        ENT_COEF=0.01, VF_COEF=0.5, MAX_GRAD_NORM=0.5, ENV_NAME='CartPole-v1', ANNEAL_LR=False)))
    jax.block_until_ready(train(jax.random.PRNGKey(0)))
    print('ready', flush=True)
    for k, _ in enumerate(iter(sys.stdin.readline, '')):
        cpu, wall = time.process_time(), time.perf_counter()
        jax.block_until_ready(train(jax.random.PRNGKey(k)))
        print(steps, '%.4f' % (time.process_time() - cpu), '%.4f' % (time.perf_counter() - wall), flush=True)


if __name__ == '__main__':
    main()
