/* craftax.h -- what Craftax and Craftax Classic share: the names of the first blocks, actions and achievements, and daylight with the
** bits that JAX gives it.  craftax_noise.h: the ground of both. */
#ifndef MN_WORLDS_CRAFTAX_H
#define MN_WORLDS_CRAFTAX_H
#include "worlds/dice.h"

enum { INVALID, OUT_OF_BOUNDS, GRASS, WATER, STONE, TREE, WOOD, PATH, COAL, IRON, DIAMOND, TABLE, FURNACE, SAND, LAVA, PLANT, RIPE,
       SHARED_BLOCKS };
enum { NOOP, LEFT, RIGHT, UP, DOWN, DO, SLEEP, PLACE_STONE, PLACE_TABLE, PLACE_FURNACE, PLACE_PLANT, MAKE_WOOD_PICKAXE,
       MAKE_STONE_PICKAXE, MAKE_IRON_PICKAXE, MAKE_WOOD_SWORD, MAKE_STONE_SWORD, MAKE_IRON_SWORD, SHARED_ACTIONS };
enum { COLLECT_WOOD, PLACED_TABLE, EAT_COW, COLLECT_SAPLING, COLLECT_DRINK, MADE_WOOD_PICKAXE, MADE_WOOD_SWORD, PLACED_PLANT,
       DEFEAT_ZOMBIE, COLLECT_STONE, PLACED_STONE, EAT_PLANT, DEFEAT_SKELETON, MADE_STONE_PICKAXE, MADE_STONE_SWORD, WAKE_UP,
       PLACED_FURNACE, COLLECT_COAL, COLLECT_IRON, COLLECT_DIAMOND, MADE_IRON_PICKAXE, MADE_IRON_SWORD, SHARED_ACHIEVEMENTS };

/* The achievements that both have, in their order. */
#define SHARED_OUTCOMES                                                                                                             \
  "collect_wood place_table eat_cow collect_sapling collect_drink make_wood_pickaxe make_wood_sword place_plant defeat_zombie "    \
  "collect_stone place_stone eat_plant defeat_skeleton make_stone_pickaxe make_stone_sword wake_up place_furnace collect_coal "    \
  "collect_iron collect_diamond make_iron_pickaxe make_iron_sword"

MN_FN int down_of(int action) { return (action == DOWN) - (action == UP); }
MN_FN int right_of(int action) { return (action == RIGHT) - (action == LEFT); }
MN_FN int absolute(int x) { return x < 0 ? -x : x; }
MN_FN int sign(int x) { return (x > 0) - (x < 0); }
MN_FN int least(int a, int b) { return a < b ? a : b; }
MN_FN int most(int a, int b) { return a > b ? a : b; }

/* ---- a row of a map as bits ---- */

/* Which of a row's flags, 0 or 1, are set: the product gathers the bits of eight bytes. */
MN_FN uint64_t bits_of_flags(const uint8_t *flag, int side) {
  uint64_t bits = 0;
  for (int col = 0; col < side; col += 8) {
    uint64_t x;
    memcpy(&x, flag + col, 8);
    bits |= x * 0x0102040810204080u >> 56 << col;
  }
  return bits;
}

/* Where it has one of n blocks: eight bytes below 128 at a time, of which 128 - (x ^ block) has the top bit only where x is the block. */
MN_FN uint64_t bits_of_blocks(const uint8_t *row, int side, const uint8_t *block, int n) {
  const uint64_t ones = 0x0101010101010101u, gather = 0x0102040810204080u;
  uint64_t bits = 0;
  for (int col = 0; col < side; col += 8) {
    uint64_t x, hit = 0;
    memcpy(&x, row + col, 8);
    for (int k = 0; k < n; k++) hit |= 128 * ones - (x ^ block[k] * ones);
    bits |= (hit >> 7 & ones) * gather >> 56 << col;
  }
  return bits;
}

/* Its columns low .. high that are on the map. */
MN_FN uint64_t columns(int low, int high, int side) {
  low = most(low, 0);
  high = least(high, side - 1);
  return low > high ? 0 : (2ull << high) - (1ull << low);
}

/* 1 - |cos(pi (step / 300 mod 1 + 0.3))|^3, rounded and fused as XLA has it. */
MN_FN float daylight_at(int step) {
  const float days = (float)step * (1.0f / 300), part = days - (float)(int)days + 0.3f;
  float sine, cosine;
  mn_jax_sincos(3.1415927f * part, &sine, &cosine);
  cosine = cosine < 0 ? -cosine : cosine;
  return MN_FMA(-(cosine * cosine), cosine, 1.0f);
}
#endif
