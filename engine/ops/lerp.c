/* lerp.c -- y = a + (b - a) m, elementwise: from a (m = 0) to b (m = 1). */
#include "numerics/broadcast.h"

static void value(mn_call *c, float *y, long from, long end) {
  const float *a = c->in[0].data, *b = c->in[1].data, *m = c->in[2].data;
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) y[i] = a[i] + (b[i] - a[i]) * m[i];
}

static void slope_a(mn_call *c, float *da, long from, long end) {
  const float *m = c->in[2].data, *dy = c->out[0].grad;
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) da[i] = dy[i] * (1 - m[i]);
}

static void slope_b(mn_call *c, float *db, long from, long end) {
  const float *m = c->in[2].data, *dy = c->out[0].grad;
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) db[i] = dy[i] * m[i];
}

static void slope_m(mn_call *c, float *dm, long from, long end) {
  const float *a = c->in[0].data, *b = c->in[1].data, *dy = c->out[0].grad;
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) dm[i] = dy[i] * (b[i] - a[i]);
}

static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, value); }

static void backward(mn_call *c) {
  static const mn_part slope[] = { slope_a, slope_b, slope_m };
  for (int i = 0; i < 3; i++) if (c->in[i].grad) mn_in_parts(c, c->in[i].grad, c->in[i].n, slope[i]);
}

const mn_op mn_op_lerp = {
  .sig = "a[...] b[...] m[...] -> y[...]",
  .doc = "y = a + (b - a) m, elementwise",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
