#!/usr/bin/env python3
"""craftax_full.py -- what Craftax (Matthews et al. 2024) itself does, step by step, for ours to do the same.

    python3 -m venv ~/craftax && ~/craftax/bin/pip install "jax[cpu]==0.4.35" flax==0.10.2 matplotlib imageio pillow craftax==1.6.1
    ~/craftax/bin/python tests/reference/craftax_full.py FILE [envs=161] [steps=1500] [seed=0]
    MNEME_CRAFTAX_FULL=FILE luajit tests/run.lua tests/envs/test_craftax.lua

craftax_recorder.py says what is in the file; here are the sums of a state, and seven policies.
No policy of a page comes to the lower floors by itself.  So some steps begin with gifts, which bits of the action's byte tell: 64 opens
the ladders and puts the player on the one down, 128 gives health, things and skills.
The sum of a state is that of map, items, places of mobs, light (of floors entered so far) and all else.
"""
import jax
import jax.numpy as jnp
import numpy as np
import craftax_recorder as recorder
from craftax_recorder import halves, nearest, total, whole
from craftax.craftax.constants import SOLID_BLOCK_MAPPING, Achievement, Action, BlockType
from craftax.craftax.envs.craftax_symbolic_env import CraftaxSymbolicEnv

POLICIES = ('uniform', 'gather', 'combat', 'descend', 'suicide', 'boss', 'mixed')
LADDER, ALL = 64, 128                          # gifts


ENTER = [Achievement.ENTER_DUNGEON, Achievement.ENTER_GNOMISH_MINES, Achievement.ENTER_SEWERS, Achievement.ENTER_VAULT,
         Achievement.ENTER_TROLL_MINES, Achievement.ENTER_FIRE_REALM, Achievement.ENTER_ICE_REALM, Achievement.ENTER_GRAVEYARD]


def entered(s):
    return jnp.concatenate([jnp.ones(1, bool), s.achievements[jnp.array([a.value for a in ENTER])]])


def others(s):
    """All of the state but maps, as whole numbers; floats as their halves, last."""
    inv, seen = s.inventory, entered(s)
    parts = [s.player_position, s.player_level, s.player_direction, s.player_food, s.player_drink, s.player_energy, s.player_mana,
             s.is_sleeping, s.is_resting, s.player_xp, s.player_dexterity, s.player_strength, s.player_intelligence,
             jnp.array([inv.wood, inv.stone, inv.coal, inv.iron, inv.diamond, inv.sapphire, inv.ruby, inv.sapling, inv.torches, inv.arrows,
                        inv.books, inv.pickaxe, inv.sword, inv.bow]),
             s.sword_enchantment, s.bow_enchantment, s.boss_progress, inv.potions, s.potion_mapping, inv.armour, s.armour_enchantments,
             s.learned_spells, s.chests_opened, s.monsters_killed, s.down_ladders * seen[:, None], s.up_ladders * seen[:, None],
             s.boss_timesteps_to_spawn_this_round]
    for m in (s.melee_mobs, s.passive_mobs, s.ranged_mobs):
        parts += [m.position, m.mask, m.type_id, m.attack_cooldown]
    for m, way in ((s.mob_projectiles, s.mob_projectile_directions), (s.player_projectiles, s.player_projectile_directions)):
        parts += [m.position, m.mask, m.type_id, way]
    parts += [s.growing_plants_positions, s.growing_plants_age, s.growing_plants_mask, s.achievements, s.timestep]
    floats = [s.player_health, s.player_recover, s.player_hunger, s.player_thirst, s.player_fatigue, s.player_recover_mana,
              s.melee_mobs.health, s.passive_mobs.health, s.ranged_mobs.health]
    parts += [halves(jnp.concatenate([jnp.ravel(f).astype(jnp.float32) for f in floats]))]
    return whole(parts)


def sum_of_state(s):
    seen = entered(s)[:, None, None]
    return total(s.map * seen) + total(s.item_map * seen) + total(s.mob_map * seen) + total((s.light_map > 0.05) * seen) + total(others(s))


# ---- gifts ----

EARNED = np.zeros(67, bool)                    # with all things in the hands
for a in ('WOOD', 'STONE', 'COAL', 'IRON', 'DIAMOND', 'RUBY', 'SAPPHIRE', 'SAPLING'):
    EARNED[Achievement['COLLECT_' + a].value] = True
