#!/usr/bin/env python3
"""craftax_classic.py -- what Craftax Classic (Matthews et al. 2024) itself does, step by step, for ours to do the same.

    python3 -m venv ~/craftax && ~/craftax/bin/pip install "jax[cpu]==0.4.35" flax==0.10.2 matplotlib imageio pillow craftax==1.6.1
    ~/craftax/bin/python tests/reference/craftax_classic.py FILE [envs=20] [steps=1000] [seed=0]
    MNEME_CRAFTAX=FILE luajit tests/run.lua tests/envs/test_craftax_classic.lua

craftax_recorder.py says what is in the file; here are the sums of a state (map, places of mobs and all else), and six policies.
"""
import jax
import jax.numpy as jnp
import craftax_recorder as recorder
from craftax_recorder import nearest, total, whole
from craftax.craftax_classic.constants import Achievement, Action, BlockType
from craftax.craftax_classic.envs.craftax_symbolic_env import CraftaxClassicSymbolicEnv

POLICIES = ('uniform', 'gather', 'combat', 'descend', 'sleep', 'farm')


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
    return whole(parts)


# ---- policies: they see everything, and none is good; together they reach most rules ----

def is_block(s, *kinds):
    return jnp.isin(s.map, jnp.array([k.value for k in kinds]))


def mobs(s, m):
    return jnp.zeros((64, 64), bool).at[m.position[:, 0], m.position[:, 1]].max(m.mask)


SOLID = [3, 4, 5, 8, 9, 10, 11, 12, 15, 16]


def seek(s, wanted, key):
    return recorder.seek(s, wanted, lambda row, col: jnp.isin(s.map[row, col], jnp.array(SOLID)) | s.mob_map[row, col], key)


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


def sum_of_state(s):
    return total(s.map) + total(s.mob_map) + total(others(s))


if __name__ == '__main__':
    recorder.main(CraftaxClassicSymbolicEnv(), POLICIES, lambda policy, s, key: (choose(policy, s, key), 0), lambda s, gift: s, sum_of_state,
                  lambda s: dict(map=s.map, others=others(s)), [a.name for a in Achievement], dict(envs=20, steps=1000, seed=0))
