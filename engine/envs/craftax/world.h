/* world.h -- Craftax's names, its state, and how the state is read and written. */
#ifndef MN_CRAFTAX_WORLD_H
#define MN_CRAFTAX_WORLD_H
#include "worlds/craftax.h"

enum { RANDOM, CODES_OBSERVED };                 /* parameters */
enum { FLOORS = 9, SIDE = 48, ROWS = 9, COLS = 11, LONGEST = 100000, BOSS = FLOORS - 1 };
enum { MELEES = 3, PASSIVES = 3, RANGEDS = 2, SHOTS = 3, PLANTS = 10, POTIONS = 6, ARMOURS = 4, CLEARED = 8, BOSS_WAIT = 7 };

enum { WALL = SHARED_BLOCKS, DARKNESS, WALL_MOSS, STALAGMITE, SAPPHIRE, RUBY, CHEST, FOUNTAIN, FIRE_GRASS, ICE_GRASS, GRAVEL, FIRE_TREE,
       ICE_SHRUB, FIRE_ALTAR, ICE_ALTAR, NECROMANCER, GRAVE, GRAVE2, GRAVE3, NECROMANCER_OPEN, BLOCKS };
enum { NOTHING, TORCH, LADDER_DOWN, LADDER_UP, LADDER_SHUT, THINGS };           /* what lies on a block */
enum { REST = SHARED_ACTIONS, DESCEND, ASCEND, MAKE_DIAMOND_PICKAXE, MAKE_DIAMOND_SWORD, MAKE_IRON_ARMOUR, MAKE_DIAMOND_ARMOUR, SHOOT_ARROW,
       MAKE_ARROW, CAST_FIREBALL, CAST_ICEBALL, PLACE_TORCH, DRINK_RED, DRINK_GREEN, DRINK_BLUE, DRINK_PINK, DRINK_CYAN, DRINK_YELLOW,
       READ_BOOK, ENCHANT_SWORD, ENCHANT_ARMOUR, MAKE_TORCH, LEVEL_UP_DEXTERITY, LEVEL_UP_STRENGTH, LEVEL_UP_INTELLIGENCE, ENCHANT_BOW,
       ACTIONS };
enum { MADE_ARROW = SHARED_ACHIEVEMENTS, MADE_TORCH, PLACED_TORCH, MADE_DIAMOND_SWORD, MADE_IRON_ARMOUR, MADE_DIAMOND_ARMOUR,
       ENTER_GNOMISH_MINES, ENTER_DUNGEON, ENTER_SEWERS,
       ENTER_VAULT, ENTER_TROLL_MINES, ENTER_FIRE_REALM, ENTER_ICE_REALM, ENTER_GRAVEYARD, DEFEAT_GNOME_WARRIOR, DEFEAT_GNOME_ARCHER,
       DEFEAT_ORC_SOLDIER, DEFEAT_ORC_MAGE, DEFEAT_LIZARD, DEFEAT_KOBOLD, DEFEAT_TROLL, DEFEAT_DEEP_THING, DEFEAT_PIGMAN,
       DEFEAT_FIRE_ELEMENTAL, DEFEAT_FROST_TROLL, DEFEAT_ICE_ELEMENTAL, DAMAGE_NECROMANCER, DEFEAT_NECROMANCER, EAT_BAT, EAT_SNAIL,
       FIND_BOW, FIRED_BOW, COLLECT_SAPPHIRE, LEARNED_FIREBALL, THREW_FIREBALL, LEARNED_ICEBALL, THREW_ICEBALL, COLLECT_RUBY,
       MADE_DIAMOND_PICKAXE, OPEN_CHEST, DRINK_POTION, ENCHANTED_SWORD, ENCHANTED_ARMOUR, DEFEAT_KNIGHT, DEFEAT_ARCHER, ACHIEVEMENTS };