for a in ('ARROW', 'TORCH', 'WOOD_PICKAXE', 'STONE_PICKAXE', 'IRON_PICKAXE', 'DIAMOND_PICKAXE', 'WOOD_SWORD', 'STONE_SWORD', 'IRON_SWORD',
          'DIAMOND_SWORD', 'IRON_ARMOUR', 'DIAMOND_ARMOUR'):
    EARNED[Achievement['MAKE_' + a].value] = True
for a in ('FIND_BOW', 'LEARN_FIREBALL', 'LEARN_ICEBALL'):
    EARNED[Achievement[a].value] = True


def given(s, gift):
    ladder, everything = (gift & LADDER) > 0, (gift & ALL) > 0
    below = s.player_level + ladder
    at = s.down_ladders[s.player_level]
    s = s.replace(player_position=jnp.where(ladder, at, s.player_position),
                  monsters_killed=jnp.where(ladder, jnp.maximum(s.monsters_killed, 10), s.monsters_killed),
                  is_sleeping=s.is_sleeping & ~ladder, is_resting=s.is_resting & ~ladder)
    inv, many = s.inventory, lambda x, n: jnp.where(everything, n, x)
    inv = inv.replace(**{k: many(getattr(inv, k), 50) for k in ('wood', 'stone', 'coal', 'iron', 'diamond', 'sapphire', 'ruby', 'sapling',
                                                              'torches', 'arrows')},
                      books=many(inv.books, 2), pickaxe=many(inv.pickaxe, 4), sword=many(inv.sword, 4), bow=many(inv.bow, 1),
                      potions=many(inv.potions, 5), armour=many(inv.armour, 2))
    return s.replace(inventory=inv, player_health=many(s.player_health, 13.0), player_food=many(s.player_food, 9),
                     player_drink=many(s.player_drink, 9), player_energy=many(s.player_energy, 9), player_mana=many(s.player_mana, 9),
                     sword_enchantment=many(s.sword_enchantment, jnp.where(below == 6, 2, 1)),
                     armour_enchantments=many(s.armour_enchantments, jnp.where(below == 7, 2, 1)),
                     player_strength=many(s.player_strength, 5), player_xp=many(s.player_xp, 3), learned_spells=s.learned_spells | everything,
                     achievements=s.achievements | (jnp.array(EARNED) & everything))


def may_stand(s):
    at = s.down_ladders[s.player_level]
    block = s.map[s.player_level, at[0], at[1]]
    return ~SOLID_BLOCK_MAPPING[block] & (block != BlockType.WATER.value) & (block != BlockType.LAVA.value)


# ---- policies: they see everything, and none is good; together they reach most rules ----

def is_block(s, *kinds):
    return jnp.isin(s.map[s.player_level], jnp.array([k.value for k in kinds]))


def mobs(s, m):
    f = s.player_level
    return jnp.zeros((48, 48), bool).at[m.position[f, :, 0], m.position[f, :, 1]].max(m.mask[f])


def seek(s, wanted, key):
    def blocked(row, col):
        block = s.map[s.player_level, row, col]
        return SOLID_BLOCK_MAPPING[block] | (block == BlockType.WATER.value) | s.mob_map[s.player_level, row, col]
    return recorder.seek(s, wanted, blocked, key)


def of(key, *actions):
    return jnp.array([a.value for a in actions])[jax.random.randint(key, (), 0, len(actions))]


