/* random.c -- Philox4x32-10 for many environments at once, and for scripts: see random.h. */
#include "random.h"
#include <math.h>
#include <string.h>
#include "mneme.h"

void mn_random_key(double seed, uint32_t key[2]) {
  uint64_t k;
  if (seed >= 0 && seed <= 9007199254740992.0 && seed == floor(seed)) k = (uint64_t)seed;
  else memcpy(&k, &seed, sizeof k);
  key[0] = (uint32_t)k;
  key[1] = (uint32_t)(k >> 32);
}

/* Sixteen lanes a time: a fixed count, so that the compiler turns the rounds into vector code. */
void mn_random_lanes(const mn_streams *s, uint32_t purpose, int n, uint32_t bits[4][MN_ENVS_PER_BATCH]) {
  for (int from = 0; from < n; from += 16)
    for (int i = from; i < from + 16; i++) mn_random_lane(s, purpose, i, bits);
}

/* Sixteen blocks a time. */
void mn_draw_words(const int32_t *key, uint64_t first, long n, uint32_t *word) {
  enum { BLOCKS = 16 };
  for (uint64_t at = first, end = first + (uint64_t)n; at < end; ) {
    uint32_t some[4][BLOCKS];
    const uint64_t block = at / 4;
    for (int i = 0; i < BLOCKS; i++) {
      uint32_t c[4] = { (uint32_t)(block + (uint64_t)i), (uint32_t)key[2], (uint32_t)key[3],
                        MN_FOR_DRAWS | (uint32_t)((block + (uint64_t)i) >> 32) };
      mn_philox_rounds((uint32_t)key[0], (uint32_t)key[1], c);
      for (int w = 0; w < 4; w++) some[w][i] = c[w];
    }
    for (; at < end && at < (block + BLOCKS) * 4; at++) *word++ = some[at % 4][at / 4 - block];
  }
}

/* ---- for scripts ---- */

typedef struct source { uint32_t k[6], word[4]; uint64_t block; int used; } source;

static source source_of(double seed, double stream, double purpose) {
  source s = { .used = 4 };
  uint32_t a[2], b[2];
  mn_random_key(seed, s.k);
  mn_random_key(stream, a);
  mn_random_key(purpose, b);
  s.k[4] = a[0] ^ a[1];
  s.k[5] = (b[0] ^ b[1]) & ~MN_FOR_STEP;
  return s;
}

static uint32_t next_word(source *s) {
  if (s->used == 4) {
    s->k[2] = (uint32_t)s->block;
    s->k[3] = (uint32_t)(s->block++ >> 32);
    mn_philox(s->k, s->word);
    s->used = 0;
  }
  return s->word[s->used++];
}

/* out[0..n-1] uniform in [0, 1), 24 bits each.  Equal (seed, stream, purpose) give equal numbers,
** and a shorter draw is the beginning of a longer one.  stream: whole, below 2^32; purpose: whole,
** below 2^31 (MN_FOR_DRAWS in random.h says which of them ops use, too). */
void mn_random_uniform(double seed, double stream, double purpose, float *out, double n) {
  source s = source_of(seed, stream, purpose);
  for (double i = 0; i < n; i++) *out++ = (float)(next_word(&s) >> 8) * 0x1p-24f;
}

/* out[0..n-1] standard normal, by Box and Muller: a pair from each two words. */
void mn_random_normal(double seed, double stream, double purpose, float *out, double n) {
  source s = source_of(seed, stream, purpose);
  for (double i = 0; i < n; i += 2) {
    double u = ((double)next_word(&s) + 1) * 0x1p-32, turn = (double)next_word(&s) * 0x1p-32;
    double r = sqrt(-2 * log(u)), angle = 6.283185307179586 * turn;
    *out++ = (float)(r * cos(angle));
    if (i + 1 < n) *out++ = (float)(r * sin(angle));
  }
}

void mn_random_signs(double seed, uint32_t index, uint64_t tick, int n, float *nu) {
  enum { BLOCK = 128 };
  uint32_t k[6], word[4] = { 0 };
  mn_random_key(seed, k);
  k[2] = (uint32_t)tick;
  k[3] = (uint32_t)(tick >> 32);
  k[4] = index;
  for (int m = 0; m < n; m++) {
    int bit = m % BLOCK;
    k[5] = MN_FOR_SIGNS + (uint32_t)(m / BLOCK);
    if (bit == 0) mn_philox(k, word);
    nu[m] = word[bit / 32] >> bit % 32 & 1 ? 1.0f : -1.0f;
  }
}
