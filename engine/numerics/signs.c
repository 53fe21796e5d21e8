/* signs.c -- random signs: see signs.h. */
#include "signs.h"
#include "random.h"

void mn_random_signs(double seed, uint32_t copy, uint64_t tick, int n, float *nu) {
  enum { BLOCK = 128 };
  uint32_t k[6], word[4] = { 0 };
  mn_random_key(seed, k);
  k[2] = (uint32_t)tick;
  k[3] = (uint32_t)(tick >> 32);
  k[4] = copy;
  for (int m = 0; m < n; m++) {
    int bit = m % BLOCK;
    k[5] = MN_FOR_SIGNS + (uint32_t)(m / BLOCK);
    if (bit == 0) mn_philox(k, word);
    nu[m] = word[bit / 32] >> bit % 32 & 1 ? 1.0f : -1.0f;
  }
}
