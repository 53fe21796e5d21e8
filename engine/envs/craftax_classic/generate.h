/* generate.h -- a new world: noise, thresholds, ores, trees (the original's world_gen.py). */
#ifndef MN_CRAFTAX_CLASSIC_GENERATE_H
#define MN_CRAFTAX_CLASSIC_GENERATE_H
#include "worlds/craftax_noise.h"
#include "world.h"

/* Places of which generation asks again, a bit a column. */
typedef struct rocks { uint64_t stone[SIDE], rich[SIDE], deep[SIDE]; } rocks;    /* rich: diamonds may be here; deep: lava */

enum { WET = 128 };                              /* wet enough for a cave: until there are mountains */

/* 0 in the middle, 1 from five steps on: the player begins on open ground. */
MN_FN float apart(int row, int col) {
  const int steps = absolute(row - SIDE / 2) + absolute(col - SIDE / 2);
  return steps < 5 ? (float)steps * 0.2f : 1.0f;
}

MN_FN void lay_water(craftax_classic *w, const float *f) {
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++) {
      const float wet = (f[row * SIDE + col] + apart(row, col)) - 1;
      w->map[row][col] = (uint8_t)((wet > 0.7f ? WATER : wet > 0.6f ? SAND : GRASS) | (wet > 0.4f ? WET : 0));
    }
}

MN_FN void raise_mountains(craftax_classic *w, const float *f, rocks *r) {
  uint8_t stone[SIDE], rich[SIDE], deep[SIDE];
  for (int row = 0; row < SIDE; row++) {
    uint8_t *map = w->map[row];
    for (int col = 0; col < SIDE; col++) {
      const float high = ((f[row * SIDE + col] + 0.05f) + apart(row, col)) - 1;
      const int cave = high > 0.85f && map[col] & WET;
      stone[col] = high > 0.7f && !cave;
      rich[col] = high > 0.8f;
      deep[col] = high > 0.85f;
      map[col] = (uint8_t)(high > 0.7f ? (cave ? PATH : STONE) : map[col] & ~WET);
    }
    r->stone[row] = bits_of_flags(stone, SIDE);
    r->rich[row] = bits_of_flags(rich, SIDE);
    r->deep[row] = bits_of_flags(deep, SIDE);
  }
}

MN_FN void dig_paths(craftax_classic *w, const float *f, rocks *r) {
  uint64_t path[SIDE];
  along_and_across(f, SIDE, 0.8f, path);
  for (int row = 0; row < SIDE; row++) {
    for (uint64_t left = path[row] & r->stone[row]; left; left &= left - 1) w->map[row][mn_lowest_of(left)] = PATH;
    r->stone[row] &= ~path[row];
  }
}

/* What each place of them has drawn: with Philox one after another, with jax by place.  u has room for all places. */
MN_FN void draw_for(const uint64_t *place, dice *d, mn_jax_key key, float *u) {
  int n = 0;
  for (int row = 0; row < SIDE; row++) n += mn_ones_in(place[row]);
  uniforms(d, key, SIDE * SIDE, n, u);
}

MN_FN void strew(craftax_classic *w, rocks *r, const uint64_t *place, dice *d, float *u, int ore, float share) {
  draw_for(place, d, dice_split(d), u);
  for (int row = 0, k = 0; row < SIDE; row++)
    for (uint64_t left = place[row]; left; left &= left - 1, k++) {
      const int col = mn_lowest_of(left);
      if (!(u[d->jax ? row * SIDE + col : k] < share)) continue;
      w->map[row][col] = (uint8_t)ore;
      r->stone[row] &= ~(1ull << col);
    }
}

/* Trees on grass, and lava under high ones of the mountains. */
MN_FN void plant_trees(craftax_classic *w, rocks *r, dice *d, float *f) {
  uint64_t place[SIDE];
  uint8_t tree[SIDE], lava[SIDE];
  for (int row = 0; row < SIDE; row++) {
    for (int col = 0; col < SIDE; col++) {
      tree[col] = w->map[row][col] == GRASS && f[row * SIDE + col] > 0.5f;
      lava[col] = f[row * SIDE + col] > 0.7f;
    }
    place[row] = bits_of_flags(tree, SIDE);
    const uint64_t flows = bits_of_flags(lava, SIDE) & r->deep[row];
    for (uint64_t left = flows; left; left &= left - 1) w->map[row][mn_lowest_of(left)] = LAVA;
    r->stone[row] &= ~flows;
  }
  draw_for(place, d, d->key, f);
  for (int row = 0, k = 0; row < SIDE; row++)
    for (uint64_t left = place[row]; left; left &= left - 1, k++) {
      const int col = mn_lowest_of(left);
      if (f[d->jax ? row * SIDE + col : k] > 0.8f) w->map[row][col] = TREE;
    }
}

MN_LARGE void generate(craftax_classic *w, dice *d) {
  float f[SIDE * SIDE];                          /* a noise, or what places have drawn */
  uint64_t place[SIDE];
  rocks r;
  make_noise(f, d, dice_split(d), SIDE, 4, 4);
  lay_water(w, f);
  dice_split(d);
  make_noise(f, d, dice_split(d), SIDE, 4, 4);
  raise_mountains(w, f, &r);
  make_noise(f, d, dice_split(d), SIDE, 8, 32);
  dig_paths(w, f, &r);
  dice_split(d);
  strew(w, &r, r.stone, d, f, COAL, 0.04f);
  strew(w, &r, r.stone, d, f, IRON, 0.03f);
  for (int row = 0; row < SIDE; row++) place[row] = r.stone[row] & r.rich[row];
  strew(w, &r, place, d, f, DIAMOND, 0.005f);
  make_noise(f, d, dice_split(d), SIDE, 16, 16);
  plant_trees(w, &r, d, f);
  w->map[SIDE / 2][SIDE / 2] = GRASS;
  r.stone[SIDE / 2] &= ~(1ull << SIDE / 2);
  int n = 0;
  for (int row = 0; row < SIDE; row++) n += mn_ones_in(r.stone[row]);
  const int at = dice_choose(d, dice_split(d), r.stone, SIDE, n);  /* there is a diamond in every world */
  w->map[at / SIDE][at % SIDE] = DIAMOND;
}
#endif