def gather(s, key):
    inv, B, A = s.inventory, BlockType, Action
    pick = inv.pickaxe
    want = jnp.where(pick == 0, is_block(s, B.TREE), jnp.where(pick == 1, is_block(s, B.STONE),
           jnp.where(pick == 2, jnp.where(inv.coal < 2, is_block(s, B.COAL), is_block(s, B.IRON)), is_block(s, B.DIAMOND, B.IRON, B.CHEST, B.RUBY))))
    want = jnp.where((inv.wood < 8) & (pick < 3), is_block(s, B.TREE), want)
    want = jnp.where((inv.stone < 6) & (pick > 0) & (inv.wood >= 5), is_block(s, B.STONE), want)
    table, furnace = nearest(s, is_block(s, B.CRAFTING_TABLE))[1], nearest(s, is_block(s, B.FURNACE))[1]
    equipped = (inv.iron > 0) & (inv.coal > 0) & (inv.wood > 0) & (inv.stone > 0)
    want = jnp.where(equipped & (pick < 3), is_block(s, B.CRAFTING_TABLE), want)
    want = jnp.where(s.player_food < 4, mobs(s, s.passive_mobs) | is_block(s, B.RIPE_PLANT), want)
    want = jnp.where(s.player_drink < 4, is_block(s, B.WATER, B.FOUNTAIN), want)
    a = seek(s, want, key)
    r = jax.random.uniform(jax.random.fold_in(key, 1))
    make = of(jax.random.fold_in(key, 2), A.MAKE_WOOD_PICKAXE, A.MAKE_STONE_PICKAXE, A.MAKE_IRON_PICKAXE, A.MAKE_WOOD_SWORD, A.MAKE_STONE_SWORD,
              A.MAKE_IRON_SWORD, A.MAKE_ARROW, A.MAKE_TORCH, A.PLACE_PLANT, A.PLACE_TORCH, A.PLACE_STONE, A.MAKE_IRON_ARMOUR,
              A.MAKE_DIAMOND_PICKAXE, A.MAKE_DIAMOND_SWORD, A.MAKE_DIAMOND_ARMOUR, A.LEVEL_UP_DEXTERITY)
    a = jnp.where((r < 0.2) & (table <= 2), make, a)
    a = jnp.where((inv.wood >= 8) & (table > 6) & (r < 0.5), A.PLACE_TABLE.value, a)
    a = jnp.where((table <= 2) & (furnace > 2) & (inv.stone > 2) & (r < 0.3), A.PLACE_FURNACE.value, a)
    tool = jnp.where(pick < 3, A.MAKE_IRON_PICKAXE.value, A.MAKE_IRON_SWORD.value)
    a = jnp.where(equipped & (table <= 2) & (furnace <= 2) & (r < 0.6), tool, a)
    a = jnp.where((s.player_energy < 3) & (r < 0.9), A.SLEEP.value, a)
    return a, 0


def combat(s, key):
    """Fights, farms and sleeps on the first floor, and is healed."""
    B, A = BlockType, Action
    kind, plants = s.timestep // 50 % 4, s.growing_plants_mask.sum()
    ripe = is_block(s, B.RIPE_PLANT)
    want = jnp.where(kind == 0, mobs(s, s.melee_mobs), jnp.where(kind == 1, mobs(s, s.passive_mobs), jnp.where(kind == 2,
           mobs(s, s.ranged_mobs) | is_block(s, B.PATH), jnp.where(ripe.any(), ripe, is_block(s, B.GRASS)))))
    a = seek(s, want, key)
    a = jnp.where((s.inventory.sapling > 0) & (plants < 3) & (kind == 3), A.PLACE_PLANT.value, a)
    some = of(key, A.REST, A.SLEEP, A.SHOOT_ARROW, A.LEVEL_UP_STRENGTH)
    a = jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 3), 0.05), some, a)
    return a, jnp.where((s.player_health < 3) & (s.timestep > 60), ALL, 0)


