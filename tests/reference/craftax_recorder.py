"""craftax_recorder.py -- plays an original in JAX with scripted policies and records what it did, for ours to do the same: what
craftax_full.py and craftax_classic.py share.

Policies play in turn, an environment each.  Environment e has seed seed+e; its keys are those of random=jax: the first reset is
env.reset(PRNGKey(seed)), step s uses fold_in(PRNGKey(seed), s).
The file: "craftax3", then envs, steps, seed (u32), then for each environment the sum of its first observation (u32), its actions
[steps] (u8), and for each step two u32: the sums of all state before it, and of the observation, reward and end after it.
The sum of values v[0..] is that of v[k] times weight(k), modulo 2^32; a float32 counts as its two halves, low half first.
CRAFTAX=FOLDER runs a checkout instead of the installed package; DUMP=1 also saves states and observations.
"""
import os
import struct
import sys
import time

START = time.time()
if os.environ.get('CRAFTAX'):
    sys.path.insert(0, os.environ['CRAFTAX'])

import jax
import jax.numpy as jnp
import numpy as np

U = jnp.uint32
CHUNK = 250                                    # steps a call
DUMP = bool(os.environ.get('DUMP'))


# ---- sums ----

def weights(n):
    k = np.arange(1, n + 1, dtype=np.uint64)
    x = (k * 0x9E3779B1) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 0x2C1B3C6D) & 0xFFFFFFFF
    return ((x ^ x >> 12) | 1).astype(np.uint32)


W = jnp.array(weights(32768))


def total(values):
    values = jnp.ravel(values).astype(jnp.int32).astype(U)
    return jnp.sum(values * W[:values.size], dtype=U)


def halves(x):
    bits = jax.lax.bitcast_convert_type(jnp.ravel(x).astype(jnp.float32), U)
    return jnp.stack([bits & 0xFFFF, bits >> 16], axis=1)


def whole(parts):
    """All of them one after the other, as whole numbers."""
    return jnp.concatenate([jnp.ravel(jnp.asarray(p)).astype(jnp.int32) for p in parts])


# ---- ways of policies ----

def nearest(s, wanted):
    """The vector to the nearest place where `wanted` is true, and its distance."""
    side = wanted.shape[0]
    row, col = jnp.mgrid[0:side, 0:side]
    far = jnp.where(wanted, jnp.abs(row - s.player_position[0]) + jnp.abs(col - s.player_position[1]), 999)
    at = jnp.argmin(far)
    return jnp.array([at // side, at % side]) - s.player_position, far.ravel()[at]


def seek(s, wanted, blocked, key):
    """Face the nearest place that is wanted, walk there, act on it; through what stands in the way: blocked(row, col)."""
    (down, right), distance = nearest(s, wanted)
    by_row = jnp.where(jnp.abs(down) == jnp.abs(right), jax.random.bernoulli(key), jnp.abs(down) > jnp.abs(right))
    way = jnp.where(by_row, jnp.where(down > 0, 4, 3), jnp.where(right > 0, 2, 1))            # DOWN, UP, RIGHT, LEFT
    step = jnp.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]])[way]
    ahead = jnp.clip(s.player_position + step, 0, wanted.shape[0] - 1)
    act = (s.player_direction == way) & (blocked(ahead[0], ahead[1]) | (distance <= 1))
    return jnp.where(distance > 900, 1 + jax.random.randint(key, (), 0, 4), jnp.where(act, 5, way))            # 5: DO


# ---- the lockstep ----

def main(env, policies, choose, given, sum_of_state, dump, names, defaults):
    """policies: their names; choose(policy, s, key) -> action, gift; given(s, gift) -> s; dump(s): what DUMP=1 saves of a state;
    names: of achievements."""
    params = env.default_params

    def one(seed, policy, state, first):
        base = jax.random.PRNGKey(seed)

        def step(s, t):
            a, gift = choose(policy, s, jax.random.fold_in(jax.random.PRNGKey(1000003), seed * 65536 + t))
            s = given(s, gift)
            key_step, key_reset = jax.random.split(jax.random.fold_in(base, t))
            obs, after, reward, done, _ = env.step_env(key_step, s, a, params)
            result = total(halves(obs)) + total(jnp.concatenate([halves(reward).ravel(), jnp.asarray(done, U)[None]]))
            following = jax.lax.cond(done, lambda: env.reset_env(key_reset, params)[1], lambda: after)
            kept = dict(dump(s), obs=obs, reward=reward, done=done) if DUMP else {}
            return following, ((a + gift).astype(jnp.uint8), jnp.stack([sum_of_state(s), result]), after.achievements, kept)

        return jax.lax.scan(step, state, first + jnp.arange(CHUNK))

    play, sum_of = jax.jit(one), jax.jit(lambda obs: total(halves(obs)))
    path, o = sys.argv[1], dict(w.split('=') for w in sys.argv[2:])
    n, steps, seed = (int(o.get(k, defaults[k])) for k in ('envs', 'steps', 'seed'))
    earned = np.zeros(len(names), bool)
    with open(path, 'wb') as f:
        f.write(b'craftax3' + struct.pack('<3I', n, steps, seed))
        for e in range(n):
            obs, state = env.reset(jax.random.PRNGKey(seed + e), params)
            actions, sums = [], []
            for first in range(0, steps, CHUNK):
                state, (a, s, achievements, kept) = play(seed + e, e % len(policies), state, 1 + first)
                actions.append(np.asarray(a))
                sums.append(np.asarray(s))
                earned |= np.asarray(achievements).any(axis=0)
                if DUMP:
                    np.savez('%s.%d.%d.npz' % (path, e, first), actions=a, **kept)
            f.write(struct.pack('<I', int(sum_of(obs))))
            f.write(np.concatenate(actions)[:steps].tobytes() + np.concatenate(sums)[:steps].astype('<u4').tobytes())
            f.flush()
            print('%.0f s: environment %d, %s: %d achievements so far' % (time.time() - START, e, policies[e % len(policies)], earned.sum()), flush=True)
    print('%s: %d environments, %d steps each, achievements of no episode: %s' % (path, n, steps, [names[i] for i in np.flatnonzero(~earned)]))
