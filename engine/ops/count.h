/* count.h -- how many elements of a mask are set along an axis: all, any, count_nonzero. */
#ifndef MN_COUNT_H
#define MN_COUNT_H
#include "reduce.h"

static inline long mn_count(const mn_call *c, const mn_span *s, long k) {
  const uint8_t *x = c->in[0].u8 + mn_lane(s, k);
  long n = 0;
  for (long r = 0; r < s->size; r++) n += x[r * s->inner] != 0;
  return n;
}

#endif
