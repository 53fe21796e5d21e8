#!/usr/bin/env python3
"""popgym_tasks.py -- nine of POPGym's tasks, the originals, step by step on what our environments have drawn.

    python3 -m venv ~/popgym && ~/popgym/bin/pip install popgym==1.0.7 mazelib cython gymnasium
    MNEME_BUILD=$PWD/build ~/popgym/bin/python tests/reference/popgym_tasks.py [FOLDER=tests/fixtures/envs]
    ~/popgym/bin/python tests/reference/popgym_tasks.py random [EPISODES=10000] [TASK ...]     # returns of random play

Ours play first (tests/support/popgym_tasks.lua).  Their boards, mines, decks, chances, mazes and first states are put into the originals, which then
take the same actions; what they observe, pay and end is saved as popgym_tasks.safetensors.  The states of carts and pendulums begin
as ours do with that seed.
"""
import importlib
import json
import os
import subprocess
import sys
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from envs import philox, save          # noqa: E402

warnings.filterwarnings('ignore')
TITLES = {'battleship': 'Battleship', 'minesweeper': 'MineSweeper', 'higher_lower': 'HigherLower', 'multiarmed_bandit': 'MultiarmedBandit',
          'position_only_cartpole': 'PositionOnlyCartPole', 'velocity_only_cartpole': 'VelocityOnlyCartPole',
          'noisy_position_only_cartpole': 'NoisyPositionOnlyCartPole',
          'position_only_pendulum': 'PositionOnlyPendulum', 'noisy_position_only_pendulum': 'NoisyPositionOnlyPendulum',
          'labyrinth_escape': 'LabyrinthEscape', 'labyrinth_explore': 'LabyrinthExplore'}


def original(name, level):
    return getattr(importlib.import_module('popgym.envs.' + name), TITLES[name] + level.capitalize())()


class Told:
    """In place of a bandit's generator: says what was drawn."""

    def __init__(self):
        self.value = 0.0

    def random(self, size=None, dtype=None):
        return self.value if size is None else np.zeros(size, dtype)


def put(name, env, truth, first, cards, seed=5):
    """Begin an episode of the original where ours began; its first observation."""
    obs, _ = env.reset()
    words = philox((seed, 0), (first, 0, 0, 0xC0000000))
    if name == 'battleship':
        n = env.board_size
        env.board = np.array(truth['ships'][:n * n], np.int8).reshape(n, n)
    elif name == 'minesweeper':
        n = env.dims[0]
        mines = np.array(truth['mines'][:n * n], np.int8).reshape(n, n)
        env.hidden_grid = mines.copy()
        padded = np.pad(mines, 1)
        env.neighbor_grid = sum(padded[i:i + n, j:j + n] for i in range(3) for j in range(3))
    elif name == 'higher_lower':
        ranks = np.asarray(env.deck.ranks_idx)
        rest, order = {r: [int(i) for i in np.flatnonzero(ranks == r)] for r in range(13)}, []
        for rank in cards:
            order.append(rest[rank].pop())
        env.deck.reset(rng=env.np_random)
        others = [i for r in rest.values() for i in r]
        env.deck.idx = np.array(others + order[::-1])
        env.deck.deal('player', 1)
        return env.deck.show('player', ['ranks_idx']).item()
    elif name == 'multiarmed_bandit':
        env.bandits = np.array(truth['chance'][:env.num_bandits], np.float32)
        env._np_random = Told()
    elif name.endswith('cartpole'):
        env.state = np.array([0.1 * ((w + 0.5) * 2.0 ** -32) - 0.05 for w in words])
        return np.array([env.state[0], env.state[2]], np.float32)
    elif name.endswith('pendulum'):
        env.state = np.array([np.pi * ((words[0] + 0.5) * 2.0 ** -31 - 1), (words[1] + 0.5) * 2.0 ** -31 - 1])
        return np.array([np.cos(env.state[0]), np.sin(env.state[0])], np.float32)
    else:
        n = env.maze.grid.shape[0]
        grid = np.array([1 if v < 0 else 0 for v in truth['visited'][:n * n]], np.int8).reshape(n, n)
        env.position = env.maze.start = divmod(int(truth['place']), n)
        env.explored = np.zeros_like(grid)
        grid[env.position] = 2
        env.explored[env.position] = 1
        if truth['goal'] >= 0:
            grid[divmod(int(truth['goal']), n)] = 3
        env.maze.grid = grid
        if hasattr(env, 'pos_reward_scale'):
            env.pos_reward_scale = 1 / (grid == 0).sum()
        return env.get_obs(4)
    return obs


