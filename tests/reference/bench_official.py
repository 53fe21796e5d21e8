#!/usr/bin/env python3
"""bench_official.py -- training speed of AGaLiTe's released code: its own trainer, agent, environment and configuration of the T-Maze (8
environments x 256 steps), with a corridor of 160.

    AGALITE=agalite PYTHON tests/reference/bench_official.py [UPDATES=2]

AGALITE and PYTHON as in official_agalite.py.  Compiles (minutes) during three updates that do not count, then prints a line "ready"; for every line
of standard input it makes UPDATES updates and prints STEPS PROCESSOR_SECONDS WALL_SECONDS, so that another program can run by turns with it (`mneme
bench peers official=PYTHON`).  Environments run in this process.
"""
import os
import sys
import time

os.environ.setdefault('XLA_FLAGS', '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
os.environ['WANDB_MODE'] = 'disabled'
sys.path.insert(0, os.environ['AGALITE'])

import types

import jax
from omegaconf import OmegaConf

sys.modules.setdefault('memory_gym', types.ModuleType('memory_gym'))
from src.trainers.trainers_control import ControlTrainer


def settings():
    """The released configuration, with a corridor of 160, environments in this process, and no log."""
    config = OmegaConf.load(os.path.join(os.environ['AGALITE'], 'config', 'tmaze', 'arelit.yaml'))
    config.log_interval, config.task.corridor_len, config.trainer.env_pool = 10 ** 12, 160, 'sync'
    return config


def main():
    updates, config = int(sys.argv[1]) if len(sys.argv) > 1 else 2, settings()
    trainer = ControlTrainer(global_args=config, trainer_config=config.trainer, env_config=config.task, seed=0, key=jax.random.PRNGKey(0),
                             wandb_run=None)
    for _ in range(3):
        trainer.step()
    print('ready', flush=True)
    for _ in iter(sys.stdin.readline, ''):
        before, cpu, wall = trainer.step_count, time.process_time(), time.perf_counter()
        for _ in range(updates):
            trainer.step()
        print(trainer.step_count - before, '%.4f' % (time.process_time() - cpu), '%.4f' % (time.perf_counter() - wall), flush=True)


if __name__ == '__main__':
    main()
