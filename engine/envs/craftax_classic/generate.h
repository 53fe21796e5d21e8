/* generate.h -- a new world: noise, thresholds, ores, trees (the original's world_gen.py). */
#ifndef MN_CRAFTAX_CLASSIC_GENERATE_H
#define MN_CRAFTAX_CLASSIC_GENERATE_H
#include "world.h"

enum { WATERS, MOUNTAINS, PATHS, TREES, NOISES };

/* 0 in the middle, 1 from five steps on: the player begins on open ground. */
MN_FN float apart(int row, int col) {
  const int steps = absolute(row - SIDE / 2) + absolute(col - SIDE / 2);
  return steps < 5 ? (float)steps * 0.2f : 1.0f;
}

/* The ground: water and sand, mountains with paths and caves. */
MN_FN void lay_ground(craftax_classic *w, const noise *f) {
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++) {
      const float wet = (noise_at(f + WATERS, row, col) + apart(row, col)) - 1;
      const float high = ((noise_at(f + MOUNTAINS, row, col) + 0.05f) + apart(row, col)) - 1;
      int is = wet > 0.7f ? WATER : wet > 0.6f ? SAND : GRASS;
      if (high > 0.7f) {
        const bool cave = high > 0.85f && wet > 0.4f;
        is = cave || noise_at(f + PATHS, row, col) > 0.8f || noise_at(f + PATHS, col, row) > 0.8f ? PATH : STONE;
      }
      w->map[row][col] = (uint8_t)is;
    }
}

MN_FN float height(const noise *f, int row, int col) { return ((noise_at(f + MOUNTAINS, row, col) + 0.05f) + apart(row, col)) - 1; }

MN_FN void strew(craftax_classic *w, const noise *f, dice *d, int ore, float share, float from) {
  const mn_jax_key key = split(d);
  for (int i = 0; i < SIDE * SIDE; i++) {
    uint8_t *at = &w->map[i / SIDE][i % SIDE];
    if (*at == STONE && (from <= 0 || height(f, i / SIDE, i % SIDE) > from) && uniform_of(d, key, SIDE * SIDE, i) < share)
      *at = (uint8_t)ore;
  }
}

MN_FN void plant_trees(craftax_classic *w, const noise *f, dice *d) {
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int row = i / SIDE, col = i % SIDE;
    uint8_t *at = &w->map[row][col];
    if (*at == WATER || *at == SAND) continue;
    const float trees = noise_at(f + TREES, row, col);
    if (*at == GRASS) {
      if (trees > 0.5f && uniform_of(d, d->key, SIDE * SIDE, i) > 0.8f) *at = TREE;
    } else if (trees > 0.7f && height(f, row, col) > 0.85f) *at = LAVA;
  }
}

MN_LARGE void generate(craftax_classic *w, dice *d) {
  noise f[NOISES];
  make_noise(f + WATERS, d, split(d), SIDE, 4, 4);
  split(d);
  make_noise(f + MOUNTAINS, d, split(d), SIDE, 4, 4);
  make_noise(f + PATHS, d, split(d), SIDE, 8, 32);
  split(d);
  lay_ground(w, f);
  strew(w, f, d, COAL, 0.04f, 0);
  strew(w, f, d, IRON, 0.03f, 0);
  strew(w, f, d, DIAMOND, 0.005f, 0.8f);
  make_noise(f + TREES, d, split(d), SIDE, 16, 16);
  plant_trees(w, f, d);
  w->map[SIDE / 2][SIDE / 2] = GRASS;
  uint64_t stone[SIDE];
  int n = 0;
  for (int row = 0; row < SIDE; row++) {
    stone[row] = 0;
    for (int col = 0; col < SIDE; col++) stone[row] |= (uint64_t)(w->map[row][col] == STONE) << col;
    n += ones_in(stone[row]);
  }
  const int at = choose(d, split(d), stone, SIDE, n);  /* there is a diamond in every world */
  w->map[at / SIDE][at % SIDE] = DIAMOND;
}
#endif