enum { HAS_WOOD, HAS_STONE, HAS_COAL, HAS_IRON, HAS_DIAMOND, HAS_SAPPHIRE, HAS_RUBY, HAS_SAPLING, HAS_TORCH, HAS_ARROW, HAS_BOOK,
       ITEMS };
enum { PASSIVE, MELEE, RANGED, PROJECTILE };     /* classes of mobs, as the original's tables have them; each has types 0 .. 7 */
enum { ARROW, DAGGER, FIREBALL, ICEBALL, ARROW2, SLIMEBALL, FIREBALL2, ICEBALL2, TYPES };         /* of projectiles */
enum { PLAIN, FIRE, ICE };                       /* enchantments, and kinds of damage */

/* A place that is free keeps where its mob was: it still wanders and hides others from view. */
typedef struct mob { float health; int32_t cooldown; uint8_t row, col, alive, type; } mob;
typedef struct shot { int32_t row, col; int8_t down, right; uint8_t flies, type; } shot;         /* a free one drifts for ever */
typedef struct plant { int32_t age; uint8_t row, col, grows, unused; } plant;                     /* on floor 0, wherever it was planted */

/* One of the nine; all zero until it is entered. */
typedef struct level {
  uint64_t occupied[SIDE];                       /* by mobs: a bit a column */
  uint64_t lit[SIDE];                            /* where the original's light is above 0.05, all that it asks */
  uint8_t map[SIDE][SIDE];
  uint8_t item[SIDE][SIDE];                      /* of THINGS */
  mob melee[MELEES], passive[PASSIVES], ranged[RANGEDS];
  shot theirs[SHOTS], mine[SHOTS];               /* projectiles of mobs and of the player */
  uint8_t down_ladder[2], up_ladder[2];          /* row, column */
  uint8_t dug, unused[3];                        /* dug: lit, map or item have changed, within a step */
} level;

typedef struct craftax {
  uint64_t achieved[2];                          /* a bit each */
  mn_jax_key world;                              /* floors are made from it when they are entered: generate.h */
  uint32_t made;                                 /* a bit a floor */
  int32_t steps, boss_timer;
  int32_t killed[FLOORS];                        /* monsters */
  float health, recover, hunger, thirst, fatigue, recover_mana;
  int16_t row, col;                              /* of the player */
  int8_t food, drink, energy, mana;
  uint8_t floor, direction, sleeping, resting;   /* direction: LEFT .. DOWN */
  uint8_t xp, dexterity, strength, intelligence;
  uint8_t pickaxe, sword, bow, sword_magic, bow_magic, boss_progress;
  uint8_t has[ITEMS], potion[POTIONS], effect[POTIONS];          /* effect: what each colour does in this episode */
  uint8_t armour[ARMOURS], armour_magic[ARMOURS], learned[2];    /* learned: fireball, iceball */
  uint8_t opened[FLOORS];                        /* a chest of that floor */
  plant garden[PLANTS];
  level at[FLOORS];
} craftax;

typedef struct shared { float light[LONGEST + 1]; } shared;      /* daylight at each step */

MN_FN float light_at(const mn_io *io, int step) { return ((const shared *)io->shared)->light[step]; }

/* ---- places of the floor where the player is ---- */

MN_FN bool inside(int row, int col) { return row >= 0 && row < SIDE && col >= 0 && col < SIDE; }

/* What the original reads beyond the map: JAX counts negative places from the end, and stops at the last. */
MN_FN int clamped(int i) {
  i += i < 0 ? SIDE : 0;
  return i < 0 ? 0 : i < SIDE ? i : SIDE - 1;
}
MN_FN int block_at(const craftax *w, int row, int col) { return w->at[w->floor].map[clamped(row)][clamped(col)]; }
MN_FN int item_at(const craftax *w, int row, int col) { return w->at[w->floor].item[clamped(row)][clamped(col)]; }
MN_FN bool mob_at(const craftax *w, int row, int col) { return w->at[w->floor].occupied[clamped(row)] >> clamped(col) & 1; }

