/* tables.h -- the original's numbers: mobs by floor, class and type, damages, rewards (its constants.py). */
#ifndef MN_CRAFTAX_TABLES_H
#define MN_CRAFTAX_TABLES_H
#include "world.h"

/* The type of a class of mobs on a floor; at the boss, monsters are those of floor boss_progress. */
MN_FN int type_on(int floor, int of) {
  const uint8_t type[FLOORS][3] = { { 0, 0, 0 }, { 2, 2, 2 }, { 1, 1, 1 }, { 2, 3, 3 }, { 2, 4, 4 }, { 1, 5, 5 }, { 1, 6, 6 },
                                    { 1, 7, 7 }, { 0, 0, 0 } };
  return type[floor][of];
}

/* The chance that one appears in a step; MELEE has more by night. */
MN_FN float chance_on(int floor, int of) {
  const bool ground = floor == 0;
  return of == PASSIVE ? (floor == 7 ? 0.0f : 0.1f) : of == MELEE ? (ground ? 0.02f : 0.06f) : 0.05f;
}
MN_FN float chance_by_night(int floor) { return floor == 0 ? 0.1f : 0.0f; }

MN_FN float health_of(int of, int type) {
  const uint8_t health[TYPES][3] = { { 3, 5, 3 }, { 4, 7, 5 }, { 6, 9, 6 }, { 8, 11, 8 }, { 0, 12, 12 }, { 0, 20, 4 }, { 0, 20, 14 },
                                     { 0, 24, 16 } };
  return (float)health[type][of];
}

/* What stops it: of WALKER .. AMPHIBIAN. */
MN_FN int stops(int of, int type) {
  if (of == PASSIVE) return type == 1 ? FLYER : WALKER;
  if (of == MELEE) return type == 3 ? AMPHIBIAN : WALKER;
  return type == 5 ? SWIMMER : type >= 6 ? FLYER : WALKER;
}

/* Damage that a MELEE or a PROJECTILE does, of each kind: PLAIN, FIRE, ICE. */
MN_FN float damage_of(int of, int type, int kind) {
  const uint8_t melee[TYPES][3] = { { 2, 0, 0 }, { 4, 0, 0 }, { 3, 0, 0 }, { 5, 0, 0 }, { 6, 0, 0 }, { 6, 1, 1 }, { 3, 5, 0 }, { 4, 0, 5 } };
  const uint8_t flying[TYPES][3] = { { 2, 0, 0 }, { 4, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 }, { 5, 0, 0 }, { 4, 3, 3 }, { 3, 5, 0 }, { 4, 0, 5 } };
  return (float)(of == MELEE ? melee : flying)[type][kind];
}

/* The share of a damage of that kind that does nothing to a mob. */
MN_FN float defense_of(int of, int type, int kind) {
  if (of != MELEE && of != RANGED) return 0;
  if (kind == PLAIN) return type == 4 ? 0.5f : type == 5 && of == MELEE ? 0.2f : type >= 6 ? 0.9f : 0.0f;
  return type == (kind == FIRE ? 6 : 7) ? 1.0f : 0.0f;
}

MN_FN int shot_of(int ranged_type) {
  const uint8_t shots[TYPES] = { ARROW, ARROW, FIREBALL, DAGGER, ARROW2, SLIMEBALL, FIREBALL2, ICEBALL2 };
  return shots[ranged_type];
}

/* The achievement of killing one; of others COLLECT_WOOD, as in the original. */
MN_FN int kill_earns(int of, int type) {
  const uint8_t earned[3][TYPES] = {
    { EAT_COW, EAT_BAT, EAT_SNAIL, 0, 0, 0, 0, 0 },
    { DEFEAT_ZOMBIE, DEFEAT_GNOME_WARRIOR, DEFEAT_ORC_SOLDIER, DEFEAT_LIZARD, DEFEAT_KNIGHT, DEFEAT_TROLL, DEFEAT_PIGMAN, DEFEAT_FROST_TROLL },
    { DEFEAT_SKELETON, DEFEAT_GNOME_ARCHER, DEFEAT_ORC_MAGE, DEFEAT_KOBOLD, DEFEAT_ARCHER, DEFEAT_DEEP_THING, DEFEAT_FIRE_ELEMENTAL,
      DEFEAT_ICE_ELEMENTAL } };
  return earned[of][type];
}

/* The achievement of entering a floor; floor 0 has none. */
MN_FN int floor_earns(int floor) {
  const uint8_t earned[FLOORS] = { 0, ENTER_DUNGEON, ENTER_GNOMISH_MINES, ENTER_SEWERS, ENTER_VAULT, ENTER_TROLL_MINES, ENTER_FIRE_REALM,
                                   ENTER_ICE_REALM, ENTER_GRAVEYARD };
  return earned[floor];
}

/* What an achievement pays: 1 (the first 25), 3 (of the first three floors), 8 (of the last three and the boss) or 5; 226 in all. */
MN_FN int pay_of(int which) {
  const uint64_t three = 1ull << COLLECT_SAPPHIRE | 1ull << COLLECT_RUBY | 1ull << MADE_DIAMOND_PICKAXE | 1ull << MADE_DIAMOND_SWORD |
                         1ull << MADE_IRON_ARMOUR | 1ull << MADE_DIAMOND_ARMOUR | 1ull << ENTER_GNOMISH_MINES | 1ull << ENTER_DUNGEON |
                         1ull << DEFEAT_GNOME_WARRIOR | 1ull << DEFEAT_GNOME_ARCHER | 1ull << DEFEAT_ORC_SOLDIER | 1ull << DEFEAT_ORC_MAGE |
                         1ull << EAT_BAT | 1ull << EAT_SNAIL | 1ull << FIND_BOW | 1ull << FIRED_BOW | 1ull << OPEN_CHEST | 1ull << DRINK_POTION;
  const uint64_t eight = 1ull << ENTER_FIRE_REALM | 1ull << ENTER_ICE_REALM | 1ull << ENTER_GRAVEYARD | 1ull << DEFEAT_PIGMAN |
                         1ull << DEFEAT_FIRE_ELEMENTAL | 1ull << DEFEAT_FROST_TROLL | 1ull << DEFEAT_ICE_ELEMENTAL |
                         1ull << DAMAGE_NECROMANCER | 1ull << DEFEAT_NECROMANCER;
  return which <= PLACED_TORCH ? 1 : which >= 64 ? 5 : three >> which & 1 ? 3 : eight >> which & 1 ? 8 : 5;
}
#endif
