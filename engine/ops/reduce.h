/* reduce.h -- ops that reduce an axis: their shape, and sums that do not depend on the number of threads.
** Options of all of them, in this order: axis (-100: all axes) and keepdims. */
#ifndef MN_REDUCE_H
#define MN_REDUCE_H
#include <string.h>
#include "axis.h"

enum { SUM_CHUNK = 4096, SUM_COLUMNS = 256 };

/* Sets every output to x without the axis; no output has fewer than one axis. */
static inline int mn_reduce_shape(mn_call *c, const char *op) {
  const mn_arg *x = &c->in[0];
  bool all = OPT(c, 0) == MN_ALL_AXES, keep = OPT(c, 1) != 0;
  int axis = all ? 0 : mn_axis(c, op, "axis", OPT(c, 0), x);
  if (axis < 0) return -1;
  if (axis == 0) c->time = MN_WHOLE;
  for (int k = 0; k < c->n_out; k++) {
    mn_arg *y = &c->out[k];
    y->ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
      bool gone = all || i == axis;
      if (!gone || keep) y->shape[y->ndim++] = gone ? 1 : x->shape[i];
    }
    if (!y->ndim) y->shape[y->ndim++] = 1;
  }
  return 0;
}

/* y = scale * sum of x over the span's middle axis, in double, in chunks of fixed size. */
static inline void mn_sum_axis(mn_call *c, double scale) {
  mn_span s = mn_reduced_span(c);
  const float *x = c->in[0].data;
  float *y = c->out[0].data;
  if (s.inner == 1) { /* along memory: partial sums of chunks, then their sum */
    long chunks = (s.size + SUM_CHUNK - 1) / SUM_CHUNK;
    double *part = (double *)mn_scratch(c->ctx, 0, 2 * s.outer * chunks);
    MN_PARALLEL(c->ctx, s.outer * s.size)
    for (long k = 0; k < s.outer * chunks; k++) {
      long o = k / chunks, from = k % chunks * SUM_CHUNK,
           end = s.size - from < SUM_CHUNK ? s.size : from + SUM_CHUNK;
      double sum = 0;
      MN_PRAGMA(omp simd reduction(+:sum))
      for (long i = from; i < end; i++) sum += (double)x[o * s.size + i];
      part[k] = sum;
    }
    for (long o = 0; o < s.outer; o++) {
      double sum = 0;
      for (long k = 0; k < chunks; k++) sum += part[o * chunks + k];
      y[o] = (float)(scale * sum);
    }
    return;
  }
  long blocks = (s.inner + SUM_COLUMNS - 1) / SUM_COLUMNS;
  MN_PARALLEL(c->ctx, c->in[0].n)
  for (long k = 0; k < s.outer * blocks; k++) {
    long o = k / blocks, from = k % blocks * SUM_COLUMNS,
         n = s.inner - from < SUM_COLUMNS ? s.inner - from : SUM_COLUMNS;
    double sum[SUM_COLUMNS];
    for (long i = 0; i < n; i++) sum[i] = 0;
    for (long r = 0; r < s.size; r++)
      for (long i = 0; i < n; i++) sum[i] += (double)x[(o * s.size + r) * s.inner + from + i];
    for (long i = 0; i < n; i++) y[o * s.inner + from + i] = (float)(scale * sum[i]);
  }
}

/* dx = scale * dy, repeated along the axis. */
static inline void mn_spread_axis(mn_call *c, double scale) {
  mn_span s = mn_reduced_span(c);
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad, a = (float)scale;
  if (s.inner == 1) {
    long chunks = (s.size + SUM_CHUNK - 1) / SUM_CHUNK;
    MN_PARALLEL(c->ctx, c->in[0].n)
    for (long k = 0; k < s.outer * chunks; k++) {
      long o = k / chunks, from = k % chunks * SUM_CHUNK;
      float g = a * dy[o], *to = dx + o * s.size;
      for (long i = from; i < s.size && i < from + SUM_CHUNK; i++) to[i] = g;
    }
    return;
  }
  MN_PARALLEL(c->ctx, c->in[0].n)
  for (long r = 0; r < s.outer * s.size; r++) {
    const float *from = dy + r / s.size * s.inner;
    for (long i = 0; i < s.inner; i++) dx[r * s.inner + i] = a * from[i];
  }
}

#endif
