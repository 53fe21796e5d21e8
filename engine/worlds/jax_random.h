/* jax_random.h -- the random numbers of JAX 0.4 (threefry2x32 of Random123, jax_threefry_partitionable off), so that an environment
** can draw what its original drew.  A key is two words; what is drawn depends on the key alone.
** Sources: Salmon et al., SC 2011; jax/_src/prng.py and random.py of JAX 0.4.35. */
#ifndef MN_JAX_RANDOM_H
#define MN_JAX_RANDOM_H
#include <stdbool.h>
#include "numerics/random.h"
#include "numerics/fast_math.h"

typedef struct mn_jax_key { uint32_t word[2]; } mn_jax_key;

MN_FN uint32_t mn_jax_rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* One block: the words of `count` become random ones. */
MN_FN void mn_threefry(const mn_jax_key *key, uint32_t *count) {
  const int rotation[8] = { 13, 15, 26, 6, 17, 29, 16, 24 };
  const uint32_t k[3] = { key->word[0], key->word[1], key->word[0] ^ key->word[1] ^ 0x1BD11BDAu };
  uint32_t a = count[0] + k[0], b = count[1] + k[1];
  for (int group = 0; group < 5; group++) {
    for (int i = 0; i < 4; i++) {
      a += b;
      b = mn_jax_rotate(b, rotation[group % 2 * 4 + i]) ^ a;
    }
    a += k[(group + 1) % 3];
    b += k[(group + 2) % 3] + (uint32_t)group + 1;
  }
  count[0] = a;
  count[1] = b;
}

/* jax.random.PRNGKey(seed), of the low and the high half of a seed. */
MN_FN mn_jax_key mn_jax_seed(uint32_t low, uint32_t high) {
  mn_jax_key key;
  key.word[0] = high;
  key.word[1] = low;
  return key;
}

/* jax.random.fold_in(key, data) */
MN_FN mn_jax_key mn_jax_fold_in(mn_jax_key key, uint32_t data) {
  mn_jax_key out;
  out.word[0] = 0;
  out.word[1] = data;
  mn_threefry(&key, out.word);
  return out;
}

/* key, other = jax.random.split(key); returns the other. */
MN_FN mn_jax_key mn_jax_split(mn_jax_key *key) {
  uint32_t a[2] = { 0, 2 }, b[2] = { 1, 3 };
  mn_jax_key other;
  mn_threefry(key, a);
  mn_threefry(key, b);
  key->word[0] = a[0];
  key->word[1] = b[0];
  other.word[0] = a[1];
  other.word[1] = b[1];
  return other;
}

/* Element i of jax.random.bits(key, (n,)). */
MN_FN uint32_t mn_jax_bits(mn_jax_key key, int n, int i) {
  const int half = (n + 1) / 2, first = i < half ? i : i - half;
  uint32_t word[2] = { (uint32_t)first, first + half < n ? (uint32_t)(first + half) : 0 };
  mn_threefry(&key, word);
  return word[i >= half];
}

/* Element i of jax.random.uniform(key, (n,)): multiples of 2^-23 below 1. */
MN_FN float mn_jax_uniform(mn_jax_key key, int n, int i) { return (float)(mn_jax_bits(key, n, i) >> 9) * 0x1p-23f; }

/* jax.random.randint(key, (), 0, n), of two draws; of a power of two the lower one decides. */
MN_FN int mn_jax_below(mn_jax_key key, int n) {
  const mn_jax_key lower = mn_jax_split(&key);
  const uint32_t span = (uint32_t)n, low = mn_jax_bits(lower, 1, 0) % span;
  if ((span & (span - 1)) == 0) return (int)low;
  const uint32_t root = 65536 % span, carry = root * root % span;
  return (int)((mn_jax_bits(key, 1, 0) % span * carry + low) % span);
}

/* ---- jax.random.choice(key, arange(side * side), p=p), where p is the same for some places and 0 for the others ---- */