/* What it writes there: negative places count from the end, others are left out. */
MN_FN bool written(int *row, int *col) {
  *row += *row < 0 ? SIDE : 0;
  *col += *col < 0 ? SIDE : 0;
  return inside(*row, *col);
}
MN_FN void put_block(craftax *w, int row, int col, int block) {
  if (!written(&row, &col)) return;
  w->at[w->floor].map[row][col] = (uint8_t)block;
  w->at[w->floor].dug = 1;
}
MN_FN void occupy(craftax *w, int row, int col) {
  if (written(&row, &col)) w->at[w->floor].occupied[row] |= 1ull << col;
}
MN_FN void vacate(craftax *w, int row, int col) {
  if (written(&row, &col)) w->at[w->floor].occupied[row] &= ~(1ull << col);
}

/* Blocks that nobody walks through. */
MN_FN bool solid(int block) {
  const uint64_t all = 1ull << STONE | 1ull << TREE | 1ull << COAL | 1ull << IRON | 1ull << DIAMOND | 1ull << TABLE | 1ull << FURNACE |
                       1ull << PLANT | 1ull << RIPE | 1ull << WALL | 1ull << WALL_MOSS | 1ull << STALAGMITE | 1ull << RUBY |
                       1ull << SAPPHIRE | 1ull << CHEST | 1ull << FOUNTAIN | 1ull << FIRE_TREE | 1ull << FIRE_ALTAR | 1ull << ICE_ALTAR |
                       1ull << GRAVE | 1ull << GRAVE2 | 1ull << GRAVE3 | 1ull << NECROMANCER;
  return all >> block & 1;
}

/* By a mob or the player. */
MN_FN bool taken(const craftax *w, int row, int col) { return mob_at(w, row, col) || (w->row == row && w->col == col); }

/* What stops a creature besides solid blocks. */
enum { GROUND = 1, WATERS = 2, LAVAS = 4, WALKER = WATERS | LAVAS, FLYER = 0, SWIMMER = GROUND | LAVAS, AMPHIBIAN = LAVAS };

/* Whether one that these stop can go there. */
MN_FN bool free_for(const craftax *w, int row, int col, int stopped_by) {
  if (!inside(row, col)) return false;
  const int block = w->at[w->floor].map[row][col];
  const int is = block == WATER ? WATERS : block == LAVA ? LAVAS : GROUND;
  return !solid(block) && !(is & stopped_by) && !taken(w, row, col);
}

MN_FN int distance(const craftax *w, int row, int col) { return absolute(row - w->row) + absolute(col - w->col); }

/* ---- the player ---- */

MN_FN void achieve(craftax *w, int which, bool done) { w->achieved[which / 64] |= (uint64_t)done << which % 64; }
MN_FN bool has_achieved(const craftax *w, int which) { return w->achieved[which / 64] >> which % 64 & 1; }
MN_FN int most_health(const craftax *w) { return 8 + w->strength; }
MN_FN int most_food(const craftax *w) { return 7 + 2 * w->dexterity; }      /* and drink and energy */
MN_FN int most_mana(const craftax *w) { return 6 + 3 * w->intelligence; }
MN_FN bool at_boss(const craftax *w) { return w->floor == BOSS; }
MN_FN bool boss_wave(const craftax *w) { return at_boss(w) && w->boss_timer >= 1; }
MN_FN bool boss_open(const craftax *w) {         /* no monster of this floor lives, and none will come */
  bool lives = false;
  for (int i = 0; i < MELEES; i++) lives |= w->at[w->floor].melee[i].alive;
  for (int i = 0; i < RANGEDS; i++) lives |= w->at[w->floor].ranged[i].alive;
  return !lives && w->boss_timer <= 0;
}
MN_FN bool boss_beaten(const craftax *w) { return w->boss_progress >= BOSS; }
#endif
