#!/usr/bin/env python3
"""diagnostics.py -- what the field's diagnostics of memory do, step by step, for ours to do the same.

    python3 -m venv ~/diagnostics && ~/diagnostics/bin/pip install numpy minigrid memory-gym dm_env && ~/diagnostics/bin/pip install --no-deps bsuite
    ~/diagnostics/bin/python tests/reference/diagnostics.py [NAME ...] [to=tests/fixtures/envs] [steps=400]

One file for each NAME, of more steps to compare more (make golden PYTHON=~/diagnostics/bin/python compares 5,000), diagnostics_NAME.safetensors: for each
case, whose settings are in the metadata, actions, observations, rewards and ends.
Episodes begin as ours do with seed 5, copy 0: the random words of our counters are put into the originals.
memory_chain: bsuite's.  minigrid_memory: Minigrid's.  tmaze (Ni et al. 2023) and rock_sample cannot be installed: they are written down here, from their
rules, apart from the engine.
"""
import json
import sys

import numpy as np

from envs import philox, save

SEED = 5


def words(step, purpose=0xC0000000):
    return philox((SEED, 0), (step, 0, 0, purpose))


def below(word, n):
    return word * n >> 32


class MemoryChain:
    """bsuite's environment, its context and query ours."""

    def __init__(self, memory_length, num_bits):
        from bsuite.environments import memory_chain
        self.env, self.n, self.n_actions = memory_chain.MemoryChain(memory_length=memory_length, num_bits=num_bits, seed=0), num_bits, 2

    def reset(self, step):
        w, env = words(step), self.env
        env.reset()
        bits = (w[1] << 32 | w[0]) >> (64 - self.n)
        env._context = np.array([bits >> i & 1 for i in range(self.n)])
        env._query = below(w[2], self.n)
        return env._get_observation()[0]

    def step(self, action, step):
        t = self.env.step(action)
        return t.observation[0], t.reward, t.last()

    def wise(self):
        return int(self.env._context[self.env._query])


class TMaze:
    """The T-Mazes of Ni et al.: a place on a grid, an oracle at x = 0, two goals."""
    MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))

    def __init__(self, corridor, oracle):
        self.corridor, self.oracle, self.n_actions = corridor, oracle, 4
        self.places = {(x, 0) for x in range(oracle + corridor + 1)} | {(oracle + corridor, 1), (oracle + corridor, -1)}

    def reset(self, step):
        self.goal = 1 if words(step)[0] >> 31 else -1
        self.at, self.t, self.asked = (self.oracle, 0), 0, False
        return self.observe()

    def observe(self):
        x, y = self.at
        if x == 0:
            told, self.asked = 0 if self.asked else self.goal, True
            return [0, told]
        return [0, 0] if x < self.oracle + self.corridor else [1, y]

    def step(self, action, step):
        to = tuple(a + b for a, b in zip(self.at, self.MOVES[action]))
        self.at = to if to in self.places else self.at
        self.t += 1
        done = self.t >= self.corridor + 2 * self.oracle + 1
        if done:
            reward = float(self.at[1] == self.goal)
        else:
            reward = -1.0 / self.corridor if self.at[0] < self.t - self.oracle else 0.0
        return self.observe(), reward, done

    def wise(self):
        if not self.asked:
            return 2
        return 0 if self.at[0] < self.oracle + self.corridor else 1 if self.goal > 0 else 3


