/* world.h -- Craftax Classic's names, its state, and how the state is read. */
#ifndef MN_CRAFTAX_CLASSIC_WORLD_H
#define MN_CRAFTAX_CLASSIC_WORLD_H
#include "worlds/craftax.h"

enum { RANDOM };                                 /* parameters */
enum { SIDE = 64, ROWS = 7, COLS = 9, CELL = 21, LONGEST = 10000 };
enum { ZOMBIES = 3, COWS = 3, SKELETONS = 2, ARROWS = 3, PLANTS = 10 };

enum { BLOCKS = SHARED_BLOCKS, ACTIONS = SHARED_ACTIONS, ACHIEVEMENTS = SHARED_ACHIEVEMENTS };
enum { HAS_WOOD, HAS_STONE, HAS_COAL, HAS_IRON, HAS_DIAMOND, HAS_SAPLING, WOOD_PICKAXE, STONE_PICKAXE, IRON_PICKAXE, WOOD_SWORD,
       STONE_SWORD, IRON_SWORD, ITEMS };

/* A place that is free keeps where its mob was: it still wanders, hides others from view, and a blow brings it back (rules.h). */
typedef struct mob { int16_t row, col, cooldown; int8_t health; uint8_t alive; } mob;
typedef struct arrow { int16_t row, col; int8_t down, right; uint8_t flies, unused; } arrow;
typedef struct plant { int16_t age; uint8_t row, col, grows, unused; } plant;

typedef struct craftax_classic {
  uint64_t occupied[SIDE];       /* by mobs: a bit a column */
  uint8_t map[SIDE][SIDE];
  int16_t row, col;              /* of the player: -1 where it fell off the map into lava */
  int16_t steps;
  uint8_t direction;             /* LEFT .. DOWN */
  uint8_t sleeping;
  int8_t health, food, drink, energy;
  int8_t recover, hunger, thirst, fatigue;       /* in halves */
  uint32_t achievements;         /* bits */
  uint8_t item[ITEMS];
  mob zombie[ZOMBIES], cow[COWS], skeleton[SKELETONS];
  arrow shot[ARROWS];
  plant garden[PLANTS];
  uint8_t dug, unused[3];        /* dug: the map has changed, within a step */
} craftax_classic;

typedef struct shared { float light[LONGEST + 1]; } shared;      /* daylight at each step */

/* Blocks that nobody walks through. */
MN_FN bool solid(int block) {
  const uint32_t all = 1u << WATER | 1u << STONE | 1u << TREE | 1u << COAL | 1u << IRON | 1u << DIAMOND | 1u << TABLE |
                       1u << FURNACE | 1u << PLANT | 1u << RIPE;
  return all >> block & 1;
}

MN_FN bool inside(int row, int col) { return ((unsigned)row < SIDE) & ((unsigned)col < SIDE); }

/* What the original reads beyond the map: JAX counts negative places from the end, and stops at the last. */
MN_FN int clamped(int i) {
  i += i < 0 ? SIDE : 0;
  return i < 0 ? 0 : i < SIDE ? i : SIDE - 1;
}
MN_FN int block_at(const craftax_classic *w, int row, int col) { return w->map[clamped(row)][clamped(col)]; }
MN_FN int seen_at(const craftax_classic *w, int row, int col) {
  if (!inside(row, col)) return OUT_OF_BOUNDS;
  return w->map[row][col];
}
MN_FN bool mob_at(const craftax_classic *w, int row, int col) { return w->occupied[clamped(row)] >> clamped(col) & 1; }
/* In a step: the map changes here alone. */
MN_FN void set_block(craftax_classic *w, int row, int col, int block) {
  w->map[row][col] = (uint8_t)block;
  w->dug = 1;
}
MN_FN void occupy(craftax_classic *w, int row, int col, bool by) { w->occupied[row] |= (uint64_t)by << col; }
MN_FN void vacate(craftax_classic *w, int row, int col, bool by) { w->occupied[row] &= ~((uint64_t)by << col); }

/* By a mob or the player. */
MN_FN bool taken(const craftax_classic *w, int row, int col) {
  return mob_at(w, row, col) || (w->row == row && w->col == col);
}
/* All of it is looked at, without branches that chance decides; outside, the map's other side in place of it. */
MN_FN bool walkable(const craftax_classic *w, int row, int col) {
  const int r = row & (SIDE - 1), c = col & (SIDE - 1), block = w->map[r][c];
  return inside(row, col) & !(solid(block) | (block == LAVA) | (int)(w->occupied[r] >> c & 1) | ((w->row == row) & (w->col == col)));
}

MN_FN int distance(const craftax_classic *w, int row, int col) { return absolute(row - w->row) + absolute(col - w->col); }
MN_FN void achieve(craftax_classic *w, int which, bool done) { w->achievements |= (uint32_t)done << which; }
#endif
