/* craftax_noise.h -- the ground of Craftax and Craftax Classic: Perlin noise of one octave on a square map (Perlin, SIGGRAPH 2002;
** Craftax's util/noise.py) with the bits that JAX gives it, and chance for each of its places.  Row by row, for the vector unit. */
#ifndef MN_WORLDS_CRAFTAX_NOISE_H
#define MN_WORLDS_CRAFTAX_NOISE_H
#include "worlds/craftax.h"

enum { WIDEST = 64 };                            /* side of a map */
enum { GRADIENTS = 9 * 33 };                     /* of the finest grid */

/* Elements first .. first + count - 1 of jax.random.uniform(key, (n,)), and as many from the middle on, which come together. */
MN_FN void uniforms_of(mn_jax_key key, int n, int first, int count, float *upper, float *lower) {
  uint32_t a[WIDEST], b[WIDEST];
  const int half = (n + 1) / 2, rotation[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
  const uint32_t k[3] = { key.word[0], key.word[1], key.word[0] ^ key.word[1] ^ 0x1BD11BDAu };
  for (int i = 0; i < count; i++) {
    a[i] = (uint32_t)(first + i) + k[0];
    b[i] = (first + i + half < n ? (uint32_t)(first + i + half) : 0) + k[1];
  }
  for (int group = 0; group < 5; group++) {      /* mn_threefry, side by side */
    for (int round = 0; round < 4; round++) {
      const int by = rotation[group % 2 * 4 + round];
      for (int i = 0; i < count; i++) {
        a[i] += b[i];
        b[i] = mn_jax_rotate(b[i], by) ^ a[i];
      }
    }
    for (int i = 0; i < count; i++) {
      a[i] += k[(group + 1) % 3];
      b[i] += k[(group + 2) % 3] + (uint32_t)group + 1;
    }
  }
  for (int i = 0; i < count; i++) {
    upper[i] = (float)(a[i] >> 9) * 0x1p-23f;
    lower[i] = (float)(b[i] >> 9) * 0x1p-23f;
  }
}

/* With jax all n of a key; with Philox the next `drawn`, of which there are as many as are looked at.  out has room for n. */
MN_FN void uniforms(dice *d, mn_jax_key key, int n, int drawn, float *out) {
  const int step = WIDEST, half = (n + 1) / 2;
  uint32_t word[WIDEST];
  float lower[WIDEST];
  if (d->jax)
    for (int i = 0; i < half; i += step) {
      const int count = least(step, half - i);
      uniforms_of(key, n, i, count, out + i, lower);
      for (int k = 0; k < count && half + i + k < n; k++) out[half + i + k] = lower[k];
    }
  else
    for (int i = 0; i < drawn; i += step) {
      const int count = least(step, drawn - i);
      dice_next_words(d, word, count);
      for (int k = 0; k < count; k++) out[i + k] = (float)(word[k] >> 9) * 0x1p-23f;
    }
}

MN_FN float ease(float t) { return t * t * t * (t * (t * 6 - 15) + 10); }

/* What the places of a row have in common: where they are in their cell of the grid, and the gradients at its corners, up left,
** down left, up right, down right. */
typedef struct noise_row { float x[WIDEST], ease_x[WIDEST], east[4][WIDEST], south[4][WIDEST]; } noise_row;

MN_FN void corners_of(noise_row *r, const float *south, const float *east, int cell, int side, int cols) {
  const int wide = side / cols, width = cols + 1;
  for (int k = 0; k < 4; k++) {
    const float *e = east + (cell + k % 2) * width + k / 2, *s = south + (cell + k % 2) * width + k / 2;
    for (int j = 0, col = 0; j < cols; j++)
      for (int i = 0; i < wide; i++, col++) {
        r->east[k][col] = e[j];
        r->south[k][col] = s[j];
      }
  }
}

/* A row of it, not yet times sqrt(2); y: where the row is in its cell.  Fused where XLA fuses. */
MN_FN void raw_noise(const noise_row *r, float y, int side, float *out) {
  const float u = ease(y);
  for (int col = 0; col < side; col++) {
    const float x = r->x[col], v = r->ease_x[col];
    const float a = MN_FMA(x, r->east[0][col], y * r->south[0][col]), b = MN_FMA(x, r->east[1][col], (y - 1) * r->south[1][col]);
    const float c = MN_FMA(x - 1, r->east[2][col], y * r->south[2][col]), g = MN_FMA(x - 1, r->east[3][col], (y - 1) * r->south[3][col]);
    const float left = MN_FMA(u, b, a * (1 - u)), right = MN_FMA(u, g, c * (1 - u));
    out[col] = MN_FMA(1 - v, left, v * right);
  }
}

#define ROOT_2 1.4142135f

/* From its extremes to 0 .. 1. */
MN_FN void normalise(float *out, int side) {
  float lo = 0, hi = 0, los[WIDEST] = { 0 }, his[WIDEST] = { 0 };          /* it is 0 at each corner of the grid */
  for (int row = 0; row < side; row++)
    for (int col = 0; col < side; col++) {
      const float x = ROOT_2 * out[row * side + col];
      los[col] = x < los[col] ? x : los[col];
      his[col] = x > his[col] ? x : his[col];
    }
  for (int col = 0; col < side; col++) {
    lo = los[col] < lo ? los[col] : lo;
    hi = his[col] > hi ? his[col] : hi;
  }
  const float range = hi - lo;
  for (int i = 0; i < side * side; i++) out[i] = MN_FMA(ROOT_2, out[i], -lo) / range;
}

/* On rows x cols cells of a map with that side: out[side][side], 0 .. 1. */
MN_LARGE void make_noise(float *out, dice *d, mn_jax_key key, int side, int rows, int cols) {
  float angle[GRADIENTS], south[GRADIENTS], east[GRADIENTS];
  const int n = (rows + 1) * (cols + 1), tall = side / rows, wide = side / cols;
  noise_row r;
  if (d->jax) {
    mn_jax_key octave = mn_jax_split(&key);
    key = mn_jax_split(&octave);
  }
  uniforms(d, key, n, n, angle);
  for (int i = 0; i < n; i++) mn_jax_sincos(6.2831855f * angle[i], east + i, south + i);
  for (int col = 0; col < side; col++) {
    r.x[col] = (float)(col % wide) / (float)wide;
    r.ease_x[col] = ease(r.x[col]);
  }
  for (int cell = 0; cell < rows; cell++) {
    corners_of(&r, south, east, cell, side, cols);
    for (int i = 0; i < tall; i++) raw_noise(&r, (float)i / (float)tall, side, out + (cell * tall + i) * side);
  }
  normalise(out, side);
}

/* Places whose noise is above that, and their mirror images at the diagonal: a bit a column, a word a row; side: at most 64. */
MN_FN void along_and_across(const float *f, int side, float above, uint64_t *bits) {
  uint8_t is[64];
  for (int row = 0; row < side; row++) bits[row] = 0;
  for (int row = 0; row < side; row++) {
    for (int col = 0; col < side; col++) is[col] = f[row * side + col] > above;
    const uint64_t here = bits_of_flags(is, side);
    bits[row] |= here;
    for (uint64_t left = here; left; left &= left - 1) bits[mn_lowest_of(left)] |= 1ull << row;
  }
}
#endif