class RockSample:
    def __init__(self, size, rocks, layout):
        self.n, self.k, self.n_actions = size, rocks, 5 + rocks
        free, self.rocks = [(r, c) for r in range(size) for c in range(size - 1)], []
        for i in range(rocks):
            j = below(philox((layout, 0), (i // 4, 0, 0, 0))[i % 4], len(free))
            self.rocks.append(free[j])
            free[j] = free[-1]
            free.pop()

    def reset(self, step):
        w = words(step)
        cell = below(w[0], self.n * (self.n - 1))
        self.at = [cell // (self.n - 1), cell % (self.n - 1)]
        self.good, self.left = [w[1] >> (32 - self.k) >> i & 1 for i in range(self.k)], 1000
        return self.observe()

    def observe(self, rock=None, good=None):
        seen = np.zeros(2 * self.n + self.k)
        seen[self.at[0]] = seen[self.n + self.at[1]] = 1
        if rock is not None:
            seen[2 * self.n + rock] = 1 if good else -1
        return seen

    def step(self, action, step):
        seen, reward, over = self.act(action, step)
        self.left -= 1
        return seen, reward, over or self.left == 0

    def act(self, action, step):
        if action < 4:
            axis, by = ((0, -1), (1, 1), (0, 1), (1, -1))[action]
            self.at[axis] = min(max(self.at[axis] + by, 0), self.n - 1)
            out = self.at[1] == self.n - 1
            return self.observe(), 10.0 if out else 0.0, out
        if action == 4:
            if tuple(self.at) not in self.rocks:
                return self.observe(), 0.0, False
            rock = self.rocks.index(tuple(self.at))
            reward, self.good[rock] = 10.0 if self.good[rock] else -10.0, 0
            return self.observe(), reward, False
        rock = action - 5
        distance = np.hypot(self.at[0] - self.rocks[rock][0], self.at[1] - self.rocks[rock][1])
        right = (words(step, 0x80000000)[0] >> 8) * 2.0 ** -24 < 0.5 * (1 + 2.0 ** (-distance / 20))
        return self.observe(rock, bool(self.good[rock]) == right), 0.0, False

    def wise(self):
        """Walk to the nearest good rock, or out."""
        places = [p for p, good in zip(self.rocks, self.good) if good]
        if not places:
            return 1
        row, col = min(places, key=lambda p: abs(p[0] - self.at[0]) + abs(p[1] - self.at[1]))
        return 0 if row < self.at[0] else 2 if row > self.at[0] else 1 if col > self.at[1] else 3 if col < self.at[1] else 4


class MinigridMemory:
    CODE = {0: 0, 1: 1, 2: 2, 5: 3, 6: 4}

    def __init__(self, size, hallway):
        from minigrid.envs.memory import MemoryEnv
        self.env, self.n_actions, self.size, self.random = MemoryEnv(size=size, random_length=hallway == 'random'), 7, size, hallway == 'random'

    def reset(self, step):
        """Minigrid's own generator, which draws from a list of our words: hallway, place, object, order."""
        w, n = words(step), self.size
        end = 4 + below(w[0], n - 6) if self.random else n - 3
        draws = ([end] if self.random else []) + [1 + below(w[1], end)]
        env, elements = self.env, [w[2] >> 31, 1 - (w[3] >> 31)]
        env._rand_int = lambda low, high: draws.pop(0)
        env._rand_elem = lambda items: list(items)[elements.pop(0)]
        obs, _ = env.reset()
        self.right = env.success_pos
        return self.seen(obs)

    def seen(self, obs):
        codes = [self.CODE[int(o)] for o in obs['image'][:, :, 0].T.reshape(-1)]
        return codes + [int(obs['direction'])]

    def step(self, action, step):
        obs, reward, terminated, truncated, _ = self.env.step(action)
        return self.seen(obs), reward, terminated or truncated

    def wise(self):
        """Forward, and at the end of the hallway the right turn."""
        (x, y), to, heading = self.env.agent_pos, self.right, self.env.agent_dir
        want = 0 if x < to[0] else 3 if y > to[1] else 1
        return 2 if heading == want else 1 if (want - heading) % 4 == 1 else 0


CASES = {
    'memory_chain': (MemoryChain, [dict(memory_length=n, num_bits=b) for n, b in ((1, 1), (2, 3), (7, 1), (20, 40), (5, 64))]),
    'tmaze_passive': (lambda corridor: TMaze(corridor, 0), [dict(corridor=n) for n in (1, 2, 10, 50)]),
    'tmaze_active': (lambda corridor: TMaze(corridor, 1), [dict(corridor=n) for n in (1, 2, 10, 50)]),
    'rock_sample': (RockSample, [dict(size=n, rocks=k, layout=s) for n, k, s in ((5, 5, 0), (7, 8, 1), (11, 11, 2), (15, 15, 3))]),
    'minigrid_memory': (MinigridMemory, [dict(size=n, hallway=h) for n, h in ((7, 'full'), (9, 'full'), (11, 'full'), (13, 'full'), (13, 'random'),
                                                                              (17, 'random'))]),
}


def record(name, folder, steps):
    make, cases = CASES[name]
    tensors = {}
    for i, settings in enumerate(cases):
        env, rng, wisdom = make(**settings), np.random.default_rng(i), 0.5
        begin, actions, seen, rewards, ends = env.reset(0), [], [], [], []
        first = [begin]
        for step in range(1, steps + 1):
            action = env.wise() if rng.random() < wisdom else int(rng.integers(env.n_actions))
            obs, reward, over = env.step(action, step)
            actions.append(action)
            seen.append(obs)
            rewards.append(reward)
            ends.append(over)
            if over:
                first.append(env.reset(step))
                wisdom = (0.5, 1, 0.9, 0)[len(first) % 4]
        kind = np.uint8 if name == 'minigrid_memory' else np.float32
        at = '%d.' % i
        tensors.update({at + 'action': np.array(actions, np.uint8), at + 'obs': np.array(seen, kind), at + 'first': np.array(first, kind),
                        at + 'reward': np.array(rewards, np.float32), at + 'ended': np.array(ends, np.uint8)})
        print(name, settings, 'episodes', len(first), 'return', sum(rewards))
    save('%s/diagnostics_%s.safetensors' % (folder, name), {'cases': json.dumps(cases), 'seed': str(SEED)}, tensors)


if __name__ == '__main__':
    chosen = [a for a in sys.argv[1:] if '=' not in a] or list(CASES)
    given = dict(a.split('=', 1) for a in sys.argv[1:] if '=' in a)
    for one in chosen:
        record(one, given.get('to', 'tests/fixtures/envs'), int(given.get('steps', 400)))
