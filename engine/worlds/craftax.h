/* craftax.h -- what Craftax and Craftax Classic share: daylight, and Perlin noise of one octave on a square map, the ground of both
** (Perlin, SIGGRAPH 2002; Craftax's util/noise.py), with the bits that JAX gives them. */
#ifndef MN_WORLDS_CRAFTAX_H
#define MN_WORLDS_CRAFTAX_H
#include "worlds/dice.h"

/* 1 - |cos(pi (step / 300 mod 1 + 0.3))|^3, rounded and fused as XLA has it. */
MN_FN float daylight(int step) {
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
  float lo = 0, hi = 0;                          /* it is 0 at each corner of the grid */
  for (int row = 0; row < side; row++)
    for (int col = 0; col < side; col++) {
      const float x = ROOT_2 * raw_noise(f, row, col);
      lo = x < lo ? x : lo;
      hi = x > hi ? x : hi;
    }
  f->lo = lo;
  f->hi = hi;
}
#endif
