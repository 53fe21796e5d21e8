/* craftax.h -- what Craftax and Craftax Classic share: the names of the first blocks, actions and achievements, daylight, and Perlin
** noise of one octave on a square map, the ground of both (Perlin, SIGGRAPH 2002; Craftax's util/noise.py), with the bits that JAX
** gives them. */
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

/* 1 - |cos(pi (step / 300 mod 1 + 0.3))|^3, rounded and fused as XLA has it. */
MN_FN float daylight_at(int step) {
  const float days = (float)step * (1.0f / 300), part = days - (float)(int)days + 0.3f;
  float sine, cosine;
  mn_jax_sincos(3.1415927f * part, &sine, &cosine);
  cosine = cosine < 0 ? -cosine : cosine;
  return MN_FMA(-(cosine * cosine), cosine, 1.0f);
}

enum { GRADIENTS = 9 * 33 };                     /* of the finest grid */

/* On rows x cols cells of a map with that side; lo .. hi before it is normalised to 0 .. 1. */
typedef struct noise {
  int side, rows, cols;
  float lo, hi, south[GRADIENTS], east[GRADIENTS];
} noise;

MN_FN float ease(float t) { return t * t * t * (t * (t * 6 - 15) + 10); }

/* Not yet times sqrt(2).  Fused where XLA fuses. */
MN_FN float raw_noise(const noise *f, int row, int col) {
  const int tall = f->side / f->rows, wide = f->side / f->cols, i = row / tall, j = col / wide, width = f->cols + 1;
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

/* ---- row by row: the same numbers, for the vector unit ---- */

enum { WIDEST = 64 };                            /* side of a map */

/* What the cells of a row have at their corners: up left, down left, up right, down right. */
typedef struct noise_row { int cell; float x[WIDEST], ease_x[WIDEST], east[4][WIDEST], south[4][WIDEST]; } noise_row;

MN_FN void begin_rows(const noise *f, noise_row *r) {
  const int wide = f->side / f->cols;
  r->cell = -1;
  for (int col = 0; col < f->side; col++) {
    r->x[col] = (float)(col % wide) / (float)wide;
    r->ease_x[col] = ease(r->x[col]);
  }
}

MN_FN void turn_to(const noise *f, noise_row *r, int cell) {
  const int wide = f->side / f->cols, width = f->cols + 1;
  if (r->cell == cell) return;
  r->cell = cell;
  for (int k = 0; k < 4; k++) {
    const float *east = f->east + (cell + k % 2) * width + k / 2, *south = f->south + (cell + k % 2) * width + k / 2;
    for (int j = 0, col = 0; j < f->cols; j++)
      for (int i = 0; i < wide; i++, col++) {
        r->east[k][col] = east[j];
        r->south[k][col] = south[j];
      }
  }
}

MN_FN void raw_noises(const noise *f, noise_row *r, int row, float *out) {
  const int tall = f->side / f->rows;
  turn_to(f, r, row / tall);
  const float y = (float)(row % tall) / (float)tall, u = ease(y);
  for (int col = 0; col < f->side; col++) {
    const float x = r->x[col], v = r->ease_x[col];
    const float a = MN_FMA(x, r->east[0][col], y * r->south[0][col]), b = MN_FMA(x, r->east[1][col], (y - 1) * r->south[1][col]);
    const float c = MN_FMA(x - 1, r->east[2][col], y * r->south[2][col]), g = MN_FMA(x - 1, r->east[3][col], (y - 1) * r->south[3][col]);
    const float left = MN_FMA(u, b, a * (1 - u)), right = MN_FMA(u, g, c * (1 - u));
    out[col] = MN_FMA(1 - v, left, v * right);
  }
}

MN_FN void noises_at(const noise *f, noise_row *r, int row, float *out) {
  const float lo = f->lo, range = f->hi - f->lo;
  raw_noises(f, r, row, out);
  for (int col = 0; col < f->side; col++) out[col] = MN_FMA(ROOT_2, out[col], -lo) / range;
}

MN_FN void make_noise(noise *f, dice *d, mn_jax_key key, int side, int rows, int cols) {
  f->side = side;
  f->rows = rows;
  f->cols = cols;
  const int n = (rows + 1) * (cols + 1);
  if (d->jax) {
    mn_jax_key octave = mn_jax_split(&key);
    key = mn_jax_split(&octave);
  }
  for (int i = 0; i < n; i++) mn_jax_sincos(6.2831855f * uniform_of(d, key, n, i), f->east + i, f->south + i);
  float lo = 0, hi = 0, los[WIDEST] = { 0 }, his[WIDEST] = { 0 }, raw[WIDEST];          /* it is 0 at each corner of the grid */
  noise_row r;
  begin_rows(f, &r);
  for (int row = 0; row < side; row++) {
    raw_noises(f, &r, row, raw);
    for (int col = 0; col < side; col++) {
      const float x = ROOT_2 * raw[col];
      los[col] = x < los[col] ? x : los[col];
      his[col] = x > his[col] ? x : his[col];
    }
  }
  for (int col = 0; col < side; col++) {
    lo = los[col] < lo ? los[col] : lo;
    hi = his[col] > hi ? his[col] : hi;
  }
  f->lo = lo;
  f->hi = hi;
}

/* Rows row and row + side/2 of jax.random.uniform(key, (side, side)), which come together. */
MN_FN void uniforms_of(mn_jax_key key, int side, int row, float *upper, float *lower) {
  uint32_t a[WIDEST], b[WIDEST];
  const int rotation[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
  const uint32_t k[3] = { key.word[0], key.word[1], key.word[0] ^ key.word[1] ^ 0x1BD11BDAu };
  for (int i = 0; i < side; i++) {
    a[i] = (uint32_t)(row * side + i) + k[0];
    b[i] = (uint32_t)(row * side + i + side * side / 2) + k[1];
  }
  for (int group = 0; group < 5; group++) {      /* mn_threefry, side by side */
    for (int round = 0; round < 4; round++) {
      const int by = rotation[group % 2 * 4 + round];
      for (int i = 0; i < side; i++) {
        a[i] += b[i];
        b[i] = mn_jax_rotate(b[i], by) ^ a[i];
      }
    }
    for (int i = 0; i < side; i++) {
      a[i] += k[(group + 1) % 3];
      b[i] += k[(group + 2) % 3] + (uint32_t)group + 1;
    }
  }
  for (int i = 0; i < side; i++) {
    upper[i] = (float)(a[i] >> 9) * 0x1p-23f;
    lower[i] = (float)(b[i] >> 9) * 0x1p-23f;
  }
}
#endif