/* The sum of 16 values in the order of XLA's vector code: halves onto halves. */
MN_FN float mn_jax_sum16(const float *x) {
  float s[8];
  for (int i = 0; i < 8; i++) s[i] = x[i] + x[i + 8];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* in[0] + ... + in[i], of 16 values. */
MN_FN float mn_jax_sum_to(const float *in, int i) {
  float window[16];
  for (int k = 0; k < 16; k++) window[k] = k < 15 - i ? 0.0f : in[k - 15 + i];
  return mn_jax_sum16(window);
}

/* cumsum(p) as XLA computes it on a CPU with AVX2 or more: rows of 16, their totals, and the totals of those.  place: rows of side
** bits, side = 64 or 48; p: of those with a bit. */
typedef struct mn_jax_sums { const uint64_t *place; int side; float p, total[256], before[16]; } mn_jax_sums;

MN_FN float mn_jax_row_sum(const mn_jax_sums *s, int row, int i) {
  const int wide = s->side / 16;
  const uint32_t bits = (uint32_t)(s->place[row / wide] >> row % wide * 16 & 0xFFFF);
  if (bits == 0) return 0;
  float in[16];
  for (int k = 0; k < 16; k++) in[k] = bits >> k & 1 ? s->p : 0.0f;
  return mn_jax_sum_to(in, i);
}

MN_FN void mn_jax_cumsum(mn_jax_sums *s) {
  const int rows = s->side * s->side / 16;
  float row[256], top[16];
  for (int i = 0; i < rows; i++) row[i] = mn_jax_row_sum(s, i, 15);
  for (int i = 0; i < rows; i++) s->total[i] = mn_jax_sum_to(row + i / 16 * 16, i % 16);
  for (int i = 0; i < 16; i++) top[i] = i < rows / 16 ? s->total[16 * i + 15] : 0;
  for (int i = 0; i < 16; i++) s->before[i] = i ? mn_jax_sum_to(top, i - 1) : 0;
}

MN_FN float mn_jax_cumsum_at(const mn_jax_sums *s, int i) {
  const int row = i / 16, last = row - 1;
  return mn_jax_row_sum(s, row, i % 16) + (row ? s->total[last] + s->before[last / 16] : 0.0f);
}

/* One of the places that have a bit; there is one. */
MN_FN int mn_jax_choice(mn_jax_key key, const uint64_t *place, int side, float p) {
  mn_jax_sums s;
  s.place = place;
  s.side = side;
  s.p = p;
  mn_jax_cumsum(&s);
  const int n = side * side;
  const float r = mn_jax_cumsum_at(&s, n - 1) * (1 - mn_jax_uniform(key, 1, 0));
  int low = 0, high = n;
  while (high - low > 1) {
    const int mid = (low + high) / 2;
    const bool left = r <= mn_jax_cumsum_at(&s, mid);
    high = left ? mid : high;
    low = left ? low : mid;
  }
  if (low == 0 && r <= mn_jax_cumsum_at(&s, 0)) return 0;
  return high < n - 1 ? high : n - 1;
}

/* ---- sine and cosine as glibc's sinf and cosf have them ---- */

/* For 0 <= x < 2 pi.  The polynomials are those of ARM's optimized routines, which glibc uses, in double. */
MN_FN void mn_jax_sincos(float angle, float *sine, float *cosine) {
  const double r = (double)angle * 0x1.45F306DC9C883p-1;
  const int n = (int)(r + 0.5);
  const double x = (double)angle - (double)n * 0x1.921FB54442D18p0, z = x * x;
  const double s = (x + (x * z) * -0x1.555545995a603p-3) + ((x * z) * z) * (0x1.1107605230bc4p-7 + z * -0x1.994eb3774cf24p-13);
  const double c = ((1.0 + z * -0x1.ffffffd0c621cp-2) + (z * z) * 0x1.55553e1068f19p-5) +
                   ((z * z) * z) * (-0x1.6c087e89a359dp-10 + z * 0x1.99343027bf8c3p-16);
  const float a = (float)(n & 1 ? c : s), b = (float)(n & 1 ? s : c);
  *sine = n & 2 ? -a : a;
  *cosine = (n + 1) & 2 ? -b : b;
}
#endif