def deeds(s, key):
    """What one with everything can do: fight, dig, shoot, cast, drink, enchant, build."""
    A, B = Action, BlockType
    k = jax.random.split(key, 4)
    many = of(k[0], A.SHOOT_ARROW, A.CAST_FIREBALL, A.CAST_ICEBALL, A.PLACE_TORCH, A.DRINK_POTION_RED, A.DRINK_POTION_GREEN, A.DRINK_POTION_BLUE,
              A.DRINK_POTION_PINK, A.DRINK_POTION_CYAN, A.DRINK_POTION_YELLOW, A.READ_BOOK, A.ENCHANT_SWORD, A.ENCHANT_ARMOUR, A.ENCHANT_BOW,
              A.LEVEL_UP_DEXTERITY, A.LEVEL_UP_STRENGTH, A.LEVEL_UP_INTELLIGENCE, A.PLACE_STONE, A.PLACE_TABLE, A.PLACE_FURNACE, A.PLACE_PLANT,
              A.MAKE_ARROW, A.MAKE_TORCH, A.MAKE_IRON_ARMOUR, A.REST, A.SLEEP)
    fight = seek(s, mobs(s, s.melee_mobs) | mobs(s, s.ranged_mobs) | (mobs(s, s.passive_mobs) & (s.timestep % 240 < 60)), k[1])
    tables = is_block(s, B.ENCHANTMENT_TABLE_FIRE, B.ENCHANTMENT_TABLE_ICE)
    loot = seek(s, jnp.where(jax.random.bernoulli(k[2], 0.3) | ~tables.any(), is_block(s, B.CHEST, B.FOUNTAIN, B.RUBY, B.SAPPHIRE, B.DIAMOND, B.TREE,
                             B.FIRE_TREE, B.ICE_SHRUB, B.STALAGMITE, B.WATER, B.GRASS), tables), k[1])
    a = jnp.where(s.timestep // 60 % 2 == 0, fight, loot)
    beside = nearest(s, tables)[1] <= 1
    enchant = of(k[0], A.ENCHANT_SWORD, A.ENCHANT_ARMOUR, A.ENCHANT_BOW, A.DO, A.REST)
    a = jnp.where(beside & jax.random.bernoulli(k[2], 0.5), enchant, a)
    return jnp.where(jax.random.bernoulli(k[3], 0.25), many, a)


def descend(s, key):
    """Gifts, and the ladder down, every 120 steps."""
    go = (s.timestep % 120 == 100) & may_stand(s)
    some = jax.random.bernoulli(jax.random.fold_in(key, 9))
    up = (s.timestep % 360 == 20) & (s.player_level > 1)
    a = jnp.where(go, Action.DESCEND.value, deeds(s, key))
    return jnp.where(up, Action.ASCEND.value, a), jnp.where(go, jnp.where(some, LADDER + ALL, LADDER), jnp.where(s.player_health < 3, ALL, 0))


def suicide(s, key):
    B = BlockType
    want = jnp.where(is_block(s, B.LAVA).any(), is_block(s, B.LAVA), mobs(s, s.melee_mobs) | is_block(s, B.WATER))
    row, col = jnp.mgrid[0:48, 0:48]
    edge = (row == 0) | (col == 0) | (row == 47) | (col == 47)
    want = jnp.where(s.timestep // 150 % 2 == 0, want, edge)
    a = seek(s, want, key)
    return jnp.where(jax.random.bernoulli(key, 0.1), of(key, Action.PLACE_STONE, Action.REST, Action.SLEEP, Action.PLACE_TABLE), a), 0


def boss(s, key):
    """Down at once, then the necromancer."""
    go = (s.player_level < 8) & (s.timestep % 12 == 3) & may_stand(s)
    heal = (s.player_level == 8) & (s.player_health < 5) & (s.timestep % 3 == 0)
    fight = jnp.where(mobs(s, s.melee_mobs).any() | mobs(s, s.ranged_mobs).any(), mobs(s, s.melee_mobs) | mobs(s, s.ranged_mobs),
                      is_block(s, BlockType.NECROMANCER))
    a = jnp.where(jax.random.bernoulli(key, 0.8), seek(s, fight, key), deeds(s, key))
    return jnp.where(go, Action.DESCEND.value, a), jnp.where(go, LADDER + ALL, jnp.where(heal, ALL, 0))


def choose(policy, s, key):
    some = jax.random.randint(key, (), 0, 43)
    keys = jax.random.split(key)
    acts = [lambda: (some, 0)] + [lambda f=f: tuple(jnp.asarray(x, jnp.int32) for x in f(s, keys[0])) for f in (gather, combat, descend, suicide, boss)]
    policy = jnp.where(policy == 6, (s.timestep // 40 * 7 + s.timestep // 200) % 6, policy)
    a, gift = jax.lax.switch(policy, [lambda f=f: tuple(jnp.asarray(x, jnp.int32) for x in f()) for f in acts])
    wander = jnp.where(jax.random.bernoulli(key, 0.7), 1 + some % 5, some)
    return jnp.where((policy > 0) & (gift == 0) & jax.random.bernoulli(keys[1], 0.12), wander, a), gift


def dump(s):
    f = s.player_level
    return dict(map=s.map[f], item=s.item_map[f], mob=s.mob_map[f], lit=s.light_map[f] > 0.05, others=others(s))


if __name__ == '__main__':
    recorder.main(CraftaxSymbolicEnv(), POLICIES, choose, given, sum_of_state, dump, [a.name for a in Achievement],
                  dict(envs=161, steps=1500, seed=0))
