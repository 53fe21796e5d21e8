/* extreme.h -- the largest or smallest element along an axis, and its index: max, min, argmax, argmin.
** The first of equals wins, and it alone gets the gradient; a NaN wins over any number. */
#ifndef MN_EXTREME_H
#define MN_EXTREME_H
#include "reduce.h"

/* Output k: its index, which is returned, and its value.  sign: 1 for the largest, -1 for the smallest. */
MN_FOLD int32_t mn_extreme(const mn_call *c, const mn_span *s, long k, float sign, float *value) {
  const float *x = c->in[0].data + mn_lane(s, k);
  float best = sign * x[0];
  int32_t where = 0;
  for (long r = 1; r < s->size; r++) {
    float v = sign * x[r * s->inner];
    if (v > best || (v != v && best == best)) best = v, where = (int32_t)r;
  }
  *value = sign * best;
  return where;
}

static inline void mn_extreme_backward(mn_call *c) {
  const mn_span s = mn_reduced_span(c);
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad;
  memset(dx, 0, (size_t)c->in[0].n * sizeof *dx);
  for (long k = 0; k < s.outer * s.inner; k++) dx[mn_lane(&s, k) + c->out[1].i32[k] * s.inner] = dy[k];
}

#endif
