#!/usr/bin/env python3
"""envs.py -- what other people's environments do, step by step, for ours to do the same.

    python3 -m venv ~/envs && ~/envs/bin/pip install gymnasium popgym numpy
    ~/envs/bin/python tests/reference/envs.py [FOLDER=tests/fixtures/envs]
    ~/envs/bin/python tests/reference/envs.py pendulum [FOLDER]
    ~/envs/bin/python tests/reference/envs.py random       # mean returns and lengths of random play

cartpole.safetensors: Gymnasium's CartPole-v1, 10,000 random steps, then 2,000 of a player that balances; a
limit of 200.  Episodes begin where ours would with seed 5, copy 0, so that the whole run can be compared.
pendulum.safetensors: Gymnasium's Pendulum-v1, 30 episodes of 200 steps with torques of -3..3, which it clips; episodes begin as above.
popgym.safetensors: one episode of each level of five games of POPGym: cards in the order they are dealt, actions,
observations, rewards.
"""
import json
import math
import struct
import sys

try:
    import gymnasium
except ImportError:            # diagnostics.py borrows philox and save
    gymnasium = None
import numpy as np

try:
    from popgym.envs import autoencode, concentration, count_recall, noisy_position_only_cartpole, repeat_first, repeat_previous
except ImportError:            # `pendulum` needs Gymnasium alone
    autoencode = concentration = count_recall = noisy_position_only_cartpole = repeat_first = repeat_previous = None

GAMES = {'repeat_previous': (repeat_previous, 'RepeatPrevious'), 'repeat_first': (repeat_first, 'RepeatFirst'),
         'autoencode': (autoencode, 'Autoencode'), 'concentration': (concentration, 'Concentration'),
         'count_recall': (count_recall, 'CountRecall')}
LEVELS = ('Easy', 'Medium', 'Hard')