def replay(played):
    name, env = played['name'], original(played['name'], played['level'])
    env.reset(seed=0)
    seen, rewards, ended, episode = [], [], [], 0
    actions, total = played['actions'], len(played['actions'])
    starts = played['first'] + [total]
    for episode, first in enumerate(played['first']):
        if first == total:
            break
        last = starts[episode + 1]
        cards = [int(played['begun'][episode][0])] + [int(o[0]) for o in played['seen'][first:last]] if name == 'higher_lower' else []
        begun = np.atleast_1d(put(name, env, played['truths'][episode], first, cards))
        assert np.allclose(begun, played['begun'][episode], atol=1e-6), (name, played['level'], begun, played['begun'][episode])
        for s in range(first, last):
            action = actions[s]
            if name in ('battleship', 'minesweeper'):
                side = env.board_size if name == 'battleship' else env.dims[0]
                action = divmod(int(action), side)
            elif name == 'multiarmed_bandit':
                chance = float(env.bandits[int(action)])
                env._np_random.value = 0.5 * chance if played['seen'][s][0] else 0.5 * (1 + chance)
                action = int(action)
            elif name.endswith('pendulum'):
                action = np.array([action], np.float32)
            else:
                action = int(action)
            if played['states'] and s > first and (s - first) % 50 == 0:       # a difference in the last bit would double every ten steps
                env.state = np.array(played['states'][s - 1])
            obs, reward, terminated, truncated, _ = env.step(action)
            seen.append(np.atleast_1d(obs))
            rewards.append(float(reward))
            ended.append(int(terminated) + 2 * int(truncated and not terminated))
            assert bool(ended[-1]) == (s + 1 == last and (last < total or played['ended'][-1] > 0)), (name, played['level'], s)
    return np.array(seen), np.array(rewards, np.float32), np.array(ended, np.uint8)


def random_play(episodes, names):
    for name in names or TITLES:
        for level in ('easy', 'medium', 'hard'):
            env, returns, lengths = original(name, level), [], []
            env.action_space.seed(1)
            env.reset(seed=1)
            for _ in range(episodes):
                env.reset()
                total, length, over = 0.0, 0, False
                while not over:
                    _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                    total, length, over = total + reward, length + 1, terminated or truncated
                returns.append(total)
                lengths.append(length)
            print('%-28s %-7s return %8.5f +- %.5f  length %8.3f +- %.3f' % (
                name, level, np.mean(returns), np.std(returns) / episodes ** 0.5, np.mean(lengths), np.std(lengths) / episodes ** 0.5), flush=True)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else 'tests/fixtures/envs'
    played, tensors = json.loads(subprocess.check_output(['luajit', 'tests/support/popgym_tasks.lua'])), {}
    for p in sorted(played, key=lambda p: (p['name'], p['level'])):
        seen, rewards, ended = replay(p)
        at = '%s.%s.' % (p['name'], p['level'])
        ours = np.array(p['seen'])
        print('%-28s %-7s %5d steps, %3d ends, obs differ by %.2g, rewards by %.2g, ends %d' % (
            p['name'], p['level'], len(rewards), (ended > 0).sum(), np.abs(ours - seen).max(), np.abs(np.array(p['rewards']) - rewards).max(),
            (np.array(p['ended']) != ended).sum()))
        kind = np.uint8 if seen.dtype.kind in 'iu' else np.float32
        tensors.update({at + 'obs': seen.astype(kind), at + 'reward': rewards, at + 'ended': ended})
    save(folder + '/popgym_tasks.safetensors', {'source': 'popgym 1.0.7'}, tensors)


if __name__ == '__main__':
    if sys.argv[1:2] == ['random']:
        random_play(int(sys.argv[2]) if len(sys.argv) > 2 else 10000, sys.argv[3:])
    else:
        main()
