/* generate.h -- a new world: noise, thresholds, ores, trees (the original's world_gen.py). */
#ifndef MN_CRAFTAX_CLASSIC_GENERATE_H
#define MN_CRAFTAX_CLASSIC_GENERATE_H
#include "world.h"

enum { NOISES = 4, GRADIENTS = 9 * 33 };         /* of the finest grid */
enum { WATERS, MOUNTAINS, PATHS, TREES };        /* the noises */

/* Perlin noise of one octave on rows x cols cells, lo .. hi before it is normalised to 0 .. 1. */
typedef struct noise {
  int rows, cols;
  float lo, hi, south[GRADIENTS], east[GRADIENTS];
} noise;

MN_FN float uniform_of(dice *d, mn_jax_key key, int n, int i) {
  return d->jax ? mn_jax_uniform(key, n, i) : (float)(next_word(d) >> 9) * 0x1p-23f;
}
MN_FN float uniform(dice *d, mn_jax_key key) { return uniform_of(d, key, 1, 0); }

/* One of the places that have a bit, n of 4096; 0 where there is none. */
MN_LARGE int choose(dice *d, mn_jax_key key, const uint64_t *place, int n) {
  if (n == 0) return 0;
  if (d->jax) return mn_jax_choice(key, place, SIDE, 1.0f / (float)n);
  int left = mn_below(next_word(d), n), row = 0;
  for (; left >= ones_in(place[row]); row++) left -= ones_in(place[row]);
  uint64_t bits = place[row];
  for (; left > 0; left--) bits &= bits - 1;
  return row * SIDE + lowest_of(bits);
}

MN_FN float ease(float t) { return t * t * t * (t * (t * 6 - 15) + 10); }

/* Not yet times sqrt(2).  Fused where XLA fuses. */
MN_FN float raw_noise(const noise *f, int row, int col) {
  const int tall = SIDE / f->rows, wide = SIDE / f->cols, i = row / tall, j = col / wide, width = f->cols + 1;
  const float y = (float)(row % tall) / (float)tall, x = (float)(col % wide) / (float)wide, u = ease(y), v = ease(x);
  const float *s = f->south + i * width + j, *e = f->east + i * width + j;
  const float a = MN_FMA(x, e[0], y * s[0]), b = MN_FMA(x, e[width], (y - 1) * s[width]);
  const float c = MN_FMA(x - 1, e[1], y * s[1]), g = MN_FMA(x - 1, e[width + 1], (y - 1) * s[width + 1]);
  const float left = MN_FMA(u, b, a * (1 - u)), right = MN_FMA(u, g, c * (1 - u));
  return MN_FMA(1 - v, left, v * right);
}
#define ROOT_2 1.4142135f
MN_FN float noise_at(const noise *f, int row, int col) {
  return MN_FMA(ROOT_2, raw_noise(f, row, col), -f->lo) / (f->hi - f->lo);
}

MN_FN void make_noise(noise *f, dice *d, mn_jax_key key, int rows, int cols) {
  f->rows = rows;
  f->cols = cols;
  const int n = (rows + 1) * (cols + 1);
  if (d->jax) {
    mn_jax_key octave = mn_jax_split(&key);
    key = mn_jax_split(&octave);
  }
  for (int i = 0; i < n; i++) mn_jax_sincos(6.2831855f * uniform_of(d, key, n, i), f->east + i, f->south + i);
  float lo = 0, hi = 0;                          /* it is 0 at each corner of the grid */
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++) {
      const float x = ROOT_2 * raw_noise(f, row, col);
      lo = x < lo ? x : lo;
      hi = x > hi ? x : hi;
    }
  f->lo = lo;
  f->hi = hi;
}

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
  make_noise(f + WATERS, d, split(d), 4, 4);
  split(d);
  make_noise(f + MOUNTAINS, d, split(d), 4, 4);
  make_noise(f + PATHS, d, split(d), 8, 32);
  split(d);
  lay_ground(w, f);
  strew(w, f, d, COAL, 0.04f, 0);
  strew(w, f, d, IRON, 0.03f, 0);
  strew(w, f, d, DIAMOND, 0.005f, 0.8f);
  make_noise(f + TREES, d, split(d), 16, 16);
  plant_trees(w, f, d);
  w->map[SIDE / 2][SIDE / 2] = GRASS;
  uint64_t stone[SIDE];
  int n = 0;
  for (int row = 0; row < SIDE; row++) {
    stone[row] = 0;
    for (int col = 0; col < SIDE; col++) stone[row] |= (uint64_t)(w->map[row][col] == STONE) << col;
    n += ones_in(stone[row]);
  }
  const int at = choose(d, split(d), stone, n);  /* there is a diamond in every world */
  w->map[at / SIDE][at % SIDE] = DIAMOND;
}
#endif
