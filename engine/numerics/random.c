/* random.c -- Philox4x32-10 for many environments at once, and for scripts: see random.h. */
#include "random.h"
#if defined __AVX2__
#include <immintrin.h>
#endif
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

#if defined __AVX2__ && !defined __AVX512F__
/* Eight lanes, the even and the odd ones in vectors of 64 bits: a product reads lower halves alone, so that what the upper ones hold need not be
** cleared, and an odd lane's key lies where its product's upper half does.  The compiler's own code shuffles half of the time. */
enum { EVEN, ODD };
static inline __m256i upper(__m256i x) { return _mm256_shuffle_epi32(x, 0xF5); }
static inline __m256i mixed(__m256i product, __m256i word, __m256i key, int h) {
  return h == ODD ? _mm256_xor_si256(upper(_mm256_xor_si256(product, key)), word) : _mm256_xor_si256(_mm256_xor_si256(upper(product), word), key);
}

void mn_random_lanes(const mn_streams *s, uint32_t purpose, int n, uint32_t bits[4][MN_ENVS_PER_BATCH]) {
  const __m256i of_a = _mm256_set1_epi32((int)0xD2511F53u), of_b = _mm256_set1_epi32((int)0xCD9E8D57u);
  const uint32_t *from[] = { s->step[0], s->step[1], s->index, NULL, s->key[0], s->key[1] };
  for (int first = 0; first < n; first += 8) {
    __m256i in[6], c[4][2];
    for (int w = 0; w < 6; w++) in[w] = from[w] ? _mm256_loadu_si256((const __m256i *)(const void *)(from[w] + first)) : _mm256_set1_epi32((int)purpose);
    for (int w = 0; w < 4; w++) c[w][EVEN] = in[w], c[w][ODD] = upper(in[w]);
    __m256i k0 = in[4], k1 = in[5];
#pragma GCC unroll 1
    for (int round = 0; round < 10; round++) {
      for (int h = EVEN; h <= ODD; h++) {
        const __m256i a = _mm256_mul_epu32(of_a, c[0][h]), b = _mm256_mul_epu32(of_b, c[2][h]);
        c[0][h] = mixed(b, c[1][h], k0, h);
        c[2][h] = mixed(a, c[3][h], k1, h);
        c[1][h] = b;
        c[3][h] = a;
      }
      k0 = _mm256_add_epi32(k0, _mm256_set1_epi32((int)0x9E3779B9u));
      k1 = _mm256_add_epi32(k1, _mm256_set1_epi32((int)0xBB67AE85u));
    }
    for (int w = 0; w < 4; w++)
      _mm256_storeu_si256((__m256i *)(void *)(bits[w] + first), _mm256_blend_epi32(c[w][EVEN], _mm256_slli_epi64(c[w][ODD], 32), 0xAA));
  }
}
#else
/* Sixteen lanes a time: a fixed count, so that the compiler turns the rounds into vector code. */
void mn_random_lanes(const mn_streams *s, uint32_t purpose, int n, uint32_t bits[4][MN_ENVS_PER_BATCH]) {
  for (int from = 0; from < n; from += 16)
    for (int i = from; i < from + 16; i++) mn_random_lane(s, purpose, i, bits);
}
#endif

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