def save(path, meta, tensors):
    kinds = {'float32': 'F32', 'uint8': 'U8', 'int32': 'I32'}
    head, parts, at = {'__metadata__': meta}, [], 0
    for name in sorted(tensors, key=lambda n: (tensors[n].dtype == np.uint8, n)):       # wide numbers first, for alignment
        data = np.ascontiguousarray(tensors[name]).tobytes()
        head[name] = {'dtype': kinds[tensors[name].dtype.name], 'shape': list(tensors[name].shape), 'data_offsets': [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(head, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(parts))
    print('%s: %d bytes' % (path, 8 + len(text) + at))


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def cartpole(folder, random_steps=10000, balanced_steps=2000, seed=5):
    env, rng = gymnasium.make('CartPole-v1', max_episode_steps=200), np.random.default_rng(1)

    def begin(step):
        env.reset()
        words = philox((seed, 0), (step, 0, 0, 0xC0000000))
        env.unwrapped.state = np.array([0.1 * ((w + 0.5) * 2.0 ** -32) - 0.05 for w in words])
        return env.unwrapped.state

    state, actions, seen, ended = begin(0), [], [], []
    for step in range(1, random_steps + balanced_steps + 1):
        balance = state[2] + 0.4 * state[3] + 0.05 * state[1] > 0
        action = int(rng.integers(2)) if step <= random_steps or rng.random() < 0.1 else int(balance)
        obs, _, terminated, truncated, _ = env.step(action)
        actions.append(action)
        seen.append(obs)
        ended.append(terminated + 2 * (truncated and not terminated))
        state = begin(step) if terminated or truncated else env.unwrapped.state
    save(folder + '/cartpole.safetensors', {'source': 'gymnasium %s CartPole-v1' % gymnasium.__version__, 'seed': str(seed)},
         {'action': np.array(actions, np.uint8), 'obs': np.array(seen, np.float32), 'ended': np.array(ended, np.uint8)})


def pendulum(folder, episodes=30, seed=5):
    env, rng, actions, seen, rewards = gymnasium.make('Pendulum-v1'), np.random.default_rng(1), [], [], []
    for episode in range(episodes):
        env.reset()
        words = philox((seed, 0), (200 * episode, 0, 0, 0xC0000000))
        env.unwrapped.state = np.array([np.pi * ((words[0] + 0.5) * 2.0 ** -31 - 1), (words[1] + 0.5) * 2.0 ** -31 - 1])
        for step in range(200):
            push = float(np.sign(env.unwrapped.state[1])) if episode % 2 else 0
            actions.append(np.array([2 * push + rng.uniform(-3, 3) * (1 - 0.5 * abs(push))], np.float32))
            obs, reward, _, truncated, _ = env.step(actions[-1])
            assert truncated == (step == 199)
            seen.append(obs)
            rewards.append(reward)
    save(folder + '/pendulum.safetensors', {'source': 'gymnasium %s Pendulum-v1' % gymnasium.__version__, 'seed': str(seed)},
         {'action': np.array(actions, np.float32), 'obs': np.array(seen, np.float32), 'reward': np.array(rewards, np.float32)})


def cards_of(name, env):
    """What is dealt, in order; a row for each deck."""
    if name == 'concentration':
        return [env.deck_idx_type[env.deck.idx]]
    if name == 'count_recall':
        return [env.deck_idx_type[deck.idx[::-1]] for deck in (env.value_deck, env.query_deck)]
    return [env.deck.suits_idx[env.deck.idx[::-1]]]


def choose(name, env, cards, rng):
    """Random, and half of the time what a player who knows the cards would do."""
    if name == 'concentration' and rng.random() < 0.7:
        down = [i for i in range(env.action_space.n) if i not in env.deck['face_up_idx'] and i not in env.deck['in_play_idx']]
        first = env.deck['in_play_idx']
        pairs = [i for i in down if first and cards[0][i] == cards[0][first[0]]]
        return int(rng.choice(pairs or down))
    if name == 'count_recall' and rng.random() < 0.5:
        return int(env.counts[env.query])
    return int(rng.integers(env.action_space.n))


def popgym(folder):
    tensors, rng = {}, np.random.default_rng(3)
    for name, (module, title) in GAMES.items():
        for level in LEVELS:
            env = getattr(module, title + level)()
            obs, _ = env.reset(seed=7)
            cards, actions, rewards, over = cards_of(name, env), [], [], False
            seen = [np.atleast_1d(obs)]
            while not over:
                actions.append(choose(name, env, cards, rng))
                obs, reward, terminated, truncated, _ = env.step(actions[-1])
                seen.append(np.atleast_1d(obs))
                rewards.append(reward)
                over = terminated or truncated
            at = '%s.%s.' % (name, level.lower())
            tensors.update({at + 'cards': np.array(cards, np.uint8), at + 'action': np.array(actions, np.uint8),
                            at + 'obs': np.array(seen, np.uint8), at + 'reward': np.array(rewards, np.float32)})
    save(folder + '/popgym.safetensors', {'source': 'popgym 1.0.7'}, tensors)


def random_play(episodes=2000, seed=1):
    games = dict(GAMES, noisy_cartpole=(noisy_position_only_cartpole, 'NoisyPositionOnlyCartPole'))
    for name, (module, title) in games.items():
        for level in LEVELS:
            env, rng, returns, lengths = getattr(module, title + level)(), np.random.default_rng(seed), [], []
            env.reset(seed=seed)
            for _ in range(episodes):
                env.reset()
                total, length, over = 0.0, 0, False
                while not over:
                    _, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
                    total, length, over = total + reward, length + 1, terminated or truncated
                returns.append(total)
                lengths.append(length)
            error = [np.std(x) / math.sqrt(episodes) for x in (returns, lengths)]
            print('%-16s %-7s return %8.5f +- %.5f  length %8.3f +- %.3f' % (
                name, level.lower(), np.mean(returns), error[0], np.mean(lengths), error[1]), flush=True)


if __name__ == '__main__':
    if sys.argv[1:] == ['random']:
        random_play()
    elif sys.argv[1:2] == ['pendulum']:
        pendulum(sys.argv[2] if len(sys.argv) > 2 else 'tests/fixtures/envs')
    else:
        place = sys.argv[1] if len(sys.argv) > 1 else 'tests/fixtures/envs'
        cartpole(place)
        pendulum(place)
        popgym(place)
