#!/usr/bin/env python3
"""craftax_classic.py -- what Craftax Classic (Matthews et al. 2024) itself does, step by step, for ours to do the same.

    python3 -m venv ~/craftax && ~/craftax/bin/pip install "jax[cpu]==0.4.35" flax==0.8.2 matplotlib imageio pillow craftax==1.6.1
    ~/craftax/bin/python tests/reference/craftax_classic.py FILE [envs=20] [steps=1000] [seed=0]
    MNEME_CRAFTAX=FILE luajit tests/run.lua tests/envs/test_craftax_classic.lua

CRAFTAX=FOLDER runs a checkout instead of the installed package.  Six policies play in turn, an environment each.  Environment e has
seed seed+e; its keys are those of random=jax: the first reset uses PRNGKey(seed), step s uses fold_in(PRNGKey(seed), s).
The file: "craftax1", then envs, steps, seed (u32), then for each environment its actions [steps] (u8), and for each step two u32:
the sums of map, places of mobs and all other state before it, and of the observation, reward and end after it.  The sum of
values v[0..] is that of v[k] times weight(k), modulo 2^32; a float32 counts as its two halves, low half first.  DUMP=1 also
saves states and observations.
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
from craftax.craftax_classic.constants import Action, BlockType
from craftax.craftax_classic.envs.craftax_symbolic_env import CraftaxClassicSymbolicEnv

U = jnp.uint32
POLICIES = ('uniform', 'gather', 'combat', 'descend', 'sleep', 'farm')
CHUNK = 250                                    # steps a call


def weights(n):
    k = np.arange(1, n + 1, dtype=np.uint64)
    x = (k * 0x9E3779B1) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 0x2C1B3C6D) & 0xFFFFFFFF
    return ((x ^ x >> 12) | 1).astype(np.uint32)


W = jnp.array(weights(8192))


def total(values):
    values = jnp.ravel(values).astype(jnp.int32).astype(U)
    return jnp.sum(values * W[:values.size], dtype=U)


def halves(x):
    bits = jax.lax.bitcast_convert_type(jnp.ravel(x).astype(jnp.float32), U)
    return jnp.stack([bits & 0xFFFF, bits >> 16], axis=1)


def others(s):
    """All of the state but the map and the map of mobs, as whole numbers."""
    twice = [2 * s.player_recover, 2 * s.player_hunger, 2 * s.player_thirst, 2 * s.player_fatigue]
    inv = s.inventory
    parts = [s.player_position, s.player_direction, s.player_health, s.player_food, s.player_drink, s.player_energy, s.is_sleeping,
             jnp.array(twice), jnp.array([inv.wood, inv.stone, inv.coal, inv.iron, inv.diamond, inv.sapling, inv.wood_pickaxe,
                                          inv.stone_pickaxe, inv.iron_pickaxe, inv.wood_sword, inv.stone_sword, inv.iron_sword])]
    for m in (s.zombies, s.cows, s.skeletons):
        parts += [m.position, m.health, m.mask, m.attack_cooldown]
    parts += [s.arrows.position, s.arrows.mask, s.arrow_directions, s.growing_plants_positions, s.growing_plants_age,
              s.growing_plants_mask, s.achievements, s.timestep]
    return jnp.concatenate([jnp.ravel(jnp.asarray(p)).astype(jnp.int32) for p in parts])


# ---- policies: they see everything, and none is good; together they reach most rules ----

def nearest(s, wanted):
    """The vector to the nearest place where `wanted` is true, and its distance."""
    row, col = jnp.mgrid[0:64, 0:64]
    far = jnp.where(wanted, jnp.abs(row - s.player_position[0]) + jnp.abs(col - s.player_position[1]), 999)
    at = jnp.argmin(far)
    return jnp.array([at // 64, at % 64]) - s.player_position, far.ravel()[at]


def toward(s, vector, distance, key):
    """Face it, walk there, act on it; through what stands in the way."""
    down, right = vector
    by_row = jnp.where(jnp.abs(down) == jnp.abs(right), jax.random.bernoulli(key), jnp.abs(down) > jnp.abs(right))
    way = jnp.where(by_row, jnp.where(down > 0, Action.DOWN.value, Action.UP.value), jnp.where(right > 0, Action.RIGHT.value, Action.LEFT.value))
    step = jnp.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]])[way]
    ahead = jnp.clip(s.player_position + step, 0, 63)
    block = s.map[ahead[0], ahead[1]]
    blocked = jnp.isin(block, jnp.array([3, 4, 5, 8, 9, 10, 11, 12, 15, 16])) | s.mob_map[ahead[0], ahead[1]]
    act = (s.player_direction == way) & (blocked | (distance <= 1))
    return jnp.where(distance > 900, 1 + jax.random.randint(key, (), 0, 4), jnp.where(act, Action.DO.value, way))


def is_block(s, *kinds):
    return jnp.isin(s.map, jnp.array([k.value for k in kinds]))


def mobs(s, m):
    return jnp.zeros((64, 64), bool).at[m.position[:, 0], m.position[:, 1]].max(m.mask)


def seek(s, wanted, key):
    return toward(s, *nearest(s, wanted), key)


def gather(s, key):
    inv, B = s.inventory, BlockType
    pick = jnp.where(inv.iron_pickaxe > 0, 3, jnp.where(inv.stone_pickaxe > 0, 2, (inv.wood_pickaxe > 0).astype(int)))
    want = jnp.where(pick == 0, is_block(s, B.TREE), jnp.where(pick == 1, is_block(s, B.STONE),
           jnp.where(pick == 2, jnp.where((inv.coal < 2), is_block(s, B.COAL), is_block(s, B.IRON)), is_block(s, B.DIAMOND))))
    want = jnp.where((inv.wood < 5) & (pick < 3), is_block(s, B.TREE), want)
    want = jnp.where((inv.stone < 4) & (pick > 0) & (inv.wood >= 5), is_block(s, B.STONE), want)
    equipped = (pick == 2) & (inv.iron > 0) & (inv.coal > 0) & (inv.wood > 0) & (inv.stone > 0)
    want = jnp.where(equipped, is_block(s, B.CRAFTING_TABLE), want)
    want = jnp.where(s.player_food < 4, mobs(s, s.cows) | is_block(s, B.RIPE_PLANT), want)
    want = jnp.where(s.player_drink < 4, is_block(s, B.WATER), want)
    a = seek(s, want, key)
    r = jax.random.uniform(jax.random.fold_in(key, 1))
    make = 5 + jax.random.randint(jax.random.fold_in(key, 2), (), 2, 12)
    table_near = nearest(s, is_block(s, B.CRAFTING_TABLE))[1] <= 6
    make = jnp.where((make == Action.PLACE_TABLE.value) & table_near, Action.PLACE_FURNACE.value, make)
    a = jnp.where((r < jnp.where(equipped & table_near, 0.5, 0.2)) & (inv.wood >= 1) & ((make != Action.PLACE_STONE.value) | (inv.stone > 4)), make, a)
    a = jnp.where((inv.wood >= 5) & ~table_near & (r < 0.5), Action.PLACE_TABLE.value, a)
    iron_tool = jnp.where(r < 0.3, Action.MAKE_IRON_PICKAXE.value, Action.MAKE_IRON_SWORD.value)
    iron_tool = jnp.where(nearest(s, is_block(s, B.FURNACE))[1] <= 2, iron_tool, Action.PLACE_FURNACE.value)
    a = jnp.where(equipped & (nearest(s, is_block(s, B.CRAFTING_TABLE))[1] <= 2) & (r < 0.6), iron_tool, a)
    return jnp.where((s.player_energy < 3) & (r < 0.9), Action.SLEEP.value, a)


def combat(s, key):
    kind = s.timestep // 100 % 3
    want = jnp.where(kind == 0, mobs(s, s.zombies), jnp.where(kind == 1, mobs(s, s.cows), mobs(s, s.skeletons) | is_block(s, BlockType.PATH)))
    return seek(s, want, key)


def descend(s, key):
    a = seek(s, is_block(s, BlockType.LAVA, BlockType.DIAMOND, BlockType.PATH), key)
    return jnp.where(s.timestep % 7 == 0, Action.PLACE_STONE.value, a)


def sleep(s, key):
    farming = seek(s, is_block(s, BlockType.RIPE_PLANT, BlockType.GRASS), key)
    a = jnp.where(jax.random.bernoulli(key, 0.3), Action.PLACE_PLANT.value, farming)
    return jnp.where(s.player_energy < 9, Action.SLEEP.value, a)


def farm(s, key):
    B, plants = BlockType, s.growing_plants_mask.sum()
    want = jnp.where(plants < 2, is_block(s, B.GRASS), jnp.where(is_block(s, B.RIPE_PLANT).any(), is_block(s, B.RIPE_PLANT), mobs(s, s.zombies)))
    want = jnp.where(s.player_food < 6, mobs(s, s.cows) | is_block(s, B.RIPE_PLANT), want)
    want = jnp.where(s.player_drink < 6, is_block(s, B.WATER), want)
    a = seek(s, want, key)
    a = jnp.where((s.inventory.sapling > 0) & (plants < 2), Action.PLACE_PLANT.value, a)
    return jnp.where((s.player_energy < 3) | s.is_sleeping, Action.SLEEP.value, a)


def choose(policy, s, key):
    some = jax.random.randint(key, (), 0, 17)
    keys = jax.random.split(key)
    a = jax.lax.switch(policy, [lambda: some] + [lambda f=f: jnp.asarray(f(s, keys[0]), jnp.int32) for f in (gather, combat, descend, sleep, farm)])
    wander = 1 + some % 5
    return jnp.where((policy > 0) & jax.random.bernoulli(keys[1], 0.15), wander, a)


# ---- the lockstep ----

env = CraftaxClassicSymbolicEnv()
params = env.default_params


def one(seed, policy, state, first):
    base = jax.random.PRNGKey(seed)

    def step(s, t):
        a = choose(policy, s, jax.random.fold_in(jax.random.PRNGKey(1000003), seed * 65536 + t))
        key_step, key_reset = jax.random.split(jax.random.fold_in(base, t))
        obs, after, reward, done, _ = env.step_env(key_step, s, a, params)
        sums = jnp.stack([total(s.map) + total(s.mob_map) + total(others(s)), total(halves(obs)) +
                          total(jnp.concatenate([halves(reward).ravel(), jnp.asarray(done, U)[None]]))])
        following = jax.lax.cond(done, lambda: env.reset_env(key_reset, params)[1], lambda: after)
        return following, (a.astype(jnp.uint8), sums, after.achievements) + ((s.map, others(s), obs) if DUMP else ())

    return jax.lax.scan(step, state, first + jnp.arange(CHUNK))


DUMP = bool(os.environ.get('DUMP'))
reset = jax.jit(lambda seed: env.reset_env(jax.random.PRNGKey(seed), params)[1])
play = jax.jit(one)


def main():
    path, o = sys.argv[1], dict(w.split('=') for w in sys.argv[2:])
    n, steps, seed = int(o.get('envs', 20)), int(o.get('steps', 1000)), int(o.get('seed', 0))
    earned = np.zeros(22, bool)
    with open(path, 'wb') as f:
        f.write(b'craftax1' + struct.pack('<3I', n, steps, seed))
        for e in range(n):
            state, actions, sums = reset(seed + e), [], []
            for first in range(0, steps, CHUNK):
                state, (a, s, achievements, *dump) = play(seed + e, e % len(POLICIES), state, 1 + first)
                actions.append(np.asarray(a))
                sums.append(np.asarray(s))
                earned |= np.asarray(achievements).any(axis=0)
                if DUMP:
                    np.savez('%s.%d.%d.npz' % (path, e, first), map=dump[0], others=dump[1], obs=dump[2], actions=a)
            f.write(np.concatenate(actions)[:steps].tobytes() + np.concatenate(sums)[:steps].astype('<u4').tobytes())
            f.flush()
            print('%.0f s: environment %d, %s: %d achievements so far' % (time.time() - START, e, POLICIES[e % len(POLICIES)], earned.sum()), flush=True)
    print('%s: %d environments, %d steps each, achievements of no episode: %s' % (path, n, steps, np.flatnonzero(~earned).tolist()))


if __name__ == '__main__':
    main()
